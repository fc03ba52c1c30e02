"""What a tool takes natively is valid by the schema that the model was shown, wherever in a type a value stands."""

# mypy: disable-error-code="valid-type, name-defined"

from __future__ import annotations

import datetime as dt
import enum
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from pydantic import AwareDatetime, BaseModel, PastDate, TypeAdapter

from agentkit.schemas.words import InvalidArguments
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.registry import ToolRegistry

# ruff: noqa: ANN001, ANN202 (parameters that get their hint below)


class Level(enum.IntEnum):
    OFF = 0
    LOW = 1


class Answer(enum.Enum):
    YES = True
    NO = False


class Share(float, enum.Enum):
    NONE = 0.0
    ALL = 1.0


class Mixed(enum.Enum):
    ONE = 1
    A = "a"


class Event(BaseModel):
    at: dt.datetime
    level: Level = Level.OFF


@dataclass
class Day:
    date: dt.date
    length: dt.timedelta = dt.timedelta(days=1)


class Span(NamedTuple):
    start: dt.time
    answer: Answer


class Timed(BaseModel):
    kind: Literal[1]
    at: dt.time


class Listed(BaseModel):
    kind: Literal[True, 0]
    levels: Iterable[Level]


MOMENTS: list[Any] = [dt.datetime, dt.date, dt.time, dt.timedelta, AwareDatetime, PastDate]
CHOICES: list[Any] = [Level, Answer, Share, Mixed, Literal[1, 2], Literal[True], Literal[0, "x"], Literal[1, True]]
LEAVES: list[Any] = [*MOMENTS, *CHOICES, int, str, bool, float, None, Event, Day, Span, Timed, Listed, Iterable[bool]]
NAMES: list[Any] = [str, dt.date, dt.datetime, dt.time, dt.timedelta, Literal["1", "x"]]


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda t: list[t]),
        st.tuples(inner, inner).map(lambda t: tuple[t[0], t[1]]),
        st.tuples(st.sampled_from(NAMES), inner).map(lambda t: dict[t[0], t[1]]),
        st.tuples(inner, inner).map(lambda t: t[0] | t[1] if t != (None, None) else list[None]),
    )


TYPES = st.recursive(st.sampled_from(LEAVES), around, max_leaves=3)
DIGITS = st.from_regex(r"[+-]?[0-9]{1,14}(\.[0-9]{1,3})?", fullmatch=True) | st.sampled_from(
    ["20240101", "2024", "1e3"]
)
ISO = ["2024-01-31", "2024-01-31T12:00:00Z", "2024-01-31T12:00", "12:30:00", "12:30", "PT90S", "-P1DT2H", "1:30:00"]
SCALARS: st.SearchStrategy[Any] = st.one_of(
    *(st.none(), st.booleans(), st.sampled_from([0, 1, 2, 0.0, 1.0, 1.5, 86400]), DIGITS),
    *(st.sampled_from([*ISO, "x", "a", "1", "", "true"]),) * 2,
)
WORDS = st.sampled_from(["at", "level", "date", "length", "kind", "levels", "1", "x", "2024", *ISO])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=5
)

OFFSET = r"([Zz]|[+-]\d\d:?\d\d)?"
FORMS = {
    "date-time": r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?" + OFFSET,
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d(:\d\d(\.\d+)?)?" + OFFSET,
    "duration": r"[+-]?P(?=.)(\d+[YMWD])*(T(\d+(\.\d+)?[HMS])+)?",
}


def follows(form: str) -> Any:
    return lambda text: not isinstance(text, str) or re.fullmatch(form, text, re.ASCII) is not None


FORMATS = FormatChecker(formats=())
for name, form in FORMS.items():
    FORMATS.checks(name)(follows(form))


def tool(hint: Any) -> BoundTool:
    def f(x):  # type: ignore[no-untyped-def]
        return x

    f.__annotations__ = {"x": hint}
    return ToolRegistry().register_function(f)


