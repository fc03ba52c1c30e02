"""Checks arguments of a sample or a configuration against a function's signature. Pure; calls nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError


def signature_of(function: Callable[..., Any], where: str) -> inspect.Signature:
    """A function's signature.

    Args:
        function: a function, a method or a class.
        where: for messages.

    Raises:
        ConfigError: Python cannot tell it.
    """
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as e:
        raise ConfigError(f"{where}: {e}") from e


def refuse_misfit(signature: inspect.Signature | None, where: str, *args: Any, **kwargs: Any) -> None:
    """Refuse arguments that a function cannot be called with.

    Args:
        signature: the function's; None if Python cannot tell it, so that only the call will show.
        where: the function, for messages.
        args: the arguments by position.
        kwargs: the arguments by name.

    Raises:
        ConfigError: says which argument is missing or unknown, and what the function takes.
    """
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        named = [p.name for p in signature.parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        takes = named[len(args) :]
        unknown = next((name for name in kwargs if name not in takes), None)
        hint = did_you_mean(unknown, takes) if unknown is not None else ""
        raise ConfigError(
            f"{where} cannot be called with {list(kwargs) or 'no arguments'}: {e}; it takes "
            f"{', '.join(takes) or 'none'}{hint}"
        ) from None


def refuse_unknown(signature: inspect.Signature, where: str, kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that a function does not have; others may be missing.

    Raises:
        ConfigError: says which, and what the function takes.
    """
    try:
        signature.bind_partial(**kwargs)
    except TypeError:
        refuse_misfit(signature, where, **kwargs)
        raise


def takes_any(signature: inspect.Signature) -> bool:
    """Say if a function has `**kwargs`."""
    return any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
