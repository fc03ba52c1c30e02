"""The cancellation of a run, and work that is finished in spite of it. Knows no turn, no model and no journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from agentkit.agent.options import RunFinish

_T = TypeVar("_T")

_GIVEN_UP: set[asyncio.Task[Any]] = set()  # foreign code that was cancelled; referenced until it ends


class Brake:
    """Ends a run from outside: a call of `cancel`, its token, or its clock. The first to pull it sets the reason."""

    def __init__(self) -> None:
        self.reason: RunFinish | None = None
        """Why it was pulled; None until then."""
        self._task: asyncio.Task[Any] | None = None  # the task that pulling it cancels

    def pull(self, reason: RunFinish) -> None:
        """Pull it."""
        if self.reason is None:
            self.reason = reason
        if self._task is not None:
            self._task.cancel()

    async def unless_pulled(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Do this in a separate task, which pulling the brake cancels; the result is then None."""
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
    """Stop a run when a token is set, or after this many seconds. Calling the returned functions ends the watch."""
    if token is None and seconds is None:
        return []
    ends: list[Callable[[], object]] = []
    if token is not None and token.is_set():
        stop("cancelled")
    loop = asyncio.get_running_loop()
    if seconds is not None:
        if seconds <= 0:
            stop("time_budget")
        else:
            ends.append(loop.call_later(seconds, stop, "time_budget").cancel)
    if token is not None:
        ends.append(loop.create_task(_obey(token, stop)).cancel)
    return ends


async def _obey(token: asyncio.Event, stop: Callable[[RunFinish], None]) -> None:
    await token.wait()
    stop("cancelled")


async def outcome_of(work: Awaitable[_T]) -> tuple[_T | None, BaseException | None]:
    """Return the value of foreign code, or its exception as a value: some exceptions would stop the event loop."""
    try:
        return await work, None
    except KeyboardInterrupt:  # the operator's
        raise
    except BaseException as e:  # noqa: BLE001 - the boundary: foreign code
        return None, e


def give_up(task: asyncio.Task[Any]) -> None:
    """Cancel foreign code, and wait for it no more."""
    if not task.done():
        task.cancel()
        _GIVEN_UP.add(task)
        task.add_done_callback(_GIVEN_UP.discard)


async def in_time(work: Awaitable[_T], seconds: float) -> tuple[_T | None, BaseException | None] | None:
    """Return what foreign code returned or raised; None if it is not done after this many seconds.

    It has a separate task: a cancellation that it raises is not the caller's, and it need not end when cancelled.
    """
    task = asyncio.get_running_loop().create_task(outcome_of(work))
    try:
        await asyncio.wait({task}, timeout=max(seconds, 0.0))
        return task.result() if task.done() else None
    finally:
        give_up(task)


async def shield(work: Coroutine[Any, Any, _T], again: Callable[[], Coroutine[Any, Any, _T]] | None = None) -> _T:
    """Finish this even if the task is cancelled in the meantime; the cancellation is raised afterwards.

    Otherwise its result is returned.

    Args:
        work: the coroutine to finish.
        again: creates the coroutine again. An event loop that is closing cancels all existing tasks, including the one
            that does this work, perhaps before its first step; the work is then repeated in a new task, which is not
            among the cancelled ones.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        task = asyncio.ensure_future(work)
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as e:
                cancelled = e
        if again is None or not task.cancelled():
            break
        work, again = again(), None
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()
