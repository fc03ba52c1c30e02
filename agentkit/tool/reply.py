"""Structured output: a type as the schema of a model's final reply, and the reply's text as a value of that type.

Pure; knows no model. A reply that does not match gets an error that the model can act on. An ambiguous reply is
refused, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentkit.schemas import walk
from agentkit.schemas.typed import repairs
from agentkit.schemas.validators import checker_of
from agentkit.schemas.words import MAX_PROBLEMS, InvalidArguments, Problem
from agentkit.tool.arguments import Arguments
from agentkit.tool.hints import value_type
from agentkit.toolspec import OutputSchema

if TYPE_CHECKING:
    from agentkit.formats.asides import Asides

VALUE: Final = "value"
"""The only property of the object that wraps a value of another type: providers require an object."""

OVERLOOKED: Final = frozenset(
    (repairs.RAW_NEWLINES, repairs.TRAILING_COMMA, repairs.PYTHON_QUOTES, repairs.PYTHON_LITERALS)
)
"""Tolerated errors in JSON: none that could complete a truncated reply, or move the end of a string."""

MAX_VALUES: Final = 50
"""Different JSON values that are examined in one reply; a reply with more of them is refused."""

_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_FENCE = "```"
_LANGUAGE = re.compile(r"[\w+-]*[ \t]*\n")
_OBJECT = r"""\{(?=\s*["'}])"""
_LIST = r"""\[(?=\]|\s*[\["'{\d\-tfnTFN])"""
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>[ \t]*(?=\n|\Z|[{\[`])", re.IGNORECASE)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_PROPERTY = re.compile(r"""\{\s*(?:"[^"\n]*"|'[^'\n]*')\s*:""")
_MARK = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_MAX_KEY: Final = 100  # characters before a value in which its key is looked for
_AFTER_KEY = re.compile(r"""(?:(?:\A|[,\n])[ \t]*"[^"\n]*"[ \t]*:|[(,]\s*\w+[ \t]*=)\s*\Z""")
_AROUND_KEY: Final = "(, \t\n"
_NOTHING_BEFORE = re.compile(r"(?:\A|```[\w+-]*[ \t]*\n?)\s*\Z")
_SURPLUS = re.compile(r"[\s}]*\}(?=\s*(?:\Z|```))")
_OPENS = re.compile(r"\s*(?:```[\w+-]*\s*)?")
_BETWEEN = re.compile(r"\s*(?:```\s*)?(?:```[\w+-]*\s*)?")
_ENDS = re.compile(
    r"[\s}]*(?:```\s*)?(?:(?:<\|(?:im_end|eot|eot_id|eom|eom_id|end|endoftext|end_of_text)\|>|</s>|<eos>|<end_of_turn>"
    r"|<turn\|>|<｜end▁of▁sentence｜>)\s*)*"
)
_CUT_NUMBER = re.compile(r"\A\s*[+-]?\d+\.\s*\Z")


class InvalidOutput(ValueError):
    """A reply is not a value of the requested type; the message is written for the model.

    Args:
        problems: the faults, at least one.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        shown = [f"- {problem}" for problem in self.problems[:MAX_PROBLEMS]]
        if (more := len(self.problems) - MAX_PROBLEMS) > 0:
            shown.append(f"- and {more} more")
        super().__init__("\n".join(["the reply does not match the schema:", *shown]))

    def __reduce__(self) -> tuple[type[InvalidOutput], tuple[tuple[str, ...]]]:
        return InvalidOutput, (self.problems,)

    @property
    def request(self) -> str:
        """The message that asks the model for a better reply."""
        return f"{self}\nWrite the whole reply again, as one JSON value and nothing else."


class _Read(NamedTuple):
    """One JSON value of a reply, read as the type: the resulting value, or the problems.

    Attributes:
        wrapped: whether it is inside the requested wrapper object.
        value: the value of the type; None if there are problems.
        problems: its faults.
    """

    wrapped: bool
    value: Any = None
    problems: tuple[Problem, ...] = ()


class Output:
    """The type of a model's final reply.

    Args:
        wanted: any type that pydantic supports: a model, dataclass, TypedDict, `list[int]`, `Literal[…]`, a union.

    Raises:
        SchemaError: the type has no JSON Schema.

    >>> Output(list[int]).read('Here you are: {"value": [1, 2]}')
    [1, 2]
    """

    def __init__(self, wanted: Any) -> None:
        made = value_type(wanted)
        around = made.schema
        from pydantic_core import to_json

        exact = around if made.precise else None
        self._arguments = Arguments(around, made.validator.validate_json, None, to_json, made.lenient_validator, exact)
        schema = _object(around)
        self._wrapped = schema is None
        name = _NOT_IN_NAME.sub("_", getattr(wanted, "__name__", "")).strip("_")[:64]
        self.schema = OutputSchema(name or "output", around if schema is None else schema)
        """The schema as the model sees it."""

    @property
    def wrapped(self) -> bool:
        """True if the value is the property `VALUE` of the object that the model writes."""
        return self._wrapped

    def read_call(self, arguments: Mapping[str, Any], *, lenient: bool = False) -> Any:
        """The value in the arguments of a call.

        Args:
            arguments: values of JSON types by parameter name.
            lenient: as for `Arguments.validate`.

        Raises:
            InvalidArguments: they do not match.
        """
        read = self._validate_value(dict(arguments), lenient=lenient)
        if read.problems:
            raise InvalidArguments("output", read.problems)
        return read.value

    def read(self, text: str) -> Any:
        """The value in a reply: its whole text as JSON, else the only JSON value in it that matches.

        Not one that the model thought of, or said in another's name.

        Raises:
            InvalidOutput: it contains no matching value, or several different ones.
        """
        found = [self._validate_value(value) for value in _json_values(text, lists=self._wrapped)]
        if self._wrapped and any(read.wrapped and not read.problems for read in found):
            found = [read for read in found if read.wrapped]
        fitting = [read for read in found if not read.problems]
        if len(fitting) == 1:
            return fitting[0].value
        if fitting:
            raise InvalidOutput([f"expected one JSON value, found {len(fitting)} different ones that match"])
        nearest = min(found, key=lambda read: len(read.problems))
        raise InvalidOutput([str(problem) for problem in nearest.problems])

    def meant(self, text: str, *, whole: bool) -> bool:
        """Return True if a reply is an attempt at the output: JSON in it matches at least the schema.

        Args:
            text: the reply.
            whole: whether it must be only that JSON, maybe repeated, with or without a code fence.
        """
        text = text.strip().removeprefix("\ufeff").lstrip()
        try:
            found = _json_values(text, lists=self._wrapped)
        except InvalidOutput:
            return False
        if whole and not (_read(text) or (len(found) == 1 and _nothing_else(text, lists=self._wrapped))):
            return False
        return any(not self._validate_value(value).problems or self._has_form(value) for value in found)

    def _has_form(self, value: Any) -> bool:
        """Return True if a value matches the schema as constrained decoding writes it."""
        checker = checker_of(self._arguments.schema)
        try:
            return checker.is_valid({VALUE: value}) or (self._wrapped and checker.is_valid(value))
        except Exception:  # noqa: BLE001 - a schema that it cannot evaluate, as with a pattern of pydantic's
            return False

    def _validate_value(self, given: Any, *, lenient: bool = False) -> _Read:
        """Validate by the schema; a value without its wrapper object is also accepted."""
        wrapped = self._wrapped and isinstance(given, Mapping) and given.keys() == {VALUE}
        read = self._accept(given[VALUE] if wrapped else given, lenient, wrapped=wrapped)
        if read.problems and wrapped:
            bare = self._accept(given, lenient, wrapped=False)
            return read if bare.problems else bare
        return read

    def _accept(self, value: Any, lenient: bool, *, wrapped: bool) -> _Read:
        try:
            accepted = self._arguments.validate("output", {VALUE: value}, lenient=lenient)
        except InvalidArguments as e:
            cut = 0 if self._wrapped else len(VALUE) + 1
            return _Read(wrapped, problems=tuple(replace(p, path=p.path[cut:]) for p in e.problems))
        return _Read(wrapped, accepted[VALUE])


def _object(around: Mapping[str, Any]) -> dict[str, Any] | None:
    """The value's own schema if it is an object, with the definitions that it still needs."""
    inner, definitions = around["properties"][VALUE], dict(around.get("$defs", {}))
    schema = walk.resolve(inner, around)
    if schema.get("type") != "object":
        return None
    own = {**schema, **{key: value for key, value in inner.items() if key != "$ref"}}
    name = str(inner.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and f'"#/$defs/{name}"' not in json.dumps([own, definitions]):
        del definitions[name]
    return {**own, "$defs": definitions} if definitions else own


# ---------------------------------------------------------------- the JSON in a reply


def json_start(text: str, *, lists: bool) -> int:
    """Where the first value of a reply begins that is still being written; -1 if that is not certain yet.

    Args:
        text: the reply so far.
        lists: whether lists also count.
    """
    at = 0
    while found := _opening(lists).search(text, at):
        if found["aside"] is None and found[0] != _FENCE:
            return found.start()
        at = found.end() if found["aside"] is None else _aside_end(text, found)
    return -1


class _Found(NamedTuple):
    """A JSON value within other text.

    Attributes:
        start: where its text begins.
        end: where it ends.
        values: the value; none if it is one that needs repairs beyond `OVERLOOKED`.
        aside: whether no value counts in this text.
    """

    start: int
    end: int
    values: tuple[Any, ...]
    aside: bool = False


def _json_values(text: str, *, lists: bool) -> list[Any]:
    """The different JSON values of a reply: the whole text, else those in code fences and the objects between words.

    Args:
        text: the reply.
        lists: whether lists between words also count.

    Raises:
        InvalidOutput: there are none, or too many; or one is damaged: its contents must not be taken for the
            answer.
    """
    whole = text.strip()
    if not whole:
        raise InvalidOutput(["expected one JSON value, found an empty reply"])
    read = _read(whole)
    if not read:
        places: list[_Found] = []
        different: dict[str, Any] = {}
        for place in _places(whole, lists=lists):
            places.append(place)
            different.update((json.dumps(value, sort_keys=True), value) for value in place.values)
            if len(different) > MAX_VALUES:
                raise InvalidOutput([f"expected one JSON value, found more than {MAX_VALUES}"])
        _refuse_parts(whole, places)
        read = tuple(different.values())
    if not read:
        raise InvalidOutput(["expected one JSON value, found no JSON in the reply"])
    return list(read)


def _read(text: str) -> tuple[Any, ...]:
    from agentkit.schemas.typed import literals, values

    try:
        return (values.load(text),)
    except ValueError:
        found = literals.read_damaged(text, OVERLOOKED)
        return () if found is None or _CUT_NUMBER.search(text) else (found[0],)


def _places(text: str, *, lists: bool) -> Iterator[_Found]:
    """Return the code fences whose whole content is one JSON value, the outermost values, and the asides."""
    at, fenced = 0, False
    if (ends := _THOUGHT_ENDS.search(text)) and not _THOUGHT_BEGINS.search(text, 0, ends.start()):
        at = ends.end()  # the prompt opened it
        yield _Found(0, at, (), aside=True)
    opening = _opening(lists)
    while found := opening.search(text, at):
        at = found.end() if found[0] == _FENCE else found.start() + 1
        place = None
        if found["aside"] is not None:
            place = _Found(found.start(), _aside_end(text, found), (), aside=True)
        elif found[0] != _FENCE:
            place = _value_at(text, found.start())
        elif fenced := not fenced:
            place = _fence_at(text, found.end())
        if place is not None:
            at = place.end
            yield place


@cache
def _opening(lists: bool) -> re.Pattern[str]:
    """Return the pattern of the start of a value or an aside: thinking, an invented result or turn, a comment."""
    values = f"{_FENCE}|{_OBJECT}|{_LIST}" if lists else f"{_FENCE}|{_OBJECT}"
    return re.compile(rf"(?P<aside>{_asides().opens.regex.pattern})|{values}", re.IGNORECASE)


@cache
def _asides() -> Asides:
    from agentkit.formats.asides import SHOWN, Asides

    return Asides(SHOWN, ())  # what is shown as code may be the reply, as in a fence


def _aside_end(text: str, found: re.Match[str]) -> int:
    """Return the end of the aside that begins here: its closing; without one the end of the text or the paragraph."""
    from agentkit.formats.asides import end_of

    aside = _asides().at(found)
    inside_line = bool(text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip())
    end, _ = end_of(aside.closes, 0 if aside.paragraph and inside_line else None)
    closed = end.regex.search(text, found.end())
    return closed.end() if closed else len(text)


def _fence_at(text: str, start: int) -> _Found | None:
    """The JSON value that the code fence here consists of."""
    if (end := text.find(_FENCE, start)) < 0:
        return None
    if language := _LANGUAGE.match(text, start, end):
        start = language.end()
    value = _read(text[start:end])
    return _Found(start, end, value) if value else None


def _nothing_else(text: str, *, lists: bool) -> bool:
    """Return True if a reply consists of JSON values alone; a token before them may mark a call."""
    beside, at = [""], 0
    for place in _places(text, lists=lists):
        beside[-1] += text[at : place.start]
        at = place.end
        if not place.aside:
            beside.append("")
    beside[-1] += text[at:]
    before, *between, after = beside
    return bool(_OPENS.fullmatch(before) and all(map(_BETWEEN.fullmatch, between)) and _ENDS.fullmatch(after))


def _value_at(text: str, start: int) -> _Found | None:
    """The JSON object or list that begins here.

    Raises:
        InvalidOutput: it is damaged after its first key.
    """
    from agentkit.schemas.typed import literals
    from agentkit.schemas.typed.stringliterals import NotALiteral

    reader = literals.Literals(text, start)
    try:
        value = reader.value()
    except (NotALiteral, RecursionError) as e:
        if _PROPERTY.match(text, start):
            where = f" at character {e.position}" if isinstance(e, NotALiteral) else ""
            raise InvalidOutput([f"the JSON that begins at character {start} is damaged{where}: {e}"]) from e
        return None
    return _Found(start, reader.at, (value,) if OVERLOOKED.issuperset(reader.repairs) else ())


def _refuse_parts(text: str, places: Sequence[_Found]) -> None:
    """Refuse a reply that could be read only in part.

    A value that begins inside a bracket or quotation mark of the text around it is part of something larger, as is
    one next to a bracket that closes nothing, or after a key. The only exception is a surplus `}` after an object
    with nothing before it.

    Raises:
        InvalidOutput: a value is such a part.
    """
    opened: list[int] = []
    quote = at = 0
    if all(place.aside for place in places):
        return
    for start, end, _, aside in places:
        quote = _brackets(text, at, start, quote, opened)
        if aside:
            at = end
            continue
        if quote or opened:
            outer = quote - 1 if quote else opened[-1]
            raise _part(start, f"inside the {text[outer]!r} at character {outer}")
        if key := _AFTER_KEY.search(text, max(at, start - _MAX_KEY), start):
            raise _part(start, f"after {key[0].strip(_AROUND_KEY)!r}")
        at = end
        if _NOTHING_BEFORE.search(text, max(0, start - _MAX_KEY), start) and (surplus := _SURPLUS.match(text, end)):
            at = surplus.end()
    if quote := _brackets(text, at, len(text), quote, opened):
        _brackets(text, quote, len(text), 0, opened, quotes=False)


def _part(start: int, where: str) -> InvalidOutput:
    return InvalidOutput([f"the value that begins at character {start} is {where}: it is part of damaged JSON"])


def _brackets(text: str, at: int, end: int, quote: int, opened: list[int], *, quotes: bool = True) -> int:
    """Follow the brackets and quotation marks of the text between two values.

    Args:
        text: the reply.
        at: where that text begins.
        end: where it ends.
        quote: the position after the quotation mark that is open there; 0 if none is.
        opened: the positions of the open brackets; changed.
        quotes: whether quotation marks count.

    Returns:
        The position after the quotation mark that is open at the end; 0 if none is.

    Raises:
        InvalidOutput: a bracket closes nothing.
    """
    for mark in _MARK.finditer(text, at, end):
        match mark[0]:
            case '"' if quotes:
                quote = 0 if quote else mark.end()
            case "{" | "[" if not quote:
                opened.append(mark.start())
            case "}" | "]" if not quote:
                if not opened or text[opened.pop()] + mark[0] not in ("{}", "[]"):
                    found = f"found {mark[0]!r} at character {mark.start()}, which closes nothing"
                    raise InvalidOutput(
                        [f"expected one JSON value, {found}: a value before it is part of damaged JSON"]
                    )
            case _:
                pass
    return quote
