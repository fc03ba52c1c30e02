"""The objects of Python modules that options name: an agent as `shop:agent`, a model as `shop:model`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.spelling import then
from agentkit.cli.flag_words import find_here
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from agentkit.agent import Agent
    from agentkit.models import Model


def load_agent(reference: str) -> Agent[Any, Any]:
    """The agent of a Python module, or the one that a function there returns.

    Args:
        reference: `module:name`.

    Raises:
        ConfigError: there is none; says what was found, and what to write.
    """
    from agentkit.agent import Agent

    expected = "an Agent, such as agent = Agent('openai:gpt-5', [function])"
    hint = "an agent is module:name, such as shop:agent for shop.py"
    return _load("--agent", reference, expected, hint, lambda found: None if isinstance(found, Agent) else "")  # type: ignore[no-any-return]


def load_model(reference: str) -> Model:
    """The model object of a Python module, or the one that a function there returns.

    Args:
        reference: `module:name`.

    Raises:
        ConfigError: there is none; says what was found, and what to write.
    """
    from agentkit.checks.bounds import lacking
    from agentkit.models import Model
    from agentkit.models.model_strings import PROVIDERS

    def fault(found: object) -> str | None:
        missing = lacking(found, Model)
        return f", which has no {', '.join(missing)}" if missing else None

    hint = f"a provider's model is one of {', '.join(f'{prefix}:NAME' for prefix in PROVIDERS)}"
    return _load("--model", reference, "a model object, such as model(…) returns", hint, fault)  # type: ignore[no-any-return]


def _load(option: str, reference: str, expected: str, hint: str, fault: Callable[[object], str | None]) -> Any:
    """Return the object, or what it returns if it is a function without arguments.

    Args:
        option: which names it.
        reference: `module:name`.
        expected: what it must be, in words.
        hint: what follows the error of one that is not there.
        fault: returns in words what is missing in an object; None if it is what is expected.
    """
    from agentkit.tool.references import load

    find_here(reference)
    try:
        found = load(reference)
    except ConfigError as e:
        raise ConfigError(f"{option} {then(str(e), hint)}") from e
    made = found() if fault(found) is not None and isinstance(found, _FUNCTIONS) and _needs_nothing(found) else found
    if (why := fault(made)) is None:
        return made
    what = f"a function that returned {type(made).__name__}" if made is not found else _shown(found)
    wanted = f"{expected}, or a function without arguments that returns one"
    raise ConfigError(f"{option} {reference}: expected {wanted}; found {what}{why}")


_FUNCTIONS: Final = (FunctionType, MethodType, partial)


def _needs_nothing(function: Any) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    return True


def _shown(found: object) -> str:
    if isinstance(found, FunctionType):
        return f"the function {found.__name__}, which takes arguments"
    return f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
