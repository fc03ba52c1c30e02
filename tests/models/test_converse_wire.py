"""The events of Bedrock's Converse API, one by one, and what they mean."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    ProviderBlock,
    Text,
    Thinking,
    UnreadCall,
    Usage,
    merge,
)
from agentkit.messages import ToolCall
from agentkit.models.converse_wire import ConverseWire, events_of
from agentkit.models.wire import WireEvent


def read(*wire_events: WireEvent) -> list[Event]:
    wire = ConverseWire("bedrock")
    events = [event for wire_event in wire_events for event in wire.feed(wire_event)]
    return merge([*events, *wire.close()])


def start(at: int, **block: Any) -> WireEvent:
    return {"contentBlockStart": {"start": block, "contentBlockIndex": at}}


def delta(at: int, **fields: Any) -> WireEvent:
    return {"contentBlockDelta": {"delta": fields, "contentBlockIndex": at}}


def stop(at: int) -> WireEvent:
    return {"contentBlockStop": {"contentBlockIndex": at}}


def end(reason: str) -> WireEvent:
    return {"messageStop": {"stopReason": reason}}


def test_streamed_text_and_usage() -> None:
    usage = {"inputTokens": 10, "outputTokens": 7, "totalTokens": 24, "cacheReadInputTokens": 5}
    assert read(
        {"messageStart": {"role": "assistant"}},
        delta(0, text="Hel"),
        delta(0, text="lo"),
        stop(0),
        end("end_turn"),
        {"metadata": {"usage": {**usage, "cacheWriteInputTokens": 2}, "metrics": {"latencyMs": 9}}},
    ) == [Text("Hello"), Usage(17, 7, 5, 2), Finish("stop", "end_turn")]


def test_the_end_of_a_whole_response_ends_it() -> None:
    whole = {"output": {"message": {"content": [{"text": "Hi"}]}}}
    assert read(*events_of(whole)) == [Text("Hi"), Finish("unknown", None)]


def test_thinking_keeps_its_signature_and_its_encrypted_bytes() -> None:
    assert read(
        delta(0, reasoningContent={"text": "Let me "}),
        delta(0, reasoningContent={"text": "see."}),
        delta(0, reasoningContent={"signature": "SIG"}),
        stop(0),
        delta(1, reasoningContent={"redactedContent": b"\x00\xff"}),
        stop(1),
        end("end_turn"),
    ) == [
        Thinking("Let me see."),
        ProviderBlock("bedrock", {"type": "thinking", "thinking": "Let me see.", "signature": "SIG"}, thinking=True),
        ProviderBlock("bedrock", {"type": "redacted_thinking", "data": "AP8="}, thinking=True),
        Finish("stop", "end_turn"),
    ]


def test_thinking_without_a_signature_is_only_shown() -> None:
    """DeepSeek and gpt-oss sign nothing, and refuse their own thinking in a conversation."""
    thought = delta(0, reasoningContent={"text": "Hm."})
    assert read(thought, stop(0), end("end_turn")) == [Thinking("Hm."), Finish("stop", "end_turn")]


def test_parallel_calls() -> None:
    assert read(
        start(0, toolUse={"toolUseId": "t", "name": "add"}),
        delta(0, toolUse={"input": '{"a"'}),
        delta(0, toolUse={"input": ": 1}"}),
        stop(0),
        start(1, toolUse={"toolUseId": "u", "name": "ping"}),
        stop(1),
        end("tool_use"),
    ) == [
        CallStart(0, "add", "t"),
        ArgumentDelta(0, '{"a": 1}'),
        CallStart(1, "ping", "u"),
        CallEnd(0, ToolCall("t", "add", {"a": 1}, None, '{"a": 1}')),
        CallEnd(1, ToolCall("u", "ping")),
        Finish("tool_calls", "tool_use"),
    ]


def test_a_call_that_the_limit_cut_does_not_run() -> None:
    for ending in ([stop(0), end("max_tokens")], [end("max_tokens")], [stop(0), end("model_context_window_exceeded")]):
        call = start(0, toolUse={"toolUseId": "t", "name": "add"})
        *_, cut, finish = read(call, delta(0, toolUse={"input": '{"a": 1}'}), *ending)
        assert isinstance(cut, CallError)
        assert (cut.code, finish) == ("truncated_call", Finish("length", next(iter(ending[-1].values()))["stopReason"]))


def test_a_broken_stream_has_no_finish_and_its_open_call_does_not_run() -> None:
    call = start(0, toolUse={"toolUseId": "t", "name": "add"})
    (cut,) = [e for e in read(call, delta(0, toolUse={"input": "{}"})) if isinstance(e, CallError | Finish)]
    assert isinstance(cut, CallError)
    assert cut.code == "truncated_call"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("malformed_model_output", "error"),
    ],
)
def test_every_reason_for_a_stop(reason: str, finish: str) -> None:
    assert read(delta(0, text="Hi"), stop(0), end(reason)) == [Text("Hi"), Finish(finish, reason)]  # type: ignore[arg-type]


def test_a_guardrail_retracts_the_calls() -> None:
    call = start(0, toolUse={"toolUseId": "t", "name": "ping"})
    *_, denied, _ = read(call, delta(0, toolUse={"input": '{"a": 1}'}), stop(0), end("guardrail_intervened"))
    assert isinstance(denied, CallError)


def test_a_malformed_call_is_no_answer() -> None:
    """The service could not read the call: the model is asked again."""
    assert read(end("malformed_tool_use")) == [UnreadCall("", ""), Finish("unknown", "malformed_tool_use")]


CALL = {"type": "server_tool_use", "id": "s", "name": "nova_grounding"}
RESULT = {"type": "server_tool_result", "tool_use_id": "s", "status": "success"}


def test_what_the_service_calls_itself_is_a_block_of_the_provider() -> None:
    use = {"toolUseId": "s", "name": "nova_grounding", "type": "server_tool_use"}
    streamed = read(
        start(0, toolUse=use),
        delta(0, toolUse={"input": '{"query": "x"}'}),
        stop(0),
        start(1, toolResult={"toolUseId": "s", "status": "success", "type": "nova_grounding_result"}),
        delta(1, toolResult=[{"json": {"found": 1}}]),
        stop(1),
        delta(2, text="One."),
        delta(2, citation={"location": {"web": {"url": "https://x"}}}),
        stop(2),
        end("end_turn"),
    )
    assert streamed == [
        ProviderBlock("bedrock", {**CALL, "input": {"query": "x"}}),
        ProviderBlock("bedrock", {**RESULT, "content": [{"json": {"found": 1}}], "kind": "nova_grounding_result"}),
        Text("One."),
        Finish("stop", "end_turn"),
    ]
    result = {"toolUseId": "s", "type": "nova_grounding_result", "content": [{"json": {"found": 1}}]}
    cited = {"citationsContent": {"content": [{"text": "One."}], "citations": []}}
    content = [{"toolUse": {**use, "input": {"query": "x"}}}, {"toolResult": result}, cited]
    assert read(*events_of({"output": {"message": {"content": content}}, "stopReason": "end_turn"})) == streamed


def test_whole_response_goes_the_same_way() -> None:
    body = {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "SIG"}}},
                    {"reasoningContent": {"redactedContent": b"\x00\xff"}},
                    {"text": "I add."},
                    {"toolUse": {"toolUseId": "t", "name": "add", "input": {"a": 1}}},
                    {"toolUse": {"toolUseId": "u", "name": "ping", "input": {}}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
        "metrics": {"latencyMs": 7},
    }
    assert read(*events_of(body)) == [
        Thinking("Hm."),
        ProviderBlock("bedrock", {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}, thinking=True),
        ProviderBlock("bedrock", {"type": "redacted_thinking", "data": "AP8="}, thinking=True),
        Text("I add."),
        CallStart(0, "add", "t"),
        ArgumentDelta(0, '{"a": 1}'),
        CallStart(1, "ping", "u"),
        CallEnd(0, ToolCall("t", "add", {"a": 1}, None, '{"a": 1}')),
        CallEnd(1, ToolCall("u", "ping")),
        Usage(3, 2),
        Finish("tool_calls", "tool_use"),
    ]


def test_an_unknown_block_is_reported_once_and_its_values_are_not(caplog: pytest.LogCaptureFixture) -> None:
    image = {"image": {"format": "png", "source": {"bytes": b"secret"}}}
    assert read(delta(0, **image), delta(1, **image), end("end_turn")) == [Finish("stop", "end_turn")]
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text
