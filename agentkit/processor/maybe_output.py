"""A text that may be the run's output although it can be read as calls: only its end tells which.

Pure. Knows text and events; whether a text is the output is asked of a function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Markup, SourceEvent, Text, Thinking
from agentkit.formats.declaring import THOUGHTS
from agentkit.formats.pieces import Pieces
from agentkit.processor.marks import marks

_BEGINS_JSON: Final = re.compile(
    rf"(?:\s|\ufeff|<!--.*?-->|<(?P<tag>{'|'.join(THOUGHTS)})>.*?</(?P=tag)>)*+[{{\[`]", re.DOTALL | re.IGNORECASE
)
_READ: Final = (CallStart, CallEnd, CallError, Markup)


class IsOutput(Protocol):
    """Whether a text is meant as the run's output; see `Output.meant`."""

    def __call__(self, text: str, *, whole: bool) -> bool:
        """With `whole`, only if it is nothing but JSON."""
        ...


class MaybeOutput:
    """The text of one response, and what waits until it is known whether that is the output.

    Args:
        is_output: whether a text is meant as the output.
    """

    def __init__(self, is_output: IsOutput) -> None:
        self._is_output = is_output
        self._fed = Pieces()
        self._told = 0  # characters of it that events have told
        self._said = Pieces()  # all of them but thinking
        self._json: bool | None = None  # whether that begins like JSON
        self._waits: list[SourceEvent] = []

    def add(self, text: str) -> None:
        """More of the text has arrived."""
        self._fed.add(text)

    def is_output(self, *, whole: bool) -> bool:
        """Whether the text that has arrived is the output; with `whole`, only if it is nothing but JSON."""
        return self._is_output(self._fed.text(), whole=whole)

    def certain(self, events: Sequence[SourceEvent]) -> Sequence[SourceEvent]:
        """What of a parser's events need not wait: if the text begins like JSON, all from its first markup on does."""
        for at, event in enumerate(events):
            if self._waits or (isinstance(event, _READ) and not _of_thinking(event) and self._may_be_json()):
                self._waits += events[at:]
                for later in events[at:]:
                    self._tell(later)
                return events[:at]
            self._tell(event)
        return events

    def settled(self) -> Iterable[SourceEvent]:
        """The text is over: what waited, as calls, or as text if that is the output."""
        waits, self._waits = self._waits, []
        said, self._said, self._json = self._said.text(), Pieces(), None
        if waits and self._is_output(said, whole=True):
            return [text for event in waits if (text := _as_text(event)) is not None]
        return waits

    def _tell(self, event: SourceEvent) -> None:
        match event:
            case Thinking(text):
                self._told += len(text)
            case Markup(text) if _of_thinking(event):
                self._told += len(text)
            case Text(text) | Markup(text):
                self._say(text)
            case CallEnd(call=call) | CallError(call=call):
                self._say(call.raw)
            case _:
                pass

    def _say(self, text: str) -> None:
        self._told += len(text)
        self._said.add(text)

    def _may_be_json(self) -> bool:
        """Whether the text, without thinking and comments, begins like JSON or a code fence."""
        if self._json is None:
            self._json = _BEGINS_JSON.match(self._said.text() + self._fed.text()[self._told :]) is not None
        return self._json


def _of_thinking(event: SourceEvent) -> bool:
    """Whether this is a tag around thinking."""
    return isinstance(event, Markup) and "".join(event.text.split()) in marks().thinking


def _as_text(event: SourceEvent) -> SourceEvent | None:
    """An event as the text that it was read from; None if another event has that."""
    match event:
        case CallStart() | ArgumentDelta():
            return None
        case CallEnd(call=call) | CallError(call=call):
            return Text(call.raw)
        case Markup(text) if not _of_thinking(event):
            return Text(text)
        case _:
            return event
