"""Anthropic messages: what an event says, and how calls take the place of text in it. Pure.

With calls, a text without visible characters is omitted: the API refuses a block of it that is sent back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

from agentkit.events import Usage
from agentkit.gateway.event_blocks import write_event
from agentkit.gateway.reply_edit import NOTHING, EditedEvent, EventContent, RecoveredCall, TextPiece
from agentkit.models.messages_wire import OF_REPLY, usage_of
from agentkit.models.wire import WireEvent, items_of, mapping_of, text_of

_OTHER: Final = EventContent(kind="other")
_THINKING: Final = ("thinking", "redacted_thinking")
_CALLED: Final = "tool_use"


class MessagesEdit:
    """One reply of the Messages API."""

    def __init__(self) -> None:
        self.finish = ""
        self._counts: dict[str, Any] = {}

    @property
    def usage(self) -> Usage | None:
        """Return the tokens that were reported; None if none were."""
        return usage_of(self._counts) if self._counts else None

    def read(self, event: WireEvent) -> EventContent:
        """Read one event."""
        match event.get("type"):
            case "content_block_delta":
                return _delta(mapping_of(event.get("delta")))
            case "content_block_start":
                block = _block(mapping_of(event.get("content_block")))
                return block if block.kind else block._replace(kind="opens")
            case "message_start":
                counts = mapping_of(mapping_of(event.get("message")).get("usage"))
                self._counts.update({key: value for key, value in counts.items() if key not in OF_REPLY})
            case "message_delta":
                self._counts.update({key: v for key, v in mapping_of(event.get("usage")).items() if v})
                if reason := text_of(mapping_of(event.get("delta")).get("stop_reason")):
                    self.finish = reason
                    return EventContent(kind="end", finish=reason)
            case "message_stop" | "error":
                return _OTHER
        return NOTHING

    def replace(self, events: Sequence[EditedEvent]) -> bytes:
        """Return what replaces the events that were held back."""
        return b"".join(_Blocks(events).write())

    def after(self, raw: bytes, event: WireEvent) -> bytes:
        """Return an event after the end, with the changed reason if it has one."""
        delta = mapping_of(event.get("delta"))
        return _write({**event, "delta": {**delta, "stop_reason": _CALLED}}) if delta.get("stop_reason") else raw

    def parts(self, body: Mapping[str, Any]) -> Iterable[EventContent]:
        """Read a whole message."""
        self._counts = {**mapping_of(body.get("usage"))}
        self.finish = text_of(body.get("stop_reason"))
        if not self.finish:
            return [_OTHER]
        return [*map(_block, items_of(body.get("content"))), EventContent(kind="end", finish=self.finish)]

    def edit(self, body: MutableMapping[str, Any], pieces: Sequence[Sequence[TextPiece]]) -> None:
        """Put the calls into the message, in place."""
        content: list[dict[str, Any]] = []
        for block, left in zip(body["content"], pieces, strict=False):
            content += _edited(block, left) if block.get("type") == "text" else [block]
        body["content"] = content
        body["stop_reason"] = _CALLED


def _delta(delta: Mapping[str, Any]) -> EventContent:
    match delta.get("type"):
        case "text_delta":
            return EventContent(text_of(delta.get("text")))
        case "thinking_delta":
            return EventContent(kind="thinking")
        case _:
            return NOTHING


def _block(block: Mapping[str, Any]) -> EventContent:
    kind = text_of(block.get("type"))
    if kind == "text":
        return EventContent(text_of(block.get("text")))
    if kind == "tool_use":
        return EventContent(kind="call")
    return EventContent(kind="thinking") if kind in _THINKING else EventContent(kind="block", block=block)


def _edited(block: Mapping[str, Any], pieces: Sequence[TextPiece]) -> Iterator[dict[str, Any]]:
    """Return the blocks that replace one of text."""
    text = ""
    for piece in (*pieces, None):
        if isinstance(piece, str):
            text += piece
            continue
        if text.strip():
            yield {**block, "text": text}
        text = ""
        if piece is not None:
            yield {"type": "tool_use", "id": piece.id, "name": piece.name, "input": json.loads(piece.arguments)}


def _write(event: WireEvent) -> bytes:
    return write_event(event, text_of(event.get("type")))


class _Blocks:
    """The blocks in which the held events are written: those of text may end earlier, and calls add some."""

    def __init__(self, events: Sequence[EditedEvent]) -> None:
        self._events = events
        first = next(event for _, event, _, _ in events if event is not None and "index" in event)
        begun = first["type"] != "content_block_start"
        self._text: int | None = first["index"] if begun else None  # the upstream's index of the text that is open
        self._open: int | None = self._text  # the client's; None if nothing of it was written
        self._next: int = first["index"] + begun
        self._places: dict[int, int] = {}
        self._space = ""  # of a text of which nothing was written

    def write(self) -> Iterator[bytes]:
        for raw, event, _, pieces in self._events:
            if event is None:
                yield raw
            elif (delta := mapping_of(event.get("delta"))).get("stop_reason"):
                yield _write({**event, "delta": {**delta, "stop_reason": _CALLED}})
            elif "index" not in event:
                yield raw
            else:
                yield from self._indexed(raw, event, pieces)

    def _indexed(self, raw: bytes, event: WireEvent, pieces: Sequence[TextPiece]) -> Iterator[bytes]:
        kind: str = event["type"]
        index: int = event["index"]
        if kind == "content_block_start":
            if mapping_of(event.get("content_block")).get("type") != "text":
                self._places[index] = self._take()
                yield _moved(raw, event, self._places[index])
                return
            self._text = index
        if index != self._text:
            yield _moved(raw, event, self._places.get(index, index))
            return
        if pieces:
            yield from self._said(pieces)
        elif kind == "content_block_stop":
            yield from self._stop()
            self._text = None
        elif self._open is not None and mapping_of(event.get("delta")).get("type") not in (None, "text_delta"):
            yield _moved(raw, event, self._open)  # a citation

    def _take(self) -> int:
        self._next += 1
        return self._next - 1

    def _said(self, pieces: Sequence[TextPiece]) -> Iterator[bytes]:
        for piece in pieces:
            if isinstance(piece, str):
                yield from self._say(piece)
            else:
                yield from self._stop()
                yield from self._call(piece, self._take())

    def _say(self, text: str) -> Iterator[bytes]:
        self._space += text
        if self._open is None:
            if self._space.isspace():
                return
            self._open = self._take()
            yield _start(self._open, {"type": "text", "text": ""})
        yield _more(self._open, {"type": "text_delta", "text": self._space})
        self._space = ""

    def _stop(self) -> Iterator[bytes]:
        if self._open is not None:
            yield _write({"type": "content_block_stop", "index": self._open})
        self._open, self._space = None, ""

    def _call(self, call: RecoveredCall, index: int) -> Iterator[bytes]:
        yield _start(index, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
        yield _more(index, {"type": "input_json_delta", "partial_json": call.arguments})
        yield _write({"type": "content_block_stop", "index": index})


def _start(index: int, block: Mapping[str, Any]) -> bytes:
    return _write({"type": "content_block_start", "index": index, "content_block": block})


def _more(index: int, delta: Mapping[str, Any]) -> bytes:
    return _write({"type": "content_block_delta", "index": index, "delta": delta})


def _moved(raw: bytes, event: WireEvent, index: int) -> bytes:
    return raw if event["index"] == index else _write({**event, "index": index})
