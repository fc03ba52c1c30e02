"""Tools with a ready-made schema, and objects that bring their own tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Agent, ConfigError, SchemaError, ThreadManager, ToolContext, ToolRegistry
from agentkit.events import CallEnd
from agentkit.formats import names, parse, render_calls
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import ScriptedModel
from agentkit.tool import BoundTool, InvalidArguments, ToolSource, tool_from_schema

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def told(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
    return arguments


class Source:
    """Brings two tools."""

    def __init__(self, first: str = "one") -> None:
        self.first = first

    def bound_tools(self) -> Iterable[BoundTool]:
        return [tool_from_schema(told, self.first, "The first."), tool_from_schema(told, "two", "The second.", NUMBER)]


@pytest.mark.parametrize("format", [None, "xml", "qwen3_coder", "hermes"])
def test_it_is_called_in_json_and_in_text(format: str | None) -> None:
    async def double(arguments: dict[str, Any], context: ToolContext) -> str:
        return f"{context.name} {context.call_id != ''} {arguments['n'] * 2}"

    model = ScriptedModel([ToolCall("", "double", {"n": 21}), "Done."], format=format)
    result = Agent(model, [tool_from_schema(double, "double", "Double it.", NUMBER)]).run_sync("Go.")
    assert [m.text for m in result.messages if isinstance(m, ToolMessage)] == ["double True 42"]


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text(), max_size=5))
def test_arguments_of_any_name_arrive_unchanged(arguments: dict[str, Any]) -> None:
    tool = tool_from_schema(told, "t")
    assert tool.invoke(tool.validate(arguments, lenient=False), ToolContext("1", "t")) == arguments


@pytest.mark.parametrize(
    ("arguments", "lenient", "expected"),
    [({"n": 1}, False, {"n": 1}), ({"n": "1"}, True, {"n": 1}), ({"n": "1"}, False, None), ({}, True, None)],
)
def test_arguments_are_checked_by_the_schema(
    arguments: dict[str, Any], lenient: bool, expected: dict[str, Any] | None
) -> None:
    tool = tool_from_schema(told, "t", "", NUMBER)
    if expected is None:
        with pytest.raises(InvalidArguments, match="/n"):
            tool.validate(arguments, lenient=lenient)
    else:
        assert tool.validate(arguments, lenient=lenient) == expected


ID_OR_NAME = [
    {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
    {"properties": {"name": {"type": "string"}}, "required": ["name"]},
]


@pytest.mark.share(10)
@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": ID_OR_NAME},
        {"anyOf": ID_OR_NAME},
        {"allOf": [{"anyOf": ID_OR_NAME}]},
        {"properties": {"name": {"type": "string"}}, "if": {"required": ["name"]}, "else": ID_OR_NAME[0]},
        {"$ref": "#/$defs/either", "$defs": {"either": {"oneOf": ID_OR_NAME}}},
    ],
)
@pytest.mark.parametrize("format", names())
def test_a_parameter_that_only_an_alternative_has_is_called_in_every_format(
    format: str, schema: dict[str, Any]
) -> None:
    tool = tool_from_schema(lambda arguments, _: None, "get", "", {"type": "object", **schema})
    for arguments in ({"id": 5}, {"name": "five"}):
        text = render_calls(format, [ToolCall("", "get", arguments)], [tool.spec])
        (call,) = [event.call for event in parse(text, format, [tool.spec]) if isinstance(event, CallEnd)]
        assert tool.validate(call.arguments, lenient=True) == arguments
        assert call.arguments == arguments
    with pytest.raises(InvalidArguments, match=r"/id.* integer"):
        tool.validate({}, lenient=False)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, "refers to 'http://127.0.0.1:9/x'"),
        ({"properties": {"a": {"$ref": "properties"}}}, "refers to 'properties'"),
        ({"properties": {"a": {"$dynamicRef": "http://127.0.0.1:9/x"}}}, "refers to 'http://127.0.0.1:9/x'"),
        ({"http:": {"": {"x": {"a": {}}}}, "properties": {"a": {"$ref": "http://x"}}}, "refers to 'http://x'"),
        ({"properties": {"a": {"type": "number", "minimum": "x"}}}, "not valid JSON Schema"),
    ],
)
def test_a_schema_stands_alone(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        tool_from_schema(told, "t", "", schema)


def test_the_patterns_of_a_strangers_schema_are_not_run() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    since = time.perf_counter()
    tool_from_schema(told, "t", "", schema, patterns=False).validate({"a": "a" * 60 + "!"}, lenient=True)
    assert time.perf_counter() - since < 20
    with pytest.raises(InvalidArguments):
        tool_from_schema(told, "t", "", schema).validate({"a": "b"}, lenient=True)


def test_a_source_is_accepted_wherever_an_instance_is() -> None:
    async def added() -> list[str]:
        async with ThreadManager() as threads:
            threads.add_tool(Source, {"two": "second"}, first="uno")
            return list(threads.registry.tools)

    assert isinstance(Source(), ToolSource)
    assert list(ToolRegistry(Source()).tools) == ["one", "two"]
    assert list(ToolRegistry([Source()]).tools) == ["one", "two"]
    assert asyncio.run(added()) == ["second"]


def test_a_renamed_tool_is_called_by_its_new_name() -> None:
    registry = ToolRegistry()
    [tool] = registry.register_tool(Source(), {"two": "second"})
    assert (tool.name, tool.spec.name) == ("second", "second")
    with pytest.raises(InvalidArguments, match="second"):
        tool.validate({}, lenient=False)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tool_from_schema(told, "not a name"), "cannot be a tool's name"),
        (lambda: tool_from_schema(told, "t", timout=3), "did you mean 'timeout'"),  # type: ignore[call-arg]
        (lambda: tool_from_schema(told, "t", timeout=-1), "seconds above 0"),
        (lambda: ToolRegistry().register_tool(Source(), ["three"]), "has no tool 'three'; it has 'one', 'two'"),
        (lambda: ToolRegistry(Source(), Source()), "the function name 'one' is taken"),
    ],
)
def test_what_is_wrong_is_said_at_registration(make: Any, said: str) -> None:
    with pytest.raises((SchemaError, ConfigError), match=said):
        make()
