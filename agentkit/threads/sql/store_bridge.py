"""The shared part of the SQL stores: the methods of `Store`, each an operation that the store's driver runs."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, Literal, Protocol, TypeVar

from agentkit.checks.forks import reset_after_fork
from agentkit.checks.missing_await import Closing
from agentkit.errors import StoreError
from agentkit.threads.sql.jobs import Job
from agentkit.threads.sql.operations import Operations, Steps
from agentkit.threads.store import Append, Body, Change, Lease, Log, Thread

T = TypeVar("T")

Kind = Literal["write", "read", "statement"]
"""The kinds of operations: a transaction that writes, one with a consistent snapshot, or one statement that reads."""

OnStatement = Callable[[Literal["before", "after"], str], None]
"""Called around each SQL statement, in the thread that runs it."""

_INHERITED: Final[list[object]] = []
"""Connections inherited in a fork: closing them would disturb the parent's, so they are kept and never used."""


class Driver(Protocol):
    """A thread with its connections. It does not refer to the store, which may be garbage-collected before it ends."""

    def submit(self, job: Job, kind: Kind) -> None:
        """Start a job; one without steps ends the driver, after all earlier jobs."""
        ...


class SqlStore(Closing):
    """A `Store` whose operations run in other threads. A subclass creates their drivers.

    A started operation is finished, regardless of what happens to the waiting task. A process that forks may use the
    store on both sides. Use it as `async with store:` to close it at the end; a garbage-collected store also ends its
    threads.

    Args:
        operations: those of `sql.py`, for one database.
        name: the store's name, for messages.
    """

    def __init__(self, operations: Operations, name: str) -> None:
        self.name = name
        self._operations = operations
        self._lock = Lock()  # so that no job comes after the end
        self._by_kind: Mapping[Kind, Driver] = {}  # empty in the child of a fork, until it is used there
        self._closed = False
        self._start()
        reset_after_fork(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _drivers(self) -> Mapping[Kind, Driver]:
        raise NotImplementedError

    def leave_to_parent(self) -> None:
        """In the child of a fork: the drivers' threads stayed in the parent, so the next operation starts new ones."""
        self._finalizer.detach()
        _INHERITED.append(self._by_kind)
        self._lock, self._by_kind = Lock(), {}

    def _start(self) -> None:
        self._by_kind = self._drivers()
        self._finalizer = weakref.finalize(self, _end, tuple(set(self._by_kind.values())), os.getpid())

    async def _run(self, steps: Callable[[], Steps[T]], kind: Kind) -> T:
        """Run an operation; `steps` creates it, once for each attempt."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.name}: the store is closed")
            if not self._by_kind:  # the first one in the child of a fork
                self._start()
            self._by_kind[kind].submit(Job(steps, loop, future), kind)
        result: T = await future
        return result

    async def create(self, thread_id: str, metadata: Body | None = None, changes: Sequence[Append] = ()) -> Thread:
        """See `Store.create`."""
        said = {} if metadata is None else metadata
        return await self._run(lambda: self._operations.create(thread_id, said, changes), "write")

    async def get(self, thread_id: str) -> Thread:
        """See `Store.get`."""
        return await self._run(lambda: self._operations.get(thread_id), "statement")

    async def update(self, thread_id: str, metadata: Body, *, expect: Body | None = None) -> Thread:
        """See `Store.update`."""
        return await self._run(lambda: self._operations.update(thread_id, metadata, expect), "write")

    async def list(self, *, limit: int = 100, before: Thread | None = None) -> tuple[Thread, ...]:
        """See `Store.list`."""
        return await self._run(lambda: self._operations.list(limit, before), "statement")

    async def delete(self, thread_id: str) -> None:
        """See `Store.delete`."""
        await self._run(lambda: self._operations.delete(thread_id), "write")

    async def load(self, thread_id: str, *, after: int = -1, limit: int | None = None) -> Log:
        """See `Store.load`."""
        return await self._run(lambda: self._operations.load(thread_id, after, limit), "read")

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        """See `Store.commit`."""
        return await self._run(lambda: self._operations.commit(thread_id, changes, fence), "write")

    async def acquire(self, thread_id: str, owner: str, seconds: float, *, dead: int | None = None) -> Lease:
        """See `Store.acquire`."""
        return await self._run(lambda: self._operations.acquire(thread_id, owner, seconds, dead), "write")

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """See `Store.renew`."""
        return await self._run(lambda: self._operations.renew(lease, seconds), "write")

    async def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        await self._run(lambda: self._operations.release(lease), "write")

    async def aclose(self) -> None:
        """See `Store.aclose`; calling it again does nothing."""
        loop = asyncio.get_running_loop()
        ended: list[asyncio.Future[Any]] = []
        with self._lock:
            if self._closed or not self._by_kind:  # in the child of a fork it has not been used
                return
            self._closed = True
            self._finalizer.detach()
            for driver in set(self._by_kind.values()):
                ended.append(loop.create_future())
                driver.submit(Job(None, loop, ended[-1]), "write")
        await asyncio.gather(*ended)


def _end(drivers: Sequence[Driver], pid: int) -> None:
    """End the threads of a store that has been garbage-collected."""
    if pid == os.getpid():
        for driver in drivers:
            driver.submit(Job(None, None, None), "write")
