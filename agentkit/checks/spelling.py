"""Names that a caller may have meant: the one place where "did you mean" comes from. Knows names only.

What other toolkits call our arguments is in `agentkit.foreign.renamed`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from agentkit.errors import AgentkitError, ConfigError

T = TypeVar("T", bound=Callable[..., Any])

_LONGEST: Final = 100  # characters of a wrong name that are compared: difflib is quadratic
_ALIKE: Final = 0.8  # of difflib's ratio: what a name elsewhere must be like to be taken for the one that was meant
_LOOKED: Final = 8  # of the names that difflib finds alike, those that are looked at closely
_NONE: Final[Mapping[str, str]] = {}


def nearest(found: str, names: Iterable[str], others: Mapping[str, str] = _NONE) -> str | None:
    """The one of our names that was most likely meant; None when none is near.

    >>> nearest("requires_aproval", ["timeout", "requires_approval"])
    'requires_approval'
    >>> nearest("instructons", ["model", "system"], {"instructions": "system"})
    'system'

    Args:
        found: what was written.
        names: ours.
        others: what it is called elsewhere, and our name for it, or words where there is none.
    """
    known = list(names)
    near = _near(found, known, others)
    if near in known:
        return near
    meant = others.get(near or "")
    return meant if meant in known else None


def did_you_mean(found: str, names: Iterable[str], others: Mapping[str, str] = _NONE) -> str:
    """The same as the end of a message, `; did you mean 'x'?`; empty when none is near.

    Where `others` has words instead of a name, these: `: give it to the run`.
    """
    known = list(names)
    near = _near(found, known, others)
    if near is None:
        return ""
    meant = near if near in known else others[near]
    return f"; did you mean {meant!r}?" if meant in known else f": {meant}"


def _near(found: str, known: list[str], others: Mapping[str, str]) -> str | None:
    """The name that is most like it, ours or another's."""
    from difflib import get_close_matches

    every = [*known, *(name for name in others if name not in known)]
    if found in every:
        return found
    shown = found[:_LONGEST]
    plain = {_plain(name): name for name in reversed(every)}
    if (same := plain.get(_plain(shown))) is not None:
        return same
    alike = [*get_close_matches(shown, every, _LOOKED, _ALIKE), *get_close_matches(shown, known, _LOOKED)]
    near = [name for name in alike if _mistyped(shown, name) or _shortened(shown, name)]
    return min(near, key=lambda name: (edits(shown, name), sorted(name) != sorted(shown)), default=None)


def _mistyped(found: str, name: str) -> bool:
    """Whether one may be the other with slips of the finger: one in three characters, at least one."""
    return edits(found, name) <= max(1, max(len(found), len(name)) // 3)


def _shortened(found: str, name: str) -> bool:
    """Whether one consists of words of the other: `file` and `read_file`."""
    words, others = (set(_plain(one).split("_")) for one in (found, name))
    return words <= others or others <= words


def edits(found: str, name: str) -> int:
    """How many slips lead from one name to the other: a letter left out, added, mistaken, or swapped with the next.

    >>> edits("xlm", "xml"), edits("xlm", "xlam"), edits("hermse", "hermes")
    (1, 1, 1)
    """
    before: list[int] = []
    row = list(range(len(name) + 1))
    for i, char in enumerate(found, 1):
        before, last, row = row, before, [i]
        for j, other in enumerate(name, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != other))
            if i > 1 and j > 1 and char == name[j - 2] and found[i - 2] == other:
                least = min(least, last[j - 2] + 1)
            row.append(least)
    return row[-1]


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_").strip("_")


def unknown(what: str, found: str, names: Iterable[str], others: Mapping[str, str] = _NONE) -> str:
    """A message about a name that there is not: what was meant, and which there are.

    >>> unknown("flavour", "chatt", ["chat", "mcp"])
    "there is no flavour 'chatt'; did you mean 'chat'? There are chat, mcp"
    """
    known = list(names)
    shown = found if len(found) <= _LONGEST else found[:_LONGEST] + "…"
    listed = f"there are {', '.join(known) or 'none'}"
    return f"there is no {what} {shown!r}{then(did_you_mean(found, known, others), listed)}"


def then(hint: str, sentence: str) -> str:
    """What `did_you_mean` gave, and a sentence behind it.

    >>> then("; did you mean 'x'?", "it takes x"), then("", "it takes x")
    ("; did you mean 'x'? It takes x", '; it takes x')
    """
    if not hint:
        return f"; {sentence}"
    return f"{hint}{' ' if hint.endswith('?') else '. '}{sentence[:1].upper()}{sentence[1:]}"


