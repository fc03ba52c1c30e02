"""Records of trajectories in a file: one JSON line each, only ever appended. Survives `kill -9` at any moment.

| what | how |
|---|---|
| one writer | a lock on the file, which ends with the process; a second writer is refused |
| the process is killed | every appended record is in the file: it was handed to the system before `append` returned |
| a line is torn | it is the last one; the next writer cuts it off and says so, a reader skips it and says so |
| the machine fails | at most the last `sync_every` seconds are lost: it is synced that often, and when closed |
| the disk is full | the line is removed again, and `append` raises |

A line is JSON in UTF-8 that any program can read; see `agentkit.rollout.records.record_json`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

from agentkit.errors import StoreError
from agentkit.rollout.records.record import TrajectoryRecord
from agentkit.rollout.records.record_json import VERSION, record_from_json, record_line

_LOG: Final = logging.getLogger("agentkit.rollout")
_HEAD: Final = re.compile(rb'\{"v":\d+,"id":("(?:[^"\\]|\\.)*")')
"""How each line begins: its id is found without reading the rest, which may be megabytes."""


class RecordFile:
    """The writer of a file of records; opening it again continues the file.

    Args:
        path: the file, created if it does not exist.
        sync_every: seconds after which the file is synced to the disk, at the next record; 0 syncs every record.
        drop: the records to remove first, such as those that are to be run again. The others are copied to a new file,
            which then replaces this one; until then it is unchanged.

    Raises:
        StoreError: another process is writing to it, it cannot be opened, or it is not a file of records.

    Example:
        ```python
        with RecordFile("run.jsonl") as records:
            async for record in rollout.stream(samples, skip=records):
                records.append(record)
        ```
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sync_every: float = 5.0,
        drop: Callable[[TrajectoryRecord], bool] | None = None,
    ) -> None:
        self.path: Final = Path(path)
        self.cut: int = 0
        """How many bytes of a torn line were removed when it was opened."""
        self._every = sync_every
        self.dropped: int = 0
        """How many records `drop` removed when it was opened."""
        self._fd = _opened(self.path)
        try:
            self._end, self._ids = self._recovered()
            if drop is not None:
                self._remove(drop)
        except BaseException:
            os.close(self._fd)
            raise
        self._synced = time.monotonic()

    def __contains__(self, id: object) -> bool:
        """Return True if a trajectory with this id is in the file."""
        return id in self._ids

    def __len__(self) -> int:
        """How many records it has."""
        return len(self._ids)

    def append(self, record: TrajectoryRecord) -> None:
        """Write one record.

        Raises:
            StoreError: the file has a record with this id, it is closed, or the system cannot write.
        """
        if self._fd < 0:
            raise StoreError(f"{self.path} is closed")
        if record.id in self._ids:
            raise StoreError(f"{self.path} already has the trajectory {record.id!r}: ids are unique in a rollout")
        line = record_line(record)
        try:
            _written(self._fd, line)
        except OSError as e:  # a torn line in the middle would also cost its successors
            os.ftruncate(self._fd, self._end)
            raise StoreError(f"cannot write to {self.path}: {e}") from e
        self._end += len(line)
        self._ids.add(record.id)
        if time.monotonic() - self._synced >= self._every:
            self.sync()

    def sync(self) -> None:
        """Wait until all records are on the disk."""
        os.fsync(self._fd)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Sync, and let others write."""
        if self._fd >= 0:
            try:
                self.sync()
            finally:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _recovered(self) -> tuple[int, set[str]]:
        """Where the file ends, and the ids in it."""
        ids: set[str] = set()
        end = 0
        with os.fdopen(os.dup(self._fd), "rb") as file:
            file.seek(0)
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return self._last_line(end, line, number, ids), ids
                ids.add(_id_of(line, self.path, number))
                end += len(line)
        return end, ids

    def _remove(self, drop: Callable[[TrajectoryRecord], bool]) -> None:
        """Go on with a copy of the file that lacks some records."""
        new = self.path.with_name(f"{self.path.name}.new")
        copy = _opened(new)
        try:
            os.ftruncate(copy, 0)
            removed = _copied(self.path, copy, drop)
            os.fsync(copy)
            if removed:
                os.replace(new, self.path)
            else:
                new.unlink()
        except BaseException:
            os.close(copy)
            raise
        if not removed:
            os.close(copy)
            return
        os.close(self._fd)  # only now: who waits for its lock finds the new file
        self._fd, self.dropped = copy, len(removed)
        self._ids -= removed
        self._end = os.fstat(copy).st_size

    def _last_line(self, end: int, line: bytes, number: int, ids: set[str]) -> int:
        """Where the file ends without its last line, which is torn; or with it, if only its line end is missing."""
        try:
            ids.add(_read(line, self.path, number).id)
        except StoreError:
            if not _is_torn(line):
                raise
            os.ftruncate(self._fd, end)
            self.cut = len(line)
            _LOG.warning(
                "%s: removed a torn line of %d bytes at its end, left by a killed process", self.path, self.cut
            )
            return end
        _written(self._fd, b"\n")
        return end + len(line) + 1


def _copied(path: Path, to: int, drop: Callable[[TrajectoryRecord], bool]) -> set[str]:
    """Copy the records that stay; the ids of the others."""
    removed: set[str] = set()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if drop(record := _read(line, path, number)):
                removed.add(record.id)
            else:
                _written(to, line)
    return removed


def _is_torn(line: bytes) -> bool:
    """Return True if agentkit could have started this line; any other file is left unchanged."""
    head = f'{{"v":{VERSION},"id":"'.encode()
    return line.startswith(head[: len(line)]) or not line.strip(b"\0")


def _opened(path: Path) -> int:
    """Open the file and lock it.

    Raises:
        StoreError: another process is writing to it, or it cannot be opened.
    """
    import fcntl

    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as e:
        raise StoreError(f"cannot open {path} for writing: {e.strerror}") from e
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError(f"{path} is not a regular file")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        os.close(fd)
        raise StoreError(f"another process is writing to {path}: wait for it, or write to another file") from e
    if not path.exists() or not os.path.samestat(os.fstat(fd), path.stat()):
        os.close(fd)  # its last writer replaced it between the two calls
        return _opened(path)
    return fd


def _written(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _id_of(line: bytes, path: Path, number: int) -> str:
    """The id on a line, from its first bytes if agentkit wrote it."""
    head = _HEAD.match(line)
    if head is None or not line.endswith(b"}\n"):
        return _read(line, path, number).id
    id: str = json.loads(head[1])
    return id


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError as e:
        raise ValueError(f"not a record of a trajectory: it is not JSON ({e})") from e


def _read(line: bytes, path: Path, number: int) -> TrajectoryRecord:
    try:
        return record_from_json(_json(line))
    except (StoreError, ValueError, RecursionError) as e:
        raise StoreError(f"{path}, line {number}: {e}") from e


def read_records(path: str | os.PathLike[str]) -> Iterator[TrajectoryRecord]:
    """The records of a file, one after another: only one of them is in memory at a time.

    A torn last line is skipped with a warning; a file that is being written also ends like this.

    Raises:
        StoreError: the file cannot be read, or a line of it; the message names the line.
    """
    path = Path(path)
    try:
        file = path.open("rb")
    except OSError as e:
        raise StoreError(f"cannot read {path}: {e.strerror}") from e
    with file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield _read(line, path, number)
                continue
            try:
                last = _read(line, path, number)
            except StoreError:
                _LOG.warning("%s: line %d is torn, and was skipped", path, number)
                return
            yield last
