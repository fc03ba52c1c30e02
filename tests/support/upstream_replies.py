"""Replies of model servers in each wire, made of a text, and read back by agentkit's own wires."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentkit.events import CallEnd, CallError, Finish, SourceEvent, Text, Thinking
from agentkit.gateway.client_wire import WireName
from agentkit.models import messages_wire, openai, responses_wire
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.openai import ChatWire
from agentkit.models.responses_wire import ResponsesWire
from agentkit.models.sse import EventReader
from agentkit.models.wire import DONE, WireEvent


def named(event: Mapping[str, Any]) -> bytes:
    """An event with its name, as the two newer APIs send them."""
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def unnamed(event: Mapping[str, Any]) -> bytes:
    """An event of chat completions."""
    return f"data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


# ---------------------------------------------------------------- chat completions

CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1784878121, "model": "m"}
CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    """A chunk as vLLM sends it."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return unnamed({**CHUNK, "choices": [choice]})


def chat_stream(texts: Iterable[str], finish: str = "stop") -> list[bytes]:
    """A streamed completion: the role, the deltas, the finish, the usage."""
    return [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": text}) for text in texts),
        chunk({}, finish),
        unnamed({**CHUNK, "choices": [], "usage": CHAT_USAGE}),
        b"data: [DONE]\n\n",
    ]


def chat_whole(text: str, finish: str = "stop") -> dict[str, Any]:
    """A whole completion."""
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {**CHUNK, "object": "chat.completion", "choices": [choice], "usage": CHAT_USAGE}


# ---------------------------------------------------------------- messages

MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}


def messages_stream(texts: Iterable[str], finish: str = "end_turn") -> list[bytes]:
    """A streamed message with one block of text."""
    begun: dict[str, Any] = {
        **MESSAGE,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    block = {"type": "text", "text": ""}
    return [
        named({"type": "message_start", "message": begun}),
        named({"type": "content_block_start", "index": 0, "content_block": block}),
        named({"type": "ping"}),
        *(
            named({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
            for text in texts
        ),
        named({"type": "content_block_stop", "index": 0}),
        named(
            {
                "type": "message_delta",
                "delta": {"stop_reason": finish, "stop_sequence": None},
                "usage": {"output_tokens": 5},
            }
        ),
        named({"type": "message_stop"}),
    ]


def messages_whole(text: str, finish: str = "end_turn") -> dict[str, Any]:
    """A whole message."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {**MESSAGE, "content": [{"type": "text", "text": text}], "stop_reason": finish, "usage": usage}


# ---------------------------------------------------------------- responses

RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1784878121, "model": "m", "error": None,
    "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0,
    "tool_choice": "auto", "tools": [], "top_p": 1.0,
}  # fmt: skip
RESPONSES_USAGE = {
    "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
}  # fmt: skip


def output_text(text: str) -> dict[str, Any]:
    """A part of a message in the output."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def output_message(text: str | None, status: str) -> dict[str, Any]:
    """A message in the output."""
    content = [] if text is None else [output_text(text)]
    return {"id": "msg_1", "type": "message", "status": status, "role": "assistant", "content": content}


def responses_stream(texts: Iterable[str], finish: str = "completed") -> list[bytes]:
    """A streamed response with one message."""
    texts = [*texts]
    text = "".join(texts)
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    running = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    done = {**responses_whole(text), "status": finish}
    if finish == "incomplete":
        done["incomplete_details"] = {"reason": "max_output_tokens"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": running},
        {"type": "response.in_progress", "response": running},
        {"type": "response.output_item.added", "output_index": 0, "item": output_message(None, "in_progress")},
        {"type": "response.content_part.added", **at, "part": output_text("")},
        *({"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []} for piece in texts),
        {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": output_text(text)},
        {"type": "response.output_item.done", "output_index": 0, "item": output_message(text, "completed")},
        {"type": f"response.{finish}", "response": done},
    ]
    return [named({**event, "sequence_number": number}) for number, event in enumerate(events)]


def responses_whole(text: str, finish: str = "completed") -> dict[str, Any]:
    """A whole response."""
    return {**RESPONSE, "status": finish, "output": [output_message(text, "completed")], "usage": RESPONSES_USAGE}


# ---------------------------------------------------------------- read back


class ReadReply(NamedTuple):
    """What a reply says: its text, its calls, and why it ended."""

    text: str
    calls: list[tuple[str, dict[str, Any]]]
    finish: str | None
    ids: list[str]
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class WireKit:
    """One wire: how its replies are made and read, and its word for the token limit."""

    stream: Callable[..., list[bytes]]
    whole: Callable[..., dict[str, Any]]
    reader: Callable[[], Any]
    as_streamed: Callable[[Mapping[str, Any]], Iterable[WireEvent]]
    limit: str

    def read(self, body: bytes) -> ReadReply:
        """What a streamed reply says, or its beginning."""
        events = EventReader(1 << 26)
        found = [*events.feed(body), *events.close()]
        return self._read([DONE if data.startswith("[DONE]") else json.loads(data) for _, data in found])

    def read_whole(self, body: bytes) -> ReadReply:
        """What a whole reply says."""
        return self._read([*self.as_streamed(json.loads(body))])

    def _read(self, wire_events: Sequence[WireEvent]) -> ReadReply:
        wire = self.reader()
        events: list[SourceEvent] = [event for one in wire_events for event in wire.feed(one)]
        events += wire.close()
        assert not any(isinstance(event, CallError) for event in events), events
        calls = [event.call for event in events if isinstance(event, CallEnd)]
        return ReadReply(
            "".join(event.text for event in events if isinstance(event, Text)),
            [(call.name, dict(call.arguments)) for call in calls],
            next((event.reason for event in events if isinstance(event, Finish)), None),
            [call.id for call in calls],
            "".join(event.text for event in events if isinstance(event, Thinking)),
        )


WIRES: Mapping[WireName, WireKit] = {
    "chat": WireKit(chat_stream, chat_whole, lambda: ChatWire("p"), openai.chunks_of, "length"),
    "messages": WireKit(
        messages_stream, messages_whole, lambda: MessagesWire("p"), messages_wire.events_of, "max_tokens"
    ),
    "responses": WireKit(
        responses_stream, responses_whole, lambda: ResponsesWire("p"), responses_wire.events_of, "incomplete"
    ),
}
