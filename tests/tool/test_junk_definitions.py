"""Everything wrong with a tool's definition is a `SchemaError`: whatever stands where the decorators take something."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentkit import ConfigError, SchemaError, ToolRegistry, openapi_schema, xml_schema

JUNK = [
    5,
    0,
    1.5,
    True,
    "x",
    "",
    b"x",
    ["x"],
    [5],
    [None],
    {"x": 5},
    {5: "x"},
    {"x": {"type": "strng"}},
    object(),
    print,
    {"at"},
]

OPENAPI = [
    "description",
    "parameters",
    "name",
    "at",
    "timeout",
    "requires_approval",
    "terminates",
    "exclusive",
    "max_output",
]
XML = ["name", "tag_name", "attributes", "elements", "content", "mappings", "example", "strip"]
MAPPING = ["param_name", "node_type", "path", "required"]


def declare(decorator: str, argument: str, junk: Any) -> ToolRegistry:
    def look(at: str) -> str:
        """Look."""
        return at

    if decorator == "mapping":
        return ToolRegistry(xml_schema(mappings=[{"param_name": "at", argument: junk}])(look))
    made: Any = openapi_schema if decorator == "openapi" else xml_schema
    return ToolRegistry(made(**{argument: junk})(look))


CELLS = [
    (decorator, argument)
    for decorator, arguments in (("openapi", OPENAPI), ("xml", XML), ("mapping", MAPPING))
    for argument in arguments
]


@pytest.mark.parametrize(("decorator", "argument"), CELLS)
def test_a_value_is_taken_or_refused_in_words(decorator: str, argument: str) -> None:
    """And what is taken makes a tool that providers can be told of, in JSON and in XML."""
    for junk in JUNK:
        try:
            registry = declare(decorator, argument, junk)
        except SchemaError:
            continue
        (spec,) = registry.specs()
        assert isinstance(spec.description, str)
        assert isinstance(spec.name, str)
        json.dumps(registry.get_openapi_schemas(names=[spec.name]))
        assert all(isinstance(example, str) for example in registry.get_xml_examples())
        assert (argument, type(junk)) in TAKEN or isinstance(junk, str), (argument, junk)


TAKEN = {
    ("timeout", int), ("timeout", float), ("max_output", int),
    *((name, bool) for name in ("requires_approval", "terminates", "exclusive", "strip", "required")),
    ("requires_approval", type(print)), ("exclusive", str),
    *((name, set) for name in ("attributes", "elements")),
}  # fmt: skip


class Two:
    @openapi_schema
    def one(self, at: str) -> str:
        """Look."""
        return at


@pytest.mark.parametrize("junk", [5, "one", [5], [["one"]], {"one": 5}, {5: "one"}, object()])
def test_function_names(junk: Any) -> None:
    with pytest.raises(SchemaError):
        ToolRegistry().register_tool(Two, junk)


@pytest.mark.parametrize("reference", ["nowhere:Class", "json:Nothing", "json"])
def test_a_string_that_leads_to_no_tool(reference: str) -> None:
    with pytest.raises(ConfigError):
        ToolRegistry(reference)


def test_what_a_constructor_raises_comes_as_it_is() -> None:
    class Broken(Two):
        def __init__(self) -> None:
            raise KeyError("root")

    with pytest.raises(KeyError, match="root"):
        ToolRegistry(Broken)
