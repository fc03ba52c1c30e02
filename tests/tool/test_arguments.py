"""What a model sent against what a tool takes: strict for native JSON, lenient for text, and problems it can act on."""

from __future__ import annotations

import datetime as dt
import enum
import math
import pickle
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, Field

from agentkit.schemas.words import InvalidArguments, Problem
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry

# ruff: noqa: ANN001, ANN202, B006 (parameters that get their hint below, or none; defaults are only read)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Circle:
    center: Point
    radius: float


class Pair(NamedTuple):
    left: int
    right: str


class Order(BaseModel):
    item: str
    count: Annotated[int, Field(ge=1)] = 1
    notes: list[str] = []


def even(n: int) -> int:
    if n % 2:
        raise ValueError("must be even")
    return n


def tool(hint: Any, *default: Any) -> BoundTool:
    """A tool with the one parameter `x`."""

    def f(x):  # type: ignore[no-untyped-def]
        return x

    f.__annotations__ = {"x": hint}
    f.__defaults__ = default or None
    return ToolRegistry().register_function(f)


def problems(bound: BoundTool, arguments: Any, *, lenient: bool = False) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidArguments) as caught:
        bound.validate(arguments, lenient=lenient)
    text = str(caught.value)
    assert text.startswith(f"invalid arguments for {bound.name}:\n- ")
    assert not any(word in text for word in ("pydantic", "input_value", "<class", "dict", "NoneType", "Traceback"))
    return [(p.path, p.expected, p.found) for p in caught.value.problems]


def add(a: int, b: int) -> int:
    return a + b


ADD = ToolRegistry(add).tools["add"]


def test_the_message_names_each_field_what_was_expected_and_what_came() -> None:
    with pytest.raises(InvalidArguments) as caught:
        ADD.validate({"a": "x", "c": 1}, lenient=False)
    assert str(caught.value) == (
        "invalid arguments for add:\n"
        '- /a: expected integer, found string "x"\n'
        "- /b: expected integer, found nothing: it is required\n"
        '- /c: expected one of the names "a", "b", found the unknown name "c"'
    )


def test_problems_can_be_read_by_a_program_and_pickled() -> None:
    with pytest.raises(InvalidArguments) as caught:
        ADD.validate({"a": "x", "b": 2}, lenient=False)
    assert caught.value.problems == (Problem("/a", "integer", 'string "x"'),)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.tool, copy.problems, str(copy)) == ("add", caught.value.problems, str(caught.value))


STRICT_REFUSES: list[tuple[Any, Any, tuple[str, str, str]]] = [
    (int, "5", ("/x", "integer", 'string "5"')),
    (int, 5.5, ("/x", "integer", "number 5.5")),
    (int, True, ("/x", "integer", "boolean true")),
    (float, "1.5", ("/x", "number", 'string "1.5"')),
    (float, math.nan, ("/x", "number: a finite number", "number NaN")),
    (bool, 1, ("/x", "boolean", "integer 1")),
    (bool, "true", ("/x", "boolean", 'string "true"')),
    (str, 7, ("/x", "string", "integer 7")),
    (str, None, ("/x", "string", "null")),
    (str, ["a"], ("/x", "string", "array of 1 item")),
    (str, {"a": 1, "b": 2}, ("/x", "string", "object with a, b")),
    (int | None, "5", ("/x", "integer or null", 'string "5"')),
    (list[int], "1, 2", ("/x", "array of integer", 'string "1, 2"')),
    (list[int], [1, "b", 3], ("/x/1", "integer", 'string "b"')),
    (dict[str, int], {"a": "b"}, ("/x/a", "integer", 'string "b"')),
    (dict[str, int], {"a/b~": None}, ("/x/a~1b~0", "integer", "null")),
    (tuple[int, str], [1], ("/x/1", "string", "nothing: it is required")),
    (tuple[int, str], "a", ("/x", "array of [integer, string]", 'string "a"')),
    (set[str], {}, ("/x", "array of string (no duplicate items)", "empty object")),
    (Color, "green", ("/x", 'one of "red", "blue"', 'string "green"')),
    (Literal["a", 1], 2, ("/x", 'one of "a", 1', "integer 2")),
    (dt.datetime, "soon", ("/x", "string (date-time, such as 2025-01-31T12:00:00Z)", 'string "soon"')),
    (Annotated[int, Field(ge=1, lt=9)], 9, ("/x", "integer (>= 1, < 9)", "integer 9")),
    (Annotated[str, Field(pattern="^a")], "b", ("/x", "string (matching ^a)", 'string "b"')),
    (Annotated[str, Field(min_length=2)], "b", ("/x", "string (at least 2 characters)", 'string "b"')),
    (Annotated[list, Field(max_length=1)], [1, 2], ("/x", "array (at most 1 items)", "array of 2 items")),
    (Annotated[int, AfterValidator(even)], 3, ("/x", "a valid value", "integer 3: must be even")),
    (Point, {"x": "1"}, ("/x/x", "integer", 'string "1"')),
    (Point, {}, ("/x/x", "integer", "nothing: it is required")),
    (Point, "(1, 2)", ("/x", "object with x, y", 'string "(1, 2)"')),
    (Point, {"x": 1, "z": 2}, ("/x/z", 'one of the names "x", "y"', 'the unknown name "z"')),
    (list[Point], [{"x": 1}, {"y": 1}], ("/x/1/x", "integer", "nothing: it is required")),
    (Pair, [1, 2], ("/x/1", "string", "integer 2")),
    (Order, {"item": "tea", "count": 0}, ("/x/count", "integer (>= 1)", "integer 0")),
    (Order, {"item": "tea", "notes": [1]}, ("/x/notes/0", "string", "integer 1")),
    (Point | str, {"x": "a"}, ("/x/x", "integer", 'string "a"')),
    (Point | Circle, {"center": {"x": "a"}, "radius": 1}, ("/x/center/x", "integer", 'string "a"')),
    (int | str, [], ("/x", "integer or string", "array of 0 items")),
    (int, "a" * 100, ("/x", "integer", f'string "{"a" * 80}"… (100 characters)')),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "sent", "problem"), STRICT_REFUSES, ids=lambda v: str(v)[:30])
