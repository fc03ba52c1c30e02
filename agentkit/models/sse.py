"""Server-sent events from bytes, regardless of how these are split. Pure; knows no provider and no connection.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation. Unlike a
browser, it also reads the last event if the blank line after it is missing (Source: openai-node#2725); and a field
`error`, in which llama.cpp has reported errors: a separate event with this name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

BOM: Final = b"\xef\xbb\xbf"

MAX_NAME: Final = 200  # bytes of an event's name that are read

_LINE_END = re.compile(rb"\r\n|\r|\n")


class EventTooLong(Exception):
    """One event of a stream is longer than the reader's limit."""


class ServerEvent(NamedTuple):
    """One event: its name, empty if it has none, and its data."""

    name: str
    data: str


class EventReader:
    r"""Reads the name and the data of each event. Ids of events are ignored.

    Args:
        limit: the maximum bytes of one line, and of the data of one event.

    Raises:
        EventTooLong: from `feed`, before more than the limit is kept.
        UnicodeDecodeError: from `feed`, data that is not UTF-8.

    >>> reader = EventReader(1000)
    >>> [*reader.feed(b': a comment\r\ndata: {"a": 1}\r'), *reader.feed(b"\n\r\ndata: [DONE]"), *reader.close()]
    [ServerEvent(name='', data='{"a": 1}'), ServerEvent(name='', data='[DONE]')]
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line: list[bytes] = []  # the pieces of a line that is still coming
        self._kept = 0  # bytes of it, and of the event's data
        self._data: list[bytes] = []
        self._name = b""
        self._first = True
        self._after_cr = False

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Each event that this piece completes."""
        if self._after_cr and piece.startswith(b"\n"):
            piece, self._after_cr = piece[1:], False
        if not piece:
            return
        self._after_cr = piece.endswith(b"\r")
        *whole, rest = _LINE_END.split(piece) if b"\r" in piece else piece.split(b"\n")
        for end in whole:
            self._keep(end)
            line = b"".join(self._line)
            self._kept -= len(line)
            self._line.clear()
            yield from self._read(line)
        self._keep(rest)

    def close(self) -> Iterator[ServerEvent]:
        """The last event, if the stream ended before it did."""
        line = b"".join(self._line)
        self._line.clear()
        yield from self._read(line)
        yield from self._read(b"")

    def _keep(self, piece: bytes) -> None:
        self._kept += len(piece)
        if self._kept > self._limit:
            raise EventTooLong
        if piece:
            self._line.append(piece)

    def _read(self, line: bytes) -> Iterator[ServerEvent]:
        if self._first and line:
            line, self._first = line.removeprefix(BOM), False
        if not line:
            yield from self._event()
            return
        field, _, value = line.partition(b":")
        if field == b"data" or field.lower() == b"data":
            self._data.append(value.removeprefix(b" "))
            self._kept += len(value)
        elif field == b"event":
            self._name = value.removeprefix(b" ")[:MAX_NAME]
        elif field.lower() == b"error" and value.strip():
            yield from self._event()
            self._name, self._data = b"error", [value.removeprefix(b" ")]
            yield from self._event()

    def _event(self) -> Iterator[ServerEvent]:
        """The event that has come, if it has data."""
        name, self._name = self._name, b""
        if self._data:
            data = b"\n".join(self._data)
            self._data.clear()
            self._kept = 0
            yield ServerEvent(name.decode(errors="replace"), data.decode())
