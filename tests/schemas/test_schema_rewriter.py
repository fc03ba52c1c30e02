"""A schema rewritten to a dialect: nothing in it that the dialect does not know, and nothing dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentkit.schemas.dialects import ANTHROPIC, OPENAI, SILENT, XGRAMMAR, Dialect
from agentkit.schemas.schema_rewriter import constrained_schema, engine_schema, strict_schema
from agentkit.schemas.walk import ANNOTATIONS, map_schemas

SCALARS = st.sampled_from([1, 2.5, "a", True, None])
ASIDE = {
    "title": "T", "description": "D", "pattern": "a", "minimum": 1, "multipleOf": 2, "minLength": 1, "maxItems": 3,
    "uniqueItems": True, "minProperties": 1, "not": {"type": "null"}, "nullable": True, "format": "uri",
}  # fmt: skip


def _below(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from("abc")
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner}),
        st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(names, inner, max_size=2)}),
        *(st.fixed_dictionaries({key: st.lists(inner, min_size=1, max_size=2)}) for key in ("anyOf", "oneOf")),
        st.fixed_dictionaries({"$ref": st.just("#/$defs/A")}),
    )


PLAIN = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "boolean", "null"])}),
    st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"const": SCALARS}),
)
SCHEMAS = st.recursive(
    st.builds(lambda s, keys: s | {k: ASIDE[k] for k in keys}, PLAIN, st.sets(st.sampled_from([*ASIDE]), max_size=2)),
    _below,
    max_leaves=6,
)
ROOTS = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(st.sampled_from("xy"), SCHEMAS, min_size=1),
        "$defs": st.fixed_dictionaries({"A": SCHEMAS}),
    }
)


def inside(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all schemas in it."""
    if isinstance(schema, dict):
        yield schema
        found: list[Any] = []
        for keyword, value in schema.items():
            map_schemas(keyword, value, lambda inner, _: found.append(inner))
        for inner in found:
            yield from inside(inner)


def keywords(schema: Any) -> set[str]:
    return {keyword for one in inside(schema) for keyword in one}


@given(ROOTS)
def test_an_engine_is_given_what_it_knows(schema: dict[str, Any]) -> None:
    out, losses = engine_schema(schema, XGRAMMAR)
    Draft202012Validator.check_schema(out)
    assert keywords(out) <= XGRAMMAR.kept | {"$defs", "additionalProperties"}
    used = {**schema, "$defs": schema["$defs"] if "$defs" in out else {}}
    ignored = {key for one in inside(used) for key in one if key not in XGRAMMAR.kept | ANNOTATIONS}
    assert ignored <= {loss.what for loss in losses}


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
@given(schema=ROOTS)
def test_a_provider_is_given_what_it_accepts(dialect: Dialect, schema: dict[str, Any]) -> None:
    out = constrained_schema(schema, dialect)
    if out is None:
        return
    Draft202012Validator.check_schema(out)
    assert keywords(out) <= dialect.kept
    assert all(one["additionalProperties"] is False for one in inside(out) if "properties" in one)


@given(ROOTS)
def test_strict_mode_reports_each_keyword_that_it_loses(schema: dict[str, Any]) -> None:
    _, report = strict_schema(schema)
    told = {"const", "oneOf", "default"}  # said otherwise: as enum, as anyOf, as a description
    lost = {key for one in inside(schema) for key in one if key not in OPENAI.kept | SILENT | told}
    assert all(any(f": {key} " in line for line in report) for key in lost)


@pytest.mark.parametrize(
    ("schema", "out", "losses"),
    [
        (
            {"properties": {"a": {"$ref": "#/definitions/N"}}, "definitions": {"N": {"type": "integer", "not": {}}}},
            {
                "properties": {"a": {"$ref": "#/$defs/d0"}},
                "type": "object",
                "additionalProperties": False,
                "$defs": {"d0": {"type": "integer"}},
            },
            ["/a: not"],
        ),
        (
            {"type": "array", "items": {"type": "string", "nullable": True, "format": "zip"}},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            ["/[]: format"],
        ),
    ],
)
def test_for_an_engine(schema: dict[str, Any], out: dict[str, Any], losses: list[str]) -> None:
    found, lost = engine_schema(schema, XGRAMMAR)
    assert (found, [str(loss) for loss in lost]) == (out, losses)
