"""A call told in other words: the name of its tool and, near it, all its values, each written in any way.

Pure. Knows bare texts and values (see `agentkit.processor.comparing`); knows no message and no format. A value that a
reader works out (`5*60`, `"/sr" + "v"`) may also be told as it is written in the call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentkit.processor.comparing import bare, plain, visible

_NEAR: Final = 200  # characters between the parts of the call
_PREFIX: Final = 50  # characters before each line of a value: a time, a level, a place
_MOST: Final = 64  # lines and values that are looked for: the longest ones
_LONGEST: Final = 400  # digits of a number that may be written in another way
_SCANNED: Final = 4_000  # characters of a call in which values are found that have to be worked out
_FAILED: Final = 16  # places in it where a value seems to begin, but none can be read
_BEGINS: Final = re.compile(r"""["']|(?<![\w.)\]])(?:\(\s{0,8}){0,8}[+-]?\.?\d""")
_CALLED: Final = r"%s[({\[:]|:%s|\[%s,|=(?:functions\.)?%s(?!\w)|>(?:functions\.)?%s(?:json)?[<{]"
_WRITTEN: Final = rf"{_CALLED}|[<=]%s"
_WORD: Final = re.compile(r"\w+")

_Find = Callable[[str, int], tuple[int, int] | None]
"""Where something begins and ends in a text, from a place on."""


def as_text(value: Any) -> str:
    """A value as text: the same for values that are the same in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


class _Sought(NamedTuple):
    """What has to occur: a line of a value, or a number.

    Attributes:
        length: how long it is, about.
        find: where it occurs.
        needs: what occurs in any text that contains it, whatever may be between.
    """

    length: int
    find: _Find
    needs: Sequence[_Find]


class Telling:
    """What tells a certain call.

    Args:
        names: the tool's names.
        values: the call's values.
        raw: the call as it is written.
        text: the same, bare.
    """

    def __init__(self, names: Collection[str], values: Iterable[Any], raw: str, text: str) -> None:
        lines, marks = [], set[str]()
        extent = _NEAR
        written: Mapping[str, str] | None = None
        for leaf in _leaves(values):
            of_leaf = _sought(leaf)
            if len(of_leaf) == 1 and of_leaf[0].find(text, 0) is None:  # it was worked out
                written = _written(raw) if written is None else written
                of_leaf = _sought(leaf, written.get(bare(as_text(leaf)), ""))
            lines += of_leaf
            extent += _PREFIX * max(len(of_leaf) - 1, 0)
            if not of_leaf:
                marks |= visible(as_text(leaf))
        self._sought = sorted(lines, key=lambda line: line.length, reverse=True)[:_MOST]
        self._reach = extent + sum(line.length for line in lines)
        self.extent = 2 * self._reach
        """How far from each other the parts of the call are in any format, in characters of a bare text, at most."""
        self._names = tuple({bare(name) for name in names})
        self.alone = None if self._sought else _alone(names)
        """Without values that could be compared: the name as a word, which is enough in a tool's result."""
        self._marks = marks
        """Characters of values that a bare text does not contain, such as `*`."""

    def named(self, texts: Sequence[str]) -> bool:
        """Whether the tool is named at all."""
        return any(name in text for name in self._names for text in texts)

    def marked(self, characters: frozenset[str]) -> bool:
        """Whether the characters occur of which some values consist."""
        return self._marks <= characters

    def in_result(self, texts: Sequence[str], characters: frozenset[str]) -> bool:
        """Whether a tool's result tells it.

        Args:
            texts: the result, bare.
            characters: what of it is visible.
        """
        return bool(self._sought) and self._told("%s", texts, characters)

    def in_message(self, texts: Sequence[str], characters: frozenset[str]) -> bool:
        """Whether a user's message tells it.

        A user who names a tool wants it called, so that the name must look like a call's: an opening bracket or a colon
        follows it, or it follows a colon, or it is between marks of tags. Without values, that shows nothing.
        """
        return bool(self._sought or self._marks) and self._told(_CALLED, texts, characters)

    def _told(self, looks: str, texts: Sequence[str], characters: frozenset[str]) -> bool:
        if not self.marked(characters):
            return False
        finds = [*(each.find for each in self._sought), _found_by(self._looking(looks))]
        return any(True for text in texts for _ in _together(finds, self._reach, text))

    def places(self, text: str) -> Iterator[int]:
        """Where a bare text may contain the call in a format, since it has its parts; without values, nowhere."""
        if self._sought and self.named([text]):
            finds = [*(each.find for each in self._sought), _found_by(self._looking(_WRITTEN))]
            yield from _together(finds, self.extent, text)

    def _looking(self, looks: str) -> re.Pattern[str]:
        """One of the tool's names where it looks so."""
        return re.compile("|".join(looks.replace("%s", re.escape(name)) for name in self._names))

    def possible(self, texts: Sequence[str], characters: frozenset[str]) -> bool:
        """Whether the values can occur in a text at all, if nothing in it has to be worked out (see `worked_out`)."""
        needs = [need for each in self._sought for need in each.needs]
        return self.marked(characters) and all(any(need(text, 0) for text in texts) for need in needs)