def taken(bound: BoundTool, value: Any, *, lenient: bool = False) -> tuple[Any, ...]:
    """The value as the method gets it; empty if it is refused."""
    try:
        return (bound.validate({"x": value}, lenient=lenient)["x"],)
    except InvalidArguments:
        return ()


@given(st.sampled_from(LEAVES) | TYPES, SCALARS | VALUES)
def test_what_is_taken_natively_is_valid_by_the_schema(hint: Any, value: Any) -> None:
    bound = tool(hint)
    if taken(bound, value):
        checker = Draft202012Validator(bound.spec.parameters, format_checker=FORMATS)
        assert checker.is_valid({"x": value}), bound.spec.parameters


@given(
    st.recursive(st.sampled_from([*MOMENTS, int, str, None, Event, Day]), around, max_leaves=3),
    st.recursive(
        st.sampled_from([*ISO, "x", 1, None]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
        max_leaves=5,
    ),
    st.booleans(),
)
def test_what_is_taken_is_read_as_pydantic_reads_it(hint: Any, value: Any, lenient: bool) -> None:
    if got := taken(tool(list[hint]), [value], lenient=lenient):
        assert repr(got[0]) == repr(TypeAdapter(list[hint]).validate_json(json.dumps([value]), strict=not lenient))


PLACES: list[tuple[Any, Any]] = [
    (lambda t: t, lambda v: v),
    (lambda t: list[t], lambda v: [v]),
    (lambda t: dict[str, t | None], lambda v: {"a": v}),
    (lambda t: tuple[int, t], lambda v: [1, v]),
    (lambda t: t | list[int], lambda v: v),
]


@given(st.sampled_from(MOMENTS), st.sampled_from(PLACES), DIGITS | st.integers() | st.floats(0, 1e12), st.booleans())
def test_digits_are_never_a_time(moment: Any, place: Any, written: Any, lenient: bool) -> None:
    around, within = place
    assert taken(tool(around(moment)), within(written), lenient=lenient) == ()


@given(st.sampled_from([dt.datetime, dt.date, dt.time, dt.timedelta]), DIGITS, st.booleans())
def test_digits_are_no_name_that_is_a_time(moment: Any, written: str, lenient: bool) -> None:
    assert taken(tool(dict[moment, int]), {written: 1}, lenient=lenient) == ()


@given(st.sampled_from([Event, list[Event], Event | None, dict[str, Event]]), DIGITS, st.booleans())
def test_digits_are_no_time_in_a_model_that_validates_itself(hint: Any, written: str, lenient: bool) -> None:
    value: Any = {"at": written}
    nested = {"list[": [value], "dict[": {"a": value}}.get(str(hint)[:5], value)
    assert taken(tool(hint), nested, lenient=lenient) == ()


@given(st.sampled_from([dt.datetime, dt.date]), DIGITS, st.booleans())
def test_digits_stay_text_where_text_is_allowed(moment: Any, written: str, lenient: bool) -> None:
    assert taken(tool(moment | str), written, lenient=lenient) == (written,)
    assert taken(tool(list[moment | str]), [written], lenient=lenient) == ([written],)


@given(st.datetimes(timezones=st.none() | st.just(dt.UTC)), st.timedeltas(), st.booleans())
def test_what_iso_8601_writes_is_read(at: dt.datetime, length: dt.timedelta, lenient: bool) -> None:
    for moment, text, value in [
        (dt.datetime, at.isoformat(), at),
        (dt.datetime, at.isoformat(" "), at),
        (dt.date, at.date().isoformat(), at.date()),
        (dt.time, at.timetz().isoformat(), at.timetz()),
        (dt.timedelta, TypeAdapter(dt.timedelta).dump_python(length, mode="json"), length),
    ]:
        if at.year >= 1:
            assert taken(tool(moment), text, lenient=lenient) == (value,), text
            assert taken(tool(list[moment]), [text], lenient=lenient) == ([value],)


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (dt.datetime, "2024-01-31", dt.datetime(2024, 1, 31)),
        (dt.date, "2024-01-31T00:00:00", dt.date(2024, 1, 31)),
        (dt.timedelta, "1 day, 02:30:00", dt.timedelta(days=1, hours=2, minutes=30)),
        (dt.timedelta, "00:01:30", dt.timedelta(seconds=90)),
    ],
    ids=str,
)
def test_what_only_text_may_leave_out(hint: Any, text: str, value: Any) -> None:
    assert taken(tool(hint), text, lenient=True) == (value,)
    assert taken(tool(hint), text) == ()


