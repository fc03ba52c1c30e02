"""What ends a run from outside, and what is done to its end in spite of it. Knows no turn, no model and no journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agentkit.agent.options import RunFinish

_T = TypeVar("_T")


class Brake:
    """Ends a run from outside: by hand, by its token, by its clock. Who pulls it first gives the reason."""

    def __init__(self) -> None:
        self.reason: RunFinish | None = None
        """Why it was pulled; None as long as it was not."""
        self._task: asyncio.Task[Any] | None = None  # what pulling it cancels

    def pull(self, reason: RunFinish) -> None:
        """Pull it."""
        if self.reason is None:
            self.reason = reason
        if self._task is not None:
            self._task.cancel()

    async def unless_pulled(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Do this in a task of its own, which pulling it cancels; None then."""
        self._task = task = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            if self.reason is None or asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            return None
        finally:
            self._task = None


def watch(
    stop: Callable[[RunFinish], None], token: asyncio.Event | None, seconds: float | None
) -> list[Callable[[], object]]:
    """Stop a run when a token is set, or after so many seconds. What is returned ends the watch."""
    if token is None and seconds is None:
        return []
    ends: list[Callable[[], object]] = []
    if token is not None and token.is_set():
        stop("cancelled")
    loop = asyncio.get_running_loop()
    if seconds is not None:
        ends.append(loop.call_later(max(seconds, 0), stop, "time_budget").cancel)
    if token is not None:
        ends.append(loop.create_task(_obey(token, stop)).cancel)
    return ends


async def _obey(token: asyncio.Event, stop: Callable[[RunFinish], None]) -> None:
    await token.wait()
    stop("cancelled")


async def uncancelled(
    work: Coroutine[Any, Any, None], again: Callable[[], Coroutine[Any, Any, None]] | None = None
) -> None:
    """Do this to its end although the task may be cancelled meanwhile; then the cancellation goes on.

    Args:
        work: what is to be done.
        again: makes it anew. An event loop that ends cancels all tasks that there are, the one that does this work,
            too, perhaps before its first step; it is then done once more, in a task that no longer is among them.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        task = asyncio.ensure_future(work)
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError as e:
                cancelled = e
        if again is None or not task.cancelled():
            break
        work, again = again(), None
    task.result()
    if cancelled is not None:
        raise cancelled
