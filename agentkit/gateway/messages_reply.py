"""A reply as Anthropic's Messages API writes it: events, a whole message, errors. Pure.

Only one block is open at a time. While a call is open, events of other calls and texts wait until it has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    Finish,
    FinishReason,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    Usage,
)
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.error_replies import error_event
from agentkit.gateway.reply_parts import FAILED, WrittenCall, json_string, line, reason_with_calls, whole_reply
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.models.native_arguments import readable
from agentkit.models.valid_history import json_text

FINISHES: Final[Mapping[FinishReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
}
"""The words for the end; any other end is `end_turn`."""

_OWN_WORDS: Final = frozenset(("stop_sequence", "model_context_window_exceeded"))
"""Words of an upstream of this wire that say more than the reason."""

_STOPPED: Final = '{"type":"content_block_stop","index":'


class MessagesReply:
    """Writes one streamed message; see `ReplyWriter`.

    Args:
        asked: the request.
        id: what makes its id unique.
    """

    def __init__(self, asked: ClientRequest, id: str) -> None:
        self._asked = asked
        self._id = id
        self._index = -1  # of the last block
        self._open: type[SourceEvent] | None = None  # what the open block contains
        self._head = ""  # of a delta of the open block
        self._call: tuple[int, bool] | None = None  # the open call, and whether it has arguments so far
        self._waiting: deque[SourceEvent] = deque()
        self._called = False
        self._usage = Usage()

    def start(self) -> bytes:
        """The first bytes."""
        message = _message(self._asked, self._id, [], None, Usage())
        return _event("message_start", line({"type": "message_start", "message": message})).encode()

    def write(self, event: SourceEvent) -> bytes:
        """One event."""
        kind = type(event)
        if kind is self._open and (kind is Text or kind is Thinking):
            return (self._head + json_string(event.text) + "}}\n\n").encode()  # type: ignore[union-attr]
        return "".join(self._write(event)).encode()

    def fail(self, error: RequestRefused) -> bytes:
        """End the reply with an error."""
        return error_event("messages", messages_error(error))

    def _write(self, event: SourceEvent) -> Iterable[str]:
        if self._must_wait(event):
            self._waiting.append(event)
            return
        match event:
            case Text(text) | Thinking(text):
                yield from self._words(event, text)
            case CallStart(index, name, id):
                self._called, self._call = True, (index, False)
                block = {"type": "tool_use", "id": id or "", "name": name, "input": {}}
                yield from self._begin(CallStart, block, "input_json_delta", "partial_json")
            case ArgumentDelta(index, text):
                self._call = (index, True)
                yield f"{self._head}{json_string(text)}}}}}\n\n"
            case CallEnd(index):
                yield from self._end_call(event)
            case ProviderBlock():
                yield from self._block(event)
            case Usage():
                self._usage = event
            case Finish():
                yield from self._finish(event)

    def _must_wait(self, event: SourceEvent) -> bool:
        if self._call is None or isinstance(event, Usage | Finish):
            return False
        return not (isinstance(event, ArgumentDelta | CallEnd) and event.index == self._call[0])

    def _words(self, event: Text | Thinking, text: str) -> Iterable[str]:
        if type(event) is not self._open:
            if isinstance(event, Text):
                yield from self._begin(Text, {"type": "text", "text": ""}, "text_delta", "text")
            else:
                block = {"type": "thinking", "thinking": "", "signature": ""}
                yield from self._begin(Thinking, block, "thinking_delta", "thinking")
        yield f"{self._head}{json_string(text)}}}}}\n\n"

    def _begin(self, kind: type[SourceEvent], block: Mapping[str, Any], delta: str, field: str) -> Iterable[str]:
        yield from self._end_block()
        self._index += 1
        self._open = kind
        begun = {"type": "content_block_start", "index": self._index, "content_block": block}
        yield _event("content_block_start", line(begun))
        delta_type = f'"delta":{{"type":"{delta}","{field}":'
        data = f'{{"type":"content_block_delta","index":{self._index},{delta_type}'
        self._head = f"event: content_block_delta\ndata: {data}"

    def _end_block(self) -> Iterable[str]:
        if self._open is not None:
            self._open = None
            yield _event("content_block_stop", f"{_STOPPED}{self._index}}}")

    def _end_call(self, event: CallEnd) -> Iterable[str]:
        if self._call == (event.index, False) and event.call.arguments:
            yield f"{self._head}{json_string(json_text(event.call.arguments))}}}}}\n\n"
        self._call = None
        yield from self._end_block()
        while self._waiting and not self._must_wait(self._waiting[0]):
            yield from self._write(self._waiting.popleft())

    def _block(self, block: ProviderBlock) -> Iterable[str]:
        """Write a block that the client sends back to a server of this wire."""
        if block.provider != PROVIDERS["messages"] or block.index is not None:
            return
        signature = block.data.get("signature")
        if self._open is Thinking and block.thinking and isinstance(signature, str):
            delta = {"type": "signature_delta", "signature": signature}
            data = {"type": "content_block_delta", "index": self._index, "delta": delta}
            yield _event("content_block_delta", line(data))
        else:
            yield from self._begin(ProviderBlock, block.data, "", "")
        yield from self._end_block()

    def _finish(self, event: Finish) -> Iterable[str]:
        self._call = None
        while self._waiting:  # calls that did not end
            yield from self._write(self._waiting.popleft())
            self._call = None
        if event.reason == "error":
            yield self.fail(FAILED).decode()
            return
        yield from self._end_block()
        delta = {"stop_reason": _stop_reason(event, self._called), "stop_sequence": None}
        end = {"type": "message_delta", "delta": delta, "usage": messages_usage(self._usage)}
        yield _event("message_delta", line(end)) + _event("message_stop", '{"type":"message_stop"}')


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"


def _message(
    asked: ClientRequest, id: str, content: list[dict[str, Any]], stop_reason: str | None, usage: Usage
) -> dict[str, Any]:
    return {
        "id": f"msg_{id}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": messages_usage(usage),
    }


def whole_message(asked: ClientRequest, events: Iterable[SourceEvent], id: str) -> dict[str, Any]:
    """Return a whole message.

    Raises:
        RequestRefused: the reply failed.
    """
    reply = whole_reply(events)
    content: list[dict[str, Any]] = []
    for part in reply.parts:
        match part:
            case Text(text):
                content.append({"type": "text", "text": text})
            case Thinking(text):
                content.append({"type": "thinking", "thinking": text, "signature": ""})
            case WrittenCall(id=call_id, name=name, text=text, complete=True):
                arguments = readable(text.text()) or {}
                content.append({**part.extras, "type": "tool_use", "id": call_id, "name": name, "input": arguments})
            case ProviderBlock(by, data, thinking, None) if by == PROVIDERS["messages"]:
                _add_block(content, data, thinking)
    stop_reason = _stop_reason(reply.finish, bool(reply.calls))
    return _message(asked, id, content, stop_reason, reply.usage or Usage())


def _add_block(content: list[dict[str, Any]], data: Mapping[str, Any], thinking: bool) -> None:
    """Add a provider's block. If it completes the thinking before it, it replaces that."""
    if thinking and content and content[-1]["type"] == data.get("type") == "thinking":
        content.pop()
    content.append(dict(data))


def messages_usage(usage: Usage) -> dict[str, Any]:
    """Return the usage of a message, which counts the cached part of the prompt separately."""
    return {
        "input_tokens": max(usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens, 0),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }


_ERRORS: Final[Mapping[int, str]] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def messages_error(error: RequestRefused) -> dict[str, Any]:
    """Return the body of an error; the upstream's own body if that can be passed on."""
    if error.body is not None:
        return dict(error.body)
    kind = _ERRORS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}}


def _stop_reason(event: Finish, calls: bool) -> str:
    reason = reason_with_calls(event.reason, calls)
    if event.raw in _OWN_WORDS and reason in ("stop", "length"):
        return event.raw
    return FINISHES.get(reason, "end_turn")
