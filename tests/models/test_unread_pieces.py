"""Events in shapes that no protocol has: what is plain is read all the same, and the rest is logged once.

A lost piece of a call damages its JSON, so that the call is refused; as bytes through the real SDKs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from streams import answer

from agentkit.events import CallEnd, CallError, Text
from agentkit.testing import Replay

TEXT = '{"path": "/tmp/cache/old", "n": 1}'
CUT = ('{"path": "/tmp', '/cache/old", ', '"n": 1}')


def chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(text: str) -> dict[str, Any]:
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})


HEAD = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "delete", "arguments": ""}}]})
END = chunk({}, "tool_calls")


def block(text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}


MESSAGES = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "delete"}},
    *map(block, CUT),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]
ITEM = {"type": "function_call", "id": "f", "call_id": "c", "name": "delete", "arguments": ""}
RESPONSES = [
    {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
    *({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text} for text in CUT),
    {"type": "response.completed", "response": {"status": "completed", "output": []}},
]
STREAMS: dict[str, list[Any]] = {
    "openai": [HEAD, *map(piece, CUT), END],
    "anthropic": MESSAGES,
    "responses": RESPONSES,
}


def sse(events: list[Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def ran(prefix: str, events: list[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The arguments of the calls that run, and the codes of those that do not."""
    found, _ = answer(Replay([sse(events)]).model(f"{prefix}:m"))
    run = [dict(e.call.arguments) for e in found if isinstance(e, CallEnd)]
    return run, [e.code for e in found if isinstance(e, CallError)]


HEARTBEATS: list[Any] = [{"type": "ping"}, {}, None, [], "", "ping"]


@pytest.mark.parametrize("prefix", STREAMS)
def test_an_event_that_says_nothing_costs_no_call(prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    stream = STREAMS[prefix]
    for quiet in HEARTBEATS:
        assert ran(prefix, [*stream[:2], quiet, *stream[2:]]) == ([json.loads(TEXT)], [])
    assert not [record for record in caplog.records if "'data'" not in record.getMessage()]


@pytest.mark.parametrize("prefix", STREAMS)
def test_an_event_of_no_known_shape_is_logged_once_without_its_words(
    prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream, odd = STREAMS[prefix], {"odd": "words"}
    assert ran(prefix, [*stream[:2], odd, odd, *stream[2:]]) == ([json.loads(TEXT)], [])
    [record] = caplog.records
    assert "has a shape that cannot be read, with the fields 'odd'" in record.getMessage()


@pytest.mark.parametrize("prefix", STREAMS)
def test_a_call_whose_piece_came_in_another_shape_is_refused(prefix: str) -> None:
    """The middle piece is lost: what is left is no JSON, or another object than the schema wants."""
    stream = list(STREAMS[prefix])
    stream[2] = {"odd": CUT[1]}
    run, codes = ran(prefix, stream)
    assert (run, len(codes)) == ([], 1)


PLAIN: dict[str, Callable[[str], Any]] = {
    "no function": lambda t: chunk({"tool_calls": [{"index": 0, "arguments": t}]}),
    "calls as an object": lambda t: chunk({"tool_calls": {"index": 0, "function": {"arguments": t}}}),
    "chunk in a list": lambda t: [piece(t)],
}


@pytest.mark.parametrize("plain", PLAIN)
def test_a_piece_of_a_chat_completion_that_is_plain_is_read(plain: str) -> None:
    assert ran("openai", [HEAD, *map(PLAIN[plain], CUT), END]) == ([json.loads(TEXT)], [])


def test_a_call_of_a_chat_completion_without_the_object_function_is_read() -> None:
    call = {"id": "c", "name": "delete", "arguments": TEXT}
    whole = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    for recording in (sse([chunk({"tool_calls": [call]}), END]), whole):
        events, _ = answer(Replay([recording]).model("openai:m"), stream=isinstance(recording, str))
        assert [(e.call.name, e.call.raw) for e in events if isinstance(e, CallEnd)] == [("delete", TEXT)]


@pytest.mark.parametrize("type", ["absent", None])
def test_the_name_of_a_server_sent_event_is_its_type_where_its_data_has_none(type: str | None) -> None:
    for prefix in ("anthropic", "responses"):
        events = STREAMS[prefix]
        bare = [{k: v for k, v in e.items() if k != "type"} | ({"type": None} if type is None else {}) for e in events]
        lines = zip(events, bare, strict=True)
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(one)}\n\n" for event, one in lines)
        found, _ = answer(Replay([body]).model(f"{prefix}:m"))
        assert [dict(e.call.arguments) for e in found if isinstance(e, CallEnd)] == [json.loads(TEXT)]


TEXTS: dict[str, Callable[[str], Any]] = {
    "a list of texts": lambda t: chunk({"content": [t]}),
    "a part": lambda t: chunk({"content": {"type": "text", "text": t}}),
    "a list of parts": lambda t: chunk({"content": [{"type": "text", "text": t}]}),
    "text of the delta": lambda t: chunk({"text": t}),
    "text of the choice": lambda t: {"choices": [{"index": 0, "text": t}]},
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_is_plain_is_read(text: str) -> None:
    body = sse([chunk({"content": "a "}), TEXTS[text]("word"), chunk({"content": "."}), chunk({}, "stop")])
    events, _ = answer(Replay([body]).model("openai:m"))
    assert events[0] == Text("a word.")
