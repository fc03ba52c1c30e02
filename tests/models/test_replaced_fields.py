"""Any field of a response replaced by what does not belong there, in all wires, streamed and whole.

No other exception than ours comes of it, no call with arguments that were not said, and no call is lost in silence.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from recordings import ABSENT, rows

from agentkit.events import CallEnd, CallError, Event, Finish, UnreadCall
from agentkit.models import anthropic, openai, responses
from agentkit.models.stream_errors import ErrorInStream
from agentkit.models.wire import DONE, Wire, WireEvent

DEEP: list[Any] = []
for _ in range(150):
    DEEP = [DEEP]

ODD = [None, "", "odd", 0, -1, [], {}, {"a": 1}, DEEP]

SAID = {"arguments", "input", "partial_json", "name"}
"""Where a response says what a call is: another value there is another call."""


HOLDERS = {"type", "choices", "message", "delta", "tool_calls", "function", "output", "content"}
"""What holds calls or their arguments, and what says that something is one."""


class Response(NamedTuple):
    """A response of one API: the events of its stream, or its body alone."""

    api: str
    data: list[Any]
    whole: bool = False

    def wire(self) -> Wire:
        tools = ("pay", "look_up")
        wires = {
            "openai-chat": lambda: openai.ChatWire("p", tools),
            "openai-responses": lambda: responses.ResponsesWire("p"),
            "anthropic-messages": lambda: anthropic.MessagesWire("p"),
        }
        return wires[self.api]()

    def events(self) -> list[WireEvent]:
        as_streamed = {
            "openai-chat": openai.chunks_of,
            "openai-responses": responses.events_of,
            "anthropic-messages": anthropic.events_of,
        }
        return list(as_streamed[self.api](self.data[0])) if self.whole else self.data

    def read(self) -> list[Event]:
        wire = self.wire()
        return [out for event in self.events() if not wire.over for out in wire.feed(event)] + wire.close()

    def replaced(self) -> Iterator[tuple[tuple[str | int, ...], Any, Response]]:
        """It with each field replaced by each odd value."""
        for path in paths(self.data):
            if len(path) > 1 and self.data[int(path[0])] is not DONE:
                for odd in ODD:
                    yield path, odd, self._replace(data=put(self.data, path, odd))


def paths(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from paths(inner, (*at, key))


def put(data: list[Any], path: tuple[str | int, ...], value: Any) -> list[Any]:
    changed = [*data]
    changed[int(path[0])] = inner = copy.deepcopy(data[int(path[0])])
    for key in path[1:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def calls(events: list[Event]) -> Counter[tuple[str, str]]:
    return Counter(
        (e.call.name, json.dumps(e.call.arguments, sort_keys=True)) for e in events if isinstance(e, CallEnd)
    )


def check(response: Response) -> None:
    """Each variant reads the same calls, or fewer and says so; or is an error that the provider reports."""
    try:
        wanted = calls(response.read())
    except ErrorInStream:
        return
    for path, odd, variant in response.replaced():
        try:
            found = variant.read()
        except ErrorInStream:
            continue
        told = (path, str(odd)[:20], [e for e in found if isinstance(e, CallEnd | CallError)])
        gone = isinstance(path[-1], int) or path[-1] in HOLDERS  # then nothing tells of a call, or of its arguments
        if not gone and not SAID.intersection(path):
            assert calls(found) <= wanted, told
        finish = next((e for e in found if isinstance(e, Finish)), None)
        if sum(calls(found).values()) < sum(wanted.values()) and finish is not None:
            announced = finish.reason == "tool_calls" and not calls(found)  # an error of its own, see `no_calls`
            assert announced or gone or any(isinstance(e, CallError | UnreadCall) for e in found), told


def piece(at: int, text: str, **named: str) -> WireEvent:
    function = {"arguments": text} | ({"name": named["name"]} if named else {})
    call = {"index": at, "function": function} | ({"id": named["id"], "type": "function"} if named else {})
    return {"id": "r", "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


def item(at: int, name: str, text: str) -> dict[str, Any]:
    fields = {"type": "function_call", "id": f"fc{at}", "call_id": f"c{at}", "name": name}
    return {**fields, "arguments": text, "status": "completed"}


def streamed_item(at: int, name: str, text: str) -> list[WireEvent]:
    named = {"output_index": at, "item_id": f"fc{at}"}
    whole = item(at, name, text)
    return [
        {
            "type": "response.output_item.added",
            "output_index": at,
            "item": {**whole, "arguments": "", "status": "in_progress"},
        },
        {"type": "response.function_call_arguments.delta", **named, "delta": text[:6]},
        {"type": "response.function_call_arguments.delta", **named, "delta": text[6:]},
        {"type": "response.function_call_arguments.done", **named, "arguments": text},
        {"type": "response.output_item.done", "output_index": at, "item": whole},
    ]


def streamed_block(at: int, name: str, text: str) -> list[WireEvent]:
    block = {"type": "tool_use", "id": f"c{at}", "name": name, "input": {}}
    pieces = [{"type": "input_json_delta", "partial_json": part} for part in (text[:6], text[6:])]
    return [
        {"type": "content_block_start", "index": at, "content_block": block},
        *({"type": "content_block_delta", "index": at, "delta": delta} for delta in pieces),
        {"type": "content_block_stop", "index": at},
    ]


PAY, LOOK = '{"to": "Al"}', '{"id": 7}'
CHAT_CALLS = [
    {"id": "c0", "type": "function", "function": {"name": "pay", "arguments": PAY}},
    {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": LOOK}},
]
OUTPUT = [item(0, "pay", PAY), item(1, "look_up", LOOK)]
COMPLETED = {"status": "completed", "output": OUTPUT, "usage": {"input_tokens": 1, "output_tokens": 2}}
CONTENT = [
    {"type": "tool_use", "id": "c0", "name": "pay", "input": {"to": "Al"}},
    {"type": "tool_use", "id": "c1", "name": "look_up", "input": {"id": 7}},
]
END: list[WireEvent] = [
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
RESPONSES = {
    "chat streamed": Response(
        "openai-chat",
        [
            piece(0, "", id="c0", name="pay"),
            piece(0, PAY[:6]),
            piece(0, PAY[6:]),
            piece(1, "", id="c1", name="look_up"),
            piece(1, LOOK),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
            DONE,
        ],
    ),
    "chat whole": Response(
        "openai-chat",
        [
            {
                "choices": [
                    {"index": 0, "message": {"content": None, "tool_calls": CHAT_CALLS}, "finish_reason": "tool_calls"}
                ]
            }
        ],
        whole=True,
    ),
    "responses streamed": Response(
        "openai-responses",
        [
            *streamed_item(0, "pay", PAY),
            *streamed_item(1, "look_up", LOOK),
            {"type": "response.completed", "response": COMPLETED},
        ],
    ),
    "responses whole": Response("openai-responses", [COMPLETED], whole=True),
    "messages streamed": Response(
        "anthropic-messages",
        [
            {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}},
            *streamed_block(0, "pay", PAY),
            *streamed_block(1, "look_up", LOOK),
            *END,
        ],
    ),
    "messages whole": Response(
        "anthropic-messages", [{"type": "message", "content": CONTENT, "stop_reason": "tool_use"}], whole=True
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_any_field_replaced(name: str) -> None:
    check(RESPONSES[name])


@pytest.mark.soak
@pytest.mark.skipif(not rows("wire.jsonl"), reason=ABSENT)
@pytest.mark.parametrize("share", range(8))
def test_any_field_of_a_recording_replaced(share: int) -> None:
    for row in rows("wire.jsonl")[share::40]:
        response = row["response"]
        if "sse" not in response:
            body = response["body"]
            check(Response(row["api"], [json.loads(body) if isinstance(body, str) else body], whole=True))
            continue
        data = [line[5:].strip() for line in response["sse"].splitlines() if line.startswith("data:")]
        if len(data) < 60:
            check(Response(row["api"], [DONE if one == "[DONE]" else json.loads(one) for one in data]))
