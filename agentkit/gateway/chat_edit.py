"""Chat completions: what an event says, and how calls take the place of text in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

from agentkit.events import Usage
from agentkit.gateway.event_blocks import write_event
from agentkit.gateway.reply_edit import NOTHING, EditedEvent, EventContent, RecoveredCall, TextPiece, divide
from agentkit.models import chat_thinking
from agentkit.models.wire import DONE, WireEvent, mapping_of, openai_usage, text_of

_OTHER: Final = EventContent(kind="other")
_CALLS: Final = ("tool_calls", "function_call")
_UNREAD: Final = ("refusal", "text", "message")  # fields with words that are not read for calls
_CARRIES_NOTHING: Final = ("role", "content")


class ChatEdit:
    """One reply of chat completions."""

    def __init__(self) -> None:
        self.finish = ""
        self._counts: Mapping[str, Any] = {}

    @property
    def usage(self) -> Usage | None:
        """Return the tokens that were reported; None if none were."""
        return openai_usage(self._counts, "prompt", "completion") if self._counts else None

    def read(self, event: WireEvent) -> EventContent:
        """Read one chunk, or `DONE`."""
        if event is DONE:
            return EventContent("", "end")
        if usage := event.get("usage"):
            self._counts = mapping_of(usage)
        choices = event.get("choices")
        if not choices:
            return _OTHER if event.get("error") else NOTHING
        choice = choices[0]
        return _OTHER if len(choices) > 1 or choice.get("index") else self._choice(choice, choice.get("delta") or {})

    def _choice(self, choice: Mapping[str, Any], delta: Mapping[str, Any]) -> EventContent:
        """Read a choice with its delta, or its whole message."""
        finish, content = choice.get("finish_reason"), delta.get("content")
        self.finish = finish or self.finish
        if any(delta.get(key) for key in _CALLS):
            return EventContent(kind="call")
        if type(content) is not str:
            if content:
                return _OTHER
            content = ""
        if any(delta.get(key) for key in _UNREAD) or choice.get("text"):
            return _OTHER
        if finish:
            return EventContent(content, "end", finish)
        if any(delta.get(key) for key in chat_thinking.NAMES):
            return EventContent(content, "thinking")
        return EventContent(content)

    # -------------------------------------------------------------- a stream

    def replace(self, events: Sequence[EditedEvent]) -> bytes:
        """Return what replaces the chunks that were held back."""
        return b"".join(self._replaced(events))

    def _replaced(self, events: Sequence[EditedEvent]) -> Iterator[bytes]:
        number = 0
        last: WireEvent = {}
        for at, (raw, event, _, pieces) in enumerate(events):
            if event is DONE and not self.finish:
                yield write_event(_with_delta(_without_usage(last), {}, "tool_calls"))
            if event is None or not (_finish(event) or _says(event)):
                yield raw
                continue
            said, calls = divide(pieces)
            yield from self._one(event, said, calls, number, first=at == 0)
            number, last = number + len(calls), event

    def _one(
        self, event: WireEvent, said: str, calls: Sequence[RecoveredCall], number: int, *, first: bool
    ) -> Iterator[bytes]:
        """Write one chunk as several: its text, calls from this number on, its end."""
        delta, finish = event["choices"][0].get("delta") or {}, _finish(event)
        begins = first and delta.get("role")
        if said or begins or any(value for key, value in delta.items() if key not in _CARRIES_NOTHING):
            yield write_event(_with_delta(_without_usage(event), {**delta, "content": said}))
        for at, call in enumerate(calls, number):
            yield write_event(_with_delta(_without_usage(event), {"tool_calls": [_call(call, at)]}))
        if finish or event.get("usage"):
            yield write_event(_with_delta(event, {}, "tool_calls" if finish else None))

    def after(self, raw: bytes, event: WireEvent) -> bytes:
        """Return an event after the end, with the changed finish reason if it has one."""
        if event is DONE or not _finish(event):
            return raw
        delta = event["choices"][0].get("delta") or {}
        return write_event(_with_delta(event, delta, "tool_calls"))

    # -------------------------------------------------------------- a whole reply

    def parts(self, body: Mapping[str, Any]) -> Iterable[EventContent]:
        """Read the message of a whole completion."""
        self._counts = mapping_of(body.get("usage"))
        choices = body.get("choices") or [{}]
        message = choices[0].get("message")
        return [_OTHER if len(choices) > 1 or not message else self._choice(choices[0], message)]

    def edit(self, body: MutableMapping[str, Any], pieces: Sequence[Sequence[TextPiece]]) -> None:
        """Put the calls into the message, in place."""
        choice = body["choices"][0]
        said, calls = divide(pieces[0])
        choice["message"]["content"] = said or None
        choice["message"]["tool_calls"] = [_call(call) for call in calls]
        choice["finish_reason"] = "tool_calls"


def _finish(event: WireEvent) -> str:
    choices = event.get("choices")
    return text_of(choices[0].get("finish_reason")) if choices else ""


def _says(event: WireEvent) -> bool:
    choices = event.get("choices")
    return bool(choices and mapping_of(choices[0].get("delta")).get("content"))


def _without_usage(event: WireEvent) -> WireEvent:
    return {**event, "usage": None} if event.get("usage") else event


def _with_delta(event: WireEvent, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    """Return a chunk with another delta and finish reason."""
    choice = event["choices"][0] if event.get("choices") else {"index": 0}
    edited = {**choice, "delta": delta, "finish_reason": finish}
    if edited.get("logprobs"):
        edited["logprobs"] = None
    return {**event, "choices": [edited]}


def _call(call: RecoveredCall, index: int | None = None) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {**place, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
