"""Tools of verl's and open-instruct's shape get the values that those systems give, or are refused at the start."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentkit import ToolResult
from agentkit.errors import ConfigError
from agentkit.interop.open_instruct import Tool, ToolOutput
from agentkit.interop.verl import BaseTool, ToolResponse
from agentkit.messages import ImagePart, TextPart, UserMessage
from agentkit.rollout import Rollout, Sample, ScriptedPolicy, ToolKwargs, TrajectoryRecord, VerlShaped, verl_tools

PARAMETERS = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "n": {"type": "integer", "minimum": 3}},
    "required": ["answer"],
}
SCHEMA = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": PARAMETERS}}


class Shown(BaseTool):
    async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Any:
        return ToolResponse(text=repr(parameters)), 0.0, {}


class Said(Tool):
    _default_tool_function_name = "look"
    _default_tool_description = "Look."
    _default_tool_parameters = PARAMETERS

    def __call__(self, answer: Any, n: Any = 0) -> ToolOutput:
        return ToolOutput(repr((answer, n)), called=True, error="", timeout=False, runtime=0.0)


def rolled(tool: Any, arguments: str, kwargs: Any = None) -> TrajectoryRecord:
    call = f'<tool_call>{{"name": "look", "arguments": {arguments}}}</tool_call>'
    sample = Sample("s", (UserMessage("Go."),), kwargs or {})
    return asyncio.run(Rollout([tool], ScriptedPolicy([call, "done"])).run(sample))


@pytest.mark.parametrize("value", ["42", "4.5", "true", "null", "[1]", '{"a": 1}', '"42"'])
def test_any_value_is_passed_on_as_it_is(value: str) -> None:
    python = {"true": True, "null": None}.get(value, value)
    expected = repr(eval(value)) if python is value else repr(python)
    verl = rolled(VerlShaped(Shown, schema=SCHEMA), f'{{"answer": {value}}}')
    assert [(c.error, c.result) for c in verl.calls] == [(None, f"{{'answer': {expected}}}")]
    instruct = rolled(Said(), f'{{"answer": {value}, "n": 1}}')
    assert [(c.error, c.result) for c in instruct.calls] == [(None, f"({expected}, 1)")]


@pytest.mark.parametrize("tool", [VerlShaped(Shown, schema=SCHEMA), Said()])
def test_what_is_required_must_be_there(tool: Any) -> None:
    (call,) = rolled(tool, '{"n": 1}').calls
    assert (call.error, "/answer: expected string, found nothing" in call.result) == ("invalid_arguments", True)


@pytest.mark.parametrize("shape", ["verl", "open-instruct"])
def test_required_names_are_those_of_properties(shape: str) -> None:
    wrong = {**PARAMETERS, "required": ["answer", "anwser"]}

    class Wrong(Said):
        _default_tool_parameters = wrong

    schema = {"type": "function", "function": {"name": "look", "parameters": wrong}}
    made = {
        "verl": lambda: VerlShaped(Shown, schema=schema),
        "open-instruct": lambda: Rollout([Wrong()], ScriptedPolicy([])),
    }
    with pytest.raises(ConfigError, match="required names 'anwser', which is not among the properties"):
        made[shape]()


class InKwargs(BaseTool):
    async def execute(self, instance_id: str, parameters: dict[str, Any], **kwargs: Any) -> Any:
        return ToolResponse(text=str(kwargs["agent_data"])), 0.0, {}


class Declared(BaseTool):
    async def execute(self, instance_id: str, parameters: dict[str, Any], *, agent_data: Any, **kwargs: Any) -> Any:
        return ToolResponse(text=str(agent_data)), 0.0, {}


class Optional(BaseTool):
    async def execute(self, instance_id: str, parameters: dict[str, Any], agent_data: Any = None) -> Any:
        return ToolResponse(text=str(agent_data)), 0.0, {}


@pytest.mark.parametrize("kind", [InKwargs, Declared])
def test_a_tool_that_reads_agent_data_is_refused_before_its_first_call(kind: type[BaseTool]) -> None:
    with pytest.raises(ConfigError, match="execute reads 'agent_data', which only verl's own loop passes"):
        rolled(VerlShaped(kind, schema=SCHEMA), '{"answer": "4"}')
    told = {"look": ToolKwargs(execute={"agent_data": 7})}
    assert rolled(VerlShaped(kind, schema=SCHEMA), '{"answer": "4"}', told).calls[0].result == "7"


GUIDE = """
tools:
  - class_name: "verl.tools.geo3k_tool.Geo3kTool"
    config: {type: native}
    tool_schema: {type: function, function: {name: calc_geo3k_reward, description: Judge., parameters: {type: object,
      properties: {answer: {type: string}}, required: [answer]}}}
  - class_name: "verl.tools.search_tool.SearchTool"
    config: {type: native, api_key: "${SEARCH_API_KEY}", engine: ENGINE}
    tool_schema: {type: function, function: {name: web_search, description: Search., parameters: {type: object,
      properties: {query: {type: string}}, required: [query]}}}
"""
"""Several tools, with the settings that verl's guide shows for its search."""


def test_the_guides_search_with_a_key_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "k")
    path = tmp_path / "tools.yaml"
    path.write_text(GUIDE.replace("ENGINE", "google"))
    assert [tool.name for tool in verl_tools(path)] == ["calc_geo3k_reward", "web_search"]
    path.write_text(GUIDE.replace("ENGINE", "bing"))
    with pytest.raises(ConfigError, match=r"config\.engine: with an api_key expected google, found 'bing'"):
        verl_tools(path)


def test_all_names_are_imported_without_verl() -> None:
    names: dict[str, Any] = {}
    exec("from agentkit.interop.verl import *", names)
    assert names["BaseTool"] is BaseTool


def test_an_image_of_pil_is_a_picture_for_the_model() -> None:
    image = pytest.importorskip("PIL.Image")
    for mode in ("RGB", "CMYK", "1", "RGBA", "F"):
        (part,) = ToolResult(image.new(mode, (8, 8))).parts
        assert isinstance(part, ImagePart)
        assert (part.media_type, part.fault) == ("image/png", None)
    assert [type(part) for part in ToolResult(["see", image.new("RGB", (4, 4))]).parts] == [TextPart, ImagePart]


def test_one_that_can_do_without_is_not() -> None:
    assert rolled(VerlShaped(Optional, schema=SCHEMA), '{"answer": "4"}').calls[0].result == "None"
