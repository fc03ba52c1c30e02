"""An event loop of one's own, for code that has none: it ends although a tool does not. Knows no agent and no tool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")

LEAVE: Final = 1.0
"""Seconds that what is still at work has to end, once it is cancelled and nobody waits for it any more."""

_LOG: Final = logging.getLogger("agentkit.agent")


class OwnLoop:
    """An `asyncio.Runner`, used as `with OwnLoop() as loop: loop.run(…)`, that does not wait for ever.

    At its end a runner cancels every task that is left, and waits for it: for good, where a tool swallows its
    cancellation. Here such a task is left behind, unfinished, and a warning names it. So is a function that
    `asyncio.to_thread` runs and that does not return; of that one nobody hears.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this to its end; Ctrl-C cancels it."""
        return self._runner.run(work)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        """Cancel what is left, wait for it a moment, and close the loop."""
        loop = self._runner.get_loop()
        for task in (left := loop.run_until_complete(_left())):
            _LOG.warning("left at work, it did not end when it was cancelled: %s", task.get_name())
            asyncio.tasks._unregister_task(task)  # so that nobody waits for it
        if left:  # said already, and not once more when it is collected
            loop.set_exception_handler(_told(left))
        loop.set_default_executor(ThreadPoolExecutor(1))  # an idle one: its end is waited for
        self._runner.close()


def _told(left: set[asyncio.Task[object]]) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """A handler of what goes wrong in a loop that is over, these tasks excepted."""
    names = {task.get_name() for task in left}

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        task = context.get("task")
        if not (isinstance(task, asyncio.Task) and task.get_name() in names):
            loop.default_exception_handler(context)

    return handle


async def _left() -> set[asyncio.Task[object]]:
    """The tasks that do not end although they are cancelled."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if not tasks:
        return set()
    wait = LEAVE if any(not task.cancelling() for task in tasks) else LEAVE / 10  # those had their moment before
    for task in tasks:
        task.cancel()
    return (await asyncio.wait(tasks, timeout=wait))[1]
