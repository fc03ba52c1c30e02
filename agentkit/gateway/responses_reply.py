"""A reply as OpenAI's Responses API writes it: events and a whole response. Pure."""

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
from agentkit.formats.pieces import Pieces
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.reply_parts import FAILED, WrittenCall, json_string, line, whole_reply
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import ToolCall
from agentkit.models.base import ModelRequest
from agentkit.models.valid_history import json_text
from agentkit.models.wire import mapping_of
from agentkit.schemas import flavours

JsonObject = dict[str, Any]

_CUT: Final[Mapping[FinishReason, str]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""The ends after which a response is incomplete, and its word for each."""

_ERRORS: Final[Mapping[int, str]] = {400: "invalid_prompt", 429: "rate_limit_exceeded"}


class ResponsesReply:
    """Writes one streamed response; see `ReplyWriter`.

    Args:
        asked: the request.
        id: what makes its ids unique.
        created: seconds since 1970.
    """

    def __init__(self, asked: ClientRequest, id: str, created: int) -> None:
        self._response = _response(asked, id, created)
        self._id = id
        self._number = 0  # of the next event
        self._items: list[JsonObject] = []  # the output; those that have not ended are not complete
        self._open: type[SourceEvent] | None = None  # the open item with words: `Text` or `Thinking`
        self._at = 0  # its place
        self._words = Pieces()
        self._head = self._tail = ""  # of a delta of the open words
        self._calls: dict[int, WrittenCall] = {}
        self._usage: Usage | None = None

    def start(self) -> bytes:
        """The first bytes."""
        return (self._whole("response.created") + self._whole("response.in_progress")).encode()

    def write(self, event: SourceEvent) -> bytes:
        """One event."""
        kind = type(event)
        if kind is self._open:
            text: str = event.text  # type: ignore[union-attr]  # it has words
            self._words.add(text)
            number, self._number = self._number, self._number + 1
            return f"{self._head}{number}{self._tail}{json_string(text)}}}\n\n".encode()
        return "".join(self._write(event)).encode()

    def fail(self, error: RequestRefused) -> bytes:
        """End the reply with an error."""
        code = _ERRORS.get(error.status, "server_error")
        end = {"status": "failed", "error": {"code": code, "message": error.message}}
        self._response |= end
        return self._whole("response.failed").encode()

    def _write(self, event: SourceEvent) -> Iterable[str]:
        match event:
            case Text(text) | Thinking(text):
                yield from self._end_words()
                yield from self._begin_message() if isinstance(event, Text) else self._begin_reasoning()
                yield self.write(event).decode()
            case CallStart():
                yield from self._end_words()
                yield from self._begin_call(event)
            case ArgumentDelta(index, text):
                yield self._arguments(self._calls[index], text)
            case CallEnd(index, ended):
                yield from self._end_call(self._calls[index], ended)
            case ProviderBlock(_, data, _, index) if index is not None and index in self._calls:
                self._calls[index].extras |= _own(event, data)
            case ProviderBlock(by, data, _, None) if by == PROVIDERS["responses"] and data.get("type") != "message":
                yield from self._end_words()
                yield from self._item(dict(data))
            case Usage():
                self._usage = event
            case Finish():
                yield from self._finish(event)

    # ------------------------------------------------------------ events

    def _event(self, kind: str, **fields: Any) -> str:
        number, self._number = self._number, self._number + 1
        return f"event: {kind}\ndata: {line({'type': kind, 'sequence_number': number, **fields})}\n\n"

    def _whole(self, kind: str) -> str:
        return self._event(kind, response=self._response)

    def _add(self, item: JsonObject) -> str:
        self._items.append(item)
        return self._event("response.output_item.added", output_index=len(self._items) - 1, item=item)

    def _done(self, at: int, item: JsonObject) -> str:
        self._items[at] = item
        return self._event("response.output_item.done", output_index=at, item=item)

    def _item(self, item: JsonObject) -> Iterable[str]:
        """An item that is already complete."""
        item.setdefault("id", f"item_{self._id}_{len(self._items)}")
        yield self._add(item)
        yield self._done(len(self._items) - 1, item)

    def _begin(self, kind: type[SourceEvent], event: str, **fields: Any) -> None:
        """Prepare the deltas of words."""
        self._open, self._at, self._words = kind, len(self._items) - 1, Pieces()
        self._head, self._tail = _head(event), _tail(**fields)

    def _begin_message(self) -> Iterable[str]:
        at = len(self._items)
        item = message_item(f"msg_{self._id}_{at}", None)
        yield self._add(item)
        place = {"item_id": item["id"], "output_index": at, "content_index": 0}
        yield self._event("response.content_part.added", **place, part=text_part(""))
        self._begin(Text, "response.output_text.delta", **place, logprobs=[])

    def _begin_reasoning(self) -> Iterable[str]:
        at = len(self._items)
        item = reasoning_item(f"rs_{self._id}_{at}", "")
        yield self._add(item)
        place = {"item_id": item["id"], "output_index": at, "summary_index": 0}
        yield self._event("response.reasoning_summary_part.added", **place, part=_summary(""))
        self._begin(Thinking, "response.reasoning_summary_text.delta", **place)

    def _end_words(self) -> Iterable[str]:
        if self._open is None:
            return
        text, at = self._words.text(), self._at
        id = self._items[at]["id"]
        if self._open is Text:
            place = {"item_id": id, "output_index": at, "content_index": 0}
            yield self._event("response.output_text.done", **place, text=text, logprobs=[])
            yield self._event("response.content_part.done", **place, part=text_part(text))
            yield self._done(at, message_item(id, text))
        else:
            place = {"item_id": id, "output_index": at, "summary_index": 0}
            yield self._event("response.reasoning_summary_text.done", **place, text=text)
            yield self._event("response.reasoning_summary_part.done", **place, part=_summary(text))
            yield self._done(at, reasoning_item(id, text))
        self._open = None

    def _begin_call(self, event: CallStart) -> Iterable[str]:
        at = len(self._items)
        id = f"fc_{self._id}_{at}"
        call = WrittenCall(event.id or "", event.name, item=at, tail=_tail(item_id=id, output_index=at))
        self._calls[event.index] = call
        yield self._add({**call_item(id, call), "status": "in_progress"})

    def _arguments(self, call: WrittenCall, text: str) -> str:
        call.text.add(text)
        number, self._number = self._number, self._number + 1
        return f"{_ARGUMENTS}{number}{call.tail}{json_string(text)}}}\n\n"

    def _end_call(self, call: WrittenCall, ended: ToolCall | None) -> Iterable[str]:
        """End a call; None for one that was cut."""
        id = self._items[call.item]["id"]
        place = {"item_id": id, "output_index": call.item}
        call.complete = ended is not None
        if ended is not None and not call.text:
            yield self._arguments(call, json_text(ended.arguments))
        name, arguments = call.name, call.text.text()
        yield self._event("response.function_call_arguments.done", **place, name=name, arguments=arguments)
        yield self._done(call.item, call_item(id, call))

    def _finish(self, event: Finish) -> Iterable[str]:
        if event.reason == "error":
            yield self.fail(FAILED).decode()
            return
        yield from self._end_words()
        for call in self._calls.values():
            if not call.complete:
                yield from self._end_call(call, None)
        kind = _end(self._response, event, self._items, self._usage)
        yield self._whole(kind)


def whole_response(asked: ClientRequest, events: Iterable[SourceEvent], id: str, created: int) -> JsonObject:
    """Return a whole response.

    Raises:
        RequestRefused: the reply failed.
    """
    reply = whole_reply(events)
    response, items = _response(asked, id, created), list[JsonObject]()
    for at, part in enumerate(reply.parts):
        match part:
            case Text(text):
                items.append(message_item(f"msg_{id}_{at}", text))
            case Thinking(text):
                items.append(reasoning_item(f"rs_{id}_{at}", text))
            case WrittenCall():
                items.append(call_item(f"fc_{id}_{at}", part))
            case ProviderBlock(by, data, thinking) if by == PROVIDERS["responses"] and data.get("type") != "message":
                if thinking and items and items[-1]["type"] == "reasoning":
                    items.pop()  # the block has its text
                items.append(dict(data))
    _end(response, reply.finish, items, reply.usage)
    return response


def _head(event: str) -> str:
    """The beginning of a delta, before its number."""
    return f'event: {event}\ndata: {{"type":"{event}","sequence_number":'


def _tail(**fields: Any) -> str:
    """The fields of a delta after its number, before its text."""
    return f',{line(fields)[1:-1]},"delta":'


_ARGUMENTS: Final = _head("response.function_call_arguments.delta")


def _own(block: ProviderBlock, data: Mapping[str, Any]) -> JsonObject:
    return dict(data) if block.provider == PROVIDERS["responses"] else {}


def _end(response: JsonObject, event: Finish, items: list[JsonObject], usage: Usage | None) -> str:
    """Complete a response; returns the type of its last event."""
    reason = _CUT.get(event.reason)
    status = "completed" if reason is None else "incomplete"
    response |= {
        "status": status,
        "completed_at": response["created_at"] if reason is None else None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": items,
        "usage": responses_usage(usage or Usage()),
    }
    return f"response.{status}"


# ---------------------------------------------------------------- items


def text_part(text: str) -> JsonObject:
    """Return a part with text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def message_item(id: str, text: str | None) -> JsonObject:
    """Return a message with text; with None, as it begins."""
    content = [] if text is None else [text_part(text)]
    status = "in_progress" if text is None else "completed"
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}


