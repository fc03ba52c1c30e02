"""Checks of a store's leases. No check sleeps: a lease of 0 seconds has expired.

A check's name says what it checks.
"""

from __future__ import annotations

import asyncio

from agentkit.errors import ThreadBusy
from agentkit.testing.assertions import expect_error, holds, message, same, texts
from agentkit.threads.store import Store

# leases


async def a_thread_has_one_holder(store: Store) -> None:
    await store.create("t")
    lease = await store.acquire("t", "first", 60)
    for owner in ("second", "first"):
        async with expect_error(ThreadBusy) as errors:
            await store.acquire("t", owner, 60)
        (busy,) = errors
        same((getattr(busy, "owner", None), getattr(busy, "fence", None)), ("first", lease.fence))
    await store.release(lease)
    later = await store.acquire("t", "second", 60)
    holds(later.fence > lease.fence, "a higher fence")
    same((later.thread_id, later.owner), ("t", "second"))


async def one_of_many_gets_the_lease(store: Store) -> None:
    await store.create("t")
    got = await asyncio.gather(*(store.acquire("t", f"{i}", 60) for i in range(20)), return_exceptions=True)
    same(sorted(type(g).__name__ for g in got), ["Lease"] + ["ThreadBusy"] * 19)


async def a_lease_that_ran_out_may_be_taken(store: Store) -> None:
    await store.create("t")
    old = await store.acquire("t", "old", 0)
    same(await store.commit("t", [message("still mine")], fence=old.fence), (0,))
    new = await store.acquire("t", "new", 60)
    holds(new.fence > old.fence, "a higher fence")
    async with expect_error(ThreadBusy) as errors:
        await store.commit("t", [message("too late")], fence=old.fence)
    same((getattr(errors[0], "owner", None), getattr(errors[0], "fence", None)), ("new", new.fence))
    async with expect_error(ThreadBusy):
        await store.renew(old, 60)
    await store.release(old)  # a no-op that does not affect the other's lease
    same(await store.commit("t", [message("mine")], fence=new.fence), (1,))
    same(await texts(store, "t"), ["still mine", "mine"])


async def a_lease_of_the_dead_may_be_taken_before_its_time(store: Store) -> None:
    await store.create("t")
    first = await store.acquire("t", "first", 60)
    async with expect_error(ThreadBusy):
        await store.acquire("t", "second", 60, dead=first.fence - 1)
    second = await store.acquire("t", "second", 60, dead=first.fence)
    async with expect_error(ThreadBusy):
        await store.acquire("t", "third", 60, dead=first.fence)  # someone else was faster
    async with expect_error(ThreadBusy):
        await store.commit("t", [message("a")], fence=first.fence)
    same(await store.commit("t", [message("a")], fence=second.fence), (0,))


async def a_released_lease_writes_nothing(store: Store) -> None:
    await store.create("t")
    lease = await store.acquire("t", "me", 60)
    await store.release(lease)
    await store.release(lease)
    async with expect_error(ThreadBusy) as errors:
        await store.commit("t", [message("a")], fence=lease.fence)
    same((getattr(errors[0], "owner", None), getattr(errors[0], "fence", None)), ("", 0))
    async with expect_error(ThreadBusy):
        await store.renew(lease, 60)
    same(await texts(store, "t"), [])


async def a_renewed_lease_holds_from_now(store: Store) -> None:
    await store.create("t")
    lease = await store.acquire("t", "me", 0)
    renewed = await store.renew(lease, 60)
    holds(renewed.until > lease.until, "a later end")
    same((renewed.thread_id, renewed.owner, renewed.fence), ("t", "me", lease.fence))
    async with expect_error(ThreadBusy):
        await store.acquire("t", "other", 60)
    same(await store.commit("t", [message("a")], fence=lease.fence), (0,))


async def what_needs_no_lease_is_written_while_another_runs(store: Store) -> None:
    await store.create("t")
    lease = await store.acquire("t", "runner", 60)
    same(await store.commit("t", [message("from a user", "k")]), (0,))
    same(await store.commit("t", [message("from the runner")], fence=lease.fence), (1,))


async def a_thread_that_runs_is_not_deleted(store: Store) -> None:
    await store.create("t")
    lease = await store.acquire("t", "runner", 60)
    async with expect_error(ThreadBusy):
        await store.delete("t")
    await store.get("t")
    await store.release(lease)
    await store.delete("t")


async def a_lease_of_a_deleted_thread_is_worth_nothing(store: Store) -> None:
    await store.create("t")
    for _ in range(5):
        await store.acquire("t", "older", 0)
    old = await store.acquire("t", "old", 0)
    await store.delete("t")
    await store.create("t")
    new = await store.acquire("t", "new", 60)
    holds(new.fence > old.fence, "a higher fence than those of the deleted thread")
    async with expect_error(ThreadBusy):
        await store.commit("t", [message("a")], fence=old.fence)


async def a_version_of_a_deleted_thread_does_not_come_again(store: Store) -> None:
    await store.create("t")
    for i in range(5):
        await store.commit("t", [message(f"{i}")])
    version = (await store.get("t")).version
    await store.delete("t")
    holds((await store.create("t")).version > version, "a higher version than that of the deleted thread")
