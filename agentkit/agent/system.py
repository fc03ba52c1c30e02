"""An agent's instructions at the start of a conversation: a string, or a function that writes it for each run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from agentkit.checks.bounds import TEXT, Bound, can_take, either, or_none
from agentkit.errors import ConfigError

_ContextT = TypeVar("_ContextT")

System = str | Callable[[_ContextT], str | Awaitable[str]]
"""Instructions: a string, or a function, plain or async, that receives the run's `context` and returns a string. It is
called once for each run that puts instructions before its conversation, before the first request."""


def _writes(value: object) -> bool:
    """Return True if it is a function that can be called with one argument."""
    return callable(value) and not isinstance(value, type) and can_take(value, 1)


SYSTEM: Final = or_none(
    either(TEXT, Bound(_writes, ""), words="a string, or a function of the run's context: `def system(context): …`")
)


async def instructions_text(system: System[Any], context: Any) -> str:
    """The instructions of one run.

    Raises:
        ConfigError: the function did not return a string.
    """
    if isinstance(system, str):
        return system
    text: object = system(context)
    if inspect.isawaitable(text):
        text = await text
    if not isinstance(text, str):
        name = getattr(system, "__qualname__", type(system).__qualname__)
        raise ConfigError(f"system={name}: expected the run's instructions as a string, found {text!r:.100}")
    return text
