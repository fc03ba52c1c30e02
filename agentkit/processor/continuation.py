"""Continuation after the token limit: the text so far, and whether a further response continues it.

Pure. Knows text, events and parsers by their interface; knows no model. Only a model that continues its own text is
asked to. A further response is a continuation if it completes the open call before it begins another. Otherwise the
open call counts as cut: to write it again costs tokens, but to join it wrongly does harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agentkit.events import CallEnd, CallError, Markup, SourceEvent, Text, Thinking
from agentkit.formats.pieces import Pieces
from agentkit.messages import ToolCall

if TYPE_CHECKING:
    from agentkit.formats import Parser

Parsers = Callable[[bool], "Parser"]
"""Creates a fresh parser: one like that of the text so far (True), or one for a separate reply."""


class WrittenText:
    """The text of one response as it was written.

    A parser's events and the raw text of its calls are, in order, what it was fed. What it
    was fed and has not reported is therefore the open call.

    Args:
        format: the format's name for an open call whose format is not known yet.
    """

    def __init__(self, format: str | None = None) -> None:
        self.thought = False
        """True if it contains thinking."""
        self._format = format
        self._pieces = Pieces()
        self._from = self._size = 0  # where the open text's parser began, and the size of all
        self._reported = 0
        self._calls = 0

    @property
    def text(self) -> str:
        """The whole text."""
        return self._pieces.text()

    @property
    def open(self) -> bool:
        """Return whether a parser holds text that may be part of a call, or of the end of one."""
        return bool(self.text[self._from + self._reported :].strip())

    def feed(self, text: str) -> None:
        """Record text that the parser was fed."""
        self._pieces.add(text)
        self._size += len(text)

    def report(self, events: Iterable[SourceEvent]) -> None:
        """Record the events that the parser returned."""
        for event in events:
            match event:
                case CallEnd(call=call) | CallError(call=call):
                    self._reported += len(call.raw)
                    self._calls += 1
                case Text(text) | Thinking(text) | Markup(text):
                    self._reported += len(text)
                    self.thought = self.thought or isinstance(event, Thinking)
                case _:
                    pass

    def end(self) -> None:
        """Begin the text of another parser."""
        self._from, self._reported, self._calls = self._size, 0, 0

    def continues(self, text: str, parser: Parsers, *, cut: bool) -> bool:
        """Return whether a further response continues the open call, which ends in it before any other call.

        The further response may also be `cut` at its limit.
        """
        read = self.text[self._from :]
        spans = [span for span in _spans(parser(True), read + text)[self._calls :] if span.start < len(read)]
        if not spans:
            return False  # the open text is still not a call, and would be lost
        opened = spans[-1]
        own = next((span for span in _spans(parser(False), text) if span.event.call.name), None)
        if isinstance(opened.event, CallError):
            return cut and own is None and opened.end == len(read) + len(text)
        if opened.event.repairs or opened.end <= len(read):  # it ends without the further text
            return False
        return own is None or opened.end <= len(read) + own.start

    def as_cut(self, last: Sequence[SourceEvent]) -> Sequence[SourceEvent]:
        """Return the last events of a text that was cut: its open end is an error, as it may begin a call."""
        place = max((i + 1 for i, event in enumerate(last) if isinstance(event, CallEnd | CallError)), default=0)
        begun = "".join(event.text for event in last[place:] if isinstance(event, Text | Markup | Thinking))
        raw = begun.lstrip()
        if not raw or (place and isinstance(last[place - 1], CallError)):
            return last
        space = [Text(begun[: -len(raw)])] if len(raw) < len(begun) else []
        message = f"the response reached its token limit in what may be a call, at {raw!r:.80}; write it again, in full"
        call = ToolCall("", "", format=self._format, raw=raw)
        return [*last[:place], *space, CallError(-1, "truncated_call", message, call, len(raw))]


class _Span(NamedTuple):
    event: CallEnd | CallError
    start: int
    end: int


def _spans(parser: Parser, text: str) -> list[_Span]:
    """Return the calls in a text, and where they are."""
    found: list[_Span] = []
    at = 0
    for event in (*parser.feed(text), *parser.close()):
        match event:
            case CallEnd(call=call) | CallError(call=call):
                found.append(_Span(event, at, at + len(call.raw)))
                at += len(call.raw)
            case Text(said) | Thinking(said) | Markup(said):
                at += len(said)
    return found