def test_what_strict_refuses_and_how_it_says_so(hint: Any, sent: Any, problem: tuple[str, str, str]) -> None:
    assert problems(tool(hint), {"x": sent}) == [problem]


STRICT_TAKES: list[tuple[Any, Any, Any]] = [
    (float, 5, 5.0),
    (int, 5.0, 5),  # JSON Schema does not tell 5.0 from 5
    (list[int], [1.0, 2], [1, 2]),
    (dict[str, int], {"a": 1.0}, {"a": 1}),
    (tuple[int, float], [1.0, 2.0], (1, 2.0)),
    (Point | None, {"x": 1.0}, Point(1)),
    (tuple[int, ...], [1], (1,)),
    (set[int], [1, 1], {1}),
    (str, "007", "007"),
    (str, "true", "true"),
    (str, '{"a": 1}', '{"a": 1}'),
    (str, " \n", " \n"),
    (int | str, "5", "5"),
    (int, 10**30, 10**30),
]


@pytest.mark.parametrize(("hint", "sent", "got"), STRICT_TAKES, ids=lambda v: str(v)[:30])
def test_what_strict_takes(hint: Any, sent: Any, got: Any) -> None:
    taken = tool(hint).validate({"x": sent}, lenient=False)["x"]
    assert (taken, type(taken)) == (got, type(got))


LENIENT: list[tuple[Any, Any, Any]] = [
    (int, "5", 5),
    (int, " 5 ", 5),
    (float, "1.5", 1.5),
    (bool, "true", True),
    (bool, "False", False),
    (int | None, "null", None),
    (int | None, "5", 5),
    (list[int], "1, 2", [1, 2]),
    (list[int], "[1, 2]", [1, 2]),
    (list[str], "a,b", ["a", "b"]),
    (list[int], ["1", 2], [1, 2]),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (Point, '{"x": 1}', Point(1)),
    (list[Point], '[{"x": 1}]', [Point(1)]),
    (Color, "red", Color.RED),
    (Literal[1, 2], "2", 2),
    (dt.date, "2025-01-31", dt.date(2025, 1, 31)),
    # a declared string is never changed
    (str, "5", "5"),
    (str, " 007 ", " 007 "),
    (str, "null", "null"),
    (str, "[1, 2]", "[1, 2]"),
    (str | None, "null", "null"),
    (int | str, "5", "5"),
    (list[str] | str, "a,b", "a,b"),
]


@pytest.mark.parametrize(("hint", "sent", "got"), LENIENT, ids=lambda v: str(v)[:30])
def test_lenient_reads_text_as_the_declared_type(hint: Any, sent: Any, got: Any) -> None:
    assert tool(hint).validate({"x": sent}, lenient=True) == {"x": got}


