"""One response as it is read: text becomes calls, all calls get one count and ids, the parts become a message.

Pure: events in, events out. Knows no tool that could run, no clock and no event loop; the parser and the source of ids
come in as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Finish,
    Markup,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    Usage,
)
from agentkit.messages import (
    AssistantContent,
    AssistantMessage,
    MarkupPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
)
from agentkit.processor.recovery import Recovery, TextReader

Part = TextPart | ThinkingPart | ToolCall | MarkupPart | ProviderPart
TextualPart = type[TextPart] | type[ThinkingPart] | type[MarkupPart]


@dataclass(slots=True)
class _Open:
    """A call that has begun: its number, its place among the message's parts, and what is known of it."""

    index: int
    place: int
    id: str = ""
    name: str = ""
    raw: list[str] = field(default_factory=list)


_OpenCalls = dict[int, _Open]


class ResponseReader:
    """Reads one response's events.

    What it returns has one count for native and text calls, in the order in which they began; an id for every call,
    unique among `taken`; and, in place of the text, what `formats.Parser` read in it. Thinking, a native call, a
    provider's block and the finish end the text before them: no text call reaches across.

    Args:
        new_parser: makes a parser, given whether it reads the very beginning; None leaves text as it is.
        new_id: makes an id for a call that has none, or whose own is taken.
        taken: the ids used so far in the conversation; added to.
        recovery: finds the calls that a native model wrote as text; None lets them be text.
    """

    def __init__(
        self,
        new_parser: Callable[[bool], TextReader] | None,
        new_id: Callable[[], str],
        taken: set[str],
        recovery: Recovery | None = None,
    ) -> None:
        self.usage = Usage()
        self.finish = Finish("unknown")
        self.calls: list[ToolCall | None] = []
        self._new_parser = new_parser
        self._new_id = new_id
        self._taken = taken
        self._recovery = recovery
        self._parser: TextReader | None = None
        self._native: _OpenCalls = {}
        self._textual: _OpenCalls = {}
        self._parts: list[Part | None] = []
        self._run: list[str] = []
        self._run_kind: TextualPart = TextPart

    def feed(self, event: SourceEvent) -> Sequence[SourceEvent]:
        """Read one event."""
        if isinstance(event, Text) and self._new_parser is not None:
            return self._read_text(event.text)
        if isinstance(event, Finish):
            return (*self.close(), self._take(event, self._native))
        if self._recovery is not None:
            return [self._take(e, self._native) for e in self._recovery.feed(event)]
        if self._parser is not None and self._ends_text(event):
            return (*self._end_text(), self._take(event, self._native))
        return (self._take(event, self._native),)

    def close(self, *, whole: bool = True) -> list[SourceEvent]:
        """End the response: the text held back, and an error for each call that was left unfinished.

        Only a response that is `whole`, not broken off, is known to hold no native call: else none is recovered.
        """
        if self._recovery is not None:
            events = [self._take(e, self._textual) for e in self._recovery.close(whole=whole)]
        else:
            events = self._end_text()
        for index, opened in list(self._native.items()):
            raw = "".join(opened.raw)
            message = f"the response ended after {len(raw)} characters of this call's arguments; call again, in full"
            call = ToolCall(opened.id, opened.name, raw=raw)
            events.append(self._take(CallError(index, "truncated_call", message, call, len(raw)), self._native))
        return events

    def message(self) -> AssistantMessage:
        """What was read so far; calls that are still open are left out."""
        self._end_run()
        content: AssistantContent = tuple(part for part in self._parts if part is not None)
        return AssistantMessage(content)

    def _read_text(self, text: str) -> list[SourceEvent]:
        if self._parser is None and self._new_parser is not None:
            self._parser = self._new_parser(not self._parts and not self._run)
        return [self._take(e, self._textual) for e in self._parser.feed(text)] if self._parser else []

    def _ends_text(self, event: SourceEvent) -> bool:
        """Whether a part of the message begins here, so that the text before it is over."""
        match event:
            case CallStart() | CallEnd() | CallError():
                return event.index not in self._native
            case _:
                return isinstance(event, (Thinking, ProviderBlock))

    def _end_text(self) -> list[SourceEvent]:
        if self._parser is None:
            return []
        parser, self._parser = self._parser, None
        events = [self._take(e, self._textual) for e in parser.close()]
        self._textual.clear()
        return events

    def _take(self, event: Any, opened: _OpenCalls) -> SourceEvent:
        """Keep an event for the message, and put its call into the one count."""
        take = _TAKE.get(type(event))
        if take is None:
            raise TypeError(
                f"a response consists of events such as Text('hi'); found {type(event).__name__} {event!r:.80}"
            )
        return take(self, event, opened)

    def _take_text(self, event: Text, _: _OpenCalls) -> SourceEvent:
        return self._say(TextPart, event)

    def _take_thinking(self, event: Thinking, _: _OpenCalls) -> SourceEvent:
        return self._say(ThinkingPart, event)

    def _take_markup(self, event: Markup, _: _OpenCalls) -> SourceEvent:
        return self._say(MarkupPart, event)

    def _take_usage(self, event: Usage, _: _OpenCalls) -> SourceEvent:
        self.usage = event
        return event

    def _take_finish(self, event: Finish, _: _OpenCalls) -> SourceEvent:
        self.finish = event
        return event

    def _take_start(self, event: CallStart, opened: _OpenCalls) -> SourceEvent:
        call = self._opened(event.index, opened)
        call.name = event.name
        if not call.id and (event.id or opened is self._textual):
            call.id = self._unique(event.id)
        known = (call.index, event.name, call.id or None)
        return event if event[:] == known else CallStart(*known)

    def _take_delta(self, event: ArgumentDelta, opened: _OpenCalls) -> SourceEvent:
        call = self._opened(event.index, opened)
        if opened is self._native:
            call.raw.append(event.text)
        return event if event.index == call.index else ArgumentDelta(call.index, event.text, event.key)

    def _take_end(self, event: CallEnd, opened: _OpenCalls) -> SourceEvent:
        index, call = self._end(event.index, event.call, opened)
        return event if call is event.call and index == event.index else CallEnd(index, call, event.repairs)

    def _take_error(self, event: CallError, opened: _OpenCalls) -> SourceEvent:
        index, call = self._end(event.index, event.call, opened)
        return CallError(index, event.code, event.message, call, event.position)

    def _take_block(self, event: ProviderBlock, opened: _OpenCalls) -> SourceEvent:
        call = opened.get(event.index) if event.index is not None else None
        if call is not None:
            call.id = call.id or self._unique(None)
            self._parts.append(ProviderPart(event.provider, event.data, call.id))
            return event if event.index == call.index else event._replace(index=call.index)
        thought = ""
        if event.thinking and self._run_kind is ThinkingPart:
            thought, self._run = "".join(self._run), []
        self._end_run()
        whole = ThinkingPart(thought, event.provider, event.data)
        self._parts.append(whole if event.thinking else ProviderPart(event.provider, event.data))
        return event

    def _opened(self, index: int, opened: _OpenCalls) -> _Open:
        call = opened.get(index)
        if call is None:
            self._end_run()
            call = opened[index] = _Open(len(self.calls), len(self._parts))
            self.calls.append(None)
            self._parts.append(None)
        return call

    def _end(self, index: int, call: ToolCall, opened: _OpenCalls) -> tuple[int, ToolCall]:
        known = self._opened(index, opened)
        del opened[index]  # a source that uses a number twice means two calls
        id = known.id or self._unique(call.id)
        whole = call if call.id == id else replace(call, id=id)
        self.calls[known.index] = self._parts[known.place] = whole
        return known.index, whole

    def _unique(self, wanted: str | None) -> str:
        given = wanted or self._new_id()
        if given in self._taken:
            given = self._new_id()
        while given in self._taken:  # a source of ids that repeats itself
            given = f"{given}-{len(self._taken)}"
        self._taken.add(given)
        return given

    def _say(self, kind: TextualPart, event: Text | Thinking | Markup) -> SourceEvent:
        if kind is not self._run_kind:
            self._end_run()
            self._run_kind = kind
        if event.text:
            self._run.append(event.text)
        return event

    def _end_run(self) -> None:
        if self._run:
            self._parts.append(self._run_kind("".join(self._run)))
            self._run = []


_TAKE: Mapping[type, Callable[[ResponseReader, Any, _OpenCalls], SourceEvent]] = {
    Text: ResponseReader._take_text,
    Thinking: ResponseReader._take_thinking,
    Markup: ResponseReader._take_markup,
    ProviderBlock: ResponseReader._take_block,
    CallStart: ResponseReader._take_start,
    ArgumentDelta: ResponseReader._take_delta,
    CallEnd: ResponseReader._take_end,
    CallError: ResponseReader._take_error,
    Usage: ResponseReader._take_usage,
    Finish: ResponseReader._take_finish,
}
"""What is kept of each kind of event; a table, since it is looked into once per streamed delta."""
