"""The traversal of a JSON Schema, which is defined in one place."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from agentkit.schemas import walk

PACKAGE = Path(walk.__file__).parents[1]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, "boolean"), (1, "integer"), (1.0, "number"), ("", "string"), ([], "array"), ({}, "object"), (None, "null")],
)
def test_type_of(value: Any, kind: str) -> None:
    assert walk.type_of(value) == kind
    assert kind in walk.TYPES


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"anyOf": [{"type": "number"}, {"const": "a"}]}, {"number", "integer", "string"}),
        ({"enum": [1, None]}, {"integer", "null"}),
        ({"$ref": "#/$defs/A"}, {"array"}),
        ({"anyOf": [{"type": "string"}, {}]}, set()),
    ],
)
def test_types_of(schema: dict[str, Any], types: set[str]) -> None:
    assert walk.types_of(schema, {"$defs": {"A": {"type": "array"}}}) == types


def test_references() -> None:
    schema = {"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"properties": {"$ref": {"$ref": "#"}}}}}
    assert list(walk.references(schema)) == ["#/$defs/A", "#"]


def test_changed() -> None:
    seen: list[tuple[Any, str]] = []
    for keyword, value in {"properties": {"a": 1}, "anyOf": [2], "items": 3, "enum": [4]}.items():
        walk.map_schemas(keyword, value, lambda inner, name: seen.append((inner, name)))
    assert seen == [(1, "a"), (2, "*"), (3, "*")]


@pytest.mark.parametrize(
    ("one", "other", "disjoint"),
    [
        ({"type": "string"}, {"type": "integer"}, True),
        ({"type": "number"}, {"type": "integer"}, False),
        ({"type": "string"}, {}, False),
        ({"properties": {"k": {"const": 1}}, "required": ["k"]}, {"$ref": "#/$defs/B"}, True),
        ({"properties": {"k": {"const": 1}}}, {"$ref": "#/$defs/B"}, False),
    ],
)
def test_disjoint(one: dict[str, Any], other: dict[str, Any], disjoint: bool) -> None:
    root = {"$defs": {"B": {"properties": {"k": {"const": 2}}, "required": ["k"]}}}
    assert walk.disjoint([one, other], root) is disjoint


_BOOL_AS_KEY = re.compile(r"\bbool\W*:")


def test_no_other_file_has_a_table_of_types() -> None:
    """Which JSON type a Python value has is said once."""
    tables = [
        file.relative_to(PACKAGE).as_posix()
        for file in sorted(PACKAGE.rglob("*.py"))
        if _BOOL_AS_KEY.search(text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Dict) and {"bool", "int"} <= {k.id for k in node.keys if isinstance(k, ast.Name)}
    ]
    assert tables == ["schemas/walk.py"]


@pytest.mark.parametrize("key", ["anyOf", "oneOf", "allOf"])
def test_the_properties_of_all_alternatives_are_found_however_many_there_are(key: str) -> None:
    options = [{"properties": {f"p{n}": {"type": "integer"}}} for n in range(1_000)]
    cyclic = {key: [{"$ref": "#"}, *options, {"$ref": "#/$defs/more"}], "$defs": {"more": {key: [{"$ref": "#"}]}}}
    assert len(walk.with_all_properties(cyclic)["properties"]) == 1_000