@pytest.mark.parametrize(
    ("hint", "sent", "problem"),
    [
        (int, "x", ("/x", "integer", 'string "x"')),
        (str, 5, ("/x", "string", "integer 5")),
        (str, True, ("/x", "string", "boolean true")),
        (list[int], "1, b", ("/x/1", "integer", 'string "b"')),
        (list[str], "None", ("/x", "array of string", 'string "None"')),
        (list[str], ",a", ("/x", "array of string", 'string ",a"')),
        (list[str], " , a", ("/x", "array of string", 'string " , a"')),
        (int, "0644", ("/x", "integer without leading zeros", 'string "0644"')),
        (int, "-010", ("/x", "integer without leading zeros", 'string "-010"')),
        (int, "0_1", ("/x", "integer without leading zeros", 'string "0_1"')),
        (float, "0644", ("/x", "number without leading zeros", 'string "0644"')),
        (int | None, "0644", ("/x", "integer or null without leading zeros", 'string "0644"')),
        (list[int], "1, 010", ("/x/1", "integer without leading zeros", 'string "010"')),
        (list[int], '["010"]', ("/x/0", "integer without leading zeros", 'string "010"')),
        (dict[str, int], '{"a": "010"}', ("/x/a", "integer without leading zeros", 'string "010"')),
        (Point, '{"x": "010", "y": 1}', ("/x/x", "integer without leading zeros", 'string "010"')),
        (Color, "green", ("/x", 'one of "red", "blue"', 'string "green"')),
        (Point, '{"x"', ("/x", "object with x, y", 'string "{\\"x\\""')),
    ],
)
def test_what_lenient_still_refuses(hint: Any, sent: Any, problem: tuple[str, str, str]) -> None:
    assert problems(tool(hint), {"x": sent}, lenient=True) == [problem]


def test_the_nearest_name_is_suggested() -> None:
    def edit(path: str, old_text: str = "") -> None: ...

    bound = ToolRegistry(edit).tools["edit"]
    assert problems(bound, {"path": "a", "oldtext": "b"}) == [
        ("/oldtext", 'one of the names "path", "old_text" (did you mean "old_text"?)', 'the unknown name "oldtext"')
    ]


def test_a_tool_without_parameters_says_so() -> None:
    def ping() -> str:
        return "pong"

    assert problems(ToolRegistry(ping).tools["ping"], {"x": 1}) == [("/x", "no names", 'the unknown name "x"')]


def test_null_for_an_optional_parameter_is_left_out_where_it_is_no_value() -> None:
    """OpenAI's strict mode makes a model send null for every optional parameter that it leaves out."""

    def search(query: str, limit: int = 5, order: Order | None = None) -> None: ...

    bound = ToolRegistry(search).tools["search"]
    assert bound.validate({"query": "a", "limit": None, "order": None}, lenient=False) == {"query": "a", "order": None}
    assert bound.validate({"query": "a", "order": {"item": "tea", "count": None}}, lenient=False) == {
        "query": "a",
        "order": Order(item="tea"),
    }
    assert problems(bound, {"query": None}) == [("/query", "string", "null")]


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert tool(str).validate({"x": "a\ud800b"}, lenient=False) == {"x": "a\ufffdb"}


def test_what_is_no_json_is_refused_not_raised() -> None:
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    cyclic: list[Any] = []
    cyclic.append(cyclic)

    assert problems(tool(Any), {"x": deep})[0][0] == ""
    assert problems(tool(Any), {"x": cyclic})[0][0] == ""
    assert problems(tool(int), {"x": object()})[0][1] == "JSON values"
    assert problems(tool(int), [1]) == [("", "object", "array of 1 item")]


def test_a_hostile_call_costs_a_bounded_message() -> None:
    long, many = "x" * 100_000, {f"n{i}": 1 for i in range(1_000)}
    with pytest.raises(InvalidArguments) as caught:
        tool(list[int]).validate({"x": ["a"] * 10_000, long: long, **many}, lenient=False)
    assert len(caught.value.problems) <= 200
    assert len(str(caught.value)) < 10_000


def test_many_problems_are_counted() -> None:
    with pytest.raises(InvalidArguments) as caught:
        tool(list[int]).validate({"x": ["a"] * 50}, lenient=False)
    assert len(caught.value.problems) == 50
    assert str(caught.value).endswith('- /x/19: expected integer, found string "a"\n- and 30 more')


HAND_WRITTEN = {
    "type": "object",
    "properties": {
        "q": {"type": "string", "minLength": 2},
        "n": {"type": "integer", "default": 3, "maximum": 9},
        "where": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    },
    "required": ["q", "where"],
}


def hand_written() -> BoundTool:
    @openapi_schema(HAND_WRITTEN)
    def search(q, where: Point, n: int = 3):  # type: ignore[no-untyped-def]
        return q

    return ToolRegistry(search).tools["search"]


def test_a_hand_written_schema_is_what_the_model_sees() -> None:
    assert hand_written().spec.parameters == HAND_WRITTEN


