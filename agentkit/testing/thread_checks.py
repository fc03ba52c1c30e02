"""Checks of a store's threads, entries and calls. A check's name says what it checks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

from agentkit.checks.bounds import lacking
from agentkit.errors import StoreConflict, ThreadExists, ThreadNotFound
from agentkit.testing.assertions import expect_error, holds, message, same, texts
from agentkit.threads.store import Append, Change, Lease, Move, NewCall, Revise, Store

# threads


async def a_store_has_the_methods_of_the_protocol(store: Store) -> None:
    same(lacking(store, Store), ())


async def a_new_thread_is_as_it_was_made(store: Store) -> None:
    made = await store.create("t", {"title": "x"})
    same((made.id, made.metadata, made.entries), ("t", {"title": "x"}, 0))
    holds(made.created == made.updated, "created == updated")
    same(await store.get("t"), made)


async def a_thread_without_metadata_has_empty_metadata(store: Store) -> None:
    same((await store.create("t")).metadata, {})


async def a_thread_can_begin_with_entries(store: Store) -> None:
    made = await store.create("t", {}, [message("a", "k"), message("b"), message("again", "k")])
    same(made.entries, 2)
    same(await texts(store, "t"), ["a", "b"])
    same(await store.get("t"), made)


async def an_id_is_taken_once(store: Store) -> None:
    await store.create("t", {"first": True})
    async with expect_error(ThreadExists):
        await store.create("t", {"first": False}, [message("a")])
    same(((await store.get("t")).metadata, await texts(store, "t")), ({"first": True}, []))


async def what_is_not_there_is_not_found(store: Store) -> None:
    gone = Lease("no", "me", 1, 0.0)
    asked: list[Callable[[], Awaitable[object]]] = [
        lambda: store.get("no"),
        lambda: store.update("no", {}),
        lambda: store.delete("no"),
        lambda: store.load("no"),
        lambda: store.commit("no", [message("a")]),
        lambda: store.acquire("no", "me", 60),
        lambda: store.renew(gone, 60),
    ]
    for ask in asked:
        async with expect_error(ThreadNotFound):
            await ask()
    await store.release(gone)


async def metadata_is_replaced_whole(store: Store) -> None:
    made = await store.create("t", {"a": 1, "b": 2})
    changed = await store.update("t", {"b": 3})
    same((changed.metadata, changed.created), ({"b": 3}, made.created))
    holds(changed.version > made.version, "a higher version after a change of metadata")
    same(await store.get("t"), changed)
    same((await store.update("t", {"c": 4}, expect={"b": 3})).metadata, {"c": 4})
    for other in ({"b": 3}, {"c": 4.0}, {"c": True}, {}):
        async with expect_error(StoreConflict):
            await store.update("t", {"d": 5}, expect=other)
    same((await store.get("t")).metadata, {"c": 4})


async def threads_are_listed_the_last_updated_first(store: Store) -> None:
    for name in "abc":
        await store.create(name)
    for name in "bca":
        await store.commit(name, [message("x")])
    found = await store.list()
    same(found, tuple(sorted(found, key=lambda thread: (-thread.updated, thread.id))))
    same({thread.id for thread in found}, set("abc"))
    same(found[0], await store.get(found[0].id))


async def pages_hold_each_thread_once(store: Store) -> None:
    await asyncio.gather(*(store.create(f"t{i:02}") for i in range(25)))
    whole = await store.list(limit=1000)
    found = list(await store.list(limit=7))
    while page := await store.list(limit=7, before=found[-1]):
        found += page
    same(found, list(whole))
    same(await store.list(limit=0), ())


async def a_deleted_thread_leaves_nothing(store: Store) -> None:
    await store.create("t", {"old": 1}, [message("a", "k", NewCall("c", {}))])
    await store.create("other", {}, [message("kept", "k", NewCall("c", {}))])
    await store.delete("t")
    async with expect_error(ThreadNotFound):
        await store.get("t")
    await store.create("t")
    same(await store.commit("t", [message("new", "k")]), (0,))
    log = await store.load("t")
    same((len(log.entries), log.calls), (1, ()))
    same((await texts(store, "other"), len((await store.load("other")).calls)), (["kept"], 1))


# entries


async def entries_are_numbered_from_zero_without_gaps(store: Store) -> None:
    await store.create("t")
    same(await store.commit("t", [message("a"), message("b")]), (0, 1))
    same(await store.commit("t", [Append({"text": "c"}, kind="compaction")]), (2,))
    entries = (await store.load("t")).entries
    same(
        [(e.seq, e.kind, e.body["text"]) for e in entries],
        [(0, "message", "a"), (1, "message", "b"), (2, "compaction", "c")],
    )
    holds(all(a.created <= b.created for a, b in pairwise(entries)), "timestamps that never decrease")
    same((await store.get("t")).entries, 3)


async def a_key_is_taken_once(store: Store) -> None:
    await store.create("t")
    await store.commit("t", [message("a", "k")])
    before = await store.get("t")
    same(await store.commit("t", [message("again", "k", NewCall("c", {}))]), (0,))
    same(await store.get("t"), before)
    same(
        await store.commit("t", [message("b"), message("c", "k2"), message("d", "k2"), message("e", "k")]), (1, 2, 2, 0)
    )
    same(await texts(store, "t"), ["a", "b", "c"])
    same([e.key for e in (await store.load("t")).entries], ["k", None, "k2"])
    same((await store.load("t")).calls, ())


async def a_key_belongs_to_its_thread(store: Store) -> None:
    await store.create("a", {}, [message("x", "k")])
    await store.create("b", {}, [message("y", "k")])
    same((await texts(store, "a"), await texts(store, "b")), (["x"], ["y"]))


async def a_commit_is_made_whole_or_not_at_all(store: Store) -> None:
    await store.create("t", {}, [message("a", None, NewCall("c", {}))])
    before, log = await store.get("t"), await store.load("t")
    bad: list[Change] = [
        Move(0, 0, "started", expect=("approved",)),
        Move(0, 1, "started", expect=("planned",)),
        Revise(0, {"text": "b"}),
        Revise(7, {"text": "b"}),
    ]
    for change in bad:
        async with expect_error(StoreConflict):
            await store.commit("t", [message("b", "k"), Move(0, 0, "started", expect=("planned",)), change])
        same((await store.get("t"), await store.load("t")), (before, log))
    async with expect_error(StoreConflict):
        await store.create("u", {}, [message("a"), Revise(0, {})])  # type: ignore[list-item]
    async with expect_error(ThreadNotFound):
        await store.get("u")


async def only_a_partial_entry_is_revised(store: Store) -> None:
    await store.create("t")
    await store.commit("t", [Append({"text": "a"}, kind="partial", key="k", calls=[NewCall("1", {})])])
    same(await store.commit("t", [Revise(0, {"text": "ab"}, kind="partial")]), (0,))
    same(await store.commit("t", [Revise(0, {"text": "abc"}, calls=[NewCall("2", {}), NewCall("3", {})])]), (0,))
    log = await store.load("t")
    (entry,) = log.entries
    same((entry.kind, entry.body, entry.key), ("message", {"text": "abc"}, "k"))
    same([(call.ordinal, call.id) for call in log.calls], [(0, "1"), (1, "2"), (2, "3")])
    async with expect_error(StoreConflict):
        await store.commit("t", [Revise(0, {"text": "late"})])


async def load_begins_after_an_entry(store: Store) -> None:
    await store.create("t", {}, [message(text, None, NewCall(text, {})) for text in "abc"])
    log = await store.load("t", after=0)
    same(([e.seq for e in log.entries], [call.id for call in log.calls]), ([1, 2], ["b", "c"]))
    empty = await store.load("t", after=2)
    same((empty.entries, empty.calls, empty.version), ((), (), log.version))


async def versions_grow_with_what_changes(store: Store) -> None:
    versions = [(await store.create("t")).version]
    await store.commit("t", [message("a", "k", NewCall("c", {}))])
    versions.append((await store.get("t")).version)
    await store.commit("t", [Move(0, 0, "started", expect=("planned",))])
    versions.append((await store.load("t")).version)
    holds(versions == sorted(set(versions)), f"increasing versions, found {versions}")
    await store.commit("t", [message("a", "k")])
    await store.commit("t", [])
    await store.release(await store.acquire("t", "me", 60))
    same((await store.get("t")).version, versions[-1])


async def a_thread_can_be_read_page_by_page(store: Store) -> None:
    calls = [NewCall("c", {"n": n}) for n in range(2)]
    await store.create("t", {}, [message("a", None, *calls), message("b"), message("c", None, calls[0])])
    pages = [await store.load("t", after=after, limit=2) for after in (-1, 1, 2)]
    same([[entry.seq for entry in page.entries] for page in pages], [[0, 1], [2], []])
    same([[(call.seq, call.ordinal) for call in page.calls] for page in pages], [[(0, 0), (0, 1)], [(2, 0)], []])


# calls


async def a_call_goes_its_way(store: Store) -> None:
    await store.create("t", {}, [message("a", None, NewCall("c", {"n": 1}))])
    (call,) = (await store.load("t")).calls
    same((call.status, call.body, call.note, call.attempts), ("planned", {"n": 1}, {}, 0))
    same((call.answer, call.started, call.ended), (None, None, None))
    await store.commit("t", [Move(0, 0, "waiting", expect=("planned",))])
    await store.commit("t", [Move(0, 0, "approved", expect=("waiting",), body={"n": 2}, note={"by": "me"})])
    await store.commit("t", [Move(0, 0, "started", expect=("planned", "approved"))])
    await store.commit("t", [Move(0, 0, "started", expect=("started",))])
    (call,) = (await store.load("t")).calls
    same((call.status, call.body, call.note, call.attempts), ("started", {"n": 2}, {"by": "me"}, 2))
    holds(call.started is not None and call.ended is None, "a start but no end")
    await store.commit("t", [Move(0, 0, "answered", expect=("started",), answer={"output": "x"})])
    (call,) = (await store.load("t")).calls
    same((call.status, call.answer, call.attempts), ("answered", {"output": "x"}, 2))
    holds(call.started is not None and call.ended is not None and call.started <= call.ended, "a start before the end")
    async with expect_error(StoreConflict):
        await store.commit("t", [Move(0, 0, "started", expect=("planned", "started"))])


async def a_call_may_be_born_further_on(store: Store) -> None:
    calls = (NewCall("1", {}, "waiting"), NewCall("2", {}, "started"), NewCall("3", {}, "answered", {"error": "no"}))
    await store.create("t", {}, [message("a", None, *calls)])
    found = (await store.load("t")).calls
    same(
        [(c.status, c.answer, c.attempts) for c in found],
        [("waiting", None, 0), ("started", None, 1), ("answered", {"error": "no"}, 0)],
    )
    same([(c.started is None, c.ended is None) for c in found], [(True, True), (False, True), (True, False)])


async def calls_are_in_the_order_of_their_entries(store: Store) -> None:
    many = [NewCall(f"c{i}", {"i": i}) for i in range(120)]
    await store.create("t", {}, [message("a", None, *many), message("b"), message("c", None, *many[:2])])
    found = [(call.seq, call.ordinal, call.id, call.body) for call in (await store.load("t")).calls]
    same(found, [(0, i, f"c{i}", {"i": i}) for i in range(120)] + [(2, i, f"c{i}", {"i": i}) for i in range(2)])


async def an_id_of_a_call_may_come_again(store: Store) -> None:
    await store.create(
        "t", {}, [message("a", None, NewCall("x", {}), NewCall("x", {})), message("b", None, NewCall("x", {}))]
    )
    await store.commit("t", [Move(0, 1, "started", expect=("planned",))])
    same([call.status for call in (await store.load("t")).calls], ["planned", "started", "planned"])