def takes(
    *more: type,
    others: Mapping[str, str] | Callable[[], Mapping[str, str]] = _NONE,
    owner: str | None = None,
    such: str = "",
    error: type[AgentkitError] = ConfigError,
) -> Callable[[T], T]:
    """Make a function or a class refuse arguments that it does not have in words, with the name that was meant.

    Python's own words name no other argument before 3.13, and never one that is called otherwise elsewhere. What the
    caller sees of the function stays the same: its signature, its types, its docstring.

    Args:
        more: `TypedDict`s whose keys are taken as further keywords (`**settings: Unpack[…]`).
        others: what arguments are called elsewhere, or what tells it; see `did_you_mean`.
        owner: how messages call it; its own name unless given.
        such: a call with all that is required, for who leaves some of it out.
        error: what is raised.
    """

    def decorate(target: T) -> T:
        function: Any = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
        said = owner or _said(target)
        code = function.__code__
        by_place = code.co_varnames[: code.co_argcount]
        own = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
        names = tuple(dict.fromkeys([*own, *(key for typed in more for key in typed.__annotations__)]))
        known = frozenset(names)
        bound = int(by_place[:1] == ("self",))
        most = len(by_place) if not code.co_flags & inspect.CO_VARARGS else 1_000_000
        needed = (code.co_argcount - len(function.__defaults__ or ()), by_place[bound:])

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if len(args) > most or not known.issuperset(kwargs):
                places = list(by_place[bound:])
                shown = [name for name in names if not bound or name != "self"]
                refuse_unknown(said, kwargs, shown, others() if callable(others) else others, error)
                raise error(_too_many(said, len(args) - bound, places, shown))
            if len(args) < needed[0] and (lacks := _lacking(needed, len(args), kwargs, bound)):
                raise error(f"{said} lacks {lacks}{such and ': write such as '}{such}")
            return function(*args, **kwargs)

        if inspect.iscoroutinefunction(function) and hasattr(inspect, "markcoroutinefunction"):
            inspect.markcoroutinefunction(checked)
        if isinstance(target, type):
            target.__init__ = checked  # type: ignore[misc]
            return target
        return checked  # type: ignore[return-value]

    return decorate


def _lacking(needed: tuple[int, Sequence[str]], given: int, kwargs: Mapping[str, Any], bound: int) -> str:
    """The required arguments that were left out."""
    required = needed[1][: needed[0] - bound]
    return " and ".join(repr(name) for name in required[given - bound :] if name not in kwargs)


class ByAttribute:
    """A value whose parts are attributes, and which says so where they are asked for as those of a dict."""

    __slots__ = ()

    if not TYPE_CHECKING:  # checkers find the mistake by themselves, as long as they do not see what answers it

        def __getitem__(self, key: object) -> Any:
            raise no_item(self, key)

        __iter__ = None  # else Python would iterate by items


def no_item(one: object, key: object) -> TypeError:
    """What to raise where something whose parts are attributes is asked for an item."""
    cls = type(one)
    if not isinstance(key, str) or key.startswith("_") or not hasattr(cls, "__annotations__"):
        return TypeError(f"{cls.__name__} has no items, found [{key!r:.60}]; read its attributes")
    has = [name for name in cls.__annotations__ if not name.startswith("_")]
    ours = getattr(inspect.getattr_static(cls, key, None), "ours", "")  # what others call it: `agentkit.foreign.absent`
    if key in has:
        wanted = f"write `.{key}`" + (", or `.text` for the words" if key == "content" and hasattr(one, "text") else "")
    elif ours:
        wanted = f"write `.{ours}`" if ours.isidentifier() else ours
    else:
        wanted = f"its attributes are {', '.join(has)}"
    return TypeError(f"{cls.__name__} is no dict: {wanted}")


class Nothing(TypedDict):
    """The keywords of a function that takes no further ones: checkers refuse what `**unknown: Unpack[Nothing]` has."""


def refuse_unknown(
    owner: str,
    given: Iterable[str],
    names: Sequence[str],
    others: Mapping[str, str] = _NONE,
    error: type[AgentkitError] = ConfigError,
) -> None:
    """Refuse a keyword that there is not, as `takes` does, where that would cost too much.

    Raises:
        AgentkitError: of the class `error`.
    """
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names, others)
            raise error(f"{owner} has no argument {name!r}{then(hint, 'it takes ' + ', '.join(names))}")


def _said(target: Any) -> str:
    name, _, last = str(target.__qualname__).rpartition(".")
    return name.rpartition(".")[2] if last == "__init__" else last


def _too_many(owner: str, given: int, by_place: Sequence[str], names: Sequence[str]) -> str:
    by_name = [name for name in names if name not in by_place]
    rest = f"; by name: {', '.join(by_name)}" if by_name else ""
    return f"{owner} takes by place {', '.join(by_place) or 'nothing'}, found {given} values{rest}"
