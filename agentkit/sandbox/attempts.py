"""Attempts to escape, run inside a sandbox: `python -I -S - <facts>`, this file on stdin. Standard library only.

Each function tries one thing and returns its success in words; a failure or None counts as contained. They do
no harm where they succeed. The host also verifies the effects that are visible outside: see `probe`.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

Facts = dict[str, Any]

LIBC: Final = ctypes.CDLL(None, use_errno=True)

ARM: Final = platform.machine() == "aarch64"


def read_file(path: str) -> str | None:
    """Return the text of a file; None if it is empty or cannot be read."""
    with open(path, "rb") as file:
        return f"read {path}" if file.read(100) else None


def report_success(what: str, result: int) -> str | None:
    """A system call that must fail."""
    return None if result < 0 else f"{what} returned {result}"


def etc_shadow(facts: Facts) -> str | None:
    """Read the password hashes."""
    return read_file("/etc/shadow")


def home(facts: Facts) -> str | None:
    """Read files in the home folder."""
    found = []
    for path in facts["home_files"]:
        try:
            found.append(read_file(path))
        except OSError:
            continue
    return next(filter(None, found), None)


def tmp_read(facts: Facts) -> str | None:
    """Read a file in the common temporary folder."""
    return read_file(facts["outside"])


def tmp_write(facts: Facts) -> str | None:
    """Change that file."""
    with open(facts["outside"], "r+b") as file:
        file.write(b"changed")
    return "wrote to a file outside"


def tmp_truncate(facts: Facts) -> str | None:
    """Empty that file without opening it."""
    os.truncate(facts["outside"], 0)
    return "truncated a file outside"


def usr_write(facts: Facts) -> str | None:
    """Create a file in the system."""
    path = f"/usr/{facts['unique']}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)
    return "created a file in /usr"


def symlink(facts: Facts) -> str | None:
    """Read that file through a symbolic link in the own folder."""
    os.symlink(facts["outside"], "link-outside")
    return read_file("link-outside")


def hardlink(facts: Facts) -> str | None:
    """Give that file a second name in the own folder."""
    os.link(facts["outside"], "hard-outside")
    return "linked a file outside"


def chmod(facts: Facts) -> str | None:
    """Change the mode of that file, which Landlock alone does not prevent."""
    os.chmod(facts["outside"], 0o666)
    return "changed the mode of a file outside"


def times(facts: Facts) -> str | None:
    """Change the times of that file."""
    os.utime(facts["outside"], (1, 1))
    return "changed the times of a file outside"


def set_id(facts: Facts) -> str | None:
    """Leave a program that runs as its owner, who outside is the one that started the sandbox."""
    path, mode = "set-id", 0o6755
    os.umask(0)
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o755)
    ways: tuple[Callable[[], object], ...] = (
        lambda: os.chmod(path, mode),
        lambda: os.fchmod(file, mode),
        lambda: LIBC.syscall(452, -100, path.encode(), mode, 0),  # fchmodat2
        lambda: os.close(LIBC.open(b"set-id-open", os.O_CREAT | os.O_WRONLY, mode)),
        lambda: os.close(LIBC.creat(b"set-id-creat", mode)),
        lambda: LIBC.mknod(b"set-id-mknod", 0o100000 | mode, ctypes.c_ulong(0)),
        lambda: os.close(LIBC.syscall(437, -100, b"set-id-openat2", struct.pack("QQQ", 0o101, mode, 0), 24)),
        lambda: os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY, mode)),
        lambda: os.setxattr(path, "security.capability", struct.pack("<IIIII", 0x2000001, 1, 0, 0, 0)),
    )
    for way in ways:
        try:
            way()
        except OSError:
            continue
    os.close(file)
    left = [name for name in os.listdir(".") if os.lstat(name).st_mode & 0o6000]
    return f"left {left} with the mode of its owner" if left or "security.capability" in os.listxattr(path) else None


def limits_of_others(facts: Facts) -> str | None:
    """Change limits and priorities of a process besides the own one."""
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        limits = struct.pack("QQ", 64, 64)
        for what, result in (
            ("prlimit", LIBC.prlimit(child, 7, limits, None)),
            ("setpriority", LIBC.setpriority(0, child, 19)),
            ("setpriority of the group", LIBC.setpriority(1, 0, 19)),
            ("setpriority of the user", LIBC.setpriority(2, 0, 19)),
            ("ioprio_set", LIBC.syscall(30 if ARM else 251, 1, child, 3 << 13)),
            ("ioprio_set of the user", LIBC.syscall(30 if ARM else 251, 3, 0, 3 << 13)),
            ("sched_setaffinity", LIBC.sched_setaffinity(child, 8, struct.pack("Q", 1))),
            ("sched_setscheduler", LIBC.sched_setscheduler(child, 3, struct.pack("i", 0))),
        ):
            if (done := report_success(what, result)) is not None:
                return done
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return None


def tcp(facts: Facts) -> str | None:
    """Connect to a server of the host."""
    socket.create_connection(("127.0.0.1", facts["tcp"]), timeout=1).close()
    return "connected"


def udp(facts: Facts) -> str | None:
    """Send a datagram, as a query of a name server would be."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talk:
        talk.sendto(b"escaped", ("127.0.0.1", facts["udp"]))
    return None if facts["netns"] else "sent a datagram"


def unix_path(facts: Facts) -> str | None:
    """Connect to a Unix socket by path, such as Docker's."""
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect(facts["unix"])
    return "connected"


