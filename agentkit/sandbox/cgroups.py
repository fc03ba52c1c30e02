"""Bounds on a whole process tree by control groups, where this process may create them: usually as root only."""

from __future__ import annotations

import atexit
import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import time
from typing import Final, NamedTuple

from agentkit.sandbox.quota import SandboxLimits

ROOT: Final = Path("/sys/fs/cgroup")

STALE: Final = 60.0  # seconds


def _new_name() -> str:
    """Random, because containers that share the hierarchy have processes of the same number."""
    return f"agentkit-{os.getpid()}-{secrets.token_hex(8)}"


class Controller(NamedTuple):
    """One resource that a group can bound.

    Attributes:
        bound: the file with the bound in version 1 and in version 2.
        counter: the file with the count that is needed: kills because memory ran out, or processor time.
    """

    bound: tuple[str, str] = ("", "")
    counter: tuple[str, str] = ("", "")


CONTROLLERS: Final = {
    "pids": Controller(("pids.max", "pids.max")),
    "cpuacct": Controller(counter=("cpuacct.usage", "cpu.stat")),
    "memory": Controller(("memory.limit_in_bytes", "memory.max"), ("memory.oom_control", "memory.events")),
}


ENABLED: Final = ("pids", "memory")
"""Controllers that version 2 has to enable in the parent. Processor time is counted in every group."""


class Parent(NamedTuple):
    """A group where this process may create others, with a controller for them.

    Attributes:
        path: the group.
        version: 1 or 2.
    """

    path: Path
    version: int


@cache
def parents() -> dict[str, Parent]:
    """Return by controller a group where this process may create others; tested once."""
    found = {name: parent for name in CONTROLLERS if (parent := _parent(name)) is not None}
    for path in {parent.path for parent in found.values()}:
        remove_stale(path)
    return found


def remove_stale(parent: Path) -> None:
    """Remove empty groups that processes left which were killed. A young one may belong to another container."""
    for folder in parent.glob("agentkit-*-*"):
        with suppress(OSError):  # not ours to remove, or not empty
            owner = folder.name.split("-")[1]
            if not Path("/proc", owner).exists() and time() - folder.stat().st_mtime > STALE:
                folder.rmdir()


def _parent(controller: str) -> Parent | None:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, names, path = line.split(":", 2)
        version = 1 if names else 2
        base = ROOT / controller if names else ROOT
        if names and controller not in names.split(","):
            continue
        for place in (base / path.lstrip("/"), base):
            if _usable(place, controller, version):
                return Parent(place, version)
    return None


def _usable(place: Path, controller: str, version: int) -> bool:
    """Return True if a group created here has the controller. Tested, as permissions and delegation say too little."""
    trial = place / _new_name()
    try:
        wanted = version == 2 and controller in ENABLED
        if wanted and controller not in (place / "cgroup.subtree_control").read_text().split():
            (place / "cgroup.subtree_control").write_text(f"+{controller}")
        trial.mkdir()
    except OSError:
        return False
    try:
        known = CONTROLLERS[controller]
        return all(os.access(trial / file[version - 1], os.R_OK) for file in (known.bound, known.counter))
    finally:
        trial.rmdir()


class ControlGroup:
    """Groups for one process tree, one per hierarchy.

    Args:
        limits: the bounds.
        own: processes of the sandbox itself that are inside.
    """

    def __init__(self, limits: SandboxLimits, own: int) -> None:
        self._folders: dict[Path, None] = {}
        self._counts: dict[str, Path] = {}
        name = _new_name()
        bounds = {"memory": limits.memory, "pids": limits.processes + own}
        try:
            for controller, parent in parents().items():
                folder = parent.path / name
                if folder not in self._folders:
                    folder.mkdir()
                    self._folders[folder] = None
                known = CONTROLLERS[controller]
                self._counts[controller] = folder / known.counter[parent.version - 1]
                if controller in bounds:
                    (folder / known.bound[parent.version - 1]).write_text(str(bounds[controller]))
        except BaseException:
            self.remove()
            raise

    @property
    def control_files(self) -> list[str]:
        """The files to which a process writes its number, or 0 for itself, to be inside."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    def add(self, pid: int) -> None:
        """Move a process inside; its later children are also inside."""
        for file in self.control_files:
            Path(file).write_text(str(pid))

    @property
    def out_of_memory(self) -> bool:
        """True if the kernel killed a process of the group because memory ran out."""
        return self._count("memory", "oom_kill") > 0

    @property
    def cpu(self) -> float | None:
        """Seconds of processor time of everything that was inside; None if the system does not count it."""
        if "cpuacct" not in self._counts:
            return None
        return self._count("cpuacct", "usage_usec") / (1e6 if self._counts["cpuacct"].name == "cpu.stat" else 1e9)

    def _count(self, controller: str, word: str) -> int:
        """A number: the whole file, or one line of it."""
        if controller not in self._counts:
            return 0
        words = self._counts[controller].read_text().split()
        return int(words[0]) if len(words) == 1 else int(dict(zip(words[::2], words[1::2], strict=True)).get(word, 0))

    def remove(self) -> None:
        """Remove the groups. All processes inside must have ended."""
        _left.update(self._folders)
        self._folders.clear()
        sweep()


_left: Final[dict[Path, None]] = {}
"""Groups to be removed. The kernel may still be taking down the last process of one; the next removal tries again."""


def sweep() -> None:
    """Remove all groups that can be removed."""
    for folder in list(_left):
        with suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            _left.pop(folder, None)


atexit.register(sweep)
