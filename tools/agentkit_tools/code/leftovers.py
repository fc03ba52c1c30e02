"""What commands leave in a folder in which others work: git repositories that would run something there.

The parts that do are set aside, under another name: settings that can name a program, hooks, and a link to the settings
of another folder. A repository with plain settings stays as it is, and so does each that was there before, until its
settings or hooks are changed. Links are not followed.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentkit import ToolResult
from agentkit_tools.folder.replacing import identity
from agentkit_tools.folder.repositories import is_repository
from agentkit_tools.protected import why_protected

PARTS: Final = ("config", "config.worktree", "hooks", "commondir")
"""From which git takes what it runs."""

ITS_OWN: Final = frozenset(("objects", "refs", "logs", "hooks", "info"))
"""Folders of a repository in which there is no other one."""

MAX_DEPTH, MAX_FOLDERS = 100, 100_000

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
        root: the folder; None for one of the tool's own, in which nobody else works.
        protected: names that are not to be written; without `.git` among them, nothing is looked at.
        kept: names at its top that no command can change, so that a change is the user's.
    """

    def __init__(self, root: str | Path | None, protected: Collection[str], kept: Collection[str] = ()) -> None:
        watched = root is not None and why_protected([".git"], protected) is not None
        self._root = str(root) if watched else None
        self._kept = frozenset(kept)
        self._missed = False
        self._known = {place(folder): parts(folder) for _, folder in self._repositories()}

    async def judged(self, result: ToolResult) -> ToolResult:
        """The result of a command, and what was set aside after it."""
        if not (notes := await asyncio.to_thread(self.set_aside)):
            return result
        text = "\n".join([result.text.rstrip("\n"), *(f"[{note}]" for note in notes)])
        return replace(result, output=text) if result.error is None else replace(result, error=text)

    def set_aside(self) -> list[str]:
        """Rename what would run something; returns what was done, in words."""
        self._missed, notes = False, []
        for path, folder in self._repositories():
            known, found = self._known.get(place(folder), {}), parts(folder)
            for name in PARTS:
                if known.get(name) == found[name] or not runs(folder, name):
                    continue
                number = next(n for n in range(1, 1 << 30) if not there(folder, f"{name}.set-aside-{n}"))
                with suppress(OSError):
                    os.rename(name, f"{name}.set-aside-{number}", src_dir_fd=folder, dst_dir_fd=folder)
                    shown = os.path.relpath(os.path.join(path, name), self._root)
                    notes.append(f"{shown!r} was renamed to {name}.set-aside-{number}: git would run commands from it")
        if self._missed:
            notes.append(f"not all of the {MAX_FOLDERS} folders, {MAX_DEPTH} deep, could be searched for repositories")
        return notes

    def _repositories(self) -> Iterator[tuple[str, int]]:
        """Each with its path and its open folder, until the next is asked for."""
        if self._root is None or not os.path.isdir(self._root):
            return
        above = self._root.count(os.sep)
        for count, (path, folders, _, folder) in enumerate(os.fwalk(self._root, onerror=self._miss)):
            if found := is_repository(folder):
                yield path, folder
            if count >= MAX_FOLDERS or path.count(os.sep) - above >= MAX_DEPTH:
                self._missed = self._missed or bool(folders)
                folders.clear()
            left_out = ITS_OWN if found else self._kept if path == self._root else frozenset()
            folders[:] = [name for name in folders if name not in left_out]

    def _miss(self, _: OSError) -> None:
        self._missed = True


def there(folder: int, name: str) -> os.stat_result | None:
    """The status of an entry; None if there is none."""
    with suppress(OSError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return None


def place(folder: int) -> tuple[int, int]:
    """What an open folder is, wherever it is moved."""
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def parts(folder: int) -> dict[str, list[tuple[int, ...]]]:
    """What tells whether a repository's settings or hooks were changed."""
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
    """Whether git may run something because of this part."""
    status = there(folder, name)
    if status is None:
        return False
    if name == "hooks" and stat.S_ISDIR(status.st_mode):
        return bool(hooks(folder))
    if name == "commondir" or not stat.S_ISREG(status.st_mode):
        return True
    with suppress(OSError):
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(file, "rb") as opened:
            return not all(map(PLAIN.fullmatch, opened.read(1 << 20).split(b"\n")))
    return True
