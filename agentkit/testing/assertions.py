"""The vocabulary of the checks for stores. Knows the protocol, no store and no test runner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from agentkit.errors import StoreError
from agentkit.threads.store import Append, NewCall, Store

StoreCheck = Callable[[Store], Awaitable[None]]
"""Called with an empty store; raises AssertionError if it violates the protocol."""


def same(found: object, wanted: object) -> None:
    """Check that both are equal."""
    if found != wanted:
        raise AssertionError(f"found {found!r}, expected {wanted!r}")


def holds(condition: bool, wanted: str) -> None:
    """Check that the condition is true; `wanted` is the condition in words."""
    if not condition:
        raise AssertionError(f"expected {wanted}")


@asynccontextmanager
async def expect_error(kind: type[StoreError]) -> AsyncIterator[list[StoreError]]:
    """Check that the block raises this kind of error, which is in the list afterwards."""
    caught: list[StoreError] = []
    try:
        yield caught
    except kind as e:
        caught.append(e)
    if not caught:
        raise AssertionError(f"expected {kind.__name__}, but nothing was raised")


def message(text: str, key: str | None = None, *calls: NewCall) -> Append:
    """An entry with a body that says `text`."""
    return Append({"text": text}, key=key, calls=calls)


async def texts(store: Store, thread_id: str) -> list[str]:
    """The texts of the entries, in order."""
    return [entry.body["text"] for entry in (await store.load(thread_id)).entries]
