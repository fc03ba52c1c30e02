"""What a setting may be: its owner lists the bounds in a table, and a wrong value is refused in words. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError

_SHOWN = 100  # characters of a wrong value


class Bound(NamedTuple):
    """What a value must be: whether one is, and the same in words, such as `1 or more`.

    Attributes:
        holds: whether a value is.
        words: the same in words.
        choices: the words that it may be, where there are only these.
    """

    holds: Callable[[Any], bool]
    words: str
    choices: tuple[str, ...] = ()


Bounds = Mapping[str, Bound]
"""By the name of the setting."""


def refuse(owner: str, given: Mapping[str, Any], bounds: Bounds) -> None:
    """Hold settings against their bounds; a setting without one may be anything.

    Args:
        owner: who takes the settings, as the author wrote it, such as `Budget`.
        given: the values by name.
        bounds: of them.

    Raises:
        ConfigError: a value out of its bound: what was found, what was wanted.

    >>> refuse("Budget", {"tokens": "many"}, {"tokens": whole(1)})
    Traceback (most recent call last):
    agentkit.errors.ConfigError: Budget(tokens='many'): wanted 1 or more, a whole number
    """
    for name, value in given.items():
        bound = bounds.get(name)
        if bound is not None and not bound.holds(value):
            raise ConfigError(f"{owner}({name}={_shown(value)}): wanted {bound.words}{_mended(value, bound)}")


def whole(least: int, of: str = "") -> Bound:
    """A whole number of at least so much, `of` something; True and False are none."""

    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    return Bound(holds, f"{least:,}{of and ' '}{of} or more, a whole number")


def number(words: str, *, above: float = -inf, most: float = inf) -> Bound:
    """A number above a bound and at most another one; True, False and not-a-number are none."""

    def holds(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and above < value <= most

    return Bound(holds, words)


def one_of(choices: Iterable[str]) -> Bound:
    """One of these words."""
    known = tuple(choices)
    return Bound(lambda value: isinstance(value, str) and value in known, f"one of {', '.join(known)}", known)


def instance(kind: type | tuple[type, ...], words: str) -> Bound:
    """An instance of a class, or of one of several; a class itself is none."""
    return Bound(lambda value: isinstance(value, kind) and not isinstance(value, type), words)


def lacking(value: Any, protocol: type) -> tuple[str, ...]:
    """The public members of a protocol that a value does not give, in alphabetical order.

    They are looked up as a call looks them up, so a wrapper that passes them on by `__getattr__` has them. `isinstance`
    against a runtime protocol is no substitute: from Python 3.12 on it does not ask `__getattr__`.
    """
    names = [name for name in dir(protocol) if not name.startswith("_")]
    return tuple(name for name in names if isinstance(value, type) or not hasattr(value, name))


def like(protocol: type, words: str) -> Bound:
    """Whatever has all public members of a protocol; a class itself is none."""
    return Bound(lambda value: not lacking(value, protocol), words)


def either(*bounds: Bound, words: str) -> Bound:
    """What holds against one of several bounds."""
    return Bound(lambda value: any(bound.holds(value) for bound in bounds), words)


def each(bound: Bound, words: str) -> Bound:
    """Several values, each within a bound; a text or a mapping is not several."""

    def holds(value: Any) -> bool:
        several = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
        return several and all(map(bound.holds, value))

    return Bound(holds, words)


def or_none(bound: Bound, means: str = "") -> Bound:
    """The same, or None; `means` says what that stands for."""
    return Bound(
        lambda value: value is None or bound.holds(value),
        f"{bound.words}, or None{means and ' '}{means}",
        bound.choices,
    )


YES_OR_NO: Final = instance(bool, "True or False")
TEXT: Final = instance(str, "text")
PATH: Final = instance((str, Path), "a path")
CALLABLE: Final = Bound(callable, "a function")
SECONDS: Final = number("seconds above 0", above=0)
SHARE: Final = number("a share above 0, 1 at most", above=0, most=1)


def _mended(value: Any, bound: Bound) -> str:
    """What would mend a wrong value, where that can be told."""
    if inspect.iscoroutine(value):
        value.close()  # else Python says, too, that nobody awaited it
        return f"; this is a coroutine: write `await {value.__qualname__.rpartition('.')[2]}(…)`"
    return did_you_mean(value, bound.choices) if isinstance(value, str) else ""


def _shown(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= _SHOWN else said[:_SHOWN] + "…"
