"""Awaits other systems' code, which may hang, or ignore its cancellation. Knows tasks only."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from agentkit.checks.keys import words
from agentkit.processor.eager_tasks import interrupt, start_now
from agentkit.processor.tooltask import GRACE

T = TypeVar("T")

_ABANDONED: set[asyncio.Task[Any]] = set()  # kept so that the loop can end them


async def await_within(work: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """Await a coroutine for a limited time. One that ignores its cancellation runs on unobserved.

    Raises:
        TimeoutError: it took too long.
        RuntimeError: it raised an exception that only its caller may raise: cancelled, closed, exit.
        Exception: what else it raised.
    """
    task = start_now(staying(work), asyncio.get_running_loop())
    try:
        if not task.done():
            await asyncio.wait([task], timeout=seconds)
        if task.done():
            try:
                return task.result()
            except (asyncio.CancelledError, GeneratorExit) as e:  # nobody has cancelled or closed it
                raise _of_its_own(e) from e
    finally:
        if not task.done():
            task.cancel()
            await _leave(task)
    raise TimeoutError(f"not done after {seconds:g} s")


async def staying(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine; its `SystemExit`, which would end all trajectories, becomes a separate error.

    Raises:
        RuntimeError: it raised `SystemExit`, or `KeyboardInterrupt`, which then ends the event loop.
        Exception: what else it raised.
    """
    try:
        return await work
    except SystemExit as e:
        raise _of_its_own(e) from e
    except KeyboardInterrupt as e:
        await interrupt(e)
        raise _of_its_own(e) from e


async def alone(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing, so that nobody can have cancelled it while it ran.

    Raises:
        RuntimeError: it raised an exception that only its caller may raise.
        Exception: what else it raised.
    """
    try:
        return await staying(work)
    except (asyncio.CancelledError, GeneratorExit) as e:
        raise _of_its_own(e) from e


def _of_its_own(error: BaseException) -> RuntimeError:
    return RuntimeError(f"it raised {words(error)}")


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
    """Run a coroutine to its end; returns True if the caller was cancelled in the meantime."""
    task = start_now(work, asyncio.get_running_loop())
    disturbed = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            disturbed = True
    task.result()
    return disturbed
