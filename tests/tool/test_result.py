"""What a tool gives back, and what a model reads of it: never a Python repr."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import math
import re
from collections import Counter, OrderedDict, UserList, UserString, deque
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from agentkit.messages import ImagePart, TextPart
from agentkit.tool.declare import OpenAPISchema, XMLSchema, openapi_schema, xml_schema
from agentkit.tool.output import json_text, text_of
from agentkit.tool.result import Tool, ToolContext, ToolResult

# ruff: noqa: UP042 (the older kind of string enum)

PNG = ImagePart(data=b"\x89PNG")


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Word(str, enum.Enum):
    A = "a"


@dataclass
class Point:
    x: int
    where: Path


class Pair(NamedTuple):
    left: int
    right: str


class Person(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    name: str
    born: dt.date | None = None
    extra: Any = None


class Plain:
    def __init__(self) -> None:
        self.shown = 1
        self._hidden = 2


class Slotted:
    __slots__ = ("x",)


class Money:
    def __str__(self) -> str:
        return "5 €"


class Jargon:
    def __repr__(self) -> str:
        return "<Jargon at 0x1>"


class Array:
    def tolist(self) -> list[float]:
        return [1.0, math.nan]


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Rope(Sequence[Any]):
    """Whose items are of its own kind, as those of a text are."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getitem__(self, index: Any) -> Any:
        return Rope(self._text[index])

    def __len__(self) -> int:
        return len(self._text)

    def __str__(self) -> str:
        return f"<{self._text}>"


class Yielding:
    """An object that has any attribute, such as one of another process."""

    def __getattr__(self, name: str) -> Any:
        return Yielding()


READS: list[tuple[Any, str]] = [
    ("plain", "plain"),
    ("", ""),
    ('{"a": 1}', '{"a": 1}'),
    (None, "ok"),
    (True, "true"),
    (5, "5"),
    (1.5, "1.5"),
    (10**5000, "(an integer of 16610 bits)"),
    (math.nan, "NaN"),
    (-math.inf, "-Infinity"),
    ([1, "a", None], '[1, "a", null]'),
    ((1, 2), "[1, 2]"),
    ({}, "{}"),
    ({"ü": "é"}, '{"ü": "é"}'),
    ({1: "a", (1, 2): "b", Color.RED: "c", None: "d"}, '{"1": "a", "[1, 2]": "b", "red": "c", "null": "d"}'),
    ({"a": math.nan, "b": [math.inf]}, '{"a": "NaN", "b": ["Infinity"]}'),
    ({"b", "a"}, '["a", "b"]'),
    (frozenset({2, 1}), "[1, 2]"),
    ({"k": {3, 1, 2}}, '{"k": [1, 2, 3]}'),
    (b"text", "text"),
    (b"\xff\x00", "/wA="),
    ({"b": bytearray(b"x")}, '{"b": "x"}'),
    (Path("a/b"), "a/b"),
    ([PurePosixPath("a")], '["a"]'),
    (dt.datetime(2025, 1, 31, 12, tzinfo=dt.UTC), "2025-01-31T12:00:00+00:00"),
    (dt.date(2025, 1, 31), "2025-01-31"),
    ([dt.time(12, 30)], '["12:30:00"]'),
    (dt.timedelta(minutes=1, milliseconds=500), "PT60.5S"),
    (dt.timedelta(seconds=-5), "-PT5S"),
    (Color.RED, "red"),
    ([Color.RED, Level.LOW, Word.A], '["red", 1, "a"]'),
    (Word.A, "a"),
    (Level.LOW, "1"),
    (Decimal("1.10"), "1.10"),
    ([Decimal("1.10")], '["1.10"]'),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Fraction(1, 3), "1/3"),
    (Point(1, Path("a")), '{"x": 1, "where": "a"}'),
    ([Point(1, Path("a"))], '[{"x": 1, "where": "a"}]'),
    (Pair(1, "r"), '[1, "r"]'),
    (Person(name="Ada", born=dt.date(1815, 12, 10)), '{"name": "Ada", "born": "1815-12-10", "extra": null}'),
    (Person(name="Ada", extra=Plain()), '{"name": "Ada", "born": null, "extra": {"shown": 1}}'),
    (OrderedDict(b=1, a=2), '{"b": 1, "a": 2}'),
    (Counter("aab"), '{"a": 2, "b": 1}'),
    (deque([1, 2]), "[1, 2]"),
    (range(3), "[0, 1, 2]"),
    ({"a": 1}.keys(), '["a"]'),
    (ValueError("no"), "ValueError: no"),
    (Plain(), '{"shown": 1}'),
    (SimpleNamespace(a=1), '{"a": 1}'),
    (Slotted(), "(an object of class Slotted, without a readable value)"),
    (Money(), "5 €"),
    (Jargon(), "(an object of class Jargon, without a readable value)"),
    ({"a": Jargon()}, '{"a": "(an object of class Jargon, without a readable value)"}'),
    (Array(), '[1.0, "NaN"]'),
    (Plain, "Plain"),
    (len, "len"),
    (UserString("text"), "text"),
    (UserString(""), ""),
    ({"a": [UserString("text")]}, '{"a": ["text"]}'),
    (UserList([1]), "[1]"),
    (Rope("text"), "<text>"),
    (UserList([UserList([])]), "[[]]"),
    (Yielding(), "(an object of class Yielding, without a readable value)"),
    ([Yielding()], '["(an object of class Yielding, without a readable value)"]'),
    (Broken(), "(a Broken that cannot be shown: RuntimeError: no text)"),
    ("a\ud800b", "a\ufffdb"),
    (["\udc00"], '["\ufffd"]'),
]


