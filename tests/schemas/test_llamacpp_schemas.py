"""Keywords that llama.cpp's converter refuses in a schema, and the schema without them."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit.schemas.llamacpp import Refusal, convertible


def in_object(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


SOUND = [
    {"type": "string", "pattern": "^[a-z]+$", "format": "hostname", "description": "A name."},
    {"type": "integer", "minimum": 0, "multipleOf": 2, "default": 4},
    {"type": ["string", "null"], "maxLength": 2000},
    {"anyOf": [{"type": "number"}, {"const": None}]},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": {"enum": [1]}},
    {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
]
RENEWED = [
    ({"pattern": r"^\d$"}, {"pattern": "^[0-9]$"}, [("pattern", r"^\d$ has \d", False)]),
    (
        {"type": "string", "pattern": "^(?!a)b$", "description": "A b."},
        {"type": "string", "description": 'A b. Must satisfy {"pattern": "^(?!a)b$"}'},
        [("pattern", "^(?!a)b$ has a lookaround or a flag", True)],
    ),
    (
        {"type": "string", "minLength": 2001},
        {"type": "string", "description": 'Must satisfy {"minLength": 2001}'},
        [("minLength", "2001 is not a count of at most 2,000", True)],
    ),
    ({"type": "any"}, {}, [("type", '"any" is not one of JSON\'s types, or several', True)]),
    ({"$ref": "https://e.org/s"}, {}, [("$ref", "'https://e.org/s' leads nowhere in this schema", True)]),
    ({"enum": []}, {}, [("enum", "[] is not a list of at least one", True)]),
    (
        {"type": "array", "items": True},
        {"type": "array", "items": {}},
        [("items", "a schema that is true", False)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("schema", SOUND, ids=str)
def test_what_is_accepted_or_ignored_stays(schema: dict[str, Any]) -> None:
    assert convertible(in_object(schema)) == (in_object(schema), ())


@pytest.mark.parametrize(("schema", "without", "refused"), RENEWED, ids=str)
def test_what_is_refused_is_said_otherwise_or_omitted(
    schema: dict[str, Any], without: dict[str, Any], refused: list[tuple[str, str, bool]]
) -> None:
    found, refusals = convertible(in_object(schema))
    assert found == in_object(without)
    assert refusals == tuple(Refusal(("properties", "x", key), why, lost) for key, why, lost in refused)


def test_every_place_where_a_schema_stands_is_looked_at() -> None:
    digit = {"pattern": r"^\d$"}
    whole = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "null"}, digit]}, "b": {"items": {"$ref": "#/$defs/D"}}},
        "additionalProperties": digit,
        "$defs": {"D": digit},
    }
    assert [".".join(refusal.path) for refusal in convertible(whole)[1]] == [
        "properties.a.anyOf.1.pattern",
        "additionalProperties.pattern",
        "$defs.D.pattern",
    ]
