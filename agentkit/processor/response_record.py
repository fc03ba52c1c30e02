"""The record of one response: all calls numbered in one sequence, each with an id, and the parts as a message.

Pure: events in, events out. Knows no text, no tool that could run and no clock; the source of ids is passed as an
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, Final

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallQuoted,
    CallStart,
    Finish,
    InventedResult,
    Markup,
    ModelSelected,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    UnreadCall,
    Usage,
)
from agentkit.formats.control import restore
from agentkit.formats.pieces import Pieces
from agentkit.messages import (
    AssistantMessage,
    AssistantPart,
    MarkupPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    call_as_read,
    response_as_read,
)
from agentkit.processor.not_run import NotRun

TextualPart = type[TextPart] | type[ThinkingPart] | type[MarkupPart]
NO_USAGE: Final = Usage()
_PARTS: Final[Mapping[type, TextualPart]] = {Text: TextPart, Thinking: ThinkingPart, Markup: MarkupPart}
_UNKNOWN: Final = Finish("unknown")
_OF_CALLS: Final = (CallStart, ArgumentDelta, CallEnd, CallError, ProviderBlock)


class CallIds:
    """The ids of a conversation's calls; each is used only once. `new` creates one where a call's own is taken."""

    def __init__(self, new: Callable[[], str], taken: Iterable[str] = ()) -> None:
        self._new = new
        self._taken = set(taken)

    def unique(self, wanted: str | None) -> str:
        """Return the id of one more call: the requested one, unless it is taken."""
        given = wanted or self._new()
        if given in self._taken:
            given = self._new()
        while given in self._taken:  # a source of ids that repeats itself
            given = f"{given}-{len(self._taken)}"
        self._taken.add(given)
        return given


class Draft:
    """A message while it is written: its parts, with a place kept for each call that is still open."""

    __slots__ = ("_parts", "_run", "_run_kind", "_whole")

    def __init__(self) -> None:
        self._parts: list[AssistantPart | None] = []
        self._run = Pieces()  # the text, thinking or markup that continues
        self._run_kind: TextualPart = TextPart
        self._whole: AssistantMessage | None = None

    def __bool__(self) -> bool:
        return bool(self._parts or self._run)

    def say(self, kind: TextualPart, text: str) -> None:
        """Add a piece of text; consecutive pieces of one kind become one part."""
        if kind is not self._run_kind:
            self._end_run()
            self._run_kind = kind
        if text:
            self._run.add(text)

    def add(self, part: AssistantPart) -> None:
        """Add a complete part before the text that is being written, which may continue."""
        self._parts.append(part)

    def add_block(self, event: ProviderBlock) -> None:
        """Add a provider's block; a block of thinking includes the thinking just before it."""
        thought = ""
        if event.thinking and self._run_kind is ThinkingPart:
            thought, self._run = self._run.text(), Pieces()
        self._end_run()
        whole = ThinkingPart(thought, event.provider, event.data)
        self._parts.append(whole if event.thinking else ProviderPart(event.provider, event.data))

    def keep_place(self) -> int:
        """Keep a place for a call that starts here."""
        self._end_run()
        self._parts.append(None)
        return len(self._parts) - 1

    def fill(self, place: int, call: ToolCall) -> None:
        """Add the call for which a place was kept."""
        self._parts[place] = call

    def message(self) -> AssistantMessage:
        """Return the message so far, without calls that are still open."""
        if self._whole is not None:
            return self._whole
        content = [part for part in self._parts if part is not None]
        if self._run:
            content.append(self._run_kind(self._run.text()))
        return response_as_read(tuple(content))

    def close(self) -> None:
        """Create the message, once: nothing follows."""
        self._whole = self.message()

    def _end_run(self) -> None:
        if self._run:
            self._parts.append(self._run_kind(self._run.text()))
            self._run = Pieces()


@dataclass(slots=True)
class OpenCall:
    """A call that has started: its number, its place among the message's parts, and what is known of it."""

    index: int
    place: int
    id: str = ""
    name: str = ""
    raw: Pieces = field(default_factory=Pieces)


CallRefusal = Callable[[ToolCall], NotRun | None]
"""Returns why a call must not run; None if it may."""


class OpenCalls:
    """The calls of one source that have started but not ended, by the source's own numbers.

    Args:
        textual: whether they are in text, which has no ids and keeps what was written. Otherwise they are native.
        restores: whether their model reads results quarantined, so that arguments that pass them on are made whole.
        refusal: returns the reason why a call must not run; None if it may.
    """

    def __init__(
        self,
        *,
        textual: bool = False,
        restores: bool = False,
        refusal: CallRefusal | None = None,
    ) -> None:
        self.by_number: dict[int, OpenCall] = {}
        self.textual, self.restores, self.refusal = textual, restores, refusal