def _alone(names: Iterable[str]) -> re.Pattern[str]:
    """The names as words: `reset` is not a part of `presets` or `reset_all`."""
    words = (r"[\W_]{0,8}".join(re.findall(r"[^\W_]+", plain(name).casefold())) for name in names)
    return re.compile(rf"(?<![a-z0-9_])_{{0,3}}(?:{'|'.join(words)})_{{0,3}}(?![a-z0-9_])")


_WORKED_OUT: Final = re.compile(
    r"""["'`;\d)]\s{0,64}\+ | \\[0-7N] | [\d.)]\s{0,64}\*(?!\*)\s{0,64}[\d.(+-] | [\d.)]\s{1,64}[-/]\s{1,64}[\d.(+-]""",
    re.VERBOSE,
)


def worked_out(text: str) -> bool:
    r"""Whether there may be a value of which not even the words are written: `"/sr" + "v"`, `\57srv`, `5*60`."""
    return _WORKED_OUT.search(text) is not None


def _leaves(values: Iterable[Any]) -> list[Any]:
    """The values, also those in lists and objects."""
    found: list[Any] = []
    left = list(values)
    while left:
        match left.pop():
            case Mapping() as value:
                left += value.values()
            case list() | tuple() as value:
                left += value
            case None:
                pass
            case value:
                found.append(value)
    return found


def _written(raw: str) -> Mapping[str, str]:
    """The numbers and strings in a call, bare, each with the text that it is read from, also bare."""
    from agentkit.schemas.typed.literals import Literals  # only a response with calls in text loads formats
    from agentkit.schemas.typed.stringliterals import NotALiteral

    found: dict[str, str] = {}
    raw, at, failed = raw[:_SCANNED], 0, 0
    while failed < _FAILED and (begin := _BEGINS.search(raw, at)):
        reader = Literals(raw, begin.start(), python=True)
        try:
            value = reader.value()
            found[bare(as_text(value))] = bare(raw[begin.start() : reader.at])
        except (NotALiteral, RecursionError):
            failed += 1
        at = max(reader.at, begin.end())  # nothing is read twice, but for a string without an end
    return found


