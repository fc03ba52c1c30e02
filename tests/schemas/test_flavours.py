"""One tool as each provider writes it, and what OpenAI's strict mode loses."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from agentkit.schemas.dialects import ANTHROPIC, KEPT, OPENAI, STRING_FORMATS, Dialect
from agentkit.schemas.schema_rewriter import constrained_schema, strict_schema
from agentkit.tool.declare import anthropic, mcp, openai_chat, openai_responses, openai_strict
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import Output
from agentkit.toolspec import ToolSpec

# ruff: noqa: ANN001, ANN202 (parameters that get their hint below)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Node:
    value: int
    children: list[Node] = field(default_factory=list)
    label: str = "-"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


(ADD,) = ToolRegistry(add).specs()
PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}},
    "required": ["a"],
    "additionalProperties": False,
}
STRICT_PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
ABOUT = {"name": "add", "description": "Add two numbers."}


def test_each_provider_writes_a_tool_in_its_own_way() -> None:
    assert openai_chat(ADD) == {"type": "function", "function": {**ABOUT, "parameters": PARAMETERS}}
    assert openai_responses(ADD) == {"type": "function", **ABOUT, "parameters": PARAMETERS, "strict": False}
    assert anthropic(ADD) == {**ABOUT, "input_schema": PARAMETERS}
    assert mcp(ADD) == {**ABOUT, "inputSchema": PARAMETERS}


def test_strict_requires_everything_and_reports_what_it_lost() -> None:
    strict = {"type": "function", "function": {**ABOUT, "strict": True, "parameters": STRICT_PARAMETERS}}
    assert openai_strict(ADD) == (strict, ("/b: default 1 was removed; the model sends null to omit it",))
    assert openai_chat(ADD, strict=True) == strict
    assert openai_responses(ADD, strict=True) == {
        "type": "function",
        **ABOUT,
        "strict": True,
        "parameters": STRICT_PARAMETERS,
    }


def test_the_registry_writes_all_its_tools_in_a_flavour() -> None:
    def ping() -> str:
        return "pong"

    registry = ToolRegistry(add, ping)
    assert [s["function"]["name"] for s in registry.get_openapi_schemas()] == ["add", "ping"]
    assert registry.get_openapi_schemas("anthropic", ["add"]) == [anthropic(ADD)]
    assert registry.get_openapi_schemas("strict", ["add"]) == [openai_strict(ADD)[0]]
    assert registry.strict_report() == {"add": openai_strict(ADD)[1]}


def strict(hint: Any, *default: Any) -> tuple[Any, list[str]]:
    """A parameter of one type in strict mode, and the report."""

    def f(x):  # type: ignore[no-untyped-def]
        return x

    f.__annotations__ = {"x": hint}
    f.__defaults__ = default or None
    function, report = openai_strict(ToolRegistry(f).specs()[0])
    parameters = function["function"]["parameters"]
    assert list(broken_rules(parameters)) == []
    return parameters["properties"]["x"], list(report)


NULL = {"type": "null"}
ANY = {"type": ["string", "number", "boolean", "null"]}


def no_default(default: str, path: str = "/x") -> list[str]:
    return [f"{path}: default {default} was removed; the model sends null to omit it"]


@pytest.mark.parametrize(
    ("hint", "default", "schema", "report"),
    [
        (int, (), {"type": "integer"}, []),
        (str | None, (None,), {"anyOf": [{"type": "string"}, NULL]}, no_default("null")),
        (Literal["a"], ("a",), {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}, no_default('"a"')),
        (Literal["a", 1], (), {"type": ["integer", "string"], "enum": ["a", 1]}, []),
        (Color, (), {"$ref": "#/$defs/Color"}, []),
        (Color, (Color.RED,), {"anyOf": [{"$ref": "#/$defs/Color"}, NULL]}, no_default('"red"')),
        (Annotated[Color, "which"], (), {"anyOf": [{"$ref": "#/$defs/Color"}], "description": "which"}, []),
        (list[int], (), {"type": "array", "items": {"type": "integer"}}, []),
        (dt.date, (), {"type": "string", "format": "date"}, []),
        (
            bytes,
            (),
            {"type": "string", "description": 'Must satisfy {"format": "binary"}'},
            ["/x: format 'binary' was removed"],
        ),
        (
            Annotated[str, Field(max_length=3, description="A code.")],
            (),
            {"type": "string", "description": 'A code. Must satisfy {"maxLength": 3}'},
            ["/x: maxLength 3 was removed"],
        ),
        (Annotated[int, Field(ge=3)], (), {"type": "integer", "minimum": 3}, []),
        (
            set[int],
            (),
            {"type": "array", "description": 'Must satisfy {"uniqueItems": true}', "items": {"type": "integer"}},
            ["/x: uniqueItems true was removed"],
        ),
        (
            tuple[int, str],
            (),
            {
                "type": "array",
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "minItems": 2,
                "maxItems": 2,
            },
            ["/x: a tuple became an array whose items may be in any position"],
        ),
        (
            dict[str, int],
            (),
            {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
            ["/x: an object with keys of the model's choice; strict mode knows only declared properties"],
        ),
        (Any, (), ANY, ["/x: a value of any kind became a string, number, boolean or null"]),
        (
            list,
            (),
            {"type": "array", "items": ANY},
            ["/x/*: a value of any kind became a string, number, boolean or null"],
        ),
        (
            Annotated[Cat | Dog, Field(discriminator="kind")],
            (),
            {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
            no_default("9", "/$defs/Cat/lives"),
        ),
    ],
    ids=lambda v: str(v)[:30],
)  # fmt: skip
def test_strict_mode_by_type(hint: Any, default: tuple[Any, ...], schema: Any, report: list[str]) -> None:
    assert strict(hint, *default) == (schema, report)


def test_nested_types_are_closed_too() -> None:
    _, report = strict(Node)
    assert report == [
        "/$defs/Node/children: it is optional; the model sends null to omit it",
        '/$defs/Node/label: default "-" was removed; the model sends null to omit it',
    ]


def test_a_null_for_what_strict_mode_made_nullable_is_taken_back() -> None:
    def plant(node: Node, depth: int = 3) -> None: ...

    bound = ToolRegistry(plant).tools["plant"]
    sent = {"node": {"value": 1, "children": None, "label": None}, "depth": None}
    Draft202012Validator(openai_strict(bound.spec)[0]["function"]["parameters"]).validate(sent)
    assert bound.validate(sent, lenient=False) == {"node": Node(1)}


@pytest.mark.parametrize(
    ("schema", "lost"),
    [
        ({"x": {"allOf": [{"type": "integer"}, {"minimum": 1}]}}, ["/x: allOf was merged into one schema"] * 2),
        ({"x": {"type": "object", "patternProperties": {"a": {}}}}, None),
        ({"x": {"not": {"type": "string"}}}, None),
        ({"x": {"if": {}, "then": {}, "type": "string"}}, ["/x: if {} was removed", "/x: then {} was removed"]),
        ({"x": True}, None),
        ({"x": {"properties": {"y": {"const": 1}}}}, ["/x/y: it is optional; the model sends null to omit it"]),
    ],
)
def test_hand_written_schemas_are_rewritten_too(schema: Any, lost: list[str] | None) -> None:
    spec = ToolSpec("f", "", {"type": "object", "properties": schema, "required": ["x"]})
    function, report = openai_strict(spec)
    assert list(broken_rules(function["function"]["parameters"])) == []
    assert report if lost is None else list(report) == lost


def test_alternatives_at_the_root_are_lost() -> None:
    out, report = strict_schema({"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]})
    assert out == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert '/: anyOf [{"required": ["a"]}] was removed' in report


def test_a_schema_deeper_than_strict_mode_allows_is_reported() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    assert [line.partition(": ")[2] for line in strict_schema(schema)[1]] == [
        "nested deeper than the 10 levels of strict mode"
    ]


def broken_rules(schema: Any, path: str = "") -> Iterator[str]:
    """Where a schema breaks a rule of strict mode."""
    if not isinstance(schema, Mapping) or schema.keys() - KEPT:
        yield f"{path}: {schema}"
        return
    if not schema.keys() & {"type", "anyOf", "$ref"}:
        yield f"{path}: no type"
    if "$ref" in schema and len(schema) > 1:
        yield f"{path}: beside $ref"
    if schema.get("format", "date") not in STRING_FORMATS:
        yield f"{path}: format"
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    names = list(schema.get("properties", ()))
    if "object" in kinds and (schema.get("additionalProperties") is not False or schema.get("required") != names):
        yield f"{path}: open object"
    if "array" in kinds and "items" not in schema:
        yield f"{path}: no items"
    for name, inner in {**schema.get("properties", {}), **schema.get("$defs", {})}.items():
        yield from broken_rules(inner, f"{path}/{name}")
    for inner in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]:
        yield from broken_rules(inner, f"{path}/*")


LEAVES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 1, "default": 3},
        {"type": ["string", "null"]},
        {"enum": ["a", None]},
        {"const": 5},
        {"type": "string", "format": "uri", "minLength": 1, "title": "T"},
        {"$ref": "#/$defs/D", "description": "d"},
        {},
        {"type": "boolean", "description": "b"},
    ]
)
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner, "uniqueItems": st.just(True)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}, optional={"default": st.none()}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2), "description": st.just("d")}),
        st.fixed_dictionaries({"type": st.just("array"), "prefixItems": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)},
            optional={"required": st.just(["a"]), "additionalProperties": inner | st.booleans()},
        ),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("xyz"), SCHEMAS, max_size=3), SCHEMAS)
def test_any_schema_comes_out_within_the_rules(properties: dict[str, Any], definition: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": properties, "required": ["x"], "$defs": {"D": definition}}
    out, report = strict_schema(schema)
    assert list(broken_rules(out)) == []
    Draft202012Validator.check_schema(out)
    assert all(line.startswith("/") for line in report)


# ---------------------------------------------------------------- what the final reply must be


class Kind(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Leaf(BaseModel):
    kind: Kind
    size: Annotated[int, Field(gt=0, description="In metres.")] | None = None
    tags: Annotated[list[str], Field(max_length=3)] = []


class Tree(BaseModel):
    leaves: dict[Literal["left", "right"], Leaf] | None = None
    inner: list[Tree] = []


class Branch(BaseModel):
    leaves: tuple[Leaf, Leaf]
    either: Leaf | str | float
    when: dt.date


class Chain(BaseModel):
    next: Chain | None = None


LEAF = Leaf(kind=Kind.GOOD, size=3, tags=["a"])
BRANCH = Branch(leaves=(LEAF, Leaf(kind=Kind.BAD)), either=0.5, when=dt.date(2025, 1, 31))


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("value", [LEAF, BRANCH, BRANCH.model_copy(update={"either": "x"})])
def test_what_a_type_allows_can_still_be_said(value: BaseModel, dialect: Dialect) -> None:
    schema = constrained_schema(Output(type(value)).schema.schema, dialect)
    assert schema is not None
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(value.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("wanted", "dialects"),
    [
        (Leaf, {OPENAI, ANTHROPIC}),
        (list[Leaf], {OPENAI, ANTHROPIC}),
        (Leaf | Branch | None, {OPENAI, ANTHROPIC}),
        (Tree, set()),  # its keys are the model's choice as far as strict mode can tell
        (list[dict[str, int]], set()),
        (Any, set()),
        (Chain, {OPENAI}),
    ],
)
def test_a_dialect_refuses_what_it_cannot_say(wanted: Any, dialects: set[Dialect]) -> None:
    schema = Output(wanted).schema.schema
    assert {d for d in (OPENAI, ANTHROPIC) if constrained_schema(schema, d) is not None} == dialects


@pytest.mark.parametrize("wanted", [Branch, Leaf, list[Leaf], Leaf | Branch | None])
def test_anthropics_own_rewriting_finds_nothing_to_do(wanted: Any) -> None:
    from anthropic import transform_schema

    schema = constrained_schema(Output(wanted).schema.schema, ANTHROPIC)
    assert schema is not None
    assert without_types_beside_enums(transform_schema(schema)) == without_types_beside_enums(schema)


def without_types_beside_enums(schema: Any) -> Any:
    """Both ways to write an enum are allowed."""
    if isinstance(schema, list):
        return [without_types_beside_enums(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: without_types_beside_enums(v) for k, v in schema.items() if k != "type" or "enum" not in schema}


def _of_enums(*sizes: int, length: int = 3) -> dict[str, Any]:
    values = [[f"{n:0{length}}" for n in range(size)] for size in sizes]
    return {"type": "object", "properties": {f"p{i}": {"enum": v} for i, v in enumerate(values)}, "required": []}


def _nested(levels: int) -> dict[str, Any]:
    """A schema of so many levels, each behind a reference."""
    definitions: dict[str, Any] = {"D1": {"type": "string"}}
    for n in range(2, levels):
        definitions[f"D{n}"] = {"type": "object", "properties": {"x": {"$ref": f"#/$defs/D{n - 1}"}}}
    return {"type": "object", "properties": {"x": {"$ref": f"#/$defs/D{levels - 1}"}}, "$defs": definitions}


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        (_of_enums(500, 500), _of_enums(500, 501)),
        (_of_enums(300, length=50), _of_enums(300, length=51)),
        (_of_enums(250, length=400), _of_enums(251, length=400)),
        (_of_enums(200, 200, 199, length=200), _of_enums(200, 200, 200, length=200)),
        (_nested(10), _nested(11)),
    ],
    ids=["values", "characters of a long enum", "long enums only", "all characters", "levels through references"],
)
def test_a_schema_beyond_the_bounds_of_strict_mode_is_not_strict(within: Any, beyond: Any) -> None:
    assert constrained_schema(within, OPENAI) is not None
    assert constrained_schema(beyond, OPENAI) is None
    assert strict_schema(beyond)[1][-1].startswith("/: ")  # the report says so