class ResponseRecord:
    """Receives one response's events.

    Its output numbers native and text calls in one sequence, in the order in which they started, and has an id for
    every call. The response is read as far as events are taken: `draft` has what the events taken so far have said.

    Args:
        ids: of the conversation's calls.
        limit: how many calls are read; with the last of them the response is `full` and over. None reads all.
    """

    full = False
    model = ""
    """The model that answers, if the source is a chain of models."""
    usage = NO_USAGE
    finish = _UNKNOWN
    odd: Mapping[type, Any] = MappingProxyType({})
    """The last `InventedResult`, `UnreadCall` and `CallQuoted`. The first ends text that is read for calls."""
    _ended = 0
    _spent: Usage | None = None  # by the responses that this one continues

    def __init__(self, ids: CallIds, limit: int | None = None) -> None:
        self.calls: list[ToolCall | None] = []
        self.draft = Draft()
        self._ids = ids
        self._limit = inf if limit is None else limit

    def keep(self, events: Iterable[SourceEvent], opened: OpenCalls) -> Iterator[SourceEvent]:
        """Keep events one by one, as they are taken; the response may be full before all are."""
        for event in events:
            if self.full:
                return
            yield from self.keep_one(event, opened)

    def keep_all(self, events: Sequence[SourceEvent], opened: OpenCalls) -> Iterable[SourceEvent]:
        """Keep events; most come alone."""
        return self.keep_one(events[0], opened) if len(events) == 1 else self.keep(events, opened)

    def keep_one(self, event: Any, opened: OpenCalls) -> tuple[SourceEvent, ...]:
        """Keep an event for the message, and number its call."""
        index = event.index if len(self.calls) >= self._limit and isinstance(event, _OF_CALLS) else None
        if index is not None and index not in opened.by_number:  # it belongs to a call after the last that is read
            return ()
        keep = _KEEPERS.get(type(event))
        if keep is None:
            raise TypeError(
                f"a response consists of events such as Text('hi'); found {type(event).__name__} {event!r:.80}"
            )
        kept = keep(self, event, opened)
        return (kept, self.finish) if self.full else (kept,)

    def add_further_response(self) -> None:
        """Add the tokens of a further response, which follows."""
        self._spent = self.usage

    # -------------------------------------------------------------- each kind of event

    def _say(self, event: Text | Thinking | Markup, _: OpenCalls) -> SourceEvent:
        self.draft.say(_PARTS[type(event)], event.text)
        return event

    def _take_usage(self, event: Usage, _: OpenCalls) -> SourceEvent:
        self.usage = event if self._spent is None else self._spent.plus(event)
        return self.usage

    def _take_model(self, event: ModelSelected, _: OpenCalls) -> SourceEvent:
        self.model = event.model
        if self.usage is not NO_USAGE:  # of one that failed, or of the response that this one continues
            self.add_further_response()
        return event

    def _take_invented(self, event: InventedResult, opened: OpenCalls) -> SourceEvent:
        if opened.textual:
            self.full, self.finish = True, Finish("stop")
        return self._note(event, opened)

    def _note(self, event: SourceEvent, _: OpenCalls) -> SourceEvent:
        self.odd = {**self.odd, type(event): event}
        return event

    def _take_finish(self, event: Finish, _: OpenCalls) -> SourceEvent:
        self.finish = event
        return event

    def _take_start(self, event: CallStart, opened: OpenCalls) -> SourceEvent:
        call = self._opened(event.index, opened)
        call.name = event.name
        if not call.id and (event.id or opened.textual):
            call.id = self._ids.unique(event.id)
        known = (call.index, event.name, call.id or None)
        return event if event[:] == known else CallStart(*known)

    def _take_delta(self, event: ArgumentDelta, opened: OpenCalls) -> SourceEvent:
        call = opened.by_number.get(event.index) or self._opened(event.index, opened)
        if not opened.textual:
            call.raw.add(event.text)
        return event if event.index == call.index else ArgumentDelta(call.index, event.text, event.key)

    def _take_end(self, event: CallEnd, opened: OpenCalls) -> SourceEvent:
        if opened.refusal is not None and (why := opened.refusal(event.call)) is not None:
            return self._take_error(CallError(event.index, why.code, why.text(), event.call), opened)
        index, call = self._end(event.index, event.call, opened)
        return event if call is event.call and index == event.index else CallEnd(index, call, event.repairs)

    def _take_error(self, event: CallError, opened: OpenCalls) -> SourceEvent:
        index, call = self._end(event.index, event.call, opened)
        return CallError(index, event.code, event.message, call, event.position)

    def _take_block(self, event: ProviderBlock, opened: OpenCalls) -> SourceEvent:
        call = opened.by_number.get(event.index) if event.index is not None else None
        if call is None:
            self.draft.add_block(event)
            return event
        call.id = call.id or self._ids.unique(None)
        self.draft.add(ProviderPart(event.provider, event.data, call.id))
        return event if event.index == call.index else event._replace(index=call.index)

    def _opened(self, index: int, opened: OpenCalls) -> OpenCall:
        call = opened.by_number.get(index)
        if call is None:
            call = opened.by_number[index] = OpenCall(len(self.calls), self.draft.keep_place())
            self.calls.append(None)
        return call

    def _end(self, index: int, call: ToolCall, opened: OpenCalls) -> tuple[int, ToolCall]:
        known = self._opened(index, opened)
        del opened.by_number[index]  # a source that uses a number twice means two calls
        id = known.id or self._ids.unique(call.id)
        arguments = restore(call.arguments) if opened.restores else call.arguments  # `raw` stays as written
        if call.id != id or arguments != call.arguments:
            call = call_as_read(id, call.name, arguments, call.format, call.raw)
        self.calls[known.index] = call
        self.draft.fill(known.place, call)
        self._ended += 1
        if self._ended == self._limit:
            self.full, self.finish = True, Finish("tool_limit_reached")
        return known.index, call


_KEEPERS: Final[Mapping[type, Callable[[ResponseRecord, Any, OpenCalls], SourceEvent]]] = {
    **dict.fromkeys((Text, Thinking, Markup), ResponseRecord._say),
    ProviderBlock: ResponseRecord._take_block,
    CallStart: ResponseRecord._take_start,
    ArgumentDelta: ResponseRecord._take_delta,
    CallEnd: ResponseRecord._take_end,
    CallError: ResponseRecord._take_error,
    InventedResult: ResponseRecord._take_invented,
    **dict.fromkeys((CallQuoted, UnreadCall), ResponseRecord._note),
    Usage: ResponseRecord._take_usage,
    ModelSelected: ResponseRecord._take_model,
    Finish: ResponseRecord._take_finish,
}
"""The function that keeps each kind of event; a table, since it is read once per streamed delta."""
