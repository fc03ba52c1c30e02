"""Waiting for code of others, which may hang, or ignore that it is cancelled. Knows tasks only."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from agentkit.processor.tooltask import GRACE

T = TypeVar("T")

_ABANDONED: set[asyncio.Task[Any]] = set()  # kept so that the loop can end them


async def bounded(work: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """What a coroutine returns, if it does within its time. One that ignores its cancellation runs on unobserved.

    Raises:
        TimeoutError: it did not.
        Exception: what it raised.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            await _leave(task)
    raise TimeoutError(f"not done after {seconds:g} s")


async def _leave(task: asyncio.Task[Any]) -> None:
    """Give a cancelled task a moment to clean up."""
    _ABANDONED.add(task)
    task.add_done_callback(_gone)
    await asyncio.wait([task], timeout=GRACE)


def _gone(task: asyncio.Task[Any]) -> None:
    _ABANDONED.discard(task)
    if not task.cancelled():
        task.exception()  # seen: nothing waits for it any more


async def undisturbed(work: Coroutine[Any, Any, None]) -> bool:
    """Run a coroutine to its end, even if the caller is cancelled meanwhile; returns whether it was."""
    task = asyncio.get_running_loop().create_task(work)
    disturbed = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            disturbed = True
    task.result()
    return disturbed
