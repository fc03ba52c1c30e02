"""Sandboxes by our own launcher, a program that confines itself before it starts the command."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agentkit.sandbox.confined import Confined, Order
from agentkit.sandbox.quota import SandboxLimits
from agentkit.sandbox.tree import Ended, Started

LAUNCHER: Final = str(Path(__file__).with_name("launcher.py"))


class Unconfined(Confined):
    """No isolation: the command can do whatever this process can. Only for commands that are trusted.

    The limits hold, the environment is not passed on, and the whole tree dies at the end; nothing else is confined.
    """

    name = "none"

    async def _launch(self, order: Order) -> Started:
        return launch(self._order(order))

    def _order(self, order: Order) -> dict[str, Any]:
        return {
            "command": order.command,
            "env": order.env,
            "workdir": str(self._workdir),
            "rlimits": rlimits(order.limits),
            "cgroups": [],
            "uid": None,
            "namespaces": [],
            "landlock": None,
            "seccomp": "",
            "parent": os.getpid(),
        }


def rlimits(limits: SandboxLimits) -> dict[str, tuple[int, int]]:
    """The limits as the kernel's, soft and hard, by the name of the resource."""
    cpu = math.ceil(limits.cpu)
    return {
        "CPU": (cpu, cpu + 1),  # SIGXCPU, then SIGKILL for a process that ignores it
        "AS": (limits.memory, limits.memory),
        "FSIZE": (limits.file_size, limits.file_size),
        "NPROC": (limits.processes, limits.processes),
        "CORE": (0, 0),
        "NOFILE": (1024, 1024),
    }


def launch(order: dict[str, Any]) -> Started:
    """Start the launcher with an order."""
    memory = os.memfd_create("agentkit-order")
    try:
        os.pwrite(memory, json.dumps(order).encode(), 0)
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", LAUNCHER, str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=(memory,),
            start_new_session=True,
        )
    except BaseException:
        os.close(memory)
        raise

    def stop() -> None:
        with suppress(ProcessLookupError):
            os.kill(popen.pid, signal.SIGTERM)  # not yet collected, so the id is still this process's

    def ended(status: int) -> Ended:
        size = os.fstat(memory).st_size
        report = json.loads(os.pread(memory, size, 0) or b"{}")
        return Ended(report.get("code"), failed=report.get("failed", ""))

    return Started(popen, stop, ended, lambda: os.close(memory))
