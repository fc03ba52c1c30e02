"""Threads in one SQLite file. The operations are those of `sql.py`, the transactions those of `sqlite_worker.py`.

No statement runs on an event loop: one thread writes, another one reads. All waiting writes are made in one
transaction, each inside its own savepoint, and are answered after that one COMMIT, so that a thousand tasks wait for
one flush of the disk instead of a thousand (group commit).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from agentkit.checks.bounds import CALLABLE, Bound, Bounds, number, one_of, refuse
from agentkit.errors import StoreError
from agentkit.threads.sql.operations import Operations, SqlDialect
from agentkit.threads.sql.sqlite_worker import DatabaseFile, Worker
from agentkit.threads.sql.store_bridge import Driver, Kind, OnStatement, SqlStore

DIALECT: Final = SqlDialect(tables="SELECT name FROM sqlite_master WHERE type = 'table'", now="agentkit_clock()")

SYNCHRONOUS: Final = {"power": "FULL", "process": "NORMAL"}
"""SQLite's names. FULL flushes the disk in every transaction, NORMAL only when the log is moved to the file."""


def _names_a_file(path: object) -> bool:
    """Return True if the system accepts such a path: no NUL, no lone surrogate."""
    if not isinstance(path, (str, Path)):
        return False
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


_BOUNDS: Final[Bounds] = {
    "path": Bound(_names_a_file, "the path of a file, or ':memory:'"),
    "durability": one_of(SYNCHRONOUS),
    "busy_timeout": number("seconds, 0 or more", above=-1e-9),
    "clock": CALLABLE,
}


class SQLiteStore(SqlStore):
    """Threads in one SQLite file, the default store (see `Store` for the methods).

    Several processes on one machine may use the file concurrently. It must not be on a network file system.

    Args:
        path: the file; created if necessary, in an existing folder. `":memory:"` keeps everything in this object.
        durability: what survives. `"power"`: everything written is on the disk, and a power cut loses nothing.
            `"process"`: the disk is rarely flushed; a killed process loses nothing, a power cut may lose the last
            commits (the file stays intact). How much faster that is depends on the disk: `benchmarks/threads.py`
            measures both.
        busy_timeout: seconds to wait for another process that writes; 0 or more.
        clock: returns seconds since the epoch.
        on_statement: called before and after each SQL statement, including BEGIN and COMMIT, in the thread that runs
            it; for tests that crash there.

    Raises:
        ConfigError: an argument is wrong. A file that cannot be opened raises a `StoreError` at the first use.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Literal["power", "process"] = "power",
        busy_timeout: float = 10.0,
        clock: Callable[[], float] = time.time,
        on_statement: OnStatement | None = None,
    ) -> None:
        given = {"path": path, "durability": durability, "busy_timeout": busy_timeout, "clock": clock}
        refuse("SQLiteStore", given, _BOUNDS)
        self._memory = str(path) == ":memory:"
        self._made_in = os.getpid()
        place = str(path) if self._memory else str(Path(path).absolute())
        operations = Operations(DIALECT)
        self._place = DatabaseFile(place, SYNCHRONOUS[durability], busy_timeout, clock, on_statement, operations)
        super().__init__(operations, place)

    def _drivers(self) -> Mapping[Kind, Driver]:
        if self._memory and os.getpid() != self._made_in:
            raise StoreError("a store in memory belongs to the process that created it, and this is a child process")
        writer = Worker(self._place, writes=True)
        if self._memory:  # only one connection sees it
            return {"write": writer, "read": writer, "statement": writer}
        reader = Worker(self._place, writes=False)
        return {"write": writer, "read": reader, "statement": reader}
