"""Git repositories that commands leave in a folder and that would run a program for others who work there.

Their dangerous parts are renamed: settings that can name a program, hooks, and a link to the settings of another
folder. A repository with plain settings stays as it is, as does one that was there before, until its settings or
hooks are changed. Links are not followed.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agentkit import ToolResult
from agentkit_tools.folder.atomic_replace import identity
from agentkit_tools.folder.repositories import is_repository
from agentkit_tools.folder.rooted_folder import opener
from agentkit_tools.protected_names import why_protected

PARTS: Final = ("config", "config.worktree", "hooks", "commondir")
"""From which git takes what it runs."""

ITS_OWN: Final = frozenset(("objects", "refs", "logs", "hooks", "info"))
"""Folders of a repository in which there is no other one."""

MAX_FOLDERS: Final = 100_000
MAX_SETTINGS: Final = 1 << 20  # bytes; git reads more

MISSED: Final = (
    f"not all folders could be searched for repositories: more than {MAX_FOLDERS}, or out of reach; run no git there"
)

PLAIN: Final = re.compile(
    rb"""\s*(?:[#;].*
    | \[(?:core|user|init|(?:remote|branch)\ "[\w./-]+")\]
    | (?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|name|email|url
        |fetch|remote|merge|defaultbranch)\s*=[^\\"]*)?\s*""",
    re.VERBOSE | re.IGNORECASE,
)
"""A line of settings that runs nothing, as `git init`, `clone`, `branch` and `remote` write them."""


class Leftovers:
    """The git repositories in a folder, as they were before any command.

    Args:
        root: the folder; None for the tool's own folder, where nobody else works.
        protected: names that are not to be written; without `.git` among them, nothing is looked at.
        kept: names at its top that no command can change, so that a change is the user's.
    """

    def __init__(self, root: str | Path | None, protected: Collection[str], kept: Collection[str] = ()) -> None:
        watched = root is not None and why_protected([".git"], protected) is not None
        self._root = str(root) if watched else None
        self._kept = frozenset(kept)
        self._missed = self._used = False
        self._notes: list[str] = []  # for the next result
        self._known = {place(folder): parts(folder) for _, folder in self._repositories()}

    async def run_with_notes(self, work: Callable[..., Awaitable[ToolResult]], *given: Any) -> ToolResult:
        """Return the result of a command, with notes on the parts set aside since the last one."""
        result: ToolResult = await self.after(work, *given)
        if not (notes := [self._notes.pop(0) for _ in range(len(self._notes))]):
            return result
        text = "\n".join([result.text.rstrip("\n"), *(f"[{note}]" for note in notes)])
        return replace(result, output=text) if result.error is None else replace(result, error=text)

    async def after(self, work: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        """Await the end of a command's processes, and check the folder in any case."""
        self._used = True
        try:
            return await work(*given)
        finally:
            await asyncio.shield(asyncio.to_thread(self.set_aside))

    async def last(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Await the end of all processes; then judge, in this thread: a program that ends starts no other one."""
        try:
            await closing()
        finally:
            if self._used:
                self.set_aside()

    def set_aside(self) -> None:
        """Rename the parts that would run a program, and note that in words."""
        self._missed = False
        for path, folder in self._repositories():
            known, found = self._known.get(place(folder), {}), parts(folder)
            for name in PARTS:
                if known.get(name) == found[name] or not runs(folder, name):
                    continue
                number = next(n for n in range(1, 1 << 30) if not there(folder, f"{name}.set-aside-{n}"))
                with suppress(OSError):
                    os.fchmod(folder, stat.S_IMODE(os.fstat(folder).st_mode) | stat.S_IRWXU)
                    os.rename(name, f"{name}.set-aside-{number}", src_dir_fd=folder, dst_dir_fd=folder)
                    shown = os.path.relpath(os.path.join(path, name), self._root)
                    note = f"{shown!r} was renamed to {name}.set-aside-{number}: git would run commands from it"
                    self._notes.append(note)
        if self._missed and MISSED not in self._notes:
            self._notes.append(MISSED)

    def _repositories(self) -> Iterator[tuple[str, int]]:
        """Each with its path and its open folder, until the next is asked for."""
        if self._root is None or not os.path.isdir(self._root):
            return
        reach, waiting = opener(), [("", "")]  # paths in two parts: the first is shared, since it may be long
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        with ExitStack() as outer:
            outer.callback(os.close, root)
            for _ in range(MAX_FOLDERS):
                if not waiting:
                    break
                path = os.path.join(*waiting.pop())
                with suppress(OSError), ExitStack() as opened:
                    folder = reach(root, path.split("/") if path else ())
                    opened.callback(os.close, folder)
                    if found := is_repository(folder):
                        yield os.path.join(self._root, path), folder
                    left_out = ITS_OWN if found else frozenset() if path else self._kept
                    with os.scandir(folder) as entries:
                        inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
                    waiting += [(path, name) for name in inner if name not in left_out]
                    continue
                self._missed = True  # removed, not readable, or beyond the system's longest path
        self._missed = self._missed or bool(waiting)


def there(folder: int, name: str) -> os.stat_result | None:
    """The status of an entry; None if there is none."""
    with suppress(OSError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return None


def place(folder: int) -> tuple[int, int]:
    """Return the identity of an open folder, wherever it is moved."""
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def parts(folder: int) -> dict[str, list[tuple[int, ...]]]:
    """Return the state of a repository's settings and hooks, to see if they were changed."""
    names = {name: [name] for name in PARTS} | {"hooks": [f"hooks/{name}" for name in hooks(folder)]}
    return {
        part: [identity(status) for name in listed if (status := there(folder, name))] for part, listed in names.items()
    }


def hooks(folder: int) -> list[str]:
    """The names of a repository's hooks, but for the samples, which are not run."""
    with suppress(OSError):
        inner = os.open("hooks", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            return sorted(name for name in os.listdir(inner) if not name.endswith(".sample"))
        finally:
            os.close(inner)
    return []


def runs(folder: int, name: str) -> bool:
    """Return True if git may run a program because of this part."""
    status = there(folder, name)
    if status is None:
        return False
    if name == "hooks" and stat.S_ISDIR(status.st_mode):
        return bool(hooks(folder))
    if name == "commondir" or not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SETTINGS:
        return True
    with suppress(OSError):
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(file, "rb") as opened:
            return not all(map(PLAIN.fullmatch, opened.read(MAX_SETTINGS).split(b"\n")))
    return True
