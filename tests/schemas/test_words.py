"""The words about a wrong value are true, for any type and any value."""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import json
import math
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from annotated_types import Ge, Len, MultipleOf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, BeforeValidator, Field, FutureDate, Json, PastDate, StringConstraints
from pydantic_core import to_json

from agentkit.errors import SchemaError
from agentkit.schemas.words import InvalidArguments, Problem, summarize
from agentkit.tool.arguments import Arguments
from agentkit.tool.declare import openapi_schema
from agentkit.tool.hints import value_type
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import Output


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(BaseModel):
    x: int
    y: float = 0.0


@dataclass
class Box:
    at: Point
    name: Annotated[str, StringConstraints(min_length=2, pattern="^[a-z]+$")]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Pair(NamedTuple):
    left: int
    right: str


LEAVES: list[Any] = [
    *(int, str, bool, float, None, bytes, decimal.Decimal, uuid.UUID, Path, AnyUrl),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, PastDate, FutureDate),
    *(ipaddress.IPv4Address, re.Pattern, Colour, Level, Literal["a", "b"], Literal[1, "x"], Point, Box, Pair),
    *(Json[list[int]], Json[Any], Annotated[int, Ge(3), MultipleOf(2)], Annotated[list[int], Len(1, 2)]),
    Annotated[decimal.Decimal, Field(max_digits=3, decimal_places=1)],
    Annotated[Cat | Dog, Field(discriminator="kind")],
]
NAMES: list[Any] = [str, int, float, bool, uuid.UUID, datetime.date, Colour, Literal["a", "b"], int | datetime.date]


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda t: list[t]),  # type: ignore[valid-type]
        inner.map(lambda t: set[t] if t in (int, str, float) else tuple[t, ...]),  # type: ignore[valid-type]
        st.tuples(inner, inner).map(lambda t: tuple[t[0], t[1]]),  # type: ignore[name-defined]
        st.tuples(st.sampled_from(NAMES), inner).map(lambda t: dict[t[0], t[1]]),  # type: ignore[name-defined]
        st.tuples(inner, inner).map(lambda t: t[0] | t[1] if t != (None, None) else list[None]),
    )


