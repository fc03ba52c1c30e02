"""Checks of the bodies that a store keeps, and of concurrency. A check's name says what it checks."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from agentkit.errors import StoreConflict, StoreError, ThreadBusy
from agentkit.testing.assertions import expect_error, holds, message, same, texts
from agentkit.threads.store import Append, Move, NewCall, Store

TRICKY: Final[dict[str, Any]] = {
    "nul": "a\0b",
    "lone surrogates": ["\ud800", "\udfff x"],
    "planes": "é 漢字 😀 \u2028 \ufeff \ufffe",
    "control": "".join(map(chr, range(32))) + "\x7f",
    "quotes": "\"'\\\\u0000 $1 ? %s {x} --",
    "": {"": ""},
    "numbers": [0, -1, 2**53 + 1, -(2**200), 10**300, 0.1, 5e-324, 1.7976931348623157e308, -0.0],
    "others": [True, False, None, [], {}, [[[]]]],
}
"""A body with values that are difficult for stores."""


# contents


async def any_json_is_read_back_unchanged(store: Store) -> None:
    await store.create("t", TRICKY, [Append(TRICKY, calls=[NewCall("c", TRICKY)])])
    await store.commit("t", [Move(0, 0, "answered", expect=("planned",), note=TRICKY, answer=TRICKY)])
    log = await store.load("t")
    (call,) = log.calls
    for found in ((await store.get("t")).metadata, log.entries[0].body, call.body, call.note, call.answer):
        same(repr(found), repr(TRICKY))  # repr: it distinguishes True from 1 and -0.0 from 0


async def any_text_is_an_id(store: Store) -> None:
    odd = ["", "a\0b", "\ud800", "漢 😀", "\"'\\", "\\u0000", "%_ ?$1", " a", "A", "a", "é", "e\u0301", "x" * 1000]
    for name in odd:
        await store.create(name, {"name": name}, [message(name, name, NewCall(name, {}))])
    for name in odd:
        thread, log = await store.get(name), await store.load(name)
        same((thread.id, thread.metadata), (name, {"name": name}))
        same((log.entries[0].key, log.calls[0].id), (name, name))
        same(await store.commit(name, [message("again", name)]), (0,))
    same({thread.id for thread in await store.list()}, set(odd))
    same((await store.acquire("a", "own\0er\ud800", 60)).owner, "own\0er\ud800")
    async with expect_error(ThreadBusy) as errors:
        await store.acquire("a", "other", 60)
    same(getattr(errors[0], "owner", None), "own\0er\ud800")


async def what_json_cannot_hold_is_refused(store: Store) -> None:
    await store.create("t")
    before = await store.get("t")
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    for value in (float("nan"), float("inf"), object(), {1, 2}, b"bytes", deep):
        async with expect_error(StoreError):
            await store.commit("t", [message("a"), Append({"list": [1, value]})])
        async with expect_error(StoreError):
            await store.update("t", {"x": value})
    same((await store.get("t"), await texts(store, "t")), (before, []))


async def a_large_body_comes_back(store: Store) -> None:
    body = {"text": "é" * 500_000, "list": list(range(10_000))}
    await store.create("t", {}, [Append(body)])
    same((await store.load("t")).entries[0].body, body)


# concurrency


async def fifty_tasks_leave_no_gap(store: Store) -> None:
    await store.create("t")
    got = await asyncio.gather(
        *(store.commit("t", [message(f"{i}a", None, NewCall(f"{i}", {})), message(f"{i}b")]) for i in range(50))
    )
    same(sorted(got), [(2 * i, 2 * i + 1) for i in range(50)])
    log = await store.load("t")
    same([entry.seq for entry in log.entries], list(range(100)))
    for i, (first, second) in enumerate(got):
        same((log.entries[first].body["text"], log.entries[second].body["text"]), (f"{i}a", f"{i}b"))
    same([(call.seq, call.id) for call in log.calls], sorted((seq, f"{i}") for i, (seq, _) in enumerate(got)))


async def one_that_fails_costs_no_other(store: Store) -> None:
    await store.create("t")
    bad = Move(9, 0, "started", expect=("planned",))
    got = await asyncio.gather(
        *(store.commit("t", [message(f"{i}"), *([bad] if i % 3 == 0 else [])]) for i in range(30)),
        return_exceptions=True,
    )
    same([isinstance(g, StoreConflict) for g in got], [i % 3 == 0 for i in range(30)])
    same(sorted(g for g in got if isinstance(g, tuple)), [(i,) for i in range(20)])
    same(sorted(await texts(store, "t")), sorted(f"{i}" for i in range(30) if i % 3))


async def the_same_message_from_many_is_one_message(store: Store) -> None:
    await store.create("t")
    same(set(await asyncio.gather(*(store.commit("t", [message("a", "k")]) for _ in range(20)))), {(0,)})
    same(await texts(store, "t"), ["a"])


async def what_was_written_is_seen_at_once(store: Store) -> None:
    async def chat(name: str) -> None:
        await store.create(name)
        for i in range(5):
            await store.commit(name, [message(f"{i}")])
            same((len((await store.load(name)).entries), (await store.get(name)).entries), (i + 1, i + 1))

    await asyncio.gather(*(chat(f"t{i}") for i in range(10)))


async def who_is_cancelled_leaves_the_store_sound(store: Store) -> None:
    await store.create("t")
    tasks = [asyncio.create_task(store.commit("t", [message(f"{i}a"), message(f"{i}b")])) for i in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    got = await asyncio.gather(*tasks, return_exceptions=True)
    same([isinstance(g, tuple) for g in got[1::2]], [True] * 10)
    # Some cancelled calls may still be in progress, hence a single snapshot.
    log = await store.load("t")
    texts = [entry.body["text"] for entry in log.entries]
    same([entry.seq for entry in log.entries], list(range(len(texts))))
    same([a[:-1] for a in texts[::2]], [b[:-1] for b in texts[1::2]])
    holds({f"{i}a" for i in range(1, 20, 2)} <= set(texts), "everything confirmed is there")


async def a_closed_store_says_so(store: Store) -> None:
    await store.create("t")
    await store.aclose()
    await store.aclose()
    async with expect_error(StoreError):
        await store.get("t")
