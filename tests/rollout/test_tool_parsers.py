"""Parsers by the names of verl and open-instruct. Document 000's registration and its example run as written."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from small_tokenizers import tokenizer

from agentkit.errors import ConfigError
from agentkit.formats import render_calls
from agentkit.messages import ToolCall
from agentkit.rollout.tokens.tool_parsers import (
    OPEN_INSTRUCT_NAMES,
    VERL_NAMES,
    FunctionCall,
    ToolParser,
    get_tool_parser,
)
from agentkit.toolspec import ToolSpec

pytestmark = pytest.mark.anyio
ADD = ToolSpec(
    "add",
    "Add.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"]},
)
SEARCH = ToolSpec("search", "", {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]})
OUTPUT = 'The answer is 42. <tool_call>{"name": "calc_geo3k_reward", "arguments": {"answer": "42"}}</tool_call>'


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToolParser, "_registry", {})


def test_000_step_10_a_parser_by_the_name_in_the_configuration() -> None:
    config = SimpleNamespace(multi_turn=SimpleNamespace(format="hermes"))
    parser = ToolParser.get_tool_parser(config.multi_turn.format, tokenizer("chatml"))
    assert (parser.tool_call_start_token, parser.tool_call_end_token) == ("<tool_call>", "</tool_call>")
    assert parser.tokenizer is tokenizer("chatml")


def test_000_step_10_2_1_an_unknown_name_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"Unknown tool parser: hermès; known are .*gpt-oss.*, and every format"):
        get_tool_parser("hermès", tokenizer("chatml"))


async def test_000_at_run_time_step_1_the_calls_of_a_response() -> None:
    parser = get_tool_parser("hermes", tokenizer("chatml"))
    response_ids = tokenizer("chatml").encode(OUTPUT)
    content, function_calls = await parser.extract_tool_calls(response_ids)
    assert content == "The answer is 42. "
    assert function_calls == [FunctionCall(name="calc_geo3k_reward", arguments='{"answer": "42"}')]
    assert json.loads(function_calls[0].arguments) == {"answer": "42"}


async def test_a_class_registers_itself_under_a_name(registry: None) -> None:
    @ToolParser.register("mine")
    class Mine(ToolParser):
        def __init__(self, tokenizer: Any) -> None:
            super().__init__(tokenizer, "xml", [ADD])

    parser = get_tool_parser("mine", tokenizer("chatml"))
    ids = tokenizer("chatml").encode("<add><a>1</a><b>2</b></add>")
    assert await parser.extract_tool_calls(ids) == ("", [FunctionCall("add", '{"a": 1, "b": "2"}')])


@pytest.mark.parametrize(("name", "format"), [*VERL_NAMES.items(), *OPEN_INSTRUCT_NAMES.items()])
async def test_every_name_reads_what_its_format_writes(name: str, format: str) -> None:
    """With the end of the turn and padding after it, and a tool as OpenAI's JSON."""
    tool, arguments = (ADD, {"a": 1, "b": "007"}) if format not in ("legacy", "dr_tulu") else (SEARCH, {"query": "x y"})
    written = render_calls(format, [ToolCall(f"functions.{tool.name}:0", tool.name, arguments)], [tool])
    ids = tokenizer("chatml").encode(f"Well. {written}<|im_end|><|endoftext|><|endoftext|>")
    function = {"name": tool.name, "description": "", "parameters": dict(tool.parameters)}
    content, [call] = await get_tool_parser(name, tokenizer("chatml")).extract_tool_calls(
        ids, tools=[{"type": "function", "function": function}]
    )
    assert (content.strip(), call.name, json.loads(call.arguments)) == ("Well.", tool.name, arguments)
    assert call.tool_call_id == ("functions.add:0" if format == "kimi_k2" else None)


async def test_verls_schemas_give_the_types() -> None:
    function = {"name": "add", "parameters": ADD.parameters}
    schema = SimpleNamespace(model_dump=lambda **_: {"type": "function", "function": function})
    ids = tokenizer("chatml").encode(render_calls("glm45", [ToolCall("", "add", {"a": 1, "b": "2"})], [ADD]))
    _, [call] = await get_tool_parser("glm", tokenizer("chatml")).extract_tool_calls(ids, [schema])
    assert call.arguments == '{"a": 1, "b": "2"}'


async def test_a_damaged_call_is_told_and_can_never_be_run() -> None:
    """Verl drops it, and ends the trajectory."""
    ids = tokenizer("chatml").encode('<tool_call>{"name": "add", "arguments": {"a": 1, "b"')
    _, [call] = await get_tool_parser("hermes", tokenizer("chatml")).extract_tool_calls(ids, [ADD])
    assert call.name == "add"
    assert call.arguments.startswith("truncated_call: the text ended inside the JSON")
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments)


async def test_a_call_that_is_only_thought_of_is_none() -> None:
    text = f"<think>{OUTPUT}</think>No."
    assert await get_tool_parser("hermes", tokenizer("chatml")).extract_tool_calls(
        tokenizer("chatml").encode(text)
    ) == ("No.", [])


@pytest.mark.parametrize(
    ("name", "family", "token"),
    [("glm", "observed", "<|observation|>"), ("kimi", "chatml", "<|im_end|>"), ("hermes", "chatml", None)],
)
def test_tokens_at_which_an_engine_must_stop(name: str, family: str, token: str | None) -> None:
    ids = get_tool_parser(name, tokenizer(family)).stop_token_ids
    assert [tokenizer(family).convert_ids_to_tokens(id) for id in ids] == ([token] if token else [])


def test_without_the_token_in_the_vocabulary_there_is_none_to_stop_at() -> None:
    assert get_tool_parser("gemma4", tokenizer("chatml")).stop_token_ids == []


@pytest.mark.parametrize(
    ("name", "stops"),
    [("legacy", ["</add>", "</search>"]), ("dr_tulu", ["</call_tool>"]), ("vllm_hermes", []), ("vllm_olmo3", [])],
)
def test_open_instructs_stop_strings(name: str, stops: list[str]) -> None:
    assert get_tool_parser(name).stop_strings([ADD, SEARCH]) == stops


def test_a_text_needs_no_tokenizer() -> None:
    content, calls = get_tool_parser("legacy").extract("Let me see. <search>cats & dogs</search>", [SEARCH])
    assert (content, calls) == ("Let me see. ", [FunctionCall("search", '{"query": "cats & dogs"}')])


async def test_token_ids_do() -> None:
    with pytest.raises(ConfigError, match="has no tokenizer: pass one, or read texts"):
        await get_tool_parser("hermes").extract_tool_calls([1, 2])


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(ConfigError, match="a tool must be a ToolSpec or OpenAI's JSON with a function's name, found 7"):
        get_tool_parser("hermes").extract("", [7])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"I could write {OUTPUT}.\n</think>\n\nNo.", []),
        (f"Hm.\n</think>\n\n{OUTPUT}", ["calc_geo3k_reward"]),
        (f"<think>Hm.</think>{OUTPUT}", ["calc_geo3k_reward"]),
        (OUTPUT.replace("42", "</think>"), ["calc_geo3k_reward"]),
        (f"{OUTPUT} <think>Hm.</think>", ["calc_geo3k_reward"]),
    ],
)
def test_thinking_that_the_prompt_opened_ends_in_the_response(text: str, names: list[str]) -> None:
    """As in responses of Qwen 3.5 and DeepSeek R1, whose templates write `<think>`."""
    _, calls = get_tool_parser("hermes").extract(text)
    assert [call.name for call in calls] == names