TYPES = st.recursive(st.sampled_from(LEAVES), around, max_leaves=3)
SCALARS: st.SearchStrategy[Any] = st.one_of(
    *(st.none(), st.booleans(), st.integers(-3, 10), st.sampled_from([0.5, 5.0, 1e30])),
    st.sampled_from(
        ["", "a", "b", "red", "x", "12.345", "[1]", "{", "2025-01-31", "2999-01-01", "1,2", "12:00", "::1"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y", "a", "1", "kind", "at", "name", "2025-01-31"]), inner, max_size=3)
    ),
    max_leaves=5,
)


PLAIN = {"string", "integer", "number", "boolean", "null", "array", "object", "any value"}
HOLDS = {">=": lambda v, b: v >= b, "multiple": lambda v, b: v % b == 0}


def is_a_lie(expected: str, found: str, value: Any) -> bool:
    """Return True if the value meets the expectation in words."""
    kind = found.split(" ")[0].replace("empty", "object")
    one = expected.removeprefix("one of ")
    if one in PLAIN:
        return one in (kind, "any value") or (one, kind) == ("number", "integer")
    if one.startswith(("array of ", "object with ")) and not one.endswith(")"):
        return one.startswith(kind)
    if bounds := re.fullmatch(r"(integer|number) \((.*)\)", one):
        words = [re.fullmatch(r"(?:a )?(\S+)(?: of)? (\d+)", bound) for bound in bounds[2].split(", ")]
        return kind == bounds[1] and all(HOLDS[word[1]](value, int(word[2])) for word in words if word)
    return json.dumps(value) in one.split(", ")


def at(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        value = value[step.replace("~1", "/").replace("~0", "~")] if isinstance(value, Mapping) else value[int(step)]
    return value


def problems_of(wanted: Any, value: Any) -> tuple[Problem, ...]:
    made = value_type(wanted)
    try:
        Arguments(made.schema, made.validator.validate_json, None, to_json).validate(
            "t", {"value": value}, lenient=False
        )
    except InvalidArguments as e:
        return e.problems
    return ()


@settings(suppress_health_check=list(HealthCheck))
@given(TYPES, VALUES)
def test_a_value_is_never_said_not_to_be_what_it_is(wanted: Any, value: Any) -> None:
    for problem in problems_of(wanted, value):
        if problem.found.startswith(("nothing", "the ", "nesting")):
            assert problem.found.startswith(("nothing: it is required", "the unknown name", "the name")), str(problem)
            continue
        sent = at({"value": value}, problem.path)
        same = int(sent) if isinstance(sent, float) and sent.is_integer() else sent  # to JSON Schema
        assert problem.found in (summarize(sent), summarize(same))
        if ": " in problem.expected:  # and what else there is to it
            continue
        alternatives = re.sub(r"array of [(\[].*[)\]]", "that array", problem.expected).split(" or ")
        assert not any(is_a_lie(one, problem.found, sent) for one in alternatives), str(problem)


@pytest.mark.parametrize(
    ("wanted", "value", "said"),
    [
        (Json[list[int]], [1], "/value: expected string (JSON as text), found array of 1 item"),
        (
            Json[int],
            "x",
            '/value: expected string (JSON as text): invalid JSON: expected value at line 1 column 1, found string "x"',
        ),
        (
            dict[Literal["a"] | Colour, int],
            {"x": 1},
            "/value/x: expected a name that is 'a' or 'red' or 'blue', found the name \"x\"",
        ),
        (dict[Literal["a"], int], {"b": 1}, "/value/b: expected a name that is 'a', found the name \"b\""),
        (dict[str, int], {"[key]": "x"}, '/value/[key]: expected integer, found string "x"'),
        (
            PastDate,
            "2999-01-01",
            '/value: expected string (date, such as 2025-01-31): date should be in the past, found string "2999-01-01"',
        ),
        (float, math.nan, "/value: expected number: a finite number, found number NaN"),
    ],
    ids=["json", "damaged json", "a name", "a name of some", "a name that looks so", "a past date", "nan"],
)
def test_what_is_said(wanted: Any, value: Any, said: str) -> None:
    assert [str(problem) for problem in problems_of(wanted, value)] == [said]


def test_a_name_is_never_suggested_for_itself() -> None:
    """A hand-written schema can have what the class does not take."""

    @openapi_schema(parameters={"box": {"type": "object", "properties": {"at": {}, "name": {}, "size": {}}}})
    def f(box: Box) -> None: ...

    with pytest.raises(InvalidArguments) as caught:
        ToolRegistry(f).tools["f"].validate({"box": {"at": {"x": 1}, "name": "ab", "size": 1}}, lenient=False)
    assert str(caught.value).splitlines()[1:] == [
        '- /box/size: expected one of the names "at", "name", found the unknown name "size"'
    ]


def read_pair(text: str) -> tuple[int, int]:
    left, right = text.split(",")
    return int(left), int(right)


class Plan(BaseModel):
    costs: dict[tuple[int, int], str]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (dict[tuple[int, int], str], "an array"),
        (list[dict[frozenset[int], str]], "an array"),
        (dict[Pair, int], "an array"),
        (dict[None, int], "null"),
        (dict[Level, int], "one of 1, 2"),
        (dict[Literal[1, 2], int], "one of 1, 2"),
        (dict[tuple[int, ...] | None, int], "an array"),
        (Plan, "an array"),
    ],
    ids=str,
)
def test_a_mapping_whose_names_nobody_can_write_is_refused_when_it_is_declared(wanted: Any, names: str) -> None:
    with pytest.raises(SchemaError, match=f"names would have to be {names}.*; in JSON a name is a string"):
        Output(wanted)


@pytest.mark.parametrize("names", [*NAMES, Literal[1, "x"], Annotated[tuple[int, int], BeforeValidator(read_pair)]])
def test_names_that_can_be_written_are_not_refused(names: Any) -> None:
    Output(dict[names, str])


def test_a_tools_parameter_is_refused_alike() -> None:
    def place(pieces: dict[tuple[int, int], str]) -> str:
        """Place them."""
        return ""

    with pytest.raises(SchemaError, match=r"parameter 'pieces' has type .*an array"):
        ToolRegistry(place)
