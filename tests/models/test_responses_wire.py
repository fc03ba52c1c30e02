"""The Responses API's events, one by one, and what they mean."""

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
from agentkit.models.responses import ResponsesWire, events_of
from agentkit.models.stream_errors import ErrorInStream
from agentkit.models.wire import WireEvent

CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c",
    "name": "add",
    "arguments": '{"a":1}',
    "status": "completed",
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}


def read(*wire_events: WireEvent) -> list[Event]:
    wire = ResponsesWire("responses")
    events = [event for wire_event in wire_events for event in wire.feed(wire_event)]
    return merge([*events, *wire.close()])


def event(kind: str, at: int = 0, **fields: Any) -> WireEvent:
    return {"type": f"response.{kind}", "output_index": at, **fields}


def end(status: str = "completed", reason: str | None = None, **fields: Any) -> WireEvent:
    details = {"reason": reason} if reason else None
    return event(status, response={"status": status, "incomplete_details": details, **fields})


def test_streamed_call_with_reasoning_before_it() -> None:
    reasoning = {**REASONING, "encrypted_content": "E"}
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
        "output_tokens": 8,
        "output_tokens_details": {"reasoning_tokens": 6},
    }
    assert read(
        event("created", response={"status": "in_progress"}),
        event("output_item.added", item={"type": "reasoning", "id": "rs_1"}),
        event("reasoning_summary_part.added", summary_index=0),
        event("reasoning_summary_text.delta", delta="H", summary_index=0),
        event("reasoning_summary_text.delta", delta="m.", summary_index=0),
        event("output_item.done", item=reasoning),
        event("output_item.added", 1, item={**CALL, "arguments": "", "status": "in_progress"}),
        event("function_call_arguments.delta", 1, delta='{"a"'),
        event("function_call_arguments.delta", 1, delta=":1}"),
        event("function_call_arguments.done", 1, arguments='{"a":1}'),
        event("output_item.done", 1, item=CALL),
        end(usage=usage),
    ) == [
        Thinking("Hm."),
        ProviderBlock("responses", reasoning, thinking=True),
        CallStart(0, "add", "c"),
        ArgumentDelta(0, '{"a":1}'),
        CallEnd(0, ToolCall("c", "add", {"a": 1}, None, '{"a":1}')),
        Usage(9, 8, 4, 1, 6),
        Finish("tool_calls", "completed"),
    ]


