"""Our formats as tool parsers of SGLang: its own loader, registry and `FunctionCallParser`; OpenAI's SDK as judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recordings import ABSENT, rows
from server_replies import PROSE, TOOLS, calls_of, is_json, judged, pieces, written

from agentkit import formats

pytest.importorskip("sglang.srt.function_call.function_call_parser", reason="SGLang is not installed: make peers")

from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest, Tool, ToolChoice
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.plugins import load_plugins
from sglang.srt.server_args import _tool_call_parser_choices

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore"), pytest.mark.share(1)]

OFFERED = [Tool(**tool) for tool in TOOLS]


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    load_plugins()


def parser(name: str, tools: list[Tool] = OFFERED, choice: Any = None) -> FunctionCallParser:
    return FunctionCallParser(tools, f"agentkit_{name}", tokenizer=object(), tool_choice=choice)


def streamed(name: str, text: str, seed: int, tools: list[Tool] = OFFERED) -> Any:
    """What a client gathers: the server makes an id of each piece with a name."""
    reading, deltas = parser(name, tools), []
    for content, calls in [*map(reading.parse_stream_chunk, pieces(text, seed)), reading.parse_stream_end()]:
        deltas += [{"content": content}] if content else []
        for call in calls:
            function = {"name": call.name, "arguments": call.parameters}
            first = {"id": f"call_{call.tool_index}", "type": "function"} if call.name else {}
            deltas.append({"tool_calls": [{"index": call.tool_index, "function": function, **first}]})
    return judged(deltas)


def test_sglangs_loader_registers_every_format() -> None:
    assert {f"agentkit_{name}" for name in (*formats.names(), "auto")} <= set(_tool_call_parser_choices())


@pytest.mark.parametrize("name", formats.names())
def test_every_format_whole_and_streamed(name: str) -> None:
    text, expected = written(name)
    reading = parser(name)
    assert reading.has_tool_call(text)
    content, calls = reading.parse_non_stream(text)
    assert [(call.name, json.loads(call.parameters)) for call in calls] == expected
    assert content.strip() == PROSE.strip()
    for seed in range(3):
        message = streamed(name, text, seed)
        assert calls_of(message) == expected
        assert message.content.strip() == PROSE.strip()


@pytest.mark.parametrize("name", formats.names())
def test_a_reply_cut_anywhere_raises_nothing_and_has_only_whole_calls(name: str) -> None:
    text, expected = written(name)
    for end in range(1, len(text), 9):
        content, calls = parser(name).parse_non_stream(text[:end])
        assert [(call.name, json.loads(call.parameters)) for call in calls] == expected[: len(calls)]
        message = streamed(name, text[:end], end)
        sent = [call.function.arguments for call in message.tool_calls or () if is_json(call.function.arguments)]
        assert [json.loads(one) for one in sent] == [arguments for _, arguments in expected[: len(calls)]]
        assert content or calls or message.content


def test_damaged_texts_of_real_models_raise_nothing() -> None:
    found = rows("raw_malformed.jsonl")
    if not found:
        pytest.skip(ABSENT)
    for row in found:
        tools = [Tool(function=tool) for tool in row["tools"]]
        for seed in range(2):
            parser("auto", tools).parse_non_stream(row["text"])
            streamed("auto", row["text"], seed, tools)


def test_prose_has_no_call() -> None:
    assert not parser("hermes").has_tool_call("It is 3 (three).")
    assert parser("hermes").parse_non_stream("a < b") == ("a < b", [])


@pytest.mark.parametrize("name", formats.names())
def test_a_forced_call_is_constrained_to_the_format_and_read_in_it(name: str) -> None:
    from xgrammar import Grammar

    for choice in ("required", ToolChoice(function={"name": "weather"})):
        reading = parser(name, choice=choice)
        assert reading.owns_tool_format()
        kind, tag = reading.get_structure_constraint(choice)
        assert kind == "structural_tag"
        Grammar.from_structural_tag(tag)
        asked = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}], tools=TOOLS)
        asked.tool_choice = choice
        assert "structural_tag" in asked.to_sampling_params([], {}, (kind, tag))


def test_auto_is_constrained_only_for_strict_tools() -> None:
    strict = [Tool(function={**TOOLS[0]["function"], "strict": True})]
    assert parser("hermes").get_structure_constraint("auto") is None
    assert parser("hermes", strict).get_structure_constraint("auto") is not None
    assert parser("auto", strict).get_structure_constraint("required") is None
    assert parser("auto").owns_tool_format()
