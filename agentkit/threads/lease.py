"""The lease of a run on its thread: acquiring, renewing and releasing it, and when it is void.

A run writes everything under its lease. Knows no message, no call and no tool.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Iterable, Sequence
from typing import Final

from agentkit.agent.cancellation import shield
from agentkit.errors import StoreConflict, StoreError, ThreadBusy
from agentkit.threads.log_reader import readable
from agentkit.threads.owner import is_dead, this_process
from agentkit.threads.store import Change, Lease, Store, ask_store

LEASE: Final = 30.0
"""Seconds; renewed three times in this period. A holder that died on this machine is detected immediately."""

_LOG = logging.getLogger("agentkit.threads")


_HOLDING: Final[weakref.WeakSet[HeldLease]] = weakref.WeakSet()
"""The leases that runs of this process hold or are acquiring. Any other lease of this process was abandoned: by an
event loop that was closed during a run, or that ended while the lease was being acquired."""


class HeldLease:
    """The lease of one run.

    Args:
        store: contains the thread.
        thread_id: the thread's id.
    """

    def __init__(self, store: Store, thread_id: str) -> None:
        self.void: StoreError | asyncio.CancelledError | None = None
        """Why nothing more can be written under it; None while it is valid."""
        self._store = store
        self._thread_id = thread_id
        self._lease: Lease | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._taking = False  # being acquired at the moment
        self._renewal: asyncio.Task[None] | None = None

    @property
    def fence(self) -> int:
        """The fence of the current lease; see `Lease`."""
        assert self._lease is not None
        return self._lease.fence

    def holds(self, thread_id: str, fence: int) -> bool:
        """Return True if this lease has that fence, or is being acquired, on an event loop that is still open."""
        if thread_id != self._thread_id or self._loop is None or self._loop.is_closed():
            return False
        return self._taking or (self._lease is not None and self._lease.fence == fence)

    # -------------------------------------------------------------- acquiring, renewing, releasing

    async def take(self) -> None:
        """Acquire it, and keep renewing it.

        Raises:
            ThreadBusy: the thread is already being run.
            ThreadNotFound: there is no such thread.
        """
        await shield(self._take(), again=self._take)
        self._renewal = asyncio.create_task(self._renew())

    async def _take(self) -> None:
        self._loop, self._taking = asyncio.get_running_loop(), True
        _HOLDING.add(self)
        try:
            self._lease = await acquire_unheld(self._store, self._thread_id, by=self)
        finally:
            self._taking = False

    async def _renew(self) -> None:
        while self._lease is not None:
            await asyncio.sleep(LEASE / 3)
            try:
                self._lease = await ask_store(self._store.renew, self._lease, LEASE)
            except ThreadBusy as e:
                self.void = e
                return
            except StoreError as e:  # tried again; every commit checks the fence anyway
                _LOG.warning("thread %s: the lease was not renewed: %s", self._thread_id, e)

    async def give_back(self) -> None:
        """Stop renewing it, and release it; does nothing if it was never acquired."""
        if self._renewal is not None:
            self._renewal.cancel()
        if self._lease is None:
            return
        try:
            await ask_store(self._store.release, self._lease)
        except StoreError as e:
            _LOG.warning("thread %s: the lease was not released: %s", self._thread_id, e)
        self._lease = None  # only now: a caller that is cancelled before that releases it again
        _HOLDING.discard(self)

    # -------------------------------------------------------------- writing under it

    async def commit(self, changes: Sequence[Change]) -> tuple[int, ...]:
        """Make all of the changes or none; returns their positions, see `Store.commit`.

        A failure voids the lease, except for a `StoreConflict`: then nothing was written.
        """
        if self.void is not None:
            raise self.void
        if not changes:
            return ()
        try:
            changes = readable(changes, self._thread_id)
            return await ask_store(self._store.commit, self._thread_id, changes, fence=self.fence)
        except StoreConflict:
            raise
        except (StoreError, asyncio.CancelledError) as e:
            # It is unknown whether it was done: memory and store may differ. A write is cancelled only by an event loop
            # that is closing.
            self.void = e
            raise

    async def save(self, changes: Iterable[Change]) -> None:
        """Make changes one by one although the lease is void, as far as the store accepts them."""
        for change in changes:
            try:
                await ask_store(
                    self._store.commit, self._thread_id, readable([change], self._thread_id), fence=self.fence
                )
            except StoreConflict:  # it exists: the write was done, and then failed
                continue
            except StoreError:
                return


async def delete_unheld(store: Store, thread_id: str) -> None:
    """Delete a thread; the lease of a process that has ended does not keep it.

    Raises:
        ThreadBusy: it is being run.
        ThreadNotFound: there is no such thread.
    """
    try:
        await ask_store(store.delete, thread_id)
    except ThreadBusy as e:
        if not is_dead(e.owner):  # the store says that it was not deleted
            raise
        await ask_store(store.release, await acquire_unheld(store, thread_id))
        await ask_store(store.delete, thread_id)


async def acquire_unheld(store: Store, thread_id: str, by: HeldLease | None = None) -> Lease:
    """Acquire a lease, or replace one that no run holds: its process has ended, or its run in this process.

    Args:
        store: contains the thread.
        thread_id: the thread's id.
        by: the lease of the run that acquires it; None outside a run.

    Raises:
        ThreadBusy: it is being run.
        ThreadNotFound: there is no such thread.
    """
    owner = this_process()
    try:
        return await ask_store(store.acquire, thread_id, owner, LEASE)
    except ThreadBusy as e:
        others = (held for held in tuple(_HOLDING) if held is not by)
        if e.owner == owner and any(other.holds(thread_id, e.fence) for other in others):
            hint = "Wait for that run: after a `break` it ends a moment later, and `async with` waits for its end"
            raise ThreadBusy(f"{e}. {hint}", owner=e.owner, fence=e.fence) from None
        if e.owner != owner and not is_dead(e.owner):
            raise
        return await ask_store(store.acquire, thread_id, owner, LEASE, dead=e.fence)
