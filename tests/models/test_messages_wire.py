"""Anthropic's events, one by one, and what they mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Usage,
    merge,
)
from agentkit.messages import ToolCall
from agentkit.models.messages_wire import MessagesWire, events_of
from agentkit.models.stream_errors import ErrorInStream
from agentkit.models.wire import WireEvent


def read(*wire_events: WireEvent) -> list[Event]:
    wire = MessagesWire("anthropic")
    events = [event for wire_event in wire_events for event in wire.feed(wire_event)]
    return merge([*events, *wire.close()])


def start(at: int, **block: Any) -> WireEvent:
    return {"type": "content_block_start", "index": at, "content_block": block}


def delta(at: int, **fields: Any) -> WireEvent:
    return {"type": "content_block_delta", "index": at, "delta": fields}


def json_delta(at: int, text: str) -> WireEvent:
    return delta(at, type="input_json_delta", partial_json=text)


def stop(at: int) -> WireEvent:
    return {"type": "content_block_stop", "index": at}


def end(reason: str, **usage: Any) -> list[WireEvent]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


def test_streamed_text_and_usage() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1}
    assert read(
        {"type": "message_start", "message": {"usage": usage}},
        start(0, type="text", text=""),
        {"type": "ping"},
        delta(0, type="text_delta", text="Hel"),
        delta(0, type="text_delta", text="lo"),
        stop(0),
        *end("end_turn", output_tokens=7, output_tokens_details={"thinking_tokens": 3}),
    ) == [Text("Hello"), Usage(17, 7, 5, 2, 3), Finish("stop", "end_turn")]


def test_thinking_keeps_its_signature() -> None:
    assert read(
        start(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="Let me "),
        delta(0, type="thinking_delta", thinking="see."),
        delta(0, type="signature_delta", signature="SIG"),
        stop(0),
        start(1, type="redacted_thinking", data="XXX"),
        stop(1),
        start(2, type="tool_use", id="t", name="ping", input={}),
        json_delta(2, ""),
        stop(2),
        *end("tool_use"),
    ) == [
        Thinking("Let me see."),
        ProviderBlock("anthropic", {"type": "thinking", "thinking": "Let me see.", "signature": "SIG"}, thinking=True),
        ProviderBlock("anthropic", {"type": "redacted_thinking", "data": "XXX"}, thinking=True),
        CallStart(0, "ping", "t"),
        CallEnd(0, ToolCall("t", "ping")),
        Finish("tool_calls", "tool_use"),
    ]


@pytest.mark.parametrize("stops", [True, False])
def test_calls_that_share_an_index_are_refused_unless_each_has_ended_before_the_next(stops: bool) -> None:
    events = []
    for id in "tu":
        events += [start(0, type="tool_use", id=id, name="add", input={}), json_delta(0, '{"a": 1}')]
        events += [stop(0)] if stops else []
    found = [e for e in read(*events, *end("tool_use")) if isinstance(e, CallEnd | CallError)]
    assert [e.code if isinstance(e, CallError) else e.call.id for e in found] == (
        ["t", "u"] if stops else ["ambiguous_call"] * 2
    )


def test_whole_message_goes_the_same_way() -> None:
    body = {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "SIG"},
            {"type": "text", "text": "I add."},
            {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    assert read(*events_of(body)) == [
        Thinking("Hm."),
        ProviderBlock("anthropic", {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}, thinking=True),
        Text("I add."),
        CallStart(0, "add", "t"),
        ArgumentDelta(0, '{"a": 1}'),
        CallEnd(0, ToolCall("t", "add", {"a": 1}, None, '{"a": 1}')),
        Usage(3, 2),
        Finish("tool_calls", "tool_use"),
    ]


def test_server_tools_are_kept_and_their_calls_are_not_ours() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    assert read(
        start(0, type="server_tool_use", id="s", name="web_search", input={}),
        json_delta(0, '{"query": '),
        json_delta(0, '"x"}'),
        stop(0),
        start(1, **found),
        stop(1),
        *end("end_turn"),
    ) == [
        ProviderBlock(
            "anthropic", {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
        ),
        ProviderBlock("anthropic", found),
        Finish("stop", "end_turn"),
    ]


def test_caller_of_a_call_is_kept() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "s"}
    events = read(start(0, type="tool_use", id="t", name="ping", input={}, caller=caller), stop(0), *end("tool_use"))
    assert ProviderBlock("anthropic", {"caller": caller}, index=0) in events


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("new_reason", "unknown"),
    ],
)
def test_finish_reasons(raw: str, reason: str) -> None:
    assert read(*end(raw)) == [Finish(reason, raw)]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", '{"path": "a', '{"path": "a.txt"}'])
def test_call_without_the_end_of_its_block_is_truncated(text: str) -> None:
    events = read(start(0, type="tool_use", id="t", name="f", input={}), json_delta(0, text), *end("max_tokens"))
    assert [e.code for e in events if isinstance(e, CallError)] == ["truncated_call"]
    assert events[-1] == Finish("length", "max_tokens")


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "MAX_TOKENS"])
def test_last_call_at_the_limit_is_truncated_wherever_the_limit_is_told(reason: str) -> None:
    """Its block's end shows only that nothing more comes, before the limit is told as well as after it."""
    whole = [start(0, type="tool_use", id="t", name="f", input={}), json_delta(0, '{"a": 1}'), stop(0)]
    said = [start(0, type="text", text="Hm."), stop(0)]
    told, *rest = end(reason)
    ran = [*whole, start(1, type="tool_use", id="u", name="f", input={}), json_delta(1, '{"a": 1}'), stop(1)]
    for at in range(1, 4):
        events = read(*whole[:at], told, *whole[at:], *rest)
        assert [type(e) for e in events if isinstance(e, CallEnd | CallError)] == [CallError], at
        events = read(*ran[: 3 + at], told, *ran[3 + at :], *rest)
        assert [type(e) for e in events if isinstance(e, CallEnd | CallError)] == [CallEnd, CallError], at
        assert not [e for e in read(*said, *whole[:at], told, *whole[at:], *rest) if isinstance(e, CallEnd)]


