"""The holder of a lease, described so that another process on the same machine can check it. Knows no store."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Containers on one machine number their processes separately, even with the same host name.
_PIDS = Path("/proc/self/ns/pid")


def this_process() -> str:
    """This process: `host/boot/pids/pid/start`, where `pids` names the set of process ids that `pid` belongs to.

    Boot, set and start are empty if the system does not provide them (not Linux).
    """
    pid = os.getpid()
    return f"{_machine()}/{pid}/{_started(pid) or ''}"


def in_words(owner: str) -> str:
    """An owner in readable form; an owner that `this_process` did not write is quoted unchanged.

    >>> in_words("web-1/7d1f/pid:[402]/4711/88")
    "process 4711 on 'web-1'"
    >>> in_words("nightly job")
    "'nightly job'"
    """
    host, *rest = owner.rsplit("/", 4)
    if len(rest) != 4 or not rest[2].isdigit():
        return repr(owner)
    here = "this process" if owner == this_process() else f"process {rest[2]}"
    return f"{here} on {host!r}"


def is_dead(owner: str) -> bool:
    """Return True if an owner is a process of this machine that has ended.

    The processes of other machines and containers are unknown, and on Windows a process cannot be checked (there signal
    0 is Ctrl+C): their leases expire.
    """
    machine, _, rest = owner.rpartition("/")[0].rpartition("/")
    start = owner.rpartition("/")[2]
    if machine != _machine() or not rest.isdigit() or os.name != "posix":
        return False
    return not _lives(int(rest)) or (start != "" and _started(int(rest)) != start)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks since the boot; a process id alone may be reused."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else fields[18]  # a zombie has ended; only its parent has not collected it yet


@cache
def _machine() -> str:
    try:
        boot = _BOOT.read_text().strip()
    except OSError:
        boot = ""
    try:
        pids = _PIDS.readlink().name
    except OSError:
        pids = ""
    return f"{socket.gethostname()}/{boot}/{pids}"
