"""Tools as functions with type hints: any schema has them, and transformers, by which TRL reads them, can."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentkit import ToolRegistry, openapi_schema
from agentkit.interop.callables import function_like
from agentkit.interop.peers import TRL, parameters_for
from agentkit.toolspec import ToolSpec

transformers_utils = pytest.importorskip(
    "transformers.utils", reason="transformers is not installed: agentkit-calls[dev]"
)

Names = list[str]
HINTS = (
    list, list[Any], list[list[Any]], list[str] | int, tuple[str, int], Any, Any | None, str | list[UUID],
    dict[str, int] | list[int], list[tuple[int, str] | str], Names | None, Names | float, set[date],
    dict[str, list[Any]], Literal["a", 1, None], list[Literal[1, 2]] | Literal["x"],
)  # fmt: skip
DEFS = {"P": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}, "L": {"type": "array"}}

leaves = st.sampled_from(
    [
        {"type": "string"}, {"type": "integer", "minimum": 1}, {"type": "number"}, {"type": "boolean"},
        {"type": "null"}, {"type": "object"}, {"type": "array"}, {"type": ["array", "string"]}, {},
        {"type": ["array", "null"]},
        {"description": "Any."}, {"not": {"type": "string"}}, {"$ref": "#/$defs/P"}, {"$ref": "#/$defs/L"},
        {"enum": ["x", "y"]}, {"enum": [1, "x", None]}, {"enum": [["a"], {"b": 1}]}, {"enum": [["a"]]},
        {"const": {"b": 1}},
        {"type": "array", "prefixItems": [{"type": "string"}]}, {"type": "string", "enum": []}, {"enum": [1.5, True]},
    ]
)  # fmt: skip
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda items: {"type": ["array", "integer"], "items": items}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a, b: {"allOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"type": "object", "properties": {"p": a}}, inner),
        st.builds(lambda a: {"type": "object", "additionalProperties": a}, inner),
    ),
    max_leaves=5,
)
values = st.recursive(
    st.sampled_from([None, True, 0, 1, -2, 1.5, "", "x"]),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("pxb"), inner, max_size=2)),
    max_leaves=4,
)


def as_read(schema: Any, *, required: bool) -> dict[str, Any]:
    """What transformers makes of a tool with one parameter of this schema."""
    names = ["a"] if required else []
    spec = ToolSpec("f", "F.", {"type": "object", "properties": {"a": schema}, "required": names, "$defs": DEFS})
    return read_by_transformers(spec)


def read_by_transformers(spec: ToolSpec) -> dict[str, Any]:
    def call(**arguments: Any) -> None: ...

    parameters, _ = parameters_for(TRL, spec)
    function: dict[str, Any] = transformers_utils.get_json_schema(function_like(spec, parameters, call))
    found: dict[str, Any] = function["function"]["parameters"]
    return found


def standard(schema: Any) -> Any:
    """JSON Schema proper of what transformers writes: it says that null is allowed by `nullable`."""
    if not isinstance(schema, Mapping):
        return [standard(each) for each in schema] if isinstance(schema, list) else schema
    plain = {key: standard(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") else plain


@given(schemas, values, st.booleans())
@example({"type": ["array", "string"]}, ["a"], True)
@example({"enum": [["a"], {"b": 1}]}, ["a"], True)
@example({"type": "array"}, [[]], False)
@example({}, [], True)
def test_every_schema_has_a_hint_that_allows_what_it_allows(schema: Any, value: Any, required: bool) -> None:
    read = as_read(schema, required=required)
    assert list(read["properties"]) == ["a"]
    assert read.get("required", []) == (["a"] if required else [])
    whole = {"type": "object", "properties": {"a": schema}, "$defs": DEFS}
    if Draft202012Validator(whole).is_valid({"a": value}):
        assert Draft202012Validator(standard(read)).is_valid({"a": value}), json.dumps(read)


@pytest.mark.parametrize("hint", HINTS, ids=str)
@pytest.mark.parametrize("required", [True, False])
def test_every_type_hint_that_a_tool_may_have_becomes_one_that_trl_reads(hint: Any, required: bool) -> None:
    def tool(x: Any, y: Any = None) -> str:
        """Run."""
        return f"{x} {y}"

    tool.__annotations__["x" if required else "y"] = hint
    (spec,) = ToolRegistry(openapi_schema(tool)).offered_specs(None)
    assert list(read_by_transformers(spec)["properties"]) == ["x", "y"]


def test_values_that_a_hint_cannot_list_are_told() -> None:
    assert as_read({"enum": [["a"], {"b": 1}], "description": "What."}, required=True)["properties"]["a"] == {
        "type": ["array", "object"],
        "description": 'What. One of [["a"], {"b": 1}]',
    }
