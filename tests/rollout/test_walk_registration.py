"""The walk-through of verl's "registration of tool parsers": its eleven steps, and its example of a call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from rollout_kit import Lines, hermes, sample
from small_tokenizers import tokenizer

from agentkit.interop.verl import (
    OpenAIFunctionToolSchema,
    ToolResponse,
    ToolType,
    get_tool_class,
    initialize_tools_from_config,
)
from agentkit.interop.verl.verl_config import read_verl_config
from agentkit.rollout import Rollout, ToolKwargs
from agentkit.rollout.tokens.tool_parsers import FunctionCall, ToolParser

GEO3K = """
tools:
  - class_name: "verl.tools.geo3k_tool.Geo3kTool"
    config:
      type: native
    tool_schema:
      type: "function"
      function:
        name: "calc_geo3k_reward"
        description: "A tool for calculating the reward of geo3k."
        parameters:
          type: "object"
          properties:
            answer:
              type: "string"
              description: "The model's answer to the geo3k problem"
          required: ["answer"]
"""
SCHEMA = {
    "type": "function",
    "function": {
        "name": "calc_geo3k_reward",
        "description": "A tool for calculating the reward of geo3k.",
        "parameters": {
            "type": "object",
            "properties": {"answer": {"type": "string", "description": "The model's answer to the geo3k problem"}},
            "required": ["answer"],
        },
    },
}
WRITTEN = 'The answer is 42. <tool_call>{"name": "calc_geo3k_reward", "arguments": {"answer": "42"}}</tool_call>'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "geo3k_tool_config.yaml"
    path.write_text(GEO3K)
    return path


@pytest.fixture
def tool(file: Path) -> Any:
    (tool,) = initialize_tools_from_config(file)
    return tool


def test_step_1_and_2_the_file_is_read(file: Path) -> None:
    (entry,) = read_verl_config(file)
    assert (entry.class_name, entry.config, entry.schema) == (
        "verl.tools.geo3k_tool.Geo3kTool",
        {"type": "native"},
        SCHEMA,
    )


def test_step_3_the_entry_has_a_class_and_a_kind(file: Path) -> None:
    (entry,) = read_verl_config(file)
    assert ToolType(entry.config["type"]) is ToolType.NATIVE


def test_step_4_the_class_is_loaded_by_its_dotted_name() -> None:
    assert get_tool_class("verl.tools.geo3k_tool.Geo3kTool").__name__ == "Geo3kTool"


def test_step_5_the_schema_is_checked() -> None:
    schema = OpenAIFunctionToolSchema.model_validate(SCHEMA)
    assert schema.function.name == "calc_geo3k_reward"
    assert schema.function.parameters == SCHEMA["function"]["parameters"]


def test_step_6_the_tool_is_constructed() -> None:
    kind = get_tool_class("verl.tools.geo3k_tool.Geo3kTool")
    tool = kind(config={"type": "native"}, tool_schema=OpenAIFunctionToolSchema.model_validate(SCHEMA))
    assert (tool.name, tool.config, tool._instance_dict) == ("calc_geo3k_reward", {"type": "native"}, {})


def test_step_7_and_8_the_tools_by_name(file: Path) -> None:
    tools = {tool.name: tool for tool in initialize_tools_from_config(file)}
    assert list(tools) == ["calc_geo3k_reward"]


def test_step_9_the_schemas_for_the_model(tool: Any) -> None:
    assert tool.tool_schema.model_dump(exclude_unset=True, exclude_none=True) == SCHEMA


def test_step_10_the_parser_by_name() -> None:
    parser = ToolParser.get_tool_parser("hermes", tokenizer("chatml"))
    assert (parser.tool_call_start_token, parser.tool_call_end_token) == ("<tool_call>", "</tool_call>")


def test_step_10_an_unknown_parser_is_refused() -> None:
    with pytest.raises(ValueError, match="hermse"):
        ToolParser.get_tool_parser("hermse", tokenizer("chatml"))


def test_step_11_the_tools_can_be_printed(tool: Any) -> None:
    assert "Geo3kTool object at 0x" in f"Initialized tools: { {tool.name: tool} }"


def test_at_run_time_the_call_is_read_and_answered(tool: Any) -> None:
    async def walk() -> None:
        small = tokenizer("chatml")
        parser = ToolParser.get_tool_parser("hermes", small)
        content, calls = await parser.extract_tool_calls(small.encode(WRITTEN))
        assert content == "The answer is 42. "
        assert calls == [FunctionCall("calc_geo3k_reward", '{"answer": "42"}')]
        instance_id, _ = await tool.create(instance_id="uuid-abc-123", ground_truth="42")
        assert instance_id == "uuid-abc-123"
        answered = await tool.execute(instance_id="uuid-abc-123", parameters=json.loads(calls[0].arguments))
        assert answered == (ToolResponse(text="Current parsed answer='42' reward=1.0"), 0.0, {})
        assert await tool.calc_reward("uuid-abc-123") == 1.0
        await tool.release("uuid-abc-123")
        assert tool._instance_dict == {}

    asyncio.run(walk())


def test_at_run_time_a_rollout_does_the_same(tool: Any) -> None:
    told = {"calc_geo3k_reward": ToolKwargs(create={"ground_truth": "42"})}
    wrong = hermes("calc_geo3k_reward", answer="41")
    record = asyncio.run(Rollout([tool], Lines(wrong, WRITTEN)).run(sample(tools_kwargs=told)))
    assert [(call.result, call.reward) for call in record.calls] == [
        ("Current parsed answer='41' reward=0.0", -0.05),
        ("Current parsed answer='42' reward=1.0", 0.0),
    ]
    assert record.final_rewards == {"calc_geo3k_reward": 1.0}
    assert record.reward == pytest.approx(0.95)
    assert tool._instance_dict == {}
