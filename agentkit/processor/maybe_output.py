"""A text that may be the run's output although it can be read as calls: its end decides.

Pure. Knows events; whether a text is the output is asked of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Markup, SourceEvent, Text
from agentkit.formats.pieces import Pieces
from agentkit.processor.format_tokens import format_tokens
from agentkit.tool.bound_tool import BoundTool

_READ: Final = (CallStart, CallEnd, CallError, Markup)


class IsOutput(Protocol):
    """A function that says if a text is meant as the run's output; see `Output.meant`."""

    def __call__(self, text: str, *, whole: bool) -> bool:
        """Return True if the text is the output; with `whole`, only if it is nothing but JSON."""


class OutputRule(NamedTuple):
    """How a run's output is recognized in a reply, and what happens to the other calls.

    Attributes:
        tool: the tool whose call is the output; None if the text is.
        skips: whether calls next to an output are not run. Otherwise they run, and it does not count.
        fits: whether a text is a value of the output's type.
    """

    tool: BoundTool | None
    skips: bool
    fits: Callable[[str], bool]


class MaybeOutput:
    """The events of one text, which wait from its first call on if the text before that may begin the output."""

    def __init__(self, is_output: IsOutput) -> None:
        self._is_output = is_output
        self._said = Pieces()
        self._waits: list[SourceEvent] = []

    def certain(self, events: Sequence[SourceEvent]) -> Sequence[SourceEvent]:
        """Return the events of a parser that need not wait."""
        for at, event in enumerate(events):
            if self._waits or (isinstance(event, _READ) and not _of_thinking(event) and self._begins_output()):
                self._waits += events[at:]
                return events[:at]
            if isinstance(event, Text):
                self._said.add(event.text)
        return events

    def release(self) -> Iterable[SourceEvent]:
        """Return the events that waited, as calls, or as text if that is the output: the text is over."""
        waits, self._waits = self._waits, []
        texts = [_as_text(event) for event in waits]
        said, self._said = self._said.text() + "".join(e.text for e in texts if isinstance(e, Text)), Pieces()
        if waits and self._is_output(said, whole=True):
            return [event for event in texts if event is not None]
        return waits

    def _begins_output(self) -> bool:
        """Return whether nothing was said, or the beginning of JSON, a code fence, a comment or a tag of thinking."""
        return self._said.text().lstrip("\ufeff \n\t\r")[:1] in ("", *"{[`<")


def _of_thinking(event: SourceEvent) -> bool:
    """Return whether this is a tag around thinking."""
    return isinstance(event, Markup) and "".join(event.text.split()) in format_tokens().thinking


def _as_text(event: SourceEvent) -> SourceEvent | None:
    """Return an event as the text that it was read from; None if another event has that."""
    match event:
        case CallStart() | ArgumentDelta():
            return None
        case CallEnd(call=call) | CallError(call=call):
            return Text(call.raw)
        case Markup(text) if not _of_thinking(event):
            return Text(text)
        case _:
            return event
