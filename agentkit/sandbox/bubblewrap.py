"""Sandboxes by bubblewrap: the command sees its own file system, with only the paths that it may see."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import subprocess
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Final

from agentkit.errors import SandboxError, SandboxUnavailable
from agentkit.sandbox import seccomp
from agentkit.sandbox.base_sandbox import BaseSandbox, Order, Setup
from agentkit.sandbox.cgroups import ControlGroup, parents
from agentkit.sandbox.launcher_sandbox import launch_command, order_file, rlimits
from agentkit.sandbox.outputs import readable
from agentkit.sandbox.tree import ProcessEnd, StartedProcess

START: Final = 10.0
"""Seconds for bubblewrap to set up; it takes milliseconds, but the machine may be busy."""

TOO_LONG: Final = 1 << 16  # of a report or a complaint of bubblewrap

EXEC: Final = ("/bin/sh", "-c", 'exec "$0" "$@"')
"""Starts the command: unlike bubblewrap, it returns 127 for a command that does not exist."""


@cache
def program() -> tuple[str, frozenset[str]]:
    """Return the path of bubblewrap and the options that it knows.

    Raises:
        SandboxUnavailable: it is not installed, or cannot be run.
    """
    path = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    if path is None:
        raise SandboxUnavailable("bubblewrap is not installed: no bwrap in /usr/local/bin, /usr/bin and /bin")
    if not seccomp.known_machine():
        raise SandboxUnavailable("no filter of system calls for this processor: x86_64 and aarch64 only")
    try:
        words = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=START).stdout.split()
    except (OSError, subprocess.TimeoutExpired) as e:
        raise SandboxUnavailable(f"{path} cannot be run: {e}") from e
    known = frozenset(word for word in words if word.startswith("--"))
    if missing := {"--size", "--clearenv", "--json-status-fd", "--block-fd", "--args"} - known:
        raise SandboxUnavailable(f"{path} is older than 0.6: it does not know {' '.join(sorted(missing))}")
    return path, known


@cache
def kernel_settings() -> list[str]:
    """Return the entries of /proc, other than processes, that root can write to.

    Root can by ownership, without capabilities, as can a process that root starts in a user namespace: /proc/sys
    names a program that the kernel runs as root outside. bubblewrap (0.8) covers only some of the entries.
    """

    def writable(folder: str, files: list[str]) -> bool:
        for name in files:
            with suppress(OSError):
                if os.lstat(os.path.join(folder, name)).st_mode & 0o222:
                    return True
        return False

    entries = [entry.path for entry in os.scandir("/proc") if not entry.name.isdigit() and not entry.is_symlink()]
    return [
        entry
        for entry in entries
        if writable("/proc", [os.path.basename(entry)])
        or any(writable(folder, files) for folder, _, files in os.walk(entry))
    ]


class Bubblewrap(BaseSandbox):
    """bubblewrap with a filter of system calls, kernel limits, and control groups where they can be had."""

    name = "bwrap"

    def __init__(self, setup: Setup) -> None:
        self._program, self._known = program()
        if os.geteuid() == 0 and "pids" not in parents():
            raise SandboxUnavailable(
                "as root, the number of processes can only be limited by a control group, and none can be created in "
                "/sys/fs/cgroup; run as an ordinary user"
            )
        super().__init__(setup)

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {"TMPDIR": "/tmp"}

    def _arguments(self, order: Order) -> list[str]:
        """Return bubblewrap's arguments; later mounts lie on top of earlier ones."""
        words = [
            "--unshare-all",
            "--unshare-user",
            "--die-with-parent",
            "--new-session",
            "--uid",
            "1000",
            "--gid",
            "1000",
        ]
        if "--disable-userns" in self._known:
            words.append("--disable-userns")
        size = str(order.limits.memory)
        words += ["--proc", "/proc"]
        for path in kernel_settings():
            words += ["--ro-bind", path, path]
        words += [
            "--remount-ro",
            "/proc",
            "--dev",
            "/dev",
            "--size",
            size,
            "--tmpfs",
            "/dev/shm",
            "--remount-ro",
            "/dev",
        ]
        words += ["--size", size, "--tmpfs", "/tmp"]
        for path in map(str, self.readable):
            words += ["--ro-bind", path, path]
        workdir = str(self._workdir)
        words += ["--bind", workdir, workdir, "--chdir", workdir, "--remount-ro", "/", "--clearenv"]
        for name, value in order.env.items():
            words += ["--setenv", name, value]
        return words

    async def _launch(self, order: Order) -> StartedProcess:
        with ExitStack() as opened:
            group = ControlGroup(order.limits, own=2)
            undo = opened.enter_context(ExitStack())  # what is undone only if the start fails
            undo.callback(group.remove)
            arguments = _memory(
                "agentkit-bwrap", b"".join(os.fsencode(word) + b"\0" for word in self._arguments(order))
            )
            opened.callback(os.close, arguments)
            filtering = _memory("agentkit-seccomp", seccomp.program())
            opened.callback(os.close, filtering)
            info, info_end = os.pipe()
            undo.callback(os.close, info)
            block, block_end = os.pipe()
            undo.callback(os.close, block_end)  # which lets bubblewrap continue: it is killed before
            try:
                popen = self._popen(opened, order, arguments, filtering, info_end, block)
            finally:
                os.close(info_end)
                os.close(block)
            undo.callback(_discard, popen)
            pid = await self._first_pid(popen, info)
            try:
                pidfd = os.pidfd_open(pid)  # it waits for us, so the number is still its own
                undo.callback(os.close, pidfd)
                # Set here and not before: the kernel would otherwise count all processes of this user.
                for name, most in rlimits(order.limits, others=2).items():
                    _limit(pid, getattr(resource, f"RLIMIT_{name}"), most)
                group.add(pid)
                os.write(block_end, b"x")
            except (ProcessLookupError, BrokenPipeError) as e:
                raise _complaint(popen) from e
            undo.pop_all()
            os.close(block_end)
        return _started_process(popen, pidfd, info, group)

    def _popen(self, opened: ExitStack, order: Order, *fds: int) -> subprocess.Popen[bytes]:
        arguments, filtering, info, block = fds
        command = [
            *(self._program, "--args", str(arguments), "--seccomp", str(filtering)),
            *("--json-status-fd", str(info), "--block-fd", str(block), "--", *EXEC, *order.command),
        ]
        if self._setup.protected:  # bubblewrap takes paths alone, and would follow a link that a command puts there
            memory = order_file(
                {
                    "do": "prepare",
                    "workdir": str(self._workdir),
                    "protected": list(self._setup.protected),
                    "command": command,
                    "env": {},
                }
            )
            opened.callback(os.close, memory)
            command, fds = launch_command(memory), (*fds, memory)
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=fds,
        )

    async def _first_pid(self, popen: subprocess.Popen[bytes], info: int) -> int:
        """The number of the first process inside, which waits."""
        said = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(START):
                while b"\n" not in said:
                    await readable(info)
                    if not (piece := os.read(info, TOO_LONG)):
                        break
                    said += piece
        try:
            return int(json.loads(said)["child-pid"])
        except (ValueError, KeyError) as e:
            raise _complaint(popen) from e


