"""Words in which a check of a store is written. Knows the protocol, no store and no test runner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from agentkit.errors import StoreError
from agentkit.threads.store import Append, NewCall, Store

StoreCheck = Callable[[Store], Awaitable[None]]
"""Given an empty store, raises AssertionError where it does not do what it must."""


def same(found: object, wanted: object) -> None:
    """Both are equal."""
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


def holds(condition: bool, wanted: str) -> None:
    """The condition is true; `wanted` says it in words."""
    if not condition:
        raise AssertionError(f"wanted: {wanted}")


@asynccontextmanager
async def refused(kind: type[StoreError]) -> AsyncIterator[list[StoreError]]:
    """What is inside raises this kind of error, which is given in the list afterwards."""
    caught: list[StoreError] = []
    try:
        yield caught
    except kind as e:
        caught.append(e)
    if not caught:
        raise AssertionError(f"wanted {kind.__name__}, but nothing was raised")


def message(text: str, key: str | None = None, *calls: NewCall) -> Append:
    """An entry with a body that says `text`."""
    return Append({"text": text}, key=key, calls=calls)


async def texts(store: Store, thread_id: str) -> list[str]:
    """What the entries say, in order."""
    return [entry.body["text"] for entry in (await store.load(thread_id)).entries]