def test_last_call_of_a_whole_message_at_the_limit_is_truncated() -> None:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"path": "a"}}
    body = {"type": "message", "content": [{**block, "id": "s"}, block], "stop_reason": "max_tokens"}
    events = read(*events_of(body))
    assert [type(e) for e in events if isinstance(e, CallEnd | CallError)] == [CallEnd, CallError]


def test_broken_json_costs_its_own_call_only() -> None:
    events = read(
        start(0, type="tool_use", id="s", name="note", input={}),
        json_delta(0, '{"text": "a'),
        stop(0),
        start(1, type="tool_use", id="t", name="note", input={}),
        json_delta(1, '{"text":"b"}'),
        stop(1),
        *end("tool_use"),
    )
    assert [(type(e), e.index) for e in events if isinstance(e, CallEnd | CallError)] == [(CallError, 0), (CallEnd, 1)]
    assert [(e.code, e.position) for e in events if isinstance(e, CallError)] == [("invalid_json", 9)]


def test_a_call_that_is_sent_twice_runs_once() -> None:
    block = [start(0, type="tool_use", id="t", name="note", input={}), json_delta(0, '{"text": "a"}'), stop(0)]
    first, again = [e for e in read(*block, *block, *end("tool_use")) if isinstance(e, CallEnd | CallError)]
    assert isinstance(first, CallEnd)
    assert first.call.arguments == {"text": "a"}
    assert isinstance(again, CallError)
    assert (again.code, again.message.partition(":")[0]) == ("ambiguous_call", "not run again")


def test_error_event() -> None:
    with pytest.raises(ErrorInStream, match="Overloaded") as caught:
        MessagesWire("anthropic").feed(
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        )
    assert caught.value.code == "overloaded_error"


def test_a_message_that_begins_in_the_middle_of_another_is_an_error() -> None:
    begun: WireEvent = {"type": "message_start", "message": {"usage": {"input_tokens": 1}}}
    wire = MessagesWire("anthropic")
    for event in (begun, begun, start(0, type="text", text="Hi"), stop(0)):  # one begun twice says nothing twice
        wire.feed(event)
    with pytest.raises(ErrorInStream, match="another message starts in the middle of this one"):
        wire.feed(begun)


def test_stream_that_just_stops_is_not_done() -> None:
    wire = MessagesWire("anthropic")
    wire.feed(start(0, type="tool_use", id="t", name="f", input={}))
    wire.feed(json_delta(0, '{"a": 1}'))
    assert [e.code for e in wire.close() if isinstance(e, CallError)] == ["truncated_call"]
    assert not wire.done


KEYS = ["type", "index", "content_block", "delta", "id", "name", "input", "text", "partial_json", "usage", "thinking"]
TYPES = ["content_block_start", "content_block_delta", "content_block_stop", "message_start", "message_delta"]
BLOCKS = ["text", "tool_use", "thinking", "text_delta", "input_json_delta", "thinking_delta", "server_tool_use"]

WIRE_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(BLOCKS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=10,
)


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.integers(0, 2), WIRE_JSON, WIRE_JSON), max_size=8))
def test_no_event_breaks_the_machine(given_events: list[tuple[str, int, Any, Any]]) -> None:
    wire = MessagesWire("anthropic")
    events: list[Event] = []
    for n, (kind, at, block, fields) in enumerate(given_events):
        if kind == "message_start" and any("block" in before[0] for before in given_events[:n]):
            continue  # refused, where a block has begun: another message in the middle of this one
        events += wire.feed({"type": kind, "index": at, "content_block": block, "delta": fields, "message": block})
    events += wire.close()
    begun = [e.index for e in events if isinstance(e, CallStart)]
    ended = [e.index for e in events if isinstance(e, CallEnd | CallError)]
    assert sorted(begun) == sorted(ended) == list(range(len(begun)))
