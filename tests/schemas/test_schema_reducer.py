"""A schema in the part that another system keeps: nothing is lost, only moved to descriptions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentkit.schemas.dialects import EARLY_VERL, HINTS, VERL, Dialect
from agentkit.schemas.schema_reducer import reduced_schema, with_plain_root

ANY = ["string", "number", "boolean", "array", "object", "null"]
P: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


@pytest.mark.parametrize(
    ("schema", "folded"),
    [
        ({"type": "integer", "description": "How many."}, {"type": "integer", "description": "How many."}),
        (
            {"type": "integer", "minimum": 1, "default": 3, "description": "How many."},
            {"type": "integer", "description": 'How many. Must satisfy {"minimum": 1}. Default: 3'},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["string", "null"]}),
        ({"anyOf": [{"type": "string"}, True]}, {"type": ANY}),
        (
            {"anyOf": [{"enum": ["a", "b"]}, True], "description": "A."},
            {"type": ANY, "description": 'A. Must satisfy {"anyOf": [{"enum": ["a", "b"]}, true]}'},
        ),
        ({"anyOf": [{"type": "string"}, {"anyOf": [{"type": "integer"}, True]}]}, {"type": ANY}),
        ({"anyOf": [{"type": "string"}, False]}, {"type": "string"}),
        (
            {"oneOf": [{"type": "string"}, True]},
            {"type": ANY, "description": 'Must satisfy {"oneOf": [{"type": "string"}, true]}'},
        ),
        (
            {"oneOf": [{"type": "null"}, True]},
            {"type": ["null", *ANY[:-1]], "description": 'Must satisfy {"oneOf": [{"type": "null"}, true]}'},
        ),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"anyOf": [{"const": "a"}, {"type": "null"}]}, {"type": ["string", "null"], "enum": ["a", None]}),
        (
            {"type": "array", "items": {"$ref": "#/$defs/P"}},
            {"type": "array", "description": f"Must satisfy {json.dumps({'items': P})}"},
        ),
        (
            {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
            {
                "type": ["array", "string"],
                "description": 'Must satisfy {"anyOf": [{"type": "array", "items": {"type": "string"}}, '
                '{"type": "string"}]}',
            },
        ),
    ],
)
def test_verl_keeps_type_enum_and_description_and_reads_the_rest_there(schema: Any, folded: Any) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "$defs": {"P": P}}
    assert reduced_schema(whole, VERL)[0]["properties"]["a"] == folded


def test_hints_say_what_a_list_holds() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "minItems": 1}}}
    out, losses = reduced_schema(schema, HINTS)
    assert out["properties"]["a"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": 'Must satisfy {"minItems": 1}',
    }
    assert [str(loss) for loss in losses] == ["/a: minItems: in the description only"]


def test_early_verl_has_one_type_and_enums_of_strings() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"enum": [1, 2]}}}
    assert reduced_schema(schema, EARLY_VERL)[0]["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "integer", "description": "One of [1, 2]"},
    }


def test_a_schema_that_contains_itself_is_told_to_one_level() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    whole = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    out, losses = reduced_schema(whole, VERL)
    assert "$ref" not in json.dumps(out)
    assert "/a: it contains itself: described to one level only" in map(str, losses)


leaves = st.one_of(
    st.builds(lambda low: {"type": "integer", "minimum": low}, st.integers(-3, 3)),
    st.builds(lambda size: {"type": "string", "maxLength": size}, st.integers(0, 3)),
    st.sampled_from(
        [
            {"type": "boolean"},
            {"type": "number"},
            {"type": "null"},
            {"enum": ["x", "y"]},
            {"const": 1},
            {"$ref": "#/$defs/P"},
            {},
        ]
    ),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items, "description": "Several."}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"anyOf": [True, a]}, inner),
        st.builds(lambda a: {"oneOf": [a, True]}, inner),
        st.builds(lambda a: {"type": "object", "properties": {"p": a}, "required": ["p"]}, inner),
        st.builds(lambda a: {"allOf": [a], "default": None}, inner),
    ),
    max_leaves=6,
)
values = st.recursive(
    st.sampled_from([None, True, 0, 1, -2, 1.5, "", "x", "long text"]),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("px"), inner, max_size=2)),
    max_leaves=4,
)


@given(schemas, st.sampled_from([VERL, EARLY_VERL, HINTS]))
def test_only_what_the_dialect_knows_is_left(schema: Any, dialect: Dialect) -> None:
    def check(node: Any) -> None:
        assert node.keys() <= dialect.kept
        assert "type" in node
        if "items" in node:
            check(node["items"])

    out, _ = reduced_schema({"type": "object", "properties": {"a": schema}, "$defs": {"P": P}}, dialect)
    check(out["properties"]["a"])


@given(schemas, values, st.sampled_from([VERL, HINTS]))
def test_what_was_allowed_is_allowed(schema: Any, value: Any, dialect: Dialect) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "$defs": {"P": P}}
    out, _ = reduced_schema(whole, dialect)
    if Draft202012Validator(whole).is_valid({"a": value}):
        assert Draft202012Validator(out).is_valid({"a": value})


@given(schemas, st.sampled_from([VERL, EARLY_VERL, HINTS]))
@example({"anyOf": [{"enum": ["x", "y"]}, {"const": 1}]}, VERL)
@example({"anyOf": [{"type": "array", "items": {"type": "integer"}}] * 2}, VERL)
def test_folding_twice_is_folding_once(schema: Any, dialect: Dialect) -> None:
    once, _ = reduced_schema({"type": "object", "properties": {"a": schema}, "$defs": {"P": P}}, dialect)
    assert reduced_schema(once, dialect) == (once, ())


@given(schemas, values, st.sampled_from([VERL, HINTS]))
def test_what_the_result_allows_beyond_the_schema_is_reported(schema: Any, value: Any, dialect: Dialect) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "$defs": {"P": P}}
    out, losses = reduced_schema(whole, dialect)
    if Draft202012Validator(out).is_valid({"a": value}) and not Draft202012Validator(whole).is_valid({"a": value}):
        assert losses


def _object(*names: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": "object", "properties": {n: {"type": "string"} for n in names}, "required": list(required)}


@pytest.mark.parametrize(
    ("root", "plain"),
    [
        ({"anyOf": [_object("a", "b", required=("a", "b")), _object("a")]}, _object("a", "b")),
        ({"oneOf": [_object("a", required=("a",)), _object("a", "b", required=("a",))]},
         _object("a", "b", required=("a",))),
        ({"allOf": [_object("a", required=("a",)), _object("b", required=("b",))]},
         _object("a", "b", required=("a", "b"))),
        (_object("a") | {"not": {"required": ["a"]}}, _object("a")),
        (_object("a") | {"enum": [{"a": "x"}]}, _object("a")),
        ({"anyOf": [_object("a"), {"properties": {"b": {"$ref": "#/anyOf/0"}}}]},
         {"type": "object", "properties": {"a": {}, "b": {}}, "required": []}),
    ],
)  # fmt: skip
def test_no_alternatives_at_the_root_but_in_words(root: dict[str, Any], plain: dict[str, Any]) -> None:
    found, words = with_plain_root(root)
    lost = {k: v for k, v in root.items() if k not in ("type", "properties", "required")}
    assert found == plain
    assert words == f"The arguments must satisfy {json.dumps(lost)}"


def test_a_reference_at_the_root_is_followed() -> None:
    found, _ = with_plain_root({"$ref": "#/$defs/P", "$defs": {"P": P}})
    assert found == {**P, "$defs": {"P": P}}
