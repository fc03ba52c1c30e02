"""Our formats as tool parsers of vLLM: its loader, registry, composed parser and requests; OpenAI's SDK as judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recordings import ABSENT, rows
from server_replies import CALLS, PROSE, TOOLS, calls_of, is_json, judged, pieces, written

from agentkit import formats

pytest.importorskip("vllm.tool_parsers", reason="vLLM is not installed: make peers")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.plugins import load_general_plugins
from vllm.tool_parsers import ToolParserManager

from agentkit.formats import Format
from agentkit.formats.format import Json, Name
from agentkit.interop.vllm import register_formats

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore"), pytest.mark.share(1)]


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    load_general_plugins()


class Tokenizer:
    """What vLLM's composed parser asks of a tokenizer."""

    def get_vocab(self) -> dict[str, int]:
        return {}


def request(tool_choice: Any = "auto", **more: Any) -> ChatCompletionRequest:
    return ChatCompletionRequest(
        **{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS, **more},
        tool_choice=tool_choice,
    )


def parser(name: str, asked: ChatCompletionRequest) -> Any:
    """The parser that vLLM composes for one reply, with ours inside; its start-up check is part of it."""
    made = ParserManager.get_parser(f"agentkit_{name}", enable_auto_tools=True, model_name="m", tokenizer=Tokenizer())
    assert made is not None
    return made(Tokenizer(), asked.tools)


def whole(name: str, text: str, asked: ChatCompletionRequest | None = None) -> tuple[str | None, list[Any]]:
    asked = asked or request()
    _, content, calls = parser(name, asked).parse(text, asked, enable_auto_tools=True)
    return content, calls or []


def streamed(name: str, text: str, seed: int, asked: ChatCompletionRequest | None = None) -> Any:
    asked = asked or request(stream=True)
    reading, chunks = parser(name, asked), [*pieces(text, seed)]
    deltas = [
        reading.parse_delta(chunk, [n], asked, prompt_token_ids=[0], finished=n == len(chunks))
        for n, chunk in enumerate(chunks, 1)
    ]
    return judged([delta.model_dump(exclude_unset=True) for delta in deltas if delta is not None])


def test_vllms_loader_registers_every_format() -> None:
    expected = {f"agentkit_{name}" for name in (*formats.names(), "auto")}
    assert expected <= set(ToolParserManager.list_registered())


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("name", formats.names())
def test_every_format_whole_and_streamed(name: str, choice: str) -> None:
    text, expected = written(name)
    content, calls = whole(name, text, request(choice))
    assert [(call.name, json.loads(call.arguments)) for call in calls] == expected
    assert content is not None
    assert content.strip() == PROSE.strip()
    for seed in range(3):
        message = streamed(name, text, seed, request(choice, stream=True))
        assert calls_of(message) == expected
        assert message.content.strip() == PROSE.strip()
        assert len({call.id for call in message.tool_calls}) == len(expected)


@pytest.mark.parametrize("name", formats.names())
def test_a_reply_cut_anywhere_raises_nothing_and_has_only_whole_calls(name: str) -> None:
    text, expected = written(name)
    for end in range(1, len(text), 9):
        content, calls = whole(name, text[:end])
        assert [(call.name, json.loads(call.arguments)) for call in calls] == expected[: len(calls)]
        message = streamed(name, text[:end], end)
        sent = [call.function.arguments for call in message.tool_calls or () if is_json(call.function.arguments)]
        assert [json.loads(one) for one in sent] == [arguments for _, arguments in expected[: len(calls)]]
        assert content or calls or message.content


def test_damaged_texts_of_real_models_raise_nothing() -> None:
    found = rows("raw_malformed.jsonl")
    if not found:
        pytest.skip(ABSENT)
    for row in found:
        asked = request(tools=[{"type": "function", "function": tool} for tool in row["tools"]], stream=True)
        for seed in range(2):
            whole("auto", row["text"], asked)
            streamed("auto", row["text"], seed, asked)


