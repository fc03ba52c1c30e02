"""What an agent is told at the beginning of a conversation: text, or a function that writes it for each run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from agentkit.checks.bounds import TEXT, Bound, either, or_none
from agentkit.errors import ConfigError

_ContextT = TypeVar("_ContextT")

System = str | Callable[[_ContextT], str | Awaitable[str]]
"""Instructions: text, or a function, plain or async, of the run's `context` that gives text. It is called once for each
run that puts instructions before its conversation, before the first request."""


def _writes(value: object) -> bool:
    """Whether it is a function that can be called with one value."""
    if not callable(value) or isinstance(value, type):
        return False
    try:
        inspect.signature(value).bind(None)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not say
        return True
    return True


SYSTEM: Final = or_none(
    either(TEXT, Bound(_writes, ""), words="text, or a function of the run's context: `def system(context): …`")
)


async def written(system: System[Any], context: Any) -> str:
    """The instructions of one run.

    Raises:
        ConfigError: the function gave something else than text.
    """
    if isinstance(system, str):
        return system
    said: object = system(context)
    if inspect.isawaitable(said):
        said = await said
    if not isinstance(said, str):
        name = getattr(system, "__qualname__", type(system).__qualname__)
        raise ConfigError(f"system={name}: wanted text for the run's instructions, found {said!r:.100}")
    return said