def _sought(leaf: Any, written: str = "") -> list[_Sought]:
    """A value's lines, each of which may be written after something else; or a number, however it is written.

    Args:
        leaf: the value.
        written: another text, bare, that may stand for it; empty if there is none.
    """
    other = [re.escape(written)] if written else []
    if isinstance(leaf, int | float) and not isinstance(leaf, bool):
        ways = [way for text in dict.fromkeys((as_text(leaf), repr(leaf))) if (way := _number(text))]
        if ways:
            ways += other
            find = _found_by(re.compile("|".join(ways)))
            return [_Sought(len(as_text(leaf)), find, (find,))]
    lines = dict.fromkeys(filter(None, map(bare, as_text(leaf).splitlines())))
    if other:
        find = _found_by(re.compile("|".join([*map(re.escape, lines), *other])))
        return [_Sought(len(as_text(leaf)), find, (find,))]
    words = {line: () if isinstance(leaf, bool) else _WORD.findall(line) for line in lines}  # true may also be "yes"
    return [_Sought(len(line), _found(line), tuple(map(_found, words[line]))) for line in lines]


def _number(text: str) -> str:
    r"""A pattern of the ways to write a number; empty for one that can be written only in one.

    >>> [bool(re.fullmatch(_number("1000000"), way)) for way in ("1000000", "1,000,000", "1e6", "1.0e+06", "0xf4240")]
    [True, True, True, True, True]
    >>> [bool(re.fullmatch(_number("-1e-05"), way)) for way in ("-01e-5", "-,00001", "-.1e-4", "1e-5", "-1e-6")]
    [True, True, True, False, False]
    """
    found = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?", text)
    if found is None or len(text) > _LONGEST or abs(int(found[4] or 0)) > _LONGEST:
        return ""
    sign, whole, part, exponent = found[1], found[2], found[3] or "", int(found[4] or 0)
    point = len(whole) + exponent  # where it is, counted from the first digit
    digits = (whole + part).lstrip("0")
    point -= len(whole + part) - len(digits)
    digits = digits.rstrip("0")
    if not digits:
        return "0"
    ways = [_plainly(digits, point)]
    ways += [_with_exponent(digits, at, point - at) for at in range(min(len(digits), 20) + 1)]
    if point >= len(digits):
        value = int(digits + "0" * (point - len(digits)))
        ways += [f"0{base}0*{value:{base}}" for base in "xob"]
    return f"{sign and '-0*'}(?:{'|'.join(ways)})"


def _plainly(digits: str, point: int) -> str:
    before = digits[: max(point, 0)].ljust(point, "0")
    head = len(before) % 3
    groups = [*([before[:head]] if head else []), *(before[at : at + 3] for at in range(head, len(before), 3))]
    after = "0" * -point + digits[max(point, 0) :]
    comma = "[.,]" if groups else r"(?:\.|(?:0|(?<!\d)),)"  # .5 and 0,5, but not 12,567
    return "[.,]?".join(groups) + (comma + after if after else "")


def _with_exponent(digits: str, point: int, exponent: int) -> str:
    after = f"[.,]{digits[point:]}" if point < len(digits) else "(?:[.,]0+)?"
    sign = "-" if exponent < 0 else r"\+?"
    return rf"{digits[:point]}{after}0*e{sign}0*{abs(exponent)}(?!\d)"


def _found(words: str) -> _Find:
    def find(text: str, at: int) -> tuple[int, int] | None:
        place = text.find(words, at)
        return None if place < 0 else (place, place + len(words))

    return find


def _found_by(pattern: re.Pattern[str]) -> _Find:
    def find(text: str, at: int) -> tuple[int, int] | None:
        found = pattern.search(text, at)
        return None if found is None else found.span()

    return find


def _together(finds: Sequence[_Find], reach: int, text: str) -> Iterator[int]:
    """Where the first occurs near all others. Linear: each is looked for from where it was last found."""
    first, *others = finds
    places = [(-reach - 1, 0)] * len(others)
    at = first(text, 0)
    while at is not None:
        begin = at[0]
        wait = 0
        for i, find in enumerate(others):
            if places[i][0] < begin - reach:
                if (place := find(text, max(begin - reach, 0))) is None:
                    return
                places[i] = place
            if places[i][1] > begin + reach:
                wait = places[i][1] - reach
                break
        else:
            yield begin
        at = first(text, max(at[1], wait))
