"""Starts one command confined, as a separate program. Uses little of the standard library: every start pays for it.

Its order, a dictionary, is in the memory file `fd`, and its report is written there; `launcher_sandbox` calls it.
`prepare` is the part of it that bubblewrap needs to protect names, and becomes bubblewrap.
A separate program, because code between fork and exec is unsafe in a process with threads. It stays as the parent of
everything the command starts and kills all of it when the command ends, when it receives SIGTERM, or when its own
parent dies.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` adds only enums, for a third of the start
import ctypes
import marshal
import os
import resource
import stat
import struct

TYPE_CHECKING = False  # `typing` would be another third
if TYPE_CHECKING:
    from typing import Any, Final, NoReturn

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_SET_SECCOMP: Final = 22
SECCOMP_MODE_FILTER: Final = 2

CLONE_NEW: Final = {
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "mount": 0x00020000,
}

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446  # the numbers of these calls are the same everywhere
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD: Final = -100
AT_EMPTY_PATH, AT_RECURSIVE = 0x1000, 0x8000
CLONE_TREE: Final = 0x80001  # OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
FROM_AND_TO_DESCRIPTOR: Final = 0x4 | 0x40  # MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MOUNT_ATTR_RDONLY: Final = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
OF_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TO_READ: Final = EXECUTE | READ_FILE | READ_DIR
DEVICE: Final = READ_FILE | WRITE_FILE
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11

LEAST_ABI: Final = 3
"""Linux 6.2: before it, Landlock does not stop files from being truncated."""

LIBC: Final = ctypes.CDLL(None, use_errno=True)

FAILED: Final = 125  # the exit status when the command could not be started as ordered; `env` and `docker` use it too
NOT_FOUND: Final = 127  # the shells' exit status for a command that does not exist

AWAITED: Final = frozenset((signal.SIGTERM, signal.SIGCHLD))
"""What the supervising process waits for: to be told to stop, or the end of a child."""


class StopRequest(Exception):
    """SIGTERM: kill everything and return."""


class LaunchFailure(Exception):
    """The order cannot be carried out; nothing was started."""


def check(result: int, what: str) -> int:
    """The result of a C function; negative is an error."""
    if result < 0:
        number = ctypes.get_errno()
        raise LaunchFailure(f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, value: Any, more: Any = 0) -> None:
    """`prctl` with two values."""
    check(LIBC.prctl(option, ctypes.c_ulong(value), more, 0, 0), f"prctl {option}")


def main(fd: int, order: dict[str, Any]) -> NoReturn:
    """Carry out the order that was in `fd`, then exit with the status of the command."""
    os.set_inheritable(fd, False)
    os.ftruncate(fd, 0)
    try:
        status = supervise(order, fd)
    except (LaunchFailure, OSError) as e:
        report(fd, {"failed": str(e)})
        status = FAILED
    os._exit(status)


def report(fd: int, said: dict[str, Any]) -> None:
    """Report the failure, or the command's end. The first report counts."""
    if os.fstat(fd).st_size == 0:
        os.pwrite(fd, marshal.dumps(said), 0)


def supervise(order: dict[str, Any], fd: int) -> int:
    """Start the command, wait for it, kill the processes that it left."""
    for path in order["cgroups"]:
        with open(path, "w") as procs:
            procs.write("0")
    if order["uid"] is not None:
        become(order["uid"])
    separate(order["namespaces"])
    if "mount" in order["namespaces"]:
        seal(order["landlock"]["write"], order["workdir"], order["protected"])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = 0
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)  # a handler would miss a signal just before a wait
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # after the identity has changed, which would clear it
        if os.getppid() != order["parent"]:  # it died before the request for a signal
            raise StopRequest
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
            if "pid" in order["namespaces"]:
                first(order, fd)
            run(order, fd)
        return wait_for(child, fd, stoppable=True)
    except StopRequest:
        return 128 + int(signal.SIGKILL)
    finally:
        kill_descendants()


def become(uid: int) -> None:
    """Give up root."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    prctl(PR_SET_DUMPABLE, 1)  # otherwise /proc/self/uid_map still belongs to root


def separate(namespaces: list[str]) -> None:
    """Enter new namespaces; as an ordinary user inside, so that the command has no capability there either."""
    if namespaces:
        enter(namespaces, 1000, 1000)


def enter(namespaces: list[str], uid_inside: int, gid_inside: int) -> None:
    """Enter new namespaces, as this user inside."""
    uid, gid = os.geteuid(), os.getegid()
    flags = sum(CLONE_NEW[name] for name in namespaces)
    check(LIBC.unshare(flags), f"unshare {'+'.join(namespaces)}")
    maps = (("setgroups", "deny"), ("uid_map", f"{uid_inside} {uid} 1"), ("gid_map", f"{gid_inside} {gid} 1"))
    for name, text in maps:
        with open(f"/proc/self/{name}", "w") as mapping:
            mapping.write(text)


def seal(writable: list[str], folder: str, names: list[str]) -> None:
    """Make every mount but the given folders read-only, so that changes that Landlock cannot see, such as chmod, fail.

    The protected names in a folder stay read-only.
    """
    check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount / as private")
    for path in map(os.fsencode, writable):
        check(LIBC.mount(path, path, None, MS_BIND, None), f"bind {path!r}")
    protect(folder, names)
    read_only(b"/", True, AT_RECURSIVE)
    for path in map(os.fsencode, writable):
        read_only(path, False, 0)


def read_only(path: bytes, on: bool, flags: int, at: int = AT_FDCWD) -> None:
    """Set or clear a mount's read-only flag."""
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY if on else 0, 0 if on else MOUNT_ATTR_RDONLY, 0, 0)
    result = LIBC.syscall(MOUNT_SETATTR, at, path, flags, attributes, ctypes.c_size_t(len(attributes)))
    check(result, f"mount {path!r} {'read-only' if on else 'writable'}")


