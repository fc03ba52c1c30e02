"""Allowed values of settings: the owner lists the bounds in a table, and a wrong value gets a clear error. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError

_SHOWN = 100  # characters quoted of a wrong value


class Bound(NamedTuple):
    """A condition that a value must meet, as a predicate and in words.

    Attributes:
        holds: whether a value satisfies the bound.
        words: the bound in words, such as `an integer (1 or more)`.
        choices: the allowed strings, if only certain ones are allowed.
    """

    holds: Callable[[Any], bool]
    words: str
    choices: tuple[str, ...] = ()


Bounds = Mapping[str, Bound]
"""Bounds by the name of the setting."""


def refuse(owner: str, given: Mapping[str, Any], bounds: Bounds) -> None:
    """Check settings against their bounds; a setting without a bound may be anything.

    Args:
        owner: the callable that takes the settings, as written in code, such as `Budget`.
        given: the values by name.
        bounds: their bounds.

    Raises:
        ConfigError: a value is out of bounds; says what was found and what was expected.

    >>> refuse("Budget", {"tokens": "many"}, {"tokens": whole(1)})
    Traceback (most recent call last):
    agentkit.errors.ConfigError: Budget(tokens='many'): expected an integer (1 or more)
    """
    for name, value in given.items():
        bound = bounds.get(name)
        if bound is not None and not bound.holds(value):
            raise ConfigError(f"{owner}({name}={_quote(value)}): expected {bound.words}{_hint(value, bound)}")


def refuse_types(owner: str, given: Mapping[str, Any], kind: Any) -> None:
    """Check settings against the annotations of a `TypedDict`, without conversion.

    Raises:
        ConfigError: a value has another type; says where, and what was expected, but not the value: it may be secret.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(kind).validate_python(given, strict=True)
    except ValidationError as e:
        errors = e.errors(include_url=False, include_context=False, include_input=False)
        same = [one for one in errors if one["loc"][:1] == errors[0]["loc"][:1]]  # of a union: one for each member
        place = ".".join(map(str, same[0]["loc"][: None if len(same) == 1 else 1]))
        wanted = " or ".join(one["msg"].replace("Input should be", "expected") for one in same)
        raise ConfigError(f"{owner}: {place}: {wanted}") from None


def whole(least: int, of: str = "") -> Bound:
    """An integer of at least `least`, counting `of`. Booleans are rejected."""

    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    return Bound(holds, f"an integer ({least:,}{of and ' '}{of} or more)")


def number(words: str, *, above: float = -inf, most: float = inf) -> Bound:
    """A number greater than `above` and at most `most`. Booleans and NaN are rejected."""

    def holds(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and above < value <= most

    return Bound(holds, words)


def can_take(function: Callable[..., Any], count: int) -> bool:
    """Return True if a function can be called with this many arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def refuse_callback(owner: str, function: Any, expected: str) -> None:
    """Refuse a function that cannot be called with two arguments, or that yields.

    Raises:
        ConfigError: it is such a function; the message names `owner`, such as `Guards(call=…)`, and what is expected.
    """
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    if not (inspect.isroutine(inner) or isinstance(inner, type)):
        inner = type(inner).__call__
    yields = inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)
    if yields or not can_take(function, 2):
        name = getattr(function, "__qualname__", None) or type(function).__name__
        wrong = "yields, so calling it does nothing" if yields else "cannot be called with two arguments"
        raise ConfigError(f"{owner}: {name} {wrong}: expected {expected}")


def one_of(choices: Iterable[str]) -> Bound:
    """One of these strings."""
    known = tuple(choices)
    return Bound(lambda value: isinstance(value, str) and value in known, f"one of {', '.join(known)}", known)


def instance(kind: type | tuple[type, ...], words: str) -> Bound:
    """An instance of a class, or of one of several. Classes are rejected."""
    return Bound(lambda value: isinstance(value, kind) and not isinstance(value, type), words)


def lacking(value: Any, protocol: type) -> tuple[str, ...]:
    """The public members of a protocol that a value lacks, in alphabetical order.

    They are looked up like any attribute, so a wrapper that forwards them with `__getattr__` has them. `isinstance`
    with a runtime protocol is not a substitute: since Python 3.12 it ignores `__getattr__`.
    """
    names = [name for name in dir(protocol) if not name.startswith("_")]
    return tuple(name for name in names if isinstance(value, type) or not hasattr(value, name))


def like(protocol: type, words: str) -> Bound:
    """Return a bound for objects with all public members of a protocol. Classes are rejected."""
    return Bound(lambda value: not lacking(value, protocol), words)


def either(*bounds: Bound, words: str) -> Bound:
    """A value that satisfies at least one of several bounds."""
    return Bound(lambda value: any(bound.holds(value) for bound in bounds), words)


def each(bound: Bound, words: str) -> Bound:
    """Several values that each satisfy a bound. Strings and mappings are rejected."""

    def holds(value: Any) -> bool:
        several = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
        return several and all(map(bound.holds, value))

    return Bound(holds, words)


def or_none(bound: Bound, means: str = "") -> Bound:
    """Return a bound that also allows None; `means` says what None stands for."""
    return Bound(
        lambda value: value is None or bound.holds(value),
        f"{bound.words}, or None{means and ' '}{means}",
        bound.choices,
    )


def _is_path(value: Any) -> bool:
    from pathlib import Path

    return isinstance(value, (str, Path))


YES_OR_NO: Final = instance(bool, "True or False")
TEXT: Final = instance(str, "a string")
PATH: Final = Bound(_is_path, "a path")
CALLABLE: Final = Bound(callable, "a function")
SECONDS: Final = number("seconds above 0", above=0)
SHARE: Final = number("a fraction above 0, at most 1", above=0, most=1)


def _hint(value: Any, bound: Bound) -> str:
    """Return how to fix a wrong value, if that is known."""
    if inspect.iscoroutine(value):
        value.close()  # otherwise Python also warns that it was never awaited
        return f"; this is a coroutine: write `await {value.__qualname__.rpartition('.')[2]}(…)`"
    return did_you_mean(value, bound.choices) if isinstance(value, str) else ""


def _quote(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