def reasoning_item(id: str, text: str) -> JsonObject:
    """Return an item with thinking."""
    return {"id": id, "type": "reasoning", "summary": [_summary(text)] if text else []}


def _summary(text: str) -> JsonObject:
    return {"type": "summary_text", "text": text}


def call_item(id: str, call: WrittenCall) -> JsonObject:
    """Return a call; its own id is not that of its item."""
    status = "completed" if call.complete else "incomplete"
    plain = {"id": id, "type": "function_call", "status": status, "call_id": call.id, "name": call.name}
    return {**call.extras, **plain, "arguments": call.text.text()}


def responses_usage(usage: Usage) -> JsonObject:
    """Return the usage of a response."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


# ---------------------------------------------------------------- the response around them


def _response(asked: ClientRequest, id: str, created: int) -> JsonObject:
    """Return a response in progress, with the settings of its request.

    Source: the specification of Open Responses, which requires every field.
    """
    request, extra = asked.request, asked.request.extra
    reasoning = mapping_of(extra.get("reasoning"))
    output = request.output_schema
    return {
        "id": f"resp_{id}",
        "object": "response",
        "created_at": created,
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": request.max_tokens,
        "max_tool_calls": extra.get("max_tool_calls"),
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "prompt_cache_key": extra.get("prompt_cache_key"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "safety_identifier": extra.get("safety_identifier"),
        "service_tier": extra.get("service_tier", "default"),
        "store": False,
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "text": {"format": {"type": "text"} if output is None else flavours.openai_responses_output(output)},
        "tool_choice": _choice(request),
        "tools": [flavours.openai_responses(tool) for tool in request.tools],
        "top_logprobs": 0,
        "top_p": extra.get("top_p", 1.0),
        "presence_penalty": extra.get("presence_penalty", 0.0),
        "frequency_penalty": extra.get("frequency_penalty", 0.0),
        "truncation": extra.get("truncation", "disabled"),
        "metadata": extra.get("metadata", {}),
        "usage": None,
    }


def _choice(request: ModelRequest) -> Any:
    choice = request.tool_choice
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}
