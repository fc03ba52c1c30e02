"""Threads in one SQLite file. Knows when transactions begin and end and what SQLite's errors mean; the operations are
those of `sql.py`.

No statement runs on an event loop: a thread of its own writes, another one reads. All writes that wait are made in one
transaction, each inside a savepoint of its own, and are answered after the one COMMIT, so that a thousand tasks wait
for one flush of the disk instead of a thousand (group commit).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Literal, TypeVar

from agentkit.errors import StoreError
from agentkit.threads.sql import Dialect, Operations, Steps
from agentkit.threads.sqlite_worker import Job, Place, Worker
from agentkit.threads.store import Append, Body, Change, Lease, Log, Thread

T = TypeVar("T")
OnStatement = Callable[[Literal["before", "after"], str], None]

DIALECT: Final = Dialect(tables="SELECT name FROM sqlite_master WHERE type = 'table'", now="agentkit_clock()")

SYNCHRONOUS: Final = {"power": "FULL", "process": "NORMAL"}
"""What SQLite calls them. FULL flushes the disk in every transaction, NORMAL only when the log is moved to the file."""

_INHERITED: Final[list[object]] = []
"""Connections that came with a fork: to close them would disturb the parent's, so they are kept and never touched."""


class SQLiteStore:
    """Threads in one SQLite file, the default store (see `Store` for the methods).

    Several processes on one machine may use the file at once. It must not lie on a network file system.

    Args:
        path: the file; made when it is not there, in a folder that is. `":memory:"` keeps all in this object.
        durability: what survives. `"power"`: what was written is on the disk, a power cut loses nothing. `"process"`:
            some hundred times quicker; a killed process loses nothing, a power cut may lose the last commits (the file
            stays sound).
        busy_timeout: seconds to wait for another process that writes.
        clock: seconds since the epoch.
        on_statement: called before and after each SQL statement, BEGIN and COMMIT too, in the thread that runs it; for
            tests that crash there.
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
        self._memory = str(path) == ":memory:"
        self.path = str(path) if self._memory else str(Path(path).absolute())
        self._operations = Operations(DIALECT)
        self._place = Place(self.path, SYNCHRONOUS[durability], busy_timeout, clock, on_statement, self._operations)
        self._closed = False
        self._start()

    def __repr__(self) -> str:
        return f"SQLiteStore({self.path!r})"

    async def create(self, thread_id: str, metadata: Body | None = None, changes: Sequence[Append] = ()) -> Thread:
        """See `Store.create`."""
        return await self._write(lambda: self._operations.create(thread_id, metadata or {}, changes))

    async def get(self, thread_id: str) -> Thread:
        """See `Store.get`."""
        return await self._read(lambda: self._operations.get(thread_id))

    async def update(self, thread_id: str, metadata: Body) -> Thread:
        """See `Store.update`."""
        return await self._write(lambda: self._operations.update(thread_id, metadata))

    async def list(self, *, limit: int = 100, before: Thread | None = None) -> tuple[Thread, ...]:
        """See `Store.list`."""
        return await self._read(lambda: self._operations.list(limit, before))

    async def delete(self, thread_id: str) -> None:
        """See `Store.delete`."""
        await self._write(lambda: self._operations.delete(thread_id))

    async def load(self, thread_id: str, *, after: int = -1) -> Log:
        """See `Store.load`."""
        return await self._read(lambda: self._operations.load(thread_id, after))

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        """See `Store.commit`."""
        return await self._write(lambda: self._operations.commit(thread_id, changes, fence))

    async def acquire(self, thread_id: str, owner: str, seconds: float, *, dead: int | None = None) -> Lease:
        """See `Store.acquire`."""
        return await self._write(lambda: self._operations.acquire(thread_id, owner, seconds, dead))

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """See `Store.renew`."""
        return await self._write(lambda: self._operations.renew(lease, seconds))

    async def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        await self._write(lambda: self._operations.release(lease))

    async def aclose(self) -> None:
        """See `Store.aclose`; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._pid != os.getpid():
                return
            loop = asyncio.get_running_loop()
            ended = [loop.create_future() for _ in self._workers]
            for worker, future in zip(self._workers, ended, strict=True):
                worker.jobs.put(Job(None, loop, future))
        await asyncio.gather(*ended)

    async def __aenter__(self) -> SQLiteStore:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        await self.aclose()

    def _start(self) -> None:
        """Make the threads; they open the file when they get their first job."""
        self._pid = os.getpid()
        self._lock = Lock()  # so that no job comes into a queue after its end
        self._writer = Worker(self._place, writes=True)
        # A file in memory has but one connection.
        self._reader = self._writer if self._memory else Worker(self._place, writes=False)
        self._workers = tuple({id(w): w for w in (self._writer, self._reader)}.values())
        self._finalizer = weakref.finalize(self, _stop, self._workers, self._pid)

    async def _write(self, steps: Callable[[], Steps[T]]) -> T:
        return await self._submit("_writer", steps)

    async def _read(self, steps: Callable[[], Steps[T]]) -> T:
        return await self._submit("_reader", steps)

    async def _submit(self, worker: Literal["_writer", "_reader"], steps: Callable[[], Steps[T]]) -> T:
        if self._pid != os.getpid():
            self._after_fork()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._closed:
                raise StoreError(f"the store {self.path} is closed")
            getattr(self, worker).jobs.put(Job(steps, loop, future))
        result: T = await future
        return result

    def _after_fork(self) -> None:
        """A child has the parent's memory but not its threads: begin anew, without touching what is the parent's."""
        self._finalizer.detach()
        _INHERITED.append(self._workers)
        if self._memory:
            raise StoreError("a store in memory belongs to the process that made it, and this one is its child")
        self._start()


def _stop(workers: tuple[Worker, ...], pid: int) -> None:
    """End the threads of a store that nobody holds any more."""
    if pid == os.getpid():
        for worker in workers:
            worker.jobs.put(Job(None, None, None))
