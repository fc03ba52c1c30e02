"""An event loop for one piece of work, for code that has none; closes everything that is bound to the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from agentkit.agent.own_loop import OwnLoop

_T = TypeVar("_T")


def run_blocking(
    work: Callable[[], Coroutine[Any, Any, _T]], end: Callable[[], Awaitable[None]], name: str, instead: str
) -> _T:
    """Do this in a separate event loop.

    Args:
        work: creates the coroutine to run.
        end: closes what cannot outlive that loop, such as a model's connections.
        name: the name of the blocking method, for the error.
        instead: what to await if a loop is already running.

    Raises:
        RuntimeError: an event loop is running in this thread.
    """
    if asyncio._get_running_loop() is not None:
        raise RuntimeError(f"{name}() would block the running event loop: write `await {instead}(…)` instead")

    async def once() -> _T:
        try:
            return await work()
        finally:
            await end()

    with OwnLoop() as loop:
        return loop.run(once())