def test_whole_response_goes_the_same_way() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}], "phase": "final_answer"}
    body = {
        "status": "completed",
        "output": [REASONING, message, CALL],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    assert read(*events_of(body)) == [
        Thinking("Hm."),
        ProviderBlock("responses", REASONING, thinking=True),
        Text("Hi"),
        ProviderBlock("responses", {"type": "message", "phase": "final_answer"}),
        CallStart(0, "add", "c"),
        ArgumentDelta(0, '{"a":1}'),
        CallEnd(0, ToolCall("c", "add", {"a": 1}, None, '{"a":1}')),
        Usage(1, 2),
        Finish("tool_calls", "completed"),
    ]


def test_interleaved_calls() -> None:
    other = {**CALL, "call_id": "d", "arguments": '{"a":2}'}
    events = read(
        event("output_item.added", 0, item={**CALL, "arguments": ""}),
        event("output_item.added", 1, item={**other, "arguments": ""}),
        event("function_call_arguments.delta", 1, delta='{"a":'),
        event("function_call_arguments.delta", 0, delta='{"a":1}'),
        event("function_call_arguments.delta", 1, delta="2}"),
        event("output_item.done", 0, item=CALL),
        event("output_item.done", 1, item=other),
        end(),
    )
    assert [(e.call.id, e.call.arguments) for e in events if isinstance(e, CallEnd)] == [
        ("c", {"a": 1}),
        ("d", {"a": 2}),
    ]


def test_parts_of_a_summary_are_paragraphs() -> None:
    assert read(
        event("reasoning_summary_text.delta", delta="One."),
        event("reasoning_summary_part.added", summary_index=1),
        event("reasoning_summary_text.delta", delta="Two."),
    ) == [Thinking("One.\n\nTwo.")]


def test_refusal() -> None:
    assert read(event("refusal.delta", delta="I will"), event("refusal.delta", delta=" not."), end()) == [
        Text("I will not."),
        Finish("refusal", "completed"),
    ]


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_incomplete(reason: str, finish: str) -> None:
    assert read(event("output_text.delta", delta="Hi"), end("incomplete", reason)) == [
        Text("Hi"),
        Finish(finish, reason),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("text", ["", '{"path": "a', '{"path": "a"}'])
def test_call_of_an_incomplete_response_is_truncated(text: str) -> None:
    item = {**CALL, "arguments": text, "status": "incomplete"}
    events = read(event("output_item.done", item=item), end("incomplete", "max_output_tokens"))
    assert [e.code for e in events if isinstance(e, CallError)] == ["truncated_call"]


def test_custom_tool_call_hands_its_input_over_under_one_name() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "calc", "input": "4 + 4", "status": "completed"}
    events = read(event("output_item.done", item=item), end())
    assert [e.call.arguments for e in events if isinstance(e, CallEnd)] == [{"input": "4 + 4"}]
    assert ProviderBlock("responses", {"type": "custom_tool_call"}, index=0) in events


def test_namespace_of_a_call_is_kept() -> None:
    events = read(event("output_item.done", item={**CALL, "namespace": "n"}), end())
    assert ProviderBlock("responses", {"type": "function_call", "namespace": "n"}, index=0) in events


def test_server_tools_are_kept() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert read(event("output_item.done", item=item), end())[0] == ProviderBlock("responses", item)


def test_server_that_streams_nothing_but_the_end() -> None:
    assert read(end(output=[{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}])) == [
        Text("Hi"),
        Finish("stop", "completed"),
    ]


@pytest.mark.parametrize(
    "failed",
    [
        event("failed", response={"error": {"code": "server_error", "message": "Sorry"}}),
        {"type": "error", "code": "server_error", "message": "Sorry"},
        {"type": "error", "error": {"code": "server_error", "message": "Sorry"}},
        *events_of({"status": "failed", "error": {"code": "server_error", "message": "Sorry"}}),
    ],
)
def test_failures(failed: WireEvent) -> None:
    with pytest.raises(ErrorInStream, match="Sorry") as caught:
        ResponsesWire("responses").feed(failed)
    assert caught.value.code == "server_error"


def test_stream_that_just_stops_is_not_done() -> None:
    wire = ResponsesWire("responses")
    wire.feed(event("output_item.added", item={**CALL, "arguments": ""}))
    wire.feed(event("function_call_arguments.delta", delta='{"a":1}'))
    assert [e.code for e in wire.close() if isinstance(e, CallError)] == ["truncated_call"]
    assert not wire.done


KEYS = ["type", "id", "call_id", "name", "arguments", "status", "content", "text", "summary", "phase", "input"]
KINDS = ["message", "function_call", "reasoning", "custom_tool_call", "output_text", "x"]
TYPES = [
    "output_item.added",
    "output_item.done",
    "output_text.delta",
    "function_call_arguments.delta",
    "reasoning_text.delta",
    "reasoning_summary_text.delta",
    "completed",
]
WIRE_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=10,
)


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.integers(0, 2), WIRE_JSON, WIRE_JSON), max_size=8))
def test_no_event_breaks_the_machine(given_events: list[tuple[str, int, Any, Any]]) -> None:
    wire = ResponsesWire("responses")
    events: list[Event] = []
    for kind, at, item, delta in given_events:
        events += wire.feed(event(kind, at, item=item, delta=delta, response={"output": [item], "usage": delta}))
    events += wire.close()
    begun = [e.index for e in events if isinstance(e, CallStart)]
    ended = [e.index for e in events if isinstance(e, CallEnd | CallError)]
    assert sorted(begun) == sorted(ended) == list(range(len(begun)))


def test_two_calls_with_one_id_are_two_calls() -> None:
    """By their places; in a response as a whole, by their order."""
    items = [
        {"type": "function_call", "id": f"f{n}", "call_id": "c", "name": "f", "arguments": f'{{"n": {n}}}'}
        for n in (0, 1)
    ]
    ends = [event("output_item.done", n, item=item) for n, item in enumerate(items)]
    for events in ([*ends, end(output=items)], [end(output=items)]):
        assert [e.call.arguments for e in read(*events) if isinstance(e, CallEnd)] == [{"n": 0}, {"n": 1}]
