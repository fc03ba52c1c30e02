"""Names that a caller may have meant: the only source of "did you mean". Knows names only.

Other toolkits' names for our arguments are in `agentkit.foreign.argument_names`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from agentkit.errors import AgentkitError, ConfigError

T = TypeVar("T", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_LONGEST: Final = 100  # characters of a wrong name to compare: difflib is quadratic
_ALIKE: Final = 0.8  # minimal difflib ratio for another toolkit's name to be suggested
_LOOKED: Final = 8  # how many of difflib's candidates are examined closely
_NONE: Final[Mapping[str, str]] = {}


def nearest(found: str, names: Iterable[str], others: Mapping[str, str] = _NONE) -> str | None:
    """The one of our names that was most likely meant; None if none is close.

    >>> nearest("requires_aproval", ["timeout", "requires_approval"])
    'requires_approval'
    >>> nearest("instructons", ["model", "system"], {"instructions": "system"})
    'system'

    Args:
        found: the name as written.
        names: our names.
        others: names that other toolkits use, each with our name for it, or with an explanation if we have none.
    """
    known = list(names)
    near = _near(found, known, others)
    if near in known:
        return near
    meant = others.get(near or "")
    return meant if meant in known else None


def did_you_mean(found: str, names: Iterable[str], others: Mapping[str, str] = _NONE) -> str:
    """Return the suggestion as the end of a message, `; did you mean 'x'?`; empty if none is close.

    An explanation in `others` is returned instead: `: pass it to the run`.
    """
    known = list(names)
    near = _near(found, known, others)
    if near is None:
        return ""
    meant = near if near in known else others[near]
    return f"; did you mean {meant!r}?" if meant in known else f": {meant}"


def _near(found: str, known: list[str], others: Mapping[str, str]) -> str | None:
    """The most similar name, ours or another toolkit's."""
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
    """Return True if one may be a typo of the other: at most one edit per three characters, but always one."""
    return edits(found, name) <= max(1, max(len(found), len(name)) // 3)


def _shortened(found: str, name: str) -> bool:
    """Return True if one consists only of words of the other: `file` and `read_file`."""
    words, others = (set(_plain(one).split("_")) for one in (found, name))
    return words <= others or others <= words


def edits(found: str, name: str) -> int:
    """The edit distance of two names: letters left out, added, replaced, or swapped with the next one.

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
    """Return a message about an unknown name, with the likely one and the known names.

    >>> unknown("flavour", "chatt", ["chat", "mcp"])
    "there is no flavour 'chatt'; did you mean 'chat'? There are chat, mcp"
    """
    known = list(names)
    shown = found if len(found) <= _LONGEST else found[:_LONGEST] + "…"
    listed = f"there are {', '.join(known) or 'none'}"
    return f"there is no {what} {shown!r}{then(did_you_mean(found, known, others), listed)}"


def then(hint: str, sentence: str) -> str:
    """Append a sentence to the hint of `did_you_mean`.

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
    """Make a function or class refuse unknown arguments with a clear message that suggests the right name.

    Python's own message suggests no argument before 3.13, and never one that another toolkit calls differently. The
    function's signature, types and docstring stay the same.

    Args:
        more: `TypedDict`s whose keys are further keywords (`**settings: Unpack[…]`).
        others: other toolkits' names for arguments, or a function that returns them; see `did_you_mean`.
        owner: its name in messages; by default its own.
        such: an example call, shown when a required argument is missing.
        error: the exception to raise.
    """

    def decorate(target: T) -> T:
        function: Any = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
        found = _Arguments(function, owner or _display_name(target), more, others, such, error)
        checked = _with_check(function, found.misuse)
        if inspect.iscoroutinefunction(function) and hasattr(inspect, "markcoroutinefunction"):
            inspect.markcoroutinefunction(checked)
        if isinstance(target, type):
            target.__init__ = checked  # type: ignore[misc]
            return target
        return checked  # type: ignore[no-any-return]

    return decorate


def methods_take(cls: C) -> C:
    """Make all public methods of a class refuse unknown and missing arguments as with `takes`."""
    for name, method in tuple(vars(cls).items()):
        own = inspect.isfunction(method) and not hasattr(method, "__wrapped__") and not name.startswith("_")
        if own and not method.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            setattr(cls, name, takes()(method))
    return cls


def _with_check(function: Any, misuse: Callable[[tuple[Any, ...], Mapping[str, Any]], AgentkitError | None]) -> Any:
    """Return the function with a check of its arguments."""
    if function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if (wrong := misuse(args, kwargs)) is not None:
                raise wrong
            return function(*args, **kwargs)

        return checked

    @wraps(function)
    def refused(*args: Any, **kwargs: Any) -> Any:  # Python refuses the same ones: only that needs a closer look
        try:
            return function(*args, **kwargs)
        except TypeError:
            if (wrong := misuse(args, kwargs)) is not None:
                raise wrong from None
            raise

    return refused


class _Arguments:
    """The parameters of a function that `takes` decorates."""

    def __init__(
        self,
        function: Any,
        label: str,
        more: Sequence[type],
        others: Mapping[str, str] | Callable[[], Mapping[str, str]],
        such: str,
        error: type[AgentkitError],
    ) -> None:
        self.label, self.others, self.such, self.error = label, others, such, error
        code = function.__code__
        positional = code.co_varnames[: code.co_argcount]
        own = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
        self.names = tuple(dict.fromkeys([*own, *(key for typed in more for key in typed.__annotations__)]))
        self.known = frozenset(self.names)
        self.bound = int(positional[:1] == ("self",))
        self.places = positional[self.bound :]
        self.most = len(positional) if not code.co_flags & inspect.CO_VARARGS else 1_000_000
        self.least = code.co_argcount - len(function.__defaults__ or ())

    def misuse(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> AgentkitError | None:
        """Return the error for a call with these arguments; None if the function takes them."""
        if len(args) > self.most or not self.known.issuperset(kwargs):
            shown = [name for name in self.names if not self.bound or name != "self"]
            others = self.others() if callable(self.others) else self.others
            unfit = _unknown(self.label, kwargs, shown, others)
            return self.error(unfit or _too_many(self.label, len(args) - self.bound, self.places, shown))
        if len(args) < self.least:
            lacks = _missing((self.least, self.places), len(args), kwargs, self.bound)
            if lacks:
                return self.error(f"{self.label} is missing {lacks}{self.such and '; for example: '}{self.such}")
        return None


def _missing(needed: tuple[int, Sequence[str]], given: int, kwargs: Mapping[str, Any], bound: int) -> str:
    required = needed[1][: needed[0] - bound]
    return " and ".join(repr(name) for name in required[given - bound :] if name not in kwargs)


class ByAttribute:
    """A value with attributes; an access by key raises an error that names the attribute."""

    __slots__ = ()

    if not TYPE_CHECKING:  # checkers find the mistake by themselves, as long as they do not see what answers it

        def __getitem__(self, key: object) -> Any:
            raise no_item(self, key)

        __iter__ = None  # otherwise Python would iterate with __getitem__


def no_item(one: object, key: object) -> TypeError:
    """The error for an access by key to something that has attributes."""
    cls = type(one)
    if not isinstance(key, str) or key.startswith("_") or not hasattr(cls, "__annotations__"):
        return TypeError(f"{cls.__name__} has no items, found [{key!r:.60}]; read its attributes")
    has = [name for name in cls.__annotations__ if not name.startswith("_")]
    ours = getattr(inspect.getattr_static(cls, key, None), "ours", "")  # another toolkit's name: `foreign.absent`
    if key in has:
        wanted = f"write `.{key}`" + (", or `.text` for the text" if key == "content" and hasattr(one, "text") else "")
    elif ours:
        wanted = f"write `.{ours}`" if ours.isidentifier() else ours
    else:
        wanted = f"its attributes are {', '.join(has)}"
    return TypeError(f"{cls.__name__} is not a dict: {wanted}")


class Nothing(TypedDict):
    """No keywords: with `**unknown: Unpack[Nothing]`, type checkers refuse any keyword."""


def refuse_unknown(
    owner: str,
    given: Iterable[str],
    names: Sequence[str],
    others: Mapping[str, str] = _NONE,
    error: type[AgentkitError] = ConfigError,
) -> None:
    """Refuse unknown keywords like `takes`, for callers where its wrapper would cost too much.

    Raises:
        AgentkitError: an `error`.
    """
    if unfit := _unknown(owner, given, names, others):
        raise error(unfit)


def _unknown(owner: str, given: Iterable[str], names: Sequence[str], others: Mapping[str, str]) -> str:
    """A message about the first of these keywords that is unknown; empty if none is."""
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names, others)
            return f"{owner} has no argument {name!r}{then(hint, 'it takes ' + (', '.join(names) or 'none'))}"
    return ""


def _display_name(target: Any) -> str:
    name, _, last = str(target.__qualname__).rpartition(".")
    return name.rpartition(".")[2] if last == "__init__" else last


def _too_many(owner: str, given: int, positional: Sequence[str], names: Sequence[str]) -> str:
    by_name = [name for name in names if name not in positional]
    rest = f"; pass these by name: {', '.join(by_name)}" if by_name else ""
    return f"{owner} takes these positional arguments: {', '.join(positional) or 'none'}; found {given}{rest}"