def _complaint(popen: subprocess.Popen[bytes]) -> SandboxError:
    """Return bubblewrap's own reason for not starting the command."""
    _kill(popen)
    said = b"" if popen.stderr is None else popen.stderr.read(TOO_LONG)
    return SandboxError(f"bubblewrap did not start: {said.decode('utf-8', 'replace').strip() or f'{START:g} s passed'}")


def _memory(name: str, content: bytes) -> int:
    fd = os.memfd_create(name)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _limit(pid: int, resource_number: int, most: tuple[int, int]) -> None:
    hardest = resource.prlimit(pid, resource_number)[1]
    soft, hard = (value if hardest == resource.RLIM_INFINITY else min(value, hardest) for value in most)
    resource.prlimit(pid, resource_number, (soft, hard))


def _kill(popen: subprocess.Popen[bytes]) -> None:
    """Kill bubblewrap and the first process inside, which may not know yet that it is to die with it.

    Bubblewrap is stopped first: it may be making that process just now, which then is not yet among its children.
    """
    with suppress(OSError, ValueError):
        popen.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, popen.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        for pid in Path(f"/proc/{popen.pid}/task/{popen.pid}/children").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    popen.kill()


def _discard(popen: subprocess.Popen[bytes]) -> None:
    """End a start that failed, or was cancelled."""
    _kill(popen)
    popen.wait()
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe is not None:
            pipe.close()


def _started_process(popen: subprocess.Popen[bytes], pidfd: int, info: int, group: ControlGroup) -> StartedProcess:
    def stop() -> None:
        with suppress(ProcessLookupError):  # the first process inside; with it the kernel kills all others
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def ended(status: int, _: float) -> ProcessEnd:  # the outermost process does not collect what the others have used
        if b"exit-code" not in os.read(info, TOO_LONG):  # it says so only of a command that was started
            if status < 0:  # killed itself, and the command with it
                return ProcessEnd(status, group.out_of_memory, cpu=group.cpu)
            return ProcessEnd(None, failed="bubblewrap did not start the command")
        code = 128 - status if 128 < status <= 128 + signal.SIGRTMAX else status
        return ProcessEnd(code, group.out_of_memory, cpu=group.cpu)

    def released() -> None:
        os.close(pidfd)
        os.close(info)
        group.remove()

    return StartedProcess(popen, stop, ended, released, inner=pidfd)
