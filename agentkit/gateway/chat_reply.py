"""A reply as OpenAI's chat completions write it: chunks, a whole completion, errors. Pure.

Thinking is `reasoning_content`, the name that DeepSeek, SGLang and llama.cpp write and that most clients read; vLLM,
Ollama and OpenRouter write `reasoning`.
"""

from __future__ import annotations

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
from agentkit.models.chat_thinking import FIELDS
from agentkit.models.valid_history import json_text

FINISHES: Final[Mapping[FinishReason, str]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""The words for the end; any other end is `stop`."""

_DONE: Final = "data: [DONE]\n\n"


class ChatReply:
    """Writes one streamed completion; see `ReplyWriter`.

    Args:
        asked: the request.
        id: what makes its id unique.
        created: seconds since 1970.
    """

    def __init__(self, asked: ClientRequest, id: str, created: int) -> None:
        self._asked = asked
        self._same = _same_fields(asked, id, created, "chat.completion.chunk")
        usage = ',"usage":null' if asked.include_usage else ""
        self._head = f'data: {line(self._same)[:-1]},"choices":[{{"index":0,"delta":{{'
        self._tail = f'}},"finish_reason":null}}]{usage}}}\n\n'
        self._text, self._thinking = f'{self._head}"content":', f'{self._head}"reasoning_content":'
        self._calls: dict[int, bool] = {}  # whether a call has arguments so far
        self._usage: Usage | None = None

    def start(self) -> bytes:
        """The first bytes."""
        return self._delta('"role":"assistant","content":""')

    def write(self, event: SourceEvent) -> bytes:
        """One event."""
        kind = type(event)
        if kind is Text:
            return (self._text + json_string(event.text) + self._tail).encode()  # type: ignore[union-attr]
        match event:
            case ArgumentDelta(index, text):
                return self._arguments(index, text)
            case Thinking(text):
                return (self._thinking + json_string(text) + self._tail).encode()
            case CallStart(index, name, id):
                self._calls[index] = False
                function = f'"type":"function","function":{{"name":{json_string(name)},"arguments":""}}'
                return self._delta(f'"tool_calls":[{{"index":{index},"id":{json_string(id or "")},{function}}}]')
            case CallEnd(index):
                return b"" if self._calls[index] else self._arguments(index, json_text(event.call.arguments))
            case ProviderBlock():
                return self._block(event)
            case Usage():
                self._usage = event
            case Finish():
                return self._end(event)
        return b""

    def fail(self, error: RequestRefused) -> bytes:
        """End the reply with an error."""
        return error_event("chat", chat_error(error))

    def _delta(self, fields: str) -> bytes:
        return (self._head + fields + self._tail).encode()

    def _arguments(self, index: int, text: str) -> bytes:
        self._calls[index] = True
        return self._delta(f'"tool_calls":[{{"index":{index},"function":{{"arguments":{json_string(text)}}}}}]')

    def _block(self, block: ProviderBlock) -> bytes:
        """Write the fields that the client has to send back to a server of this wire."""
        if block.provider != PROVIDERS["chat"]:
            return b""
        if block.index is not None:
            piece = {"index": block.index, **block.data, "function": {"arguments": ""}}  # SDKs require a function
            return self._delta(f'"tool_calls":[{line(piece)}]')
        fields = _new_fields(block)
        return self._delta(line(fields)[1:-1]) if fields else b""

    def _end(self, event: Finish) -> bytes:
        if event.reason == "error":
            return self.fail(FAILED)
        usage: dict[str, Any] = {"usage": None} if self._asked.include_usage else {}
        choice = {"index": 0, "delta": {}, "finish_reason": _finish(event, bool(self._calls))}
        text = f"data: {line({**self._same, 'choices': [choice], **usage})}\n\n"
        if self._asked.include_usage and self._usage is not None:
            text += f"data: {line({**self._same, 'choices': [], 'usage': chat_usage(self._usage)})}\n\n"
        return (text + _DONE).encode()


def whole_completion(asked: ClientRequest, events: Iterable[SourceEvent], id: str, created: int) -> dict[str, Any]:
    """Return a whole completion.

    Raises:
        RequestRefused: the reply failed.
    """
    reply = whole_reply(events)
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    for part in reply.parts:
        if isinstance(part, ProviderBlock) and part.provider == PROVIDERS["chat"]:
            message |= _new_fields(part)
    calls = [_call(call) for call in reply.calls]
    if calls:
        message["tool_calls"] = calls
    else:
        message["content"] = reply.text
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply.finish, bool(calls))}
    usage = {} if reply.usage is None else {"usage": chat_usage(reply.usage)}
    return {**_same_fields(asked, id, created, "chat.completion"), "choices": [choice], **usage}


def chat_usage(usage: Usage) -> dict[str, Any]:
    """Return the usage of a completion."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


_ERRORS: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def chat_error(error: RequestRefused) -> dict[str, Any]:
    """Return the body of an error, in both of OpenAI's wires; the upstream's own body if that can be passed on."""
    if error.body is not None:
        return dict(error.body)
    kind = _ERRORS.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    return {"error": {"message": error.message, "type": kind, "param": error.param or None, "code": error.code}}


def _same_fields(asked: ClientRequest, id: str, created: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{id}", "object": kind, "created": created, "model": asked.model}


def _call(call: WrittenCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.text.text()}
    return {**call.extras, "id": call.id, "type": "function", "function": function}


def _new_fields(block: ProviderBlock) -> dict[str, Any]:
    """The fields of a block of thinking that its streamed text does not have."""
    return {name: value for name, value in block.data.items() if name not in FIELDS}


def _finish(event: Finish, calls: bool) -> str:
    return FINISHES.get(reason_with_calls(event.reason, calls), "stop")
