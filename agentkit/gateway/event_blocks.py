"""Server-sent events as the bytes in which they came: each with its separator, and what its data says. Pure.

Joined, the blocks are exactly the input. What a block says is read by `agentkit.models.sse`.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from agentkit.models.sse import EventReader, EventTooLong
from agentkit.models.wire import DONE, WireEvent

_END: Final = re.compile(rb"(?>\r\n|\n|\r)(?:\r\n|\n|\r)")  # the line's end, and the empty line
_ONE_LINE: Final = re.compile(rb"(?:event: ?([^\r\n]*)\r?\n)?data: ?([^\r\n]*)(?:\r?\n){2}")
_DECODE: Final = json.JSONDecoder().raw_decode


class EventBlocks:
    r"""Divides a stream into its events, however it is cut.

    Args:
        limit: the maximum bytes of one event.

    Raises:
        EventTooLong: from `feed`; `take_rest` returns all that was not returned.

    >>> blocks = EventBlocks(1000)
    >>> blocks.feed(b': wait\n\ndata: {"a"'), blocks.feed(b": 1}\r\n\r\ndata"), blocks.take_rest()
    ([b': wait\n\n'], [b'data: {"a": 1}\r\n\r\n'], b'data')
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()

    @property
    def complete(self) -> bool:
        """Return whether no event is incomplete."""
        return not self._rest

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the events that this piece completes."""
        if not self._rest and b"\r" not in piece:
            *whole, rest = piece.split(b"\n\n")
            self._rest += rest
            blocks = [block + b"\n\n" for block in whole]
        else:
            start, at, blocks = max(0, len(self._rest) - 3), 0, []
            self._rest += piece
            for found in _END.finditer(self._rest, start):
                blocks.append(bytes(self._rest[at : found.end()]))
                at = found.end()
            del self._rest[:at]
        if len(self._rest) > self._limit:
            self._rest[:0] = b"".join(blocks)
            raise EventTooLong
        return blocks

    def take_rest(self) -> bytes:
        """Take the beginning of an event that is not complete."""
        rest, self._rest = bytes(self._rest), bytearray()
        return rest


def event_of(block: bytes) -> WireEvent | None:
    """Return the event in a block; None if it has none, or none that can be read."""
    try:
        if (found := _ONE_LINE.fullmatch(block)) is not None:
            name, data = found.groups()
            return _event(name.decode() if name else "", data.decode().strip())
        reader = EventReader(len(block))
        events = [*reader.feed(block), *reader.close()]
        return _event(events[0].name, events[0].data.strip()) if len(events) == 1 else None
    except (ValueError, RecursionError):
        return None


def _event(name: str, data: str) -> WireEvent | None:
    if data.startswith("[DONE]"):
        return DONE
    event: Any
    event, end = _DECODE(data)
    if end < len(data) or type(event) is not dict:
        return None
    if name and "type" not in event:
        event["type"] = name
    return event


def write_event(event: WireEvent, name: str = "") -> bytes:
    """Return an event as bytes, with its name if it has one."""
    data = json.dumps(event, separators=(",", ":")).encode()
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data) if name else b"data: %b\n\n" % data