def test_without_calls_allowed_no_text_is_lost() -> None:
    text, _ = written("qwen3_coder")
    assert whole("qwen3_coder", text, request("none")) == (text, [])
    assert streamed("qwen3_coder", text, 1, request("none", stream=True)).content == text
    bare = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}])
    assert whole("qwen3_coder", text, bare) == (text, [])


@pytest.mark.parametrize("name", formats.names())
def test_a_forced_call_is_constrained_to_the_format(name: str) -> None:
    from xgrammar import Grammar

    for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
        asked = request(choice)
        adjusted = parser(name, asked).adjust_request(asked)
        assert adjusted.skip_special_tokens is False
        Grammar.from_structural_tag(adjusted.structured_outputs.structural_tag)
        adjusted.to_sampling_params(100, {})


def test_auto_is_constrained_only_for_strict_tools_and_never_over_the_requests_own() -> None:
    strict = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": True}}]
    for more, constrained in (
        ({}, False),
        ({"tools": strict}, True),
        ({"tools": strict, "response_format": {"type": "json_object"}}, False),
    ):
        asked = request(**more)
        adjusted = parser("hermes", asked).adjust_request(asked)
        own = adjusted.extract_structured_outputs()
        assert (own is not None and own.structural_tag is not None) is constrained


def test_calls_that_are_counted_go_on_counting() -> None:
    """Source: vLLM's own `kimi_k2`, whose template reads the id in the history."""
    text, _ = written("kimi_k2")
    asked = request(stream=True)
    before = [{"id": "functions.search:0", "type": "function", "function": {"name": "search", "arguments": "{}"}}]
    asked.messages = [*asked.messages, {"role": "assistant", "tool_calls": before}]
    expected = ["functions.search:1", "functions.weather:2"]
    assert [call.id for call in streamed("kimi_k2", text, 1, asked).tool_calls] == expected
    assert [call.id for call in whole("kimi_k2", text, asked)[1]] == expected


def test_a_format_of_your_own() -> None:
    mine = Format("mine", ("@@", Name(), "\n", Json(), "\n@@"))
    assert register_formats([mine]) == ["agentkit_mine"]
    text = formats.render_calls(mine, CALLS[:1], [])
    assert [call.name for call in whole("mine", text)[1]] == ["search"]


def test_requests_of_the_responses_api_are_adjusted_too() -> None:
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

    tools = [{"type": "function", "strict": None, **tool["function"]} for tool in TOOLS]
    for choice in ("required", {"type": "function", "name": "weather"}):
        asked = ResponsesRequest(model="m", input="Hi", tools=tools, tool_choice=choice)
        adjusted = parser("hermes", asked).adjust_request(asked)
        assert adjusted.extract_structured_outputs().structural_tag is not None
        assert whole("hermes", written("hermes")[0], asked)[1][1].name == "weather"


def test_thinking_goes_to_vllms_reasoning_parser_first() -> None:
    class Thinker(Tokenizer):
        def get_vocab(self) -> dict[str, int]:
            return {"<think>": 1, "</think>": 2}

    asked, (text, expected) = request(stream=True), written("xml")
    made = ParserManager.get_parser("agentkit_xml", "deepseek_r1", True, "m", tokenizer=Thinker())
    assert made is not None
    reasoning, content, calls = made(Thinker(), asked.tools).parse(f"Hm.</think>{text}", asked, enable_auto_tools=True)
    assert (reasoning, content) == ("Hm.", PROSE)
    assert [(call.name, json.loads(call.arguments)) for call in calls] == expected
    reading, deltas = made(Thinker(), asked.tools), []
    chunks = [("Hm.", 3), ("</think>", 2), *((piece, 3) for piece in pieces(text, 1))]
    for n, (chunk, token) in enumerate(chunks, 1):
        delta = reading.parse_delta(chunk, [token], asked, prompt_token_ids=[3], finished=n == len(chunks))
        deltas += [delta.model_dump(exclude_unset=True)] if delta is not None else []
    assert "".join(delta.get("reasoning") or "" for delta in deltas) == "Hm."
    message = judged(deltas)
    assert (calls_of(message), message.content.strip()) == (expected, PROSE.strip())