@pytest.mark.parametrize("hint", [dt.timedelta, list[dt.timedelta]], ids=str)
def test_hours_and_minutes_or_minutes_and_seconds(hint: Any) -> None:
    value = "12:30" if hint is dt.timedelta else ["12:30"]
    assert taken(tool(hint), value, lenient=True) == ()


@pytest.mark.parametrize("lenient", [False, True])
def test_a_boolean_is_no_number_and_a_number_no_boolean(lenient: bool) -> None:
    for hint, value in [(Literal[1, 2], True), (Level, False), (Share, True), (Literal[True], 1), (Answer, 0.0)]:
        assert taken(tool(hint), value, lenient=lenient) == ()
        assert taken(tool(list[hint]), [value], lenient=lenient) == ()
    for hint, value, got in [(Literal[1, True], 1.0, 1), (Literal[1, True], True, True), (Level, 1.0, Level.LOW)]:
        (found,) = taken(tool(hint), value, lenient=lenient)
        assert (found, type(found)) == (got, type(got))


@pytest.mark.parametrize("lenient", [False, True])
def test_a_type_that_occurs_twice_is_narrowed_at_each_place(lenient: bool) -> None:
    @dataclass
    class Two:
        first: Level
        second: Level

    class Tree(BaseModel):
        level: Level
        at: dt.datetime | None = None
        below: list[Tree] = []

    assert taken(tool(Two), {"first": 1, "second": True}, lenient=lenient) == ()
    assert taken(tool(Two), {"first": True, "second": 1}, lenient=lenient) == ()
    assert taken(tool(dict[Literal["1"], Two] | Two), {"first": 1, "second": 0}, lenient=lenient)
    assert taken(tool(Tree), {"level": 1, "below": [{"level": True}]}, lenient=lenient) == ()
    assert taken(tool(Tree), {"level": 1, "below": [{"level": 1, "at": "2024"}]}, lenient=lenient) == ()


def test_an_iterable_in_a_class_is_a_list() -> None:
    value: Any = {"kind": True, "levels": [1, 0]}
    assert taken(tool(Listed), value)[0].levels == [Level.LOW, Level.OFF]
    assert taken(tool(Listed), {"kind": True, "levels": "01"}) == ()
    assert taken(tool(Listed), {"kind": True, "levels": [7]}) == ()


def test_the_error_says_how_a_time_is_written() -> None:
    with pytest.raises(InvalidArguments) as caught:
        tool(list[dt.datetime | dt.date]).validate({"x": ["20240101"]}, lenient=False)
    wanted = "string (date-time, such as 2025-01-31T12:00:00Z) or string (date, such as 2025-01-31)"
    assert str(caught.value).splitlines()[1:] == [f'- /x/0: expected {wanted}, found string "20240101"']


def test_a_field_or_default_that_looks_like_a_core_schema_is_none() -> None:
    @dataclass
    class Odd:
        type: Literal["date"] = "date"
        schema: str = "s"

    def f(x: Odd, default: dict[str, str] = {"type": "date"}) -> None: ...  # noqa: B006

    bound = ToolRegistry().register_function(f)
    assert bound.validate({"x": {"type": "date"}}, lenient=False) == {"x": Odd()}
