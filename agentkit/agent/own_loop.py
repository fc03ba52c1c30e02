"""A separate event loop for code that has none: it ends even if a tool does not. Knows no agent and no tool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")

LEAVE: Final = 1.0
"""How many seconds the remaining tasks have to end, once they are cancelled and nothing waits for them any more."""

_LOG: Final = logging.getLogger("agentkit.agent")


class OwnLoop:
    """An `asyncio.Runner`, used as `with OwnLoop() as loop: loop.run(…)`, that does not wait forever.

    When it closes, a runner cancels every remaining task and waits for it: forever, if a tool ignores its cancellation.
    Here such a task is abandoned, unfinished, and a warning names it. A function that `asyncio.to_thread` runs and that
    does not return is also abandoned, but without a warning.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; Ctrl-C cancels it."""
        return self._runner.run(work)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        """Cancel the remaining tasks, wait for them briefly, and close the loop."""
        loop = self._runner.get_loop()
        if e is not None:  # Ctrl-C may have come after the work was done: what would stop the loop then, must not now
            loop.call_soon(loop.stop)
            loop.run_forever()
        for task in (left := loop.run_until_complete(_left())):
            _LOG.warning("abandoned, because it did not end when it was cancelled: %s", task.get_name())
            asyncio.tasks._unregister_task(task)  # so that nothing waits for it
        if left:  # already reported, so not again when it is collected
            loop.set_exception_handler(_reporting_others(left))
        loop.set_default_executor(ThreadPoolExecutor(1))  # an idle one, because closing waits for it
        self._runner.close()


def _reporting_others(left: set[asyncio.Task[object]]) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """An exception handler for a loop that is closing, which ignores these tasks."""
    names = {task.get_name() for task in left}

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        task = context.get("task")
        if not (isinstance(task, asyncio.Task) and task.get_name() in names):
            loop.default_exception_handler(context)

    return handle


async def _left() -> set[asyncio.Task[object]]:
    """Cancel the remaining tasks; those that do not end in time."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if not tasks:
        return set()
    wait = LEAVE if any(not task.cancelling() for task in tasks) else LEAVE / 10  # these have had their time
    for task in tasks:
        task.cancel()
    return (await asyncio.wait(tasks, timeout=wait))[1]
