"""Tasks that take their first step at once: most short work is over by then, and never waits for the event loop.

Knows tasks only.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import suppress
from time import perf_counter
from typing import Any, Final, NoReturn, TypeVar

T = TypeVar("T")

SLICE: Final = 0.01
"""Seconds for which work that never waits may keep the event loop from everything else."""


def start_now(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
    """Return a task that has taken its first step, in a copy of the current context; it may be done.

    An application that has set a task factory gets a task from that, which takes its first step as it sees fit. In that
    step the work must not raise `KeyboardInterrupt`; see `interrupt`.
    """
    return loop.create_task(work) if loop.get_task_factory() is not None else _stepped(work, loop)


if sys.version_info >= (3, 12):

    def _stepped(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        return asyncio.Task(work, loop=loop, eager_start=True)

else:

    def _stepped(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """Create such a task in Python 3.11: the step that a new task has put last in its loop's queue is taken now."""
        task = asyncio.Task(work, loop=loop)
        queue: Any = getattr(loop, "_ready", None)
        if queue is None:  # a loop of another kind: the step comes in its turn
            return task
        step, outer = queue.pop(), asyncio.current_task(loop)
        if outer is None:
            step._run()
            return task
        asyncio.tasks._leave_task(loop, outer)
        try:
            step._run()
        finally:
            asyncio.tasks._enter_task(loop, outer)
        return task


async def interrupt(error: KeyboardInterrupt) -> None:
    """End the event loop with a Ctrl-C that came to a task's work, from the loop itself, and continue after that.

    Raised by a task in its first step it would end the code that started the task, and not by way of its task. If the
    task were done before the loop ends, so could be what the loop runs for: the loop would then stop once more when
    `asyncio.run` cleans up.
    """
    asyncio.get_running_loop().call_soon(_raise, error)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


def _raise(error: BaseException) -> NoReturn:
    raise error


class LoopYield:
    """Tells work that never waits when to let the event loop do something else."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = perf_counter() + SLICE

    @property
    def due(self) -> bool:
        """Return whether its time is up; the next one begins then."""
        now = perf_counter()
        if now < self._until:
            return False
        self._until = now + SLICE
        return True
