"""The lease of a run on its thread: who takes it, renews it, gives it back, and when it is void.

All that a run writes is written under it. Knows no message, no call and no tool.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Iterable, Sequence
from typing import Final

from agentkit.agent.cancelling import uncancelled
from agentkit.errors import StoreConflict, StoreError, ThreadBusy
from agentkit.threads.owner import is_dead, this_process
from agentkit.threads.store import Change, Lease, Store

LEASE: Final = 30.0
"""Seconds; renewed three times within them. A holder that died on this machine is noticed at once."""

_LOG = logging.getLogger("agentkit.threads")


_HOLDING: Final[weakref.WeakSet[HeldLease]] = weakref.WeakSet()
"""The leases that runs of this process hold, or are taking. One of this process that is not among them was left behind:
by an event loop that was closed over a run, or that ended while the lease was being taken."""


class HeldLease:
    """The lease of one run.

    Args:
        store: where the thread is.
        thread_id: its id.
    """

    def __init__(self, store: Store, thread_id: str) -> None:
        self.void: StoreError | asyncio.CancelledError | None = None
        """Why nothing more can be written under it; None as long as that is not so."""
        self._store = store
        self._thread_id = thread_id
        self._lease: Lease | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._taking = False  # just now
        self._renewal: asyncio.Task[None] | None = None

    @property
    def fence(self) -> int:
        """Of the lease that it has; see `Lease`."""
        assert self._lease is not None
        return self._lease.fence

    def holds(self, thread_id: str, fence: int) -> bool:
        """Whether it is this one, or may become it now, on an event loop that can still go on with it."""
        if thread_id != self._thread_id or self._loop is None or self._loop.is_closed():
            return False
        return self._taking or (self._lease is not None and self._lease.fence == fence)

    # -------------------------------------------------------------- taken, renewed, given back

    async def take(self) -> None:
        """Take it, and renew it from now on.

        Raises:
            ThreadBusy: somebody else runs the thread.
            ThreadNotFound: there is no such thread.
        """
        await uncancelled(self._take(), again=self._take)
        self._renewal = asyncio.create_task(self._renew())

    async def _take(self) -> None:
        self._loop, self._taking = asyncio.get_running_loop(), True
        _HOLDING.add(self)
        try:
            self._lease = await self._acquire()
        finally:
            self._taking = False

    async def _acquire(self) -> Lease:
        owner = this_process()
        try:
            return await self._store.acquire(self._thread_id, owner, LEASE)
        except ThreadBusy as e:
            others = (held for held in tuple(_HOLDING) if held is not self)
            if e.owner == owner and any(other.holds(self._thread_id, e.fence) for other in others):
                hint = "Wait for that run: one that was left by `break` ends a moment later, `async with` waits for it"
                raise ThreadBusy(f"{e}. {hint}", owner=e.owner, fence=e.fence) from None
            if e.owner != owner and not is_dead(e.owner):
                raise
            return await self._store.acquire(self._thread_id, owner, LEASE, dead=e.fence)

    async def _renew(self) -> None:
        while self._lease is not None:
            await asyncio.sleep(LEASE / 3)
            try:
                self._lease = await self._store.renew(self._lease, LEASE)
            except ThreadBusy as e:
                self.void = e
                return
            except StoreError as e:  # tried again; every commit checks the fence anyway
                _LOG.warning("thread %s: the lease was not renewed: %s", self._thread_id, e)

    async def give_back(self) -> None:
        """Renew it no more, and give it back; nothing where it was never taken."""
        if self._renewal is not None:
            self._renewal.cancel()
        if self._lease is None:
            return
        try:
            await self._store.release(self._lease)
        except StoreError as e:
            _LOG.warning("thread %s: the lease was not given back: %s", self._thread_id, e)
        self._lease = None  # only now: who is cancelled before that gives it back once more
        _HOLDING.discard(self)

    # -------------------------------------------------------------- written under it

    async def commit(self, changes: Sequence[Change]) -> tuple[int, ...]:
        """Make changes, all or none; gives their places, see `Store.commit`. A failure makes the lease void."""
        if self.void is not None:
            raise self.void
        if not changes:
            return ()
        try:
            return await self._store.commit(self._thread_id, changes, fence=self.fence)
        except (StoreError, asyncio.CancelledError) as e:
            # Whether it was done is not known: what is in memory is no longer what is in the store. Only an event loop
            # that ends cancels a write.
            self.void = e
            raise

    async def save(self, changes: Iterable[Change]) -> None:
        """Make changes one by one although it is void, as far as the store takes them."""
        for change in changes:
            try:
                await self._store.commit(self._thread_id, [change], fence=self.fence)
            except StoreConflict:  # it is there: the write was done, and then failed
                continue
            except StoreError:
                return
