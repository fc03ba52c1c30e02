"""Text as the value that a schema wants: literal in, literal out. What cannot be read stays text, for validation."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit.schemas.typed import values

STRINGS = {"type": "array", "items": {"type": "string"}}
LISTED = {"type": "string", "enum": ["True", "False", "7"]}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (",a", STRINGS, ",a"),
        (", a", STRINGS, ", a"),
        ("a, None", STRINGS, ["a", "None"]),
        ("None", STRINGS, "None"),
        ("NULL", STRINGS, "NULL"),
        (r"['\x41\a', 'C:\\app']", STRINGS, ["A\a", r"C:\app"]),
        ("0x1F", {"type": "integer"}, 31),
        ("1_000", {"type": "integer"}, 1000),
        ("1_000.5", {"type": "number"}, 1000.5),
        ("0o644", {"type": "integer"}, 420),
        ("0x1F * 2", {"type": "integer"}, "0x1F * 2"),
        ("{'x': 1}", {}, {"x": 1}),
        ("(1, 'a')", {}, [1, "a"]),
        ("None", {}, None),
        ("'a'", {}, "a"),
        ("0x1F", {}, "0x1F"),
        ("1_000", {}, "1_000"),
        ("(see below)", {}, "(see below)"),
        ("'tis", {}, "'tis"),
        ("null", {"type": "number"}, None),
        ("null", {"type": "array"}, None),
        ('"x"', {"type": "array"}, "x"),
        ('{"a": 1}', {"type": "integer"}, {"a": 1}),
        ("true", {"type": "integer"}, "true"),
        ("1", {"type": "boolean"}, "1"),
        ("false", LISTED, False),
        ("7", LISTED, "7"),
        ("null", LISTED, "null"),
        ("maybe", LISTED, "maybe"),
        ("true", {"type": "string"}, "true"),
    ],
)
def test_text_is_read_as_json_a_python_literal_or_items(text: str, schema: dict[str, Any], value: Any) -> None:
    """A number is never taken for a boolean; JSON of a type that the schema does not allow is that value."""
    got = values.read(text, schema, {})
    assert (type(got), got) == (type(value), value)