@pytest.mark.parametrize(("value", "text"), READS, ids=lambda v: type(v).__name__)
def test_what_a_model_reads_of_a_returned_value(value: Any, text: str) -> None:
    assert text_of(value) == text
    assert ToolResult.of(value).text == text


def test_a_value_that_holds_itself_is_cut() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert text_of(loop) == '[1, "(this value again: it contains itself)"]'


def test_a_value_nested_too_deep_is_cut() -> None:
    deep: Any = 1
    for _ in range(20_000):
        deep = [deep]
    assert text_of(deep) == "[" * 100 + '"(cut: nested deeper than 100 levels)"' + "]" * 100


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON_VALUES)
def test_json_is_written_as_json(value: Any) -> None:
    assert json.loads(json_text(value)) == value


ANYTHING = st.recursive(
    st.none() | st.floats() | st.binary() | st.text() | st.decimals() | st.dates() | st.uuids() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.sets(st.integers()) | st.dictionaries(st.integers(), inner) | st.tuples(inner),
)


@given(ANYTHING)
def test_any_value_becomes_text_that_a_request_can_carry(value: Any) -> None:
    text_of(value).encode()
    json.loads(json_text(value), parse_constant=pytest.fail)


def test_a_result_is_ok_or_an_error_with_a_code() -> None:
    assert ToolResult("fine").ok
    assert (ToolResult(error="no").ok, ToolResult(error="no").code) == (False, "tool_error")
    assert ToolResult(error="late", code="timeout").code == "timeout"
    assert not ToolResult(error="").ok
    with pytest.raises(ValueError, match=r"ToolResult\(code='timeout'\) has no error; pass error="):
        ToolResult(code="timeout")


def test_a_result_is_frozen_and_keeps_the_python_value() -> None:
    result = ToolResult({1, 2}, metadata={"seconds": 1}, reward=0.5)
    assert (result.output, result.metadata, result.reward) == ({1, 2}, {"seconds": 1}, 0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.output = 1  # type: ignore[misc]
    assert dataclasses.replace(result, output=3).text == "3"


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        (ToolResult("a"), (TextPart("a"),)),
        (ToolResult(), (TextPart("ok"),)),
        (ToolResult(error="no such file"), (TextPart("no such file"),)),
        (ToolResult({"exit": 1}, "failed"), (TextPart('failed\n{"exit": 1}'),)),
        (ToolResult("a plot", content=(PNG,)), (TextPart("a plot"), PNG)),
        (ToolResult(content=(PNG,)), (PNG,)),
        (ToolResult(content=["see", PNG]), (TextPart("see"), PNG)),  # type: ignore[arg-type]
        (ToolResult(error="no", content=(PNG,)), (TextPart("no"), PNG)),
        (ToolResult(error=""), (TextPart("the tool failed and did not say why"),)),
        (ToolResult(content=(TextPart("a\ud800"),)), (TextPart("a\ufffd"),)),
        (ToolResult.of(PNG), (PNG,)),
        (ToolResult(PNG), (PNG,)),
        (ToolResult([TextPart("a"), PNG], content=["b"]), (TextPart("a"), PNG, TextPart("b"))),
        (ToolResult(("a", PNG), metadata={"at": 1}), (TextPart("a"), PNG)),
        (
            ToolResult({"plot": PNG}),
            (TextPart('{"plot": "(an image, image/png, 4 bytes: return it by itself or in a list)"}'),),
        ),
        (ToolResult.of(TextPart("a")), (TextPart("a"),)),
        (ToolResult.of([TextPart("a"), PNG]), (TextPart("a"), PNG)),
        (ToolResult.of(("a", PNG, 5)), (TextPart("a"), PNG, TextPart("5"))),
        (ToolResult.of(["a", "b"]), (TextPart('["a", "b"]'),)),
        (ToolResult.of([]), (TextPart("[]"),)),
        (ToolResult.of(ToolResult(error="no")), (TextPart("no"),)),
    ],
    ids=str,
)
def test_the_parts_a_model_reads(result: ToolResult, parts: tuple[Any, ...]) -> None:
    assert result.parts == parts


def test_the_text_of_a_result_leaves_images_out() -> None:
    assert ToolResult.of(["a", PNG, "b"]).text == "ab"


def test_an_iterator_is_no_result() -> None:
    async def never() -> None: ...

    coroutine = never()
    assert ToolResult.of(iter([1])).error == "the tool returned a list_iterator, not a value; return its result instead"
    assert ToolResult.of(coroutine).code == "tool_error"
    coroutine.close()


class Notes(Tool):
    @openapi_schema(description="Keep a note")
    @xml_schema(name="note", content="text")
    def keep(self, text: str) -> ToolResult:
        return self.success_response({"kept": text}) if text else self.fail_response("text is empty; write a note")

    def other(self) -> None: ...


def test_the_base_class_makes_results_and_lists_its_schemas() -> None:
    notes = Notes()
    assert notes.keep("a") == ToolResult({"kept": "a"})
    assert notes.keep("") == ToolResult(error="text is empty; write a note")
    assert {name: [type(s) for s in schemas] for name, schemas in notes.get_schemas().items()} == {
        "keep": [XMLSchema, OpenAPISchema]
    }


def test_the_context_is_a_frozen_value() -> None:
    context = ToolContext("call_1", "keep", {"user": 7})
    assert (context.call_id, context.name, context.state["user"]) == ("call_1", "keep", 7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.name = "other"  # type: ignore[misc]


def test_no_address_of_an_object_ever_reaches_the_model() -> None:
    values = [object(), lambda: 1, Plain(), [object()], {"a": object()}, Plain().__init__, (i for i in [1])]  # type: ignore[misc]
    assert [re.findall("0x[0-9a-f]+", text_of(value)) for value in values] == [[]] * len(values)
