"""Structured output: a type as the schema of a model's final reply, and the reply's text as a value of that type.

Pure; knows no model. A reply that does not match gets an error that the model can act on. An ambiguous reply is
refused, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, NamedTuple

from agentkit.formats import repairs
from agentkit.schemas import walk
from agentkit.schemas.words import MAX_PROBLEMS, InvalidArguments, Problem
from agentkit.tool.arguments import Arguments
from agentkit.tool.hints import value_type
from agentkit.toolspec import OutputSchema

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
_OBJECT = re.compile(r"""\{\s*["'}]""")
_BRACKET = re.compile(r"[{}\[\]]")
_BEFORE_PART: Final = ("{", "[", ":", "=", ";", ",", ">", '"', "'")
"""What comes before a part of JSON that is inside brackets; words come before an object in prose."""
_PROPERTY = re.compile(r"""\{\s*(?:"[^"\n]*"|'[^'\n]*')\s*:""")


class InvalidOutput(ValueError):
    """A reply is not a value of the requested type; the message is written for the model.

    Args:
        problems: what is wrong, at least one.
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
        problems: what is wrong with it.
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
        validator, around = value_type(wanted)
        from pydantic_core import to_json

        self._arguments = Arguments(around, validator.validate_json, None, to_json)
        schema = _object(around)
        self._wrapped = schema is None
        name = _NOT_IN_NAME.sub("_", getattr(wanted, "__name__", "")).strip("_")[:64]
        self.schema = OutputSchema(name or "output", around if schema is None else schema)
        """The schema as the model sees it."""

    def read(self, text: str) -> Any:
        """The value in a reply: its whole text as JSON, else the only JSON value in it that matches.

        Raises:
            InvalidOutput: it contains no matching value, or several different ones.
        """
        found = [self._validated(value) for value in _json_values(text)]
        if self._wrapped and any(read.wrapped and not read.problems for read in found):
            found = [read for read in found if read.wrapped]
        fitting = [read for read in found if not read.problems]
        if len(fitting) == 1:
            return fitting[0].value
        if fitting:
            raise InvalidOutput([f"expected one JSON value, found {len(fitting)} different ones that match"])
        nearest = min(found, key=lambda read: len(read.problems))
        raise InvalidOutput([str(problem) for problem in nearest.problems])

    def _validated(self, given: Any) -> _Read:
        """Validate by the schema; a value without its wrapper object is accepted, too."""
        wrapped = self._wrapped and isinstance(given, Mapping) and given.keys() == {VALUE}
        read = self._accepted(given[VALUE] if wrapped else given, wrapped=wrapped)
        if read.problems and wrapped:
            bare = self._accepted(given, wrapped=False)
            return read if bare.problems else bare
        return read

    def _accepted(self, value: Any, *, wrapped: bool) -> _Read:
        try:
            accepted = self._arguments.validate("output", {VALUE: value}, lenient=False)
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


def _json_values(text: str) -> list[Any]:
    """The different JSON values of a reply: the whole text, else those in code fences and the objects between words.

    Raises:
        InvalidOutput: there are none, or too many; or one is damaged: its contents must not be taken for the
            answer.
    """
    whole = text.strip()
    if not whole:
        raise InvalidOutput(["expected one JSON value, found an empty reply"])
    found = {}
    for value in [*_read(whole)] or chain(_fenced(whole), _objects(whole)):
        found[_text_of(value)] = value
        if len(found) > MAX_VALUES:
            raise InvalidOutput([f"expected one JSON value, found more than {MAX_VALUES}"])
    if not found:
        raise InvalidOutput(["expected one JSON value, found no JSON in the reply"])
    return list(found.values())


def _text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _read(text: str) -> Iterator[Any]:
    """The text as a JSON value, if it is one."""
    from agentkit.formats import literals, values

    try:
        yield values.load(text)
    except ValueError:
        found = literals.repaired(text, OVERLOOKED)
        if found is not None:
            yield found[0]


def _fenced(text: str) -> Iterator[Any]:
    """The values of code fences whose whole content is one JSON value."""
    for part in text.split(_FENCE)[1::2]:
        language = _LANGUAGE.match(part)
        yield from _read(part[language.end() :] if language else part)


def _objects(text: str) -> Iterator[Any]:
    """The outermost JSON objects within other text."""
    from agentkit.formats import literals
    from agentkit.formats.stringliterals import NotALiteral

    at = seen = 0
    opened: list[int] = []
    while found := _OBJECT.search(text, at):
        _follow(text, seen, found.start(), opened)
        reader = literals.Literals(text, found.start())
        at = seen = found.start() + 1
        try:
            value = reader.value()
        except (NotALiteral, RecursionError) as e:
            if _PROPERTY.match(text, found.start()):
                where = f" at character {e.position}" if isinstance(e, NotALiteral) else ""
                raise InvalidOutput(
                    [f"the JSON that begins at character {found.start()} is damaged{where}: {e}"]
                ) from e
            opened.append(found.start())
        else:
            if opened and text[max(found.start() - 64, 0) : found.start()].rstrip().endswith(_BEFORE_PART):
                raise InvalidOutput([f"the JSON that begins at character {opened[-1]} is damaged"])
            at = seen = reader.at
            if OVERLOOKED.issuperset(reader.repairs):
                yield value


def _follow(text: str, start: int, end: int, opened: list[int]) -> None:
    """Follow the brackets in a part of a text: `opened` has the offsets of those that are not closed."""
    for found in _BRACKET.finditer(text, start, end):
        if found[0] in "{[":
            opened.append(found.start())
        elif opened:
            opened.pop()
