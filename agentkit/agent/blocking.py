"""The door for code without an event loop: one loop for one piece of work, and an end to what is bound to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from agentkit.agent.own_loop import OwnLoop
from agentkit.models.base import Model

_T = TypeVar("_T")


def blocking(
    work: Callable[[], Coroutine[Any, Any, _T]], end: Callable[[], Awaitable[None]], name: str, instead: str
) -> _T:
    """Do this in an event loop of its own.

    Args:
        work: what is to be done.
        end: closes what cannot outlive that loop, such as a model's connections.
        name: of the method that blocks, for the error.
        instead: what to await where a loop runs already.

    Raises:
        RuntimeError: an event loop runs in this thread.
    """
    if asyncio._get_running_loop() is not None:
        raise RuntimeError(f"{name}() would block the event loop that runs here: write `await {instead}(…)` instead")

    async def once() -> _T:
        try:
            return await work()
        finally:
            await end()

    with OwnLoop() as loop:
        return loop.run(once())


async def close(model: Model) -> None:
    """Close a model's connections, if it has any that can be closed."""
    if (aclose := getattr(model, "aclose", None)) is not None:
        await aclose()