def protect(folder: str, names: list[str]) -> None:
    """Mount entries of a folder read-only over themselves, so that they can be neither changed, renamed nor removed.

    By descriptors: another command may write there in the meantime, and put a link in place of an entry.
    """
    if not names:
        return
    here = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    for name in names:
        try:
            entry = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=here)
        except FileNotFoundError:  # removed outside
            continue
        if stat.S_ISLNK(os.fstat(entry).st_mode):
            raise LaunchFailure(f"{name!r} has become a link; only files and folders can be protected")
        copy = check(LIBC.syscall(OPEN_TREE, entry, b"", AT_EMPTY_PATH | AT_RECURSIVE | CLONE_TREE), f"copy {name!r}")
        read_only(b"", True, AT_EMPTY_PATH | AT_RECURSIVE, copy)
        check(LIBC.syscall(MOVE_MOUNT, copy, b"", entry, b"", FROM_AND_TO_DESCRIPTOR), f"mount {name!r}")
        os.close(copy)
        os.close(entry)
    os.close(here)


def prepare(fd: int, order: dict[str, Any]) -> NoReturn:
    """Protect the names in a new mount namespace, then become the program that sets up the rest."""
    os.set_inheritable(fd, False)
    try:
        enter(["user", "mount"], os.geteuid(), os.getegid())
        check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount / as private")
        protect(order["workdir"], order["protected"])
        os.execve(order["command"][0], order["command"], order["env"])
    except (LaunchFailure, OSError) as e:
        os.write(2, f"the protected names: {e}\n".encode(errors="surrogateescape"))
    os._exit(FAILED)


def first(order: dict[str, Any], fd: int) -> NoReturn:
    """The first process of a pid namespace: when it exits, the kernel kills every other one."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    status = FAILED
    try:
        child = os.fork()
        if child == 0:
            run(order, fd)
        status = wait_for(child, fd)
    finally:
        os._exit(status)


def wait_for(child: int, fd: int, *, stoppable: bool = False) -> int:
    """Wait for one child, collecting all others; its status as shells count it. The exact one is reported.

    With `stoppable`, SIGTERM ends the wait: the signals of `AWAITED` are then blocked.
    """
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG if stoppable else 0)
        if pid == child:
            break
        if pid == 0 and signal.sigwait(AWAITED) == signal.SIGTERM:
            raise StopRequest
    code = os.waitstatus_to_exitcode(status)
    report(fd, {"code": code})
    return code if code >= 0 else 128 - code


def run(order: dict[str, Any], fd: int) -> NoReturn:
    """Become the command."""
    try:
        confine(order)
    except (LaunchFailure, OSError, ValueError) as e:
        report(fd, {"failed": str(e)})
        os._exit(FAILED)
    try:
        os.execvpe(order["command"][0], order["command"], order["env"])
    except OSError as e:
        os.write(2, f"{order['command'][0]}: {e.strerror}\n".encode(errors="surrogateescape"))
    finally:
        os._exit(NOT_FOUND)


def confine(order: dict[str, Any]) -> None:
    """Give up everything that the command must not have."""
    os.setsid()
    os.chdir(order["workdir"])
    for name, most in order["rlimits"].items():
        number = getattr(resource, f"RLIMIT_{name}")
        hardest = resource.getrlimit(number)[1]
        soft, hard = (value if hardest == resource.RLIM_INFINITY else min(value, hardest) for value in most)
        resource.setrlimit(number, (soft, hard))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if order["landlock"] is not None:
        landlock(order["landlock"])
    if order["seccomp"]:
        seccomp(bytes.fromhex(order["seccomp"]))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def kill_descendants() -> None:
    """Kill until none is left: the children of a killed process become ours."""
    while True:
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def descendants() -> set[int]:
    """Every process that descends from this one."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    parents[int(name)] = int(stat.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):  # it has ended
                continue
    found: set[int] = set()
    fresh = {os.getpid()}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def landlock(order: dict[str, Any]) -> None:
    """Restrict this process to the given paths, and its signals and abstract sockets to itself where possible."""
    abi = LIBC.syscall(LANDLOCK_CREATE, None, 0, 1)
    if abi < LEAST_ABI:
        raise LaunchFailure(f"Landlock: found version {max(abi, 0)}, expected {LEAST_ABI} or later (Linux 6.2)")
    handled = (1 << (16 if abi >= 5 else 15)) - 1
    rules = struct.pack("QQQ", handled, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = check(LIBC.syscall(LANDLOCK_CREATE, rules, ctypes.c_size_t(size), 0), "landlock_create_ruleset")
    writing = handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
    for kind, rights in (("read", TO_READ), ("write", writing), ("devices", DEVICE)):
        for path in order[kind]:
            allow(ruleset, path, rights & handled)
    check(LIBC.syscall(LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    """Add one rule."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            rights &= OF_FILES
        rule = struct.pack("=Qi", rights, fd)
        check(LIBC.syscall(LANDLOCK_ADD, ruleset, 1, rule, 0), f"landlock_add_rule for {path}")
    finally:
        os.close(fd)


def seccomp(program: bytes) -> None:
    """Install a filter of system calls."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer)))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(header)))