def unix_abstract(facts: Facts) -> str | None:
    """Connect to a Unix socket by name."""
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect("\0" + facts["unique"])
    return "connected"


def kill_all(facts: Facts) -> str | None:
    """Send every process a signal that does nothing by default."""
    os.kill(-1, signal.SIGURG)
    return None


def kill_outside(facts: Facts) -> str | None:
    """Kill a process of the host."""
    os.kill(facts["victim"], signal.SIGTERM)
    return None


def kill_parent(facts: Facts) -> str | None:
    """Send a signal to the process that asked for the sandbox."""
    if facts["host"] < 10:
        return None  # a number that exists inside too
    os.kill(facts["host"], 0)
    return "may signal the host"


def ptrace(facts: Facts) -> str | None:
    """Attach to a process of the host; trace at all."""
    if (done := report_success("ptrace attach", LIBC.ptrace(16, facts["victim"], 0, 0))) is not None:
        LIBC.ptrace(17, facts["victim"], 0, 0)
        return done
    return report_success("ptrace", LIBC.ptrace(0, 0, 0, 0))


def unshare(facts: Facts) -> str | None:
    """Gain capabilities in a user namespace."""
    return report_success("unshare", LIBC.unshare(0x10000000))


def setns(facts: Facts) -> str | None:
    """Enter the namespaces of another process."""
    with open("/proc/1/ns/net", "rb") as namespace:
        return report_success("setns", LIBC.setns(namespace.fileno(), 0))


def mount(facts: Facts) -> str | None:
    """Mount a file system."""
    return report_success("mount", LIBC.mount(b"none", os.fsencode(os.getcwd()), b"tmpfs", 0, None))


def io_uring(facts: Facts) -> str | None:
    """Queue system calls where no filter sees them."""
    return report_success("io_uring_setup", LIBC.syscall(425, 1, ctypes.create_string_buffer(120)))


def bpf(facts: Facts) -> str | None:
    """Load a program into the kernel."""
    return report_success("bpf", LIBC.syscall(280 if ARM else 321, 0, ctypes.create_string_buffer(120), 72))


def keyring(facts: Facts) -> str | None:
    """Use the keys that the kernel keeps for this user."""
    return report_success("keyctl", LIBC.syscall(219 if ARM else 250, 0, -3, 0))


def environment(facts: Facts) -> str | None:
    """Read the host's variables."""
    found = [name for name in os.environ if name in facts["variables"]]
    return f"the host's {found}" if found else None


def environ_of_others(facts: Facts) -> str | None:
    """Read variables and arguments of other processes."""
    canary = facts["yranac"][::-1].encode()  # backwards, because our own arguments are there too
    for pid in os.listdir("/proc"):
        for name in ("environ", "cmdline") if pid.isdigit() and int(pid) != os.getpid() else ():
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    if canary in file.read(1 << 20):
                        return f"/proc/{pid}/{name}"
            except OSError:
                continue
    return None


def proc_root(facts: Facts) -> str | None:
    """Read that file through another process's root."""
    return read_file(f"/proc/1/root{facts['outside']}")


def kernel_settings(facts: Facts) -> str | None:
    """Write to settings of the kernel; one of them names a program that root starts outside."""
    for folder, folders, files in os.walk("/proc"):
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        for name in files:
            if os.access(os.path.join(folder, name), os.W_OK):
                return f"may write {os.path.join(folder, name)}"
    return None


def descriptors(facts: Facts) -> str | None:
    """Use files that the host left open."""
    for fd in range(3, 256):
        try:
            os.fstat(fd)
        except OSError:
            continue
        where = os.readlink(f"/proc/self/fd/{fd}") if os.path.exists("/proc/self/fd") else "unknown"
        return f"descriptor {fd} is open: {where}"
    return None


def privileges(facts: Facts) -> str | None:
    """Gain privileges from programs that run as their owner."""
    return None if LIBC.prctl(39, 0, 0, 0, 0) == 1 else "programs may gain privileges"


def memory(facts: Facts) -> str | None:
    """Take 8 GB of memory."""
    mmap.mmap(-1, 8 << 30).close()
    return "got 8 GB"


def large_file(facts: Facts) -> str | None:
    """Write 200 MB to one file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("large", "wb") as file:
        file.truncate(200 << 20)
    return "wrote 200 MB"


def fork_bomb(facts: Facts) -> str | None:
    """Start four times as many processes as allowed."""
    children = []
    try:
        for _ in range(4 * facts["processes"]):  # without namespaces the user's other processes count, and come and go
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
    except OSError:
        return None
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return f"{len(children)} processes"


ATTEMPTS: Final[tuple[Callable[[Facts], str | None], ...]] = (
    etc_shadow, home, tmp_read, tmp_write, tmp_truncate, usr_write, symlink, hardlink, chmod, times, set_id,
    tcp, udp, unix_path, unix_abstract,
    kill_all, kill_outside, kill_parent, limits_of_others, ptrace, unshare, setns, mount, io_uring, bpf, keyring,
    environment, environ_of_others, proc_root, kernel_settings, descriptors, privileges,
    memory, large_file, fork_bomb,
)  # fmt: skip


def main(facts: Facts) -> None:
    """Try everything; print one JSON object with the successes by name."""
    found = {}
    for attempt in ATTEMPTS:
        try:
            found[attempt.__name__] = attempt(facts)
        except (OSError, MemoryError, ValueError, OverflowError):
            found[attempt.__name__] = None
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
