"""The events of a reply that wait until it is certain that their text is no call. Pure; knows no wire."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from agentkit.events import ArgumentDelta, CallEnd, InventedResult, Markup, SourceEvent, Text
from agentkit.gateway.reply_edit import RecoveredCall, TextPiece


class _Held(NamedTuple):
    raw: bytes
    text: str
    end: int  # characters of text up to its end


class _Span(NamedTuple):
    """A stretch of the text, and what is left of it: text, a call, or nothing."""

    length: int
    piece: TextPiece | None


class HeldEvents:
    """Events in the order in which they came. Positions are characters of the reply's whole text.

    Attributes:
        size: bytes that are held.
        blank: whether a text was begun and nothing visible of it is certain: then nothing leaves.
    """

    def __init__(self) -> None:
        self.size = 0
        self.blank = False
        self._events: deque[_Held] = deque()
        self._fed = 0
        self._certain = 0

    def __len__(self) -> int:
        return len(self._events)

    def add(self, raw: bytes, text: str) -> None:
        """Hold an event with this text."""
        self._fed += len(text)
        self.size += len(raw)
        self._events.append(_Held(raw, text, self._fed))

    def pass_by(self, length: int) -> bool:
        """Return whether so much text that follows need not wait; then it was read. Nothing is held before it."""
        if self.blank or self._certain < self._fed + length:
            return False
        self._fed += length
        return True

    def release(self, events: Iterable[SourceEvent]) -> None:
        """Note the text in these events, which is certainly no call."""
        for event in events:
            if isinstance(event, Text | InventedResult):
                self._certain += len(event.text)
                self.blank = self.blank and event.text.isspace()

    def end_text(self) -> None:
        """Let a blank text leave, unless it may be a call."""
        self.blank = self.blank and self._certain < self._fed

    def take(self) -> list[bytes]:
        """Return the events that need not wait, as they came."""
        if self.blank:
            return []
        if self._certain == self._fed:
            return self.take_all()
        taken = []
        while self._events[0].end <= self._certain:
            taken.append(self._events.popleft().raw)
        self.size -= sum(map(len, taken))
        return taken

    def take_all(self) -> list[bytes]:
        """Return all events, as they came."""
        taken = [event.raw for event in self._events]
        self._events.clear()
        self.size = 0
        return taken

    def edited(
        self, events: Sequence[SourceEvent], new_id: Callable[[], str]
    ) -> Iterator[tuple[bytes, str, list[TextPiece]]]:
        """Return each event that is held, with its text and what is left of that.

        A call is in the event that completes it. An invented result after a call is dropped.

        Args:
            events: the last ones of the reply, with its calls; what was certain before is text.
            new_id: creates the id of a call.
        """
        first = self._events[0]
        sent = first.end - len(first.text)
        ahead = "".join(held.text for held in self._events)[: self._certain - sent]
        spans = deque([_Span(len(ahead), ahead), *_spans(events, new_id)])
        for held in self._events:
            yield held.raw, held.text, [*_cut(spans, len(held.text))]


def _spans(events: Sequence[SourceEvent], new_id: Callable[[], str]) -> Iterator[_Span]:
    arguments, called = "", False
    for event in events:
        match event:
            case ArgumentDelta(_, text):
                arguments = text
            case CallEnd(_, call):
                called = True
                yield _Span(len(call.raw), RecoveredCall(new_id(), call.name, arguments))
            case InventedResult(text):
                yield _Span(len(text), None if called else text)
            case Text(text):
                yield _Span(len(text), text)
            case Markup(text):
                yield _Span(len(text), None)
            case _:
                pass


def _cut(spans: deque[_Span], length: int) -> Iterator[TextPiece]:
    """Take this many characters from the spans; a call is taken with its last one."""
    while length:
        of, piece = spans.popleft()
        taken = min(of, length)
        length -= taken
        if isinstance(piece, str):
            if taken:
                yield piece[:taken]
            if taken < of:
                spans.appendleft(_Span(of - taken, piece[taken:]))
        elif taken < of:
            spans.appendleft(_Span(of - taken, piece))
        elif piece is not None:
            yield piece
