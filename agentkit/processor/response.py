"""One response as it is read: text becomes calls, all calls get one count and ids, the parts become a message.

Pure: events in, events out. Knows no tool that could run, no clock and no event loop; the parser and the source of ids
come in as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallQuoted,
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
    AssistantMessage,
    AssistantPart,
    MarkupPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
)
from agentkit.processor.continuing import Made, Record
from agentkit.processor.recovery import Quoted, Recovery
from agentkit.processor.textreader import TextReader

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

MADE: Final = (
    "the reply that the token limit cut has this very call, with its answer; it was not run a second time. If it is "
    "meant once more, call it again in your next reply"
)

QUOTED: Final = (
    "this call stands, the same, in a tool result or a user message, and was not run: it may be quoted. To make it, "
    "call the tool natively"
)

_OF_CALLS = (CallStart, ArgumentDelta, CallEnd, CallError, ProviderBlock)
_NO_USAGE = Usage()


class ResponseReader:
    """Reads one response's events.

    What it gives has one count for native and text calls, in the order in which they began; an id for every call,
    unique among `taken`; and, in place of the text, what `formats.Parser` read in it. Thinking, a native call, a
    provider's block and the finish end the text before them: no text call reaches across.

    It is read as far as it is taken: `message` holds what the events taken so far have said.

    Args:
        new_parser: makes a parser, given whether it reads the very beginning; None leaves text as it is.
        new_id: makes an id for a call that has none, or whose own is taken.
        taken: the ids used so far in the conversation; added to.
        recovery: finds the calls that a native model wrote as text; None lets them be text.
        limit: calls that are read; with the last of them the response is `full` and over. None reads all.
        record: keeps the text as it was written, so that a further response may go on with it; None keeps none.
        quoted: tells of a text call that it stands already in what a native model has read: it is answered with an
            error. None asks nobody.
        made: the calls that ran in the response before, where its token limit cut that one.
    """

    def __init__(
        self,
        new_parser: Callable[[bool], TextReader] | None,
        new_id: Callable[[], str],
        taken: set[str],
        recovery: Recovery | None = None,
        *,
        limit: int | None = None,
        record: Record | None = None,
        quoted: Quoted | None = None,
        made: Made | None = None,
    ) -> None:
        self.full = False
        self.usage = Usage()
        self.finish = Finish("unknown")
        self.calls: list[ToolCall | None] = []
        self._new_parser = new_parser
        self._new_id = new_id
        self._taken = taken
        self._recovery = recovery
        self._limit = inf if limit is None else limit
        self._ended = 0
        self._record = record
        self._quoted = quoted
        self._made = made or Made()
        self._further: list[str] | None = None  # the text of a further response, until it is whole
        self._good: list[ToolCall] = []  # the text calls that could be read
        self._resumed = False  # it was asked for, so that calls may be begun again
        self._silent = False  # it said nothing
        self._anew = False  # it was no continuation but a reply of its own
        self._first = False  # whether the parser reads the very beginning
        self._spent = _NO_USAGE  # by the responses that this one continues
        self._thought_in_text = False
        self._parser: TextReader | None = None
        self._native: _OpenCalls = {}
        self._textual: _OpenCalls = {}
        self._parts: list[AssistantPart | None] = []
        self._run: list[str] = []
        self._run_kind: TextualPart = TextPart

    def feed(self, event: SourceEvent) -> Iterable[SourceEvent]:
        """Read one event. Once the response is `full`, only its usage is."""
        if self.full:
            if isinstance(event, Usage):
                self._take_usage(event, self._native)
            return ()
        if isinstance(event, Text) and self._new_parser is not None:
            if self._further is not None:
                self._further.append(event.text)
                return ()
            return self._keep(self._read_text(event.text), self._textual)
        if isinstance(event, Finish):
            return self._finished(event)
        if self._recovery is not None:
            return self._keep(self._recovery.feed(event), self._native)
        if self._parser is not None and self._ends_text(event):
            return self._after_text(event)
        if len(self.calls) >= self._limit and self._over_limit(event, self._native):
            return ()
        taken = self._take(event, self._native)
        return (taken, self.finish) if self._ended == self._limit else (taken,)

    def close(self, *, whole: bool = True, cut: bool = False) -> Iterable[SourceEvent]:
        """End the response: the text held back, and an error for each call that was left unfinished.

        Only a response that is `whole`, not broken off, is known to hold no native call: else none is recovered. One
        that its token limit `cut` may have ended inside the first characters of a call.
        """
        recovery = self._recovery
        unread = recovery.open if recovery is not None else self._parser is not None or self._further is not None
        return self._close(whole=whole, cut=cut) if (unread or self._native) and not self.full else ()

    def _close(self, *, whole: bool, cut: bool) -> Iterator[SourceEvent]:
        if self._recovery is not None:
            yield from self._keep(self._recovery.close(whole=whole), self._textual)
        else:
            yield from self._end_text(cut=cut)
        for index, opened in list(self._native.items()):
            raw = "".join(opened.raw)
            message = f"the response ended after {len(raw)} characters of this call's arguments; call again, in full"
            call = ToolCall(opened.id, opened.name, raw=raw)
            yield from self._keep([CallError(index, "truncated_call", message, call, len(raw))], self._native)

    def message(self) -> AssistantMessage:
        """What was read so far; calls that are still open are left out."""
        content = [part for part in self._parts if part is not None]
        if self._run:
            content.append(self._run_kind("".join(self._run)))
        return AssistantMessage(tuple(content))

    # -------------------------------------------------------------- going on in a further response

    @property
    def open(self) -> bool:
        """Whether a further response can go on with a text call that this one left unfinished."""
        if self._record is None or self._parser is None or self.full or self._native or self._anew:
            return False
        native = any(call is not None and call.format is None for call in self.calls)
        return not native and self._record.may_be_call

    @property
    def waits(self) -> bool:
        """Whether a further response was asked for and has said nothing yet."""
        return self._further == []

    def partial(self) -> AssistantMessage:
        """What was written so far, for a model that shall go on: its thinking, and all its text as it wrote it."""
        content: list[AssistantPart] = [
            part
            for part in self.message().content
            if (isinstance(part, ProviderPart) and part.call_id is None)
            or (isinstance(part, ThinkingPart) and (part.data is not None or not self._thought_in_text))
        ]
        text = self._record.text if self._record is not None else ""
        return AssistantMessage((*content, TextPart(text)))

    def resume(self) -> None:
        """A further response may go on with the open call. Nothing of its text is read before `join`."""
        self._further, self._resumed = [], True
        self._spent = self.usage

    def join(self, *, cut: bool) -> Iterator[SourceEvent]:
        """Read what a further response brought, now that it is whole: as more of the call, or as a reply of its own.

        Args:
            cut: whether it met its token limit, too.
        """
        if self._further is None:
            return
        text, self._further = "".join(self._further), None
        if not text or self._record is None or self._new_parser is None or self.full:
            self._silent = not text
            return
        new_parser = self._new_parser
        rest = self._record.rest(text, lambda same: new_parser(same and self._first), cut=cut)
        self._made = Made(self._good)
        if rest is None:
            self._anew = True
            yield from self._end_text(again=True)
        if not self.full:
            yield from self._keep(self._read_text(text if rest is None else rest), self._textual)

    # -------------------------------------------------------------- text

    def _read_text(self, text: str) -> Iterable[SourceEvent]:
        if self._parser is None and self._new_parser is not None:
            self._first = not self._parts and not self._run
            self._parser = self._new_parser(self._first)
        events = self._parser.feed(text) if self._parser is not None else ()
        if self._record is not None:
            self._record.fed(text)
            self._record.told(events)
        return events

    def _ends_text(self, event: SourceEvent) -> bool:
        """Whether a part of the message begins here, so that the text before it is over."""
        match event:
            case CallStart() | CallEnd() | CallError():
                return event.index not in self._native
            case _:  # a further response may think before it goes on with the text
                return isinstance(event, (Thinking, ProviderBlock)) and self._further is None

    def _end_text(self, *, again: bool = False, cut: bool = False) -> Iterator[SourceEvent]:
        """Read the rest. A call that may be begun `again` does not run here, though a parser may make do with it."""
        yield from self.join(cut=cut)
        if self._parser is None:
            return
        parser, self._parser = self._parser, None
        last = parser.close()
        if again:
            last = [*map(_unfinished, last)]
        if (cut or again or self._silent) and self._record is not None:
            last = _as_cut(last, self._record)
        yield from self._keep(last, self._textual)
        self._textual.clear()
        if self._record is not None:
            self._record.ended()

    def _after_text(self, event: SourceEvent) -> Iterator[SourceEvent]:
        yield from self._end_text()
        yield from self._keep((event,), self._native)

    def _finished(self, event: Finish) -> Iterator[SourceEvent]:
        yield from self.close(cut=event.reason == "length")
        yield from self._keep((event,), self._native)

    # -------------------------------------------------------------- what is kept

    def _keep(self, events: Iterable[SourceEvent], opened: _OpenCalls) -> Iterator[SourceEvent]:
        """Keep events one by one, as they are taken; the response may be full before their end."""
        for event in events:
            if self.full:
                return
            if len(self.calls) >= self._limit and self._over_limit(event, opened):
                continue
            yield self._take(event, opened)
            if self._ended == self._limit:
                yield self.finish

    def _over_limit(self, event: SourceEvent, opened: _OpenCalls) -> bool:
        """Whether this belongs to a call behind the last one that is read, now that all of those have begun."""
        index = event.index if isinstance(event, _OF_CALLS) else None
        return index is not None and index not in opened

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

    def _take_thinking(self, event: Thinking, opened: _OpenCalls) -> SourceEvent:
        if opened is self._textual:
            self._thought_in_text = True
        return self._say(ThinkingPart, event)

    def _take_markup(self, event: Markup, _: _OpenCalls) -> SourceEvent:
        return self._say(MarkupPart, event)

    def _take_usage(self, event: Usage, _: _OpenCalls) -> SourceEvent:
        self.usage = self._spent.plus(event) if self._spent is not _NO_USAGE else event
        return self.usage

    def _take_quoted(self, event: CallQuoted, _: _OpenCalls) -> SourceEvent:
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
        if opened is self._textual and (why := self._refused(event.call)):
            return self._take_error(CallError(event.index, "ambiguous_call", why, event.call), opened)
        index, call = self._end(event.index, event.call, opened)
        if opened is self._textual:
            self._good.append(call)
            if self._resumed:
                self._made.add(call)
        return event if call is event.call and index == event.index else CallEnd(index, call, event.repairs)

    def _refused(self, call: ToolCall) -> str | None:
        """Why a call that can be read is not to be run."""
        if self._made.again(call):
            return MADE
        return QUOTED if self._quoted is not None and self._quoted(call) is not None else None

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
        self._ended += 1
        if self._ended == self._limit:
            self.full, self.finish = True, Finish("tool_limit_reached")
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


def _unfinished(event: SourceEvent) -> SourceEvent:
    """A call as one that was cut."""
    if not isinstance(event, CallEnd):
        return event
    message = (
        "the response ended inside this call, and what followed is read as a reply of its own; call again, in full"
    )
    return CallError(event.index, "truncated_call", message, event.call, len(event.call.raw))


def _as_cut(last: Sequence[SourceEvent], record: Record) -> Sequence[SourceEvent]:
    """The last events of a text that was cut, where its end may be the first characters of a call."""
    place = max((i + 1 for i, event in enumerate(last) if isinstance(event, CallEnd | CallError)), default=0)
    behind = place > 0 or record.behind_call
    begun = "".join(event.text for event in last[place:] if isinstance(event, Text | Markup | Thinking))
    if isinstance(last[place - 1], CallError) if place else not last:
        return last
    if record.begins_call(begun, behind=behind):
        where = "in what may be a call"
    elif record.may_begin_either(begun):
        where = "in the end of the calls, or in what may be a further call"
    else:
        return last
    space = begun[: len(begun) - len(begun.lstrip())]
    raw = begun[len(space) :]
    message = f"the response reached its token limit {where}, at {raw!r:.80}; write it again, in full"
    call = ToolCall("", "", format=record.format, raw=raw)
    return [*last[:place], *([Text(space)] if space else []), CallError(-1, "truncated_call", message, call, len(raw))]


_TAKE: Mapping[type, Callable[[ResponseReader, Any, _OpenCalls], SourceEvent]] = {
    Text: ResponseReader._take_text,
    Thinking: ResponseReader._take_thinking,
    Markup: ResponseReader._take_markup,
    ProviderBlock: ResponseReader._take_block,
    CallStart: ResponseReader._take_start,
    ArgumentDelta: ResponseReader._take_delta,
    CallEnd: ResponseReader._take_end,
    CallError: ResponseReader._take_error,
    CallQuoted: ResponseReader._take_quoted,
    Usage: ResponseReader._take_usage,
    Finish: ResponseReader._take_finish,
}
"""What is kept of each kind of event; a table, since it is looked into once per streamed delta."""
