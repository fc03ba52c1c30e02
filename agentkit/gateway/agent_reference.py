"""Loads the agent that a reference such as `shop:agent` names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from agentkit.agent import Agent
from agentkit.checks.spelling import then
from agentkit.errors import ConfigError
from agentkit.tool.references import load


def load_agent(reference: str) -> Agent[Any, Any]:
    """The agent of a Python module, or the one that a function there returns.

    Args:
        reference: `module:name`.

    Raises:
        ConfigError: there is none; says what was found, and what to write.
    """
    try:
        found = load(reference)
    except ConfigError as e:
        raise ConfigError(f"--agent {then(str(e), 'an agent is module:name, such as shop:agent for shop.py')}") from e
    made = found() if isinstance(found, FunctionType | partial) and _needs_nothing(found) else found
    if isinstance(made, Agent):
        return made
    what = f"found a function that returned {type(made).__name__}" if made is not found else f"found {_shown(found)}"
    raise ConfigError(
        f"--agent {reference}: expected an Agent, such as agent = Agent('openai:gpt-5', [function]), or a function "
        f"without arguments that returns one; {what}"
    )


def _needs_nothing(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    return True


def _shown(found: object) -> str:
    if isinstance(found, FunctionType):
        return f"the function {found.__name__}, which takes arguments"
    return f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