def test_a_hand_written_schema_and_the_signature_both_hold() -> None:
    bound = hand_written()
    assert bound.validate({"q": "ab", "where": {"x": 1}}, lenient=False) == {"q": "ab", "where": Point(1)}
    assert problems(bound, {"q": "a", "n": 10, "where": {"x": "1"}, "z": 1}) == [
        ("/q", "string (at least 2 characters)", 'string "a"'),
        ("/n", "integer (<= 9)", "integer 10"),
        ("/where/x", "integer", 'string "1"'),
        ("/z", 'one of the names "q", "n", "where"', 'the unknown name "z"'),
    ]
    assert problems(bound, {"where": {}}) == [
        ("/where/x", "integer", "nothing: it is required"),
        ("/q", "string (at least 2 characters)", "nothing: it is required"),
    ]


def test_null_passes_where_a_hand_written_schema_says_nullable() -> None:
    """As OpenAPI 3.0 says it; grammars and formats write such a null, so it must be valid."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "nullable": True}}, "required": ["x"]}

    @openapi_schema(schema)
    def f(x: str | None) -> str | None:
        return x

    bound = ToolRegistry().register_function(f)
    assert bound.validate({"x": None}, lenient=False) == {"x": None}
    assert [path for path, _, _ in problems(bound, {"x": 5})] == ["/x"]


def test_lenient_reads_text_by_the_hand_written_schema() -> None:
    assert hand_written().validate({"q": "12", "n": "5", "where": '{"x": 1}'}, lenient=True) == {
        "q": "12",
        "n": 5,
        "where": Point(1),
    }


def test_other_keywords_of_a_hand_written_schema_are_told_in_their_own_words() -> None:
    @openapi_schema(parameters={"x": {"type": "array", "uniqueItems": True, "contains": {"type": "integer"}}})
    def f(x: list[Any]) -> None: ...

    bound = ToolRegistry(f).tools["f"]
    assert problems(bound, {"x": [1, 1]}) == [("/x", "array (no duplicate items)", "array of 2 items")]
    assert problems(bound, {"x": ["a"]}) == [
        ("/x", "that ['a'] does not contain items matching the given schema", "array of 1 item")
    ]


def test_a_schema_written_for_strict_mode_may_require_what_has_a_default() -> None:
    @openapi_schema(
        {
            "name": "f",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": ["integer", "null"]}},
                "required": ["a"],
                "additionalProperties": False,
            },
        }
    )
    def f(a: int | None = None) -> None: ...

    assert ToolRegistry(f).tools["f"].validate({"a": None}, lenient=False) == {"a": None}


def everything(
    i: int,
    s: str,
    n: float = 0.5,
    b: bool = False,
    items: list[int] = [],
    point: Point | None = None,
    color: Color = Color.RED,
) -> None: ...


EVERYTHING = ToolRegistry(everything).tools["everything"]
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["red", "blue", "x", ""])
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "z"]), inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.fixed_dictionaries(
    {"i": st.integers() | JSON_VALUES, "s": st.text(st.characters(exclude_categories=("Cs",))) | JSON_VALUES},
    optional=dict.fromkeys(["n", "b", "items", "point", "color", "other"], JSON_VALUES),
)


def accepted(arguments: dict[str, Any], *, lenient: bool) -> bool:
    try:
        EVERYTHING.validate(arguments, lenient=lenient)
    except InvalidArguments:
        return False
    return True


@given(ARGUMENTS)
def test_strict_accepts_exactly_what_the_schema_allows(arguments: dict[str, Any]) -> None:
    """Save for null where it can only mean "left out"."""
    schema = Draft202012Validator(EVERYTHING.spec.parameters)
    said = {k: v for k, v in arguments.items() if v is not None or k in ("i", "s", "point", "other")}
    point = said.get("point")
    if isinstance(point, dict):
        said["point"] = {k: v for k, v in point.items() if v is not None or k != "y"}
    assert accepted(arguments, lenient=False) == schema.is_valid(said)


@given(ARGUMENTS)
def test_lenient_accepts_whatever_strict_does_and_reads_it_alike(arguments: dict[str, Any]) -> None:
    if accepted(arguments, lenient=False):
        assert EVERYTHING.validate(arguments, lenient=True) == EVERYTHING.validate(arguments, lenient=False)


STRING = tool(str)


@given(st.text(st.characters(exclude_categories=("Cs",))), st.booleans())
def test_a_string_parameter_receives_exactly_the_characters_written(text: str, lenient: bool) -> None:
    assert STRING.validate({"x": text}, lenient=lenient) == {"x": text}
