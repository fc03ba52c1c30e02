"""A walk through a folder: the entries in order, and the number left out. Reads only ignore files.

Folders are opened from the root each time, so that only one is open and no swapped folder leads out. Bounded in time,
depth and number; entries beyond a bound are counted, never dropped silently.
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from agentkit_tools.folder.atomic_replace import is_draft
from agentkit_tools.folder.ignore_files import IGNORE_FILES, Rules, Scope, verdict
from agentkit_tools.folder.rooted_folder import Refusal, RootedFolder, brief, encode, folder_parts
from agentkit_tools.folder.textfiles import read_file

SECONDS: Final = 20.0
"""For one walk and the search in it: some 50,000 files of source code."""

MAX_DEPTH: Final = 100
"""Levels of folders below the root; the deepest path in large public repositories has about 30."""

MAX_ENTRIES: Final = 200_000
"""Of one walk that are looked at, and of one folder."""


@dataclass(frozen=True, slots=True)
class FileSelection:
    """A selection of files: the arguments of `Files.list_files` and `Files.search_files`."""

    folder: str = "."
    glob: str = ""
    depth: int = 0
    hidden: bool = False
    ignored: bool = False


class Entry(NamedTuple):
    """One entry: its path, its kind as in `stat.S_IFMT`, and its open folder, until the next entry is asked for."""

    names: tuple[str, ...]
    kind: int
    folder: int

    @property
    def path(self) -> str:
        """The path as a model may read it: control characters and bytes that are not UTF-8 are shown escaped."""
        path = "/".join(self.names)
        return path if path.isprintable() else repr(path)


class Walk:
    """The entries of a folder, depth first, by name; the files of a folder before its folders.

    Args:
        place: the folder that nothing leads out of.
        where: the selection.

    Raises:
        Refusal: the folder does not exist, is not a folder or leads out; or the glob is not a pattern.
    """

    def __init__(self, place: RootedFolder, where: FileSelection) -> None:
        self._place = place
        self._where = where
        self._start = tuple(folder_parts(where.folder))
        encode("glob", where.glob)  # refuses what would be read as a `?`
        self._glob = Rules([where.glob]) if where.glob else None
        if self._glob is not None and not self._glob:
            why = "a bracket or brace is not closed, or it is empty or too long"
            raise Refusal(f"glob {brief(where.glob)} is not a pattern: {why}")
        if where.depth < 0:
            raise Refusal(f"depth counts levels from 1, or is 0 for all of them; got depth={where.depth}")
        self._until = time.monotonic() + SECONDS
        self._seen = 0
        self.left_out: Counter[str] = Counter()

    @property
    def expired(self) -> bool:
        """True if the time is over, which is then noted."""
        if time.monotonic() < self._until:
            return False
        self.left_out[f"stopped after {SECONDS:g} s"] = 1
        return True

    def __iter__(self) -> Iterator[Entry]:
        scopes: list[Scope] = []
        for depth in range(len(self._start)):
            with self._place.open_folder(self._start[:depth]) as folder:
                scopes.append(self._scope(folder, depth, os.listdir(folder)))
        if self._start:
            with self._place.folder(self._start) as folder:
                if _is_file(folder, self._start[-1]):
                    yield Entry(self._start, stat.S_IFREG, folder)  # named by itself: whatever ignore files say
                    return
        with self._place.open_folder(self._start):
            pass  # what was asked for must be there; of the folders in it, any may vanish in the meantime
        waiting: list[tuple[tuple[str, ...], list[Scope]]] = [(self._start, scopes)]
        while waiting and not self._stopped():
            names, scopes = waiting.pop()
            try:
                with self._place.open_folder(names) as folder:
                    yield from self._entries(folder, names, scopes, waiting)
            except (Refusal, OSError):
                self.left_out["folders that cannot be opened"] += 1

    def _stopped(self) -> bool:
        if self._seen >= MAX_ENTRIES:
            self.left_out[f"stopped after {MAX_ENTRIES} entries"] = 1
            return True
        return self.expired

    def _entries(
        self,
        folder: int,
        names: tuple[str, ...],
        scopes: list[Scope],
        waiting: list[tuple[tuple[str, ...], list[Scope]]],
    ) -> Iterator[Entry]:
        if names != self._start:
            yield Entry(names, stat.S_IFDIR, folder)
        if self._where.depth and len(names) - len(self._start) >= self._where.depth:
            return
        kinds = self._kinds(folder)
        scopes = [*scopes, self._scope(folder, len(names), kinds)]
        folders = []
        for name in sorted(kinds):
            if self._stopped():
                return
            self._seen += 1
            entry = Entry((*names, name), kinds[name], folder)
            if not self._meant(entry, scopes):
                continue
            if kinds[name] != stat.S_IFDIR:
                yield entry
            elif len(entry.names) > MAX_DEPTH:
                self.left_out[f"folders deeper than {MAX_DEPTH} levels"] += 1
            else:
                folders.append((entry.names, scopes))
        waiting.extend(reversed(folders))

    def _kinds(self, folder: int) -> dict[str, int]:
        kinds: dict[str, int] = {}
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(kinds) >= MAX_ENTRIES or (len(kinds) % 1000 == 999 and self.expired):
                    self.left_out["folders of which not all entries were read"] += 1
                    break
                if not is_draft(entry.name):
                    kinds[entry.name] = _kind(entry)
        return kinds

    def _scope(self, folder: int, depth: int, entries: object) -> Scope:
        """The ignore files of an open folder; only regular files count, and only their first megabytes."""
        names = set(entries) if isinstance(entries, (dict, list)) else set()
        rules: dict[str, Rules] = {}
        for file in IGNORE_FILES if not self._where.ignored else ():
            if file in names:
                with suppress(Refusal, OSError):
                    text = read_file(folder, file, file).content.decode("utf-8", "replace")
                    rules[file] = Rules(text.removeprefix("\ufeff").split("\n"))
                    if over := rules[file].left_out:
                        self.left_out["patterns of ignore files that are too long or too many"] += over
        return Scope(depth, rules, ".git" in names)

    def _meant(self, entry: Entry, scopes: list[Scope]) -> bool:
        is_folder = entry.kind == stat.S_IFDIR
        if self._glob is not None:
            found = self._glob.match("/".join(entry.names[len(self._start) :]), is_folder)
            if found is not None:
                return found
            if self._glob.includes and not is_folder:
                return False
        found = verdict(scopes, entry.names, is_folder)
        if found is not None:
            return not found
        return self._where.hidden or not entry.names[-1].startswith(".")


def _is_file(folder: int, name: str) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _kind(entry: os.DirEntry[str]) -> int:
    """Return the kind as in `stat.S_IFMT`, mostly without a system call; 0 for an entry that has vanished."""
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    if entry.is_file(follow_symlinks=False):
        return stat.S_IFREG
    with suppress(OSError):
        return stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
    return 0
