"""Sandboxes by our own launcher, a program that confines itself before it starts the command."""

from __future__ import annotations

import marshal
import math
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, Final

from agentkit.errors import SandboxUnavailable
from agentkit.sandbox import seccomp
from agentkit.sandbox.base_sandbox import BaseSandbox, Order, Setup
from agentkit.sandbox.cgroups import ControlGroup, parents
from agentkit.sandbox.private import NOBODY
from agentkit.sandbox.quota import SandboxLimits
from agentkit.sandbox.tree import ProcessEnd, StartedProcess

LAUNCHER: Final = Path(__file__).with_name("launcher.py")

CALL: Final = (
    "import marshal, os, sys; fd = int(sys.argv[1]); own = {'__name__': 'launcher'}; "
    "code, order = marshal.loads(os.pread(fd, os.fstat(fd).st_size, 0)); exec(code, own); own[order['do']](fd, order)"
)
"""How the launcher is called. It comes compiled: compiling it each time would take as long as all of its work."""


@cache
def launcher() -> CodeType:
    """The launcher, compiled once."""
    return compile(LAUNCHER.read_bytes(), LAUNCHER, "exec", dont_inherit=True)


class UnconfinedSandbox(BaseSandbox):
    """No isolation: the command can do whatever this process can. Only for commands that are trusted.

    The limits hold, the environment is not passed on, and the whole tree dies at the end; nothing else is confined.
    """

    name = "none"

    async def _launch(self, order: Order) -> StartedProcess:
        return launch(self._plan(order))

    def _plan(self, order: Order) -> dict[str, Any]:
        return {
            "do": "main",
            "command": order.command,
            "env": order.env,
            "workdir": str(self._workdir),
            "rlimits": rlimits(order.limits, others=processes_of(os.geteuid())),
            "cgroups": [],
            "uid": None,
            "namespaces": [],
            "landlock": None,
            "seccomp": "",
            "protected": [],
            "parent": os.getpid(),
        }


DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

NAMESPACES: Final = ("user", "pid", "net", "ipc", "uts", "mount")


class Landlock(UnconfinedSandbox):
    """Landlock, a filter of system calls, and namespaces where the system allows them. Needs Linux 6.2, nothing else.

    Weaker than bwrap in two points: a command can find out which files exist outside, and, without namespaces, which
    processes.
    """

    name = "landlock"

    def __init__(self, setup: Setup, namespaces: Sequence[str] = NAMESPACES) -> None:
        if not seccomp.known_machine():
            raise SandboxUnavailable(f"no filter of system calls for {platform.machine()}: x86_64 and aarch64 only")
        if setup.protected and "mount" not in namespaces:
            raise SandboxUnavailable(
                f"without namespaces, entries of a folder that commands may change cannot be protected: "
                f"{', '.join(setup.protected)}; pass `protected=()` if they may change those"
            )
        super().__init__(setup)
        self._namespaces = list(namespaces)
        if os.geteuid() == 0 and ("user" not in self._namespaces or "pids" not in parents()):
            self._demote()

    def _demote(self) -> None:
        """Let nobody run the commands: root keeps capabilities, or is not limited in how many processes it starts.

        Raises:
            SandboxUnavailable: nobody could not write to the folder, or not run this Python.
        """
        python = Path(self.python).resolve()
        if hidden := [path for path in (python, *python.parents) if not path.stat().st_mode & 0o001]:
            self._remove()
            raise SandboxUnavailable(
                f"as root without user namespaces and control groups, the user nobody runs the commands, and may not "
                f"enter {hidden[-1]}, where this Python is installed; run as an ordinary user, or with a Python in /usr"
            )
        if self._setup.workdir is not None:
            self._remove()
            raise SandboxUnavailable(
                "as root, commands are confined only by user namespaces together with a control group that limits how "
                "many processes there are, and this machine does not allow both; run as an ordinary user, or omit "
                "`workdir`, and the user nobody runs the commands"
            )
        self._uid = NOBODY
        for path in (self._private, self._workdir, self._tmp):
            os.chown(path, NOBODY, NOBODY)

    async def _launch(self, order: Order) -> StartedProcess:
        group = ControlGroup(order.limits, own=3)
        return launch(self._plan(order), group)

    def _plan(self, order: Order) -> dict[str, Any]:
        alone = "user" in self._namespaces  # processes are then counted from none
        return super()._plan(order) | {
            "rlimits": rlimits(order.limits, others=3 if alone else processes_of(self._uid or os.geteuid())),
            "uid": self._uid,
            "namespaces": self._namespaces,
            "landlock": {
                "read": [str(path) for path in self.readable],
                "write": [str(self._workdir), str(self._tmp)],
                "devices": [path for path in DEVICES if os.path.exists(path)],
            },
            "seccomp": seccomp.program(by_path="mount" not in self._namespaces).hex(),
            "protected": list(self._setup.protected),
        }


def processes_of(uid: int) -> int:
    """Processes and threads that the kernel counts for a user; none for root, who is not limited."""
    count = 0
    for pid in os.listdir("/proc") if uid else ():
        with suppress(OSError):  # it has ended
            if pid.isdigit() and os.stat(f"/proc/{pid}").st_uid == uid:
                count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def rlimits(limits: SandboxLimits, *, others: int) -> dict[str, tuple[int, int]]:
    """The limits as the kernel's, soft and hard, by the name of the resource.

    Args:
        limits: the command's limits.
        others: processes that the kernel counts besides those of the command.
    """
    cpu = math.ceil(limits.cpu)
    return {
        "CPU": (cpu, cpu + 1),  # SIGXCPU, then SIGKILL for a process that ignores it
        "AS": (int(limits.memory),) * 2,
        "FSIZE": (int(limits.file_size),) * 2,
        "NPROC": (limits.processes + others,) * 2,
        "CORE": (0, 0),
        "NOFILE": (1024, 1024),
    }


def order_file(order: dict[str, Any]) -> int:
    """Return a memory file with the launcher and its order."""
    memory = os.memfd_create("agentkit-order")
    os.pwrite(memory, marshal.dumps((launcher(), order)), 0)
    return memory


def launch_command(memory: int) -> list[str]:
    """Return the command that calls the launcher with its order."""
    return [sys.executable, "-I", "-S", "-c", CALL, str(memory)]


def launch(order: dict[str, Any], group: ControlGroup | None = None) -> StartedProcess:
    """Start the launcher with an order; it joins the group first."""
    order["cgroups"] = group.control_files if group else []
    memory = -1
    try:
        memory = order_file(order)
        popen = subprocess.Popen(
            launch_command(memory),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=(memory,),
            start_new_session=True,
        )
    except BaseException:
        if memory >= 0:
            os.close(memory)
        if group is not None:
            group.remove()
        raise

    def stop() -> None:
        with suppress(ProcessLookupError):
            os.kill(popen.pid, signal.SIGTERM)  # not yet collected, so the id is still this process's

    def ended(status: int, cpu: float) -> ProcessEnd:
        size = os.fstat(memory).st_size
        report = marshal.loads(os.pread(memory, size, 0)) if size else {}
        if isinstance(report, tuple):  # still the order: it was stopped before it read it
            report = {}
        return ProcessEnd(report.get("code"), group is not None and group.out_of_memory, report.get("failed", ""), cpu)

    def released() -> None:
        os.close(memory)
        if group is not None:
            group.remove()

    return StartedProcess(popen, stop, ended, released)
