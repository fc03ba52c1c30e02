"""The events of a reply that wait until their text is certainly not a call. Pure; knows no wire."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from agentkit.checks.unicode import Joiner
from agentkit.events import ArgumentDelta, CallEnd, InventedResult, Markup, SourceEvent, Text
from agentkit.gateway.delta_template import Frame, decode_text
from agentkit.gateway.reply_edit import RecoveredCall, TextPiece

_PER_TEXT: Final = 48  # bytes of a text that is held, in addition to its own


class HeldEvent(NamedTuple):
    """An event that is held.

    Attributes:
        raw: its bytes.
        text: its text.
        end: characters of the reply's text up to its end.
        is_text: whether it says nothing else.
    """

    raw: bytes
    text: str
    end: int
    is_text: bool


class _Run:
    """Events in a row that differ in nothing but their text: of thousands in a long call, only the texts are kept."""

    __slots__ = ("begin", "end", "frame", "texts")

    def __init__(self, frame: Frame, begin: int) -> None:
        self.frame = frame
        self.texts: list[bytes] = []
        self.begin = self.end = begin

    def expanded(self) -> Iterator[HeldEvent]:
        (before, after), end = self.frame, self.begin
        for text in self.texts:
            decoded = decode_text(text)
            end += len(decoded)
            yield HeldEvent(before + text + after, decoded, end, is_text=True)

    def take(self, certain: int) -> list[bytes]:
        """Take the events that end by then."""
        taken = []
        for event in self.expanded():
            if event.end > certain:
                break
            taken.append(event.raw)
            self.begin = event.end
        del self.texts[: len(taken)]
        return taken


class _Span(NamedTuple):
    """A stretch of the text from a place in it on, and what is left of it: text, a call, or nothing."""

    length: int
    piece: TextPiece | None
    at: int = 0


class HeldEvents:
    """Events in the order in which they came. Positions are characters of the reply's whole text.

    Args:
        limit: bytes that are held at most.

    Attributes:
        limit: the same.
        size: bytes that are held, about.
        half: whether half a character waits for its other half.
        blank: whether a text has started and nothing visible of it is certain: then nothing leaves.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.blank = False
        self.half = False
        self._events: deque[HeldEvent | _Run] = deque()
        self._fed = 0
        self._certain = 0
        self._joiner = Joiner()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def full(self) -> bool:
        """Return whether more is held than the limit allows."""
        return self.size > self.limit

    def add(self, raw: bytes, text: str) -> str:
        """Hold an event with this text; returns the text to read. Half a character waits for its other half."""
        joined = self._joiner.feed(text) if text else text
        self._fed += len(joined)
        self.size += len(raw)
        if text:
            self.half = "\ud800" <= text[-1] <= "\udbff"
        self._events.append(HeldEvent(raw, joined, self._fed + self.half, is_text=False))
        return joined

    def add_texts(self, frame: Frame, texts: Sequence[bytes], length: int) -> None:
        """Hold events that only have these texts, of this length together, in this frame."""
        last = self._events[-1] if self._events else None
        if not isinstance(last, _Run) or last.frame is not frame:
            last = _Run(frame, self._fed)
            self._events.append(last)
        last.texts += texts
        self._fed += length
        last.end = self._fed
        self.size += sum(map(len, texts)) + _PER_TEXT * len(texts)

    def pass_by(self, length: int) -> bool:
        """Return whether the text that follows, of this length, need not wait. Nothing must be held before it."""
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
        if not self._events or self._events[-1].end <= self._certain:
            return self.take_all()
        taken: list[bytes] = []
        while self._events[0].end <= self._certain:
            taken += _raw(self._events.popleft())
        first = self._events[0]
        if isinstance(first, _Run) and first.begin < self._certain:
            taken += first.take(self._certain)
        self.size = max(0, self.size - sum(map(len, taken)))
        return taken

    def take_all(self) -> list[bytes]:
        """Return all events, as they came."""
        taken = [raw for event in self._events for raw in _raw(event)]
        self._events.clear()
        self.size = 0
        return taken

    def remainders(
        self, events: Sequence[SourceEvent], new_id: Callable[[], str]
    ) -> Iterator[tuple[HeldEvent, list[TextPiece]]]:
        """Return the events that are held, with what is left of their texts.

        A call is in the event that completes it. An invented result after a call is dropped. Of an event that only has
        text, nothing may be left: then it is omitted, unless it is the first one.

        Args:
            events: the last ones of the reply, with its calls; what was certain before is text.
            new_id: creates the id of a call.
        """
        waiting = [held for event in self._events for held in _expanded(event)]
        text = "".join(held.text for held in waiting)
        ahead = text[: len(text) - (self._fed - self._certain)]
        spans = deque([_Span(len(ahead), ahead), *_spans(events, new_id)])
        for at, held in enumerate(waiting):
            pieces = [*_cut(spans, len(held.text))]
            if pieces or not held.is_text or at == 0:
                yield held, pieces


def _expanded(event: HeldEvent | _Run) -> Iterable[HeldEvent]:
    return event.expanded() if isinstance(event, _Run) else (event,)


def _raw(event: HeldEvent | _Run) -> Iterable[bytes]:
    if isinstance(event, HeldEvent):
        return (event.raw,)
    before, after = event.frame
    return [before + text + after for text in event.texts]


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
        span = spans[0]
        taken = min(span.length - span.at, length)
        length -= taken
        if isinstance(span.piece, str) and taken:
            yield span.piece[span.at : span.at + taken]
        if span.at + taken < span.length:
            spans[0] = span._replace(at=span.at + taken)
            return
        spans.popleft()
        if isinstance(span.piece, RecoveredCall):
            yield span.piece
