"""A response's native calls, and its end, as events: the same for the three providers' wires."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from agentkit.errors import ErrorCode
from agentkit.events import (
    TAKEN_BACK,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Finish,
    FinishReason,
    ProviderBlock,
    SourceEvent,
    UnreadCall,
    Usage,
)
from agentkit.messages import ToolCall
from agentkit.models.event_shapes import EventShape, has_more
from agentkit.models.growing_arguments import GrowingArguments
from agentkit.models.native_arguments import ArgumentsError, NativeArguments, read_arguments, readable
from agentkit.models.strays import UNREAD, LatePieces, Strays
from agentkit.schemas.typed.exact import exactly, rounded
from agentkit.unicode import Joiner, clean, clean_json

_LOG: Final = logging.getLogger("agentkit.models")


def provider_block(
    provider: str, data: Mapping[str, Any], *, thinking: bool = False, index: int | None = None
) -> ProviderBlock:
    """A provider's own block, unchanged except for characters that could not be sent back."""
    return ProviderBlock(provider, clean_json(data), thinking, index)


_SHAPE: Final = frozenset(("$schema", "type", "title", "description", "properties", "required", "additionalProperties"))


def is_bare(schema: Mapping[str, Any]) -> bool:
    """Whether a tool with this schema can only be called without arguments."""
    return schema.keys() <= _SHAPE and not (schema.get("properties") or schema.get("additionalProperties"))


@dataclass(slots=True, eq=False)
class NativeCall:
    """A call that is being received.

    Attributes:
        told: the provider said what its arguments are, even if there are none: an empty string, or null.
        stopped: whether the provider said that nothing more of it will come; False if it said that the call is
            incomplete, None if it said neither.
        doubt: why it is ambiguous what belongs to it; such a call never executes.
        late: what came for it after it had ended.
        extras: what its provider adds to name and arguments, and requires back with them.
    """

    index: int
    id: str
    name: str = ""
    pieces: GrowingArguments = field(default_factory=GrowingArguments)
    joiner: Joiner = field(default_factory=Joiner)
    started: bool = False
    told: bool = False
    stopped: bool | None = None
    ended: bool = False
    doubt: str = ""
    late: LatePieces = field(default_factory=LatePieces)
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The arguments' text so far."""
        return self.pieces.text()

    @property
    def values(self) -> Mapping[str, Any] | None:
        """The arguments that have come, if they are complete."""
        return self.pieces.values

    def call(self, arguments: Mapping[str, Any] | None = None) -> ToolCall:
        """The call as a value; without arguments if they could not be read."""
        return ToolCall(self.id, self.name, arguments or {}, None, self.text)


class NativeCalls:
    """The native calls of one response, in the order of their starts. Each ends once: in `CallEnd` or `CallError`.

    Args:
        provider: the provider that made the calls.
        marks_ends: whether the provider marks the end of each call. If it does, a call of an interrupted response
            without that mark is truncated, and a marked one ends with `go_on`. Otherwise what comes after a call is
            the mark: the next call, or the finish.
        whole_names: whether a name comes complete. If it may come in fragments, a call is reported once its name is
            complete: with the first of its arguments, or when the next call starts.
        schemas: those of the offered tools, by name. The calls of a tool that takes no arguments are complete without
            any, and where a float would have other digits than those that were written, the schema says what has them.

    Attributes:
        held: whether calls end only with the response, because its end may bar them.
    """

    def __init__(
        self,
        provider: str,
        *,
        marks_ends: bool,
        whole_names: bool = True,
        schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        self.all: list[NativeCall] = []
        self.held = False
        self._provider = provider
        self._schemas = schemas
        self._marks_ends = marks_ends
        self._whole_names = whole_names
        self._marked: list[NativeCall] = []  # over, and the response has not continued after them
        self._over: set[int] = set()  # over, but perhaps an earlier one is not: they end in the order of their starts
        self._first = 0  # the first call that has not ended, if any
        self._unstarted = 0  # as far as is known, the first call that has not started
        self._waits: tuple[object, ...] = ()  # the state in which that one was found incomplete
        self._strays = Strays()

    def begin(self, id: str, name: str) -> tuple[NativeCall, list[SourceEvent]]:
        """A new call; its name may still be to come."""
        call = NativeCall(len(self.all), clean(id))
        self.all.append(call)
        self._strays.begins(call)
        return call, self.more(call, name=name)

    def more(self, call: NativeCall, text: str = "", *, name: str = "", sure: bool = False) -> list[SourceEvent]:
        """More of a call: its name, of which the first one counts, and more of its arguments' text; see `rename`.

        What comes for a call that has ended is dropped: some servers repeat a call that was complete.

        Args:
            call: the call.
            text: of its arguments.
            name: its name.
            sure: whether the text belongs to this call alone, as far as its place or its id tells.
        """
        if call.ended:
            (call.late.told if sure else call.late.untold).append(text)
            if not sure:
                self.stray(call)
            return []
        if name and not call.name:
            call.name = clean(name)
        piece = call.joiner.feed(text) if text else ""
        if piece:
            if self._strays.came:
                self._strays.grows(call)
            call.pieces.add(piece)
        if not call.started:
            return self._start_in_order() if call.name and (self._whole_names or call.pieces) else []
        return [ArgumentDelta(call.index, piece)] if piece else []

    def tell(self, call: NativeCall, whole: str) -> list[SourceEvent]:
        """The complete arguments, if the provider sends them: they override what came in pieces."""
        whole = clean(whole)
        if not whole:
            return []
        if call.ended:
            _warn_if_other(call, whole)
            return []
        call.joiner = Joiner()
        events: list[SourceEvent] = []
        if whole.startswith(call.text):
            events = self.more(call, whole[len(call.text) :])
        else:
            call.pieces = GrowingArguments(whole)
        self._strays.told(call)
        return events

    def stray(self, place: Hashable = None) -> None:
        """Something came that fits no call, at a place where one may still begin; None if that is unknown."""
        self._strays.add(place)

    def claim(self, place: Hashable) -> None:
        """A call has started where such things came: they are parts of it."""
        self._strays.claim(place)

    def check(self, event: Mapping[str, Any], shape: EventShape) -> None:
        """Whether an event of which nothing was read holds something elsewhere than its shape says."""
        if has_more(event, shape):
            self.unread(event)

    def unread(self, event: Mapping[str, Any]) -> None:
        """An event came that holds something, but nothing of it could be read."""
        self.stray()
        if not self._strays.reported:  # its values may be anybody's words, and are not shown
            names = ", ".join(sorted(map(repr, event)))[:200]
            _LOG.warning("an event of the response has a shape that cannot be read, with the fields %s", names)
            self._strays.reported = True

    def lacks(self, call: NativeCall) -> bool:
        """Whether something that fits no call may be a part of this one, as far as is known."""
        if not self._strays.lost():
            return False
        silent = not call.values and not self._is_bare(call.name) and readable(call.text) == {}
        return self._strays.lacks(call, silent=silent)

    def rename(self, call: NativeCall, name: str) -> None:
        """Set the name of a call after more of it has come; the name of a call that has ended stays."""
        if not call.ended:
            call.name = clean(name)

    def end(self, call: NativeCall) -> list[SourceEvent]:
        """Nothing more of this call is expected. It ends now, or with `go_on`, if its arguments are complete.

        A call without arguments, or with broken ones, waits for `settle`: the reason for the end shows whether it was
        cut.
        """
        call.stopped = True
        if call.ended or not call.name or call.doubt or self.held:
            return []
        events = [] if call.started else self._start(call)
        if self._marks_ends:
            self._marked.append(call)
            return events
        self._over.add(call.index)
        return events + self._end_in_order()

    def go_on(self) -> list[SourceEvent]:
        """The response continues after the calls that were marked as over, or finishes well: they end.

        Before that the provider might retract them: its filter's verdict directly follows the call that it is about.
        """
        if not self._marked or self.held:
            return []
        self._over.update(call.index for call in self._marked)
        self._marked = []
        return self._end_in_order()

    def cut(self) -> None:
        """The response reached its limit right after the calls that were marked as over: they may be incomplete."""
        for call in self._marked:
            call.stopped = False
        self._marked = []

    def _end_in_order(self) -> list[SourceEvent]:
        """End the calls that are over and complete, up to the first one that is not."""
        events: list[SourceEvent] = []
        while self._first < len(self.all):
            call = self.all[self._first]
            if not call.ended:
                if call.doubt or call.index not in self._over:
                    break
                events += self._complete(call)
                if not call.ended:
                    break
            self._first = call.index + 1
        return events

    def _complete(self, call: NativeCall) -> list[SourceEvent]:
        if self._strays.may_be_inside(call):
            return []
        state = (call, call.name, call.told, call.pieces, len(call.pieces))
        if state == self._waits:
            return []
        self._waits = state
        try:
            arguments = read_arguments(call.text)
        except ArgumentsError:
            return []
        if not (arguments.values or (self._is_bare(call.name) and call.told)):
            return []
        return self._end(call, arguments)

    def doubt_silent(self) -> None:
        """Something came that fits no call: those of which no arguments came may be the ones that it is of."""
        for call in self.all:
            if not (call.ended or call.text.strip() or self._is_bare(call.name)):
                call.doubt = call.doubt or UNCLAIMED

    def settle(self, cut: str = "", *, broken: bool = False, barred: bool = False) -> list[SourceEvent]:
        """End every open call.

        Args:
            cut: why the response was cut short; empty if it was not. A call that was cut never executes.
            broken: whether the response was interrupted, or its provider failed.
            barred: whether no call of the response may run, not even a complete one.
        """
        others = False
        for call in self.all:
            if _holds_others(call):
                others = True
            elif call.late.untold:
                self.claim(call)  # only repeated
            if call.late.say_more(call.text):
                _LOG.warning("more arguments came for the call %r of %r after it had ended", call.id, call.name)
        if others:
            self.doubt_silent()
        open_calls = [call for call in self.all if not call.ended]
        for call in open_calls:
            if self.lacks(call):
                call.doubt = call.doubt or UNREAD
        return [event for call in open_calls for event in self._settle(call, cut, broken, barred)]

    def _settle(self, call: NativeCall, cut: str, broken: bool, barred: bool) -> list[SourceEvent]:
        rest = call.joiner.close()
        events = self.more(call, rest) if rest else []
        if not call.name:
            return [] if barred else [UnreadCall(call.text, "")]  # a call without a name would spoil the history
        if not call.started:
            events += self._start(call)
        if call.doubt:
            return events + self._fail(call, "ambiguous_call", call.doubt, 0)
        cut = cut or (INCOMPLETE if call.stopped is False else "")
        try:
            arguments = read_arguments(call.text)
        except ArgumentsError as e:
            return events + (self._cut(call, cut) if cut else self._fail(call, e.code, str(e), e.position))
        if cut and self._may_be_cut(call, arguments.values, broken):
            return events + self._cut(call, cut)
        if barred:
            return events + self._fail(call, "denied", f"not run: {cut}, and this call with it", 0)
        if not (call.told or call.text.strip() or self._is_bare(call.name)):
            return events + self._fail(call, "truncated_call", NO_ARGUMENTS, 0)
        return events + self._end(call, arguments)

    def _is_bare(self, name: str) -> bool:
        return name in self._schemas and is_bare(self._schemas[name])

    def _may_be_cut(self, call: NativeCall, arguments: Mapping[str, Any], broken: bool) -> bool:
        """Whether a call whose arguments can be read was nevertheless cut: no arguments may mean none so far."""
        marked = call.stopped if self._marks_ends else not broken
        return not marked or (call is self.all[-1] and not arguments)

    def _start_in_order(self) -> list[SourceEvent]:
        """Start the calls that are known, up to the first whose name is still to come."""
        events: list[SourceEvent] = []
        while self._unstarted < len(self.all):
            call = self.all[self._unstarted]
            if not call.started:
                if not (call.name and (self._whole_names or call.pieces)):
                    break
                events += self._start(call)
            self._unstarted += 1
        return events

    def _start(self, call: NativeCall) -> list[SourceEvent]:
        call.started = True
        events: list[SourceEvent] = [CallStart(call.index, call.name, call.id or None)]
        if call.text:
            events.append(ArgumentDelta(call.index, call.text))
        return events

    def _cut(self, call: NativeCall, why: str) -> list[SourceEvent]:
        at = len(call.text)
        return self._fail(call, "truncated_call", f"{why} inside this call, after {at} characters of its arguments", at)

    def _fail(self, call: NativeCall, code: ErrorCode, message: str, position: int) -> list[SourceEvent]:
        return self._close(call, CallError(call.index, code, message, call.call(), position))

    def _end(self, call: NativeCall, arguments: NativeArguments) -> list[SourceEvent]:
        schema = self._schemas.get(call.name, {})
        made = exactly(arguments.values, schema, schema) if rounded(arguments.values) else arguments.values
        return self._close(call, CallEnd(call.index, call.call(made), arguments.repairs))

    def _close(self, call: NativeCall, end: CallEnd | CallError) -> list[SourceEvent]:
        call.ended = True
        extras = [provider_block(self._provider, call.extras, index=call.index)] if call.extras else []
        return [*extras, end]


NO_ARGUMENTS: Final = "no arguments of this call came, nor a statement that it has none; call again with them"

UNCLAIMED: Final = "no arguments of this call came, but some came that fit no call; call again with them"

INCOMPLETE: Final = "the provider stopped"

CONTRADICTED: Final = "the response has its arguments twice, and they differ"

CUTS: Mapping[FinishReason, str] = {
    "length": "the response reached its limit of tokens",
    "content_filter": "the provider's filter ended the response (content_filter)",
    "refusal": "the model refused to continue (refusal)",
    "error": "the provider failed",
}
"""The finishes that cut a response short, and how the call that was being written describes them."""


def _holds_others(call: NativeCall) -> bool:
    """Whether what came for a call may belong to another one: it names no tool, or came when the call was over."""
    if call.ended:
        return call.late.hold_others(call.text)
    return bool(call.text.strip()) and not call.name


def contradict(one: str, other: str) -> bool:
    """Whether two texts of arguments can both be read, and are different arguments."""
    if not (one.strip() and other.strip()) or (ours := readable(one)) is None:
        return False
    theirs = readable(other)
    return theirs is not None and ours != theirs


def _warn_if_other(call: NativeCall, whole: str) -> None:
    if contradict(call.text, whole):
        _LOG.warning(
            "the finished response has other arguments for the call %r of %r than had come before; the call "
            "had ended with those that came first",
            call.id,
            call.name,
        )


def last_events(calls: NativeCalls, usage: Usage | None, ending: Finish | None) -> list[SourceEvent]:
    """The end of any response: its open calls, its usage, its finish.

    Args:
        calls: the response's calls.
        usage: None if the provider reported none.
        ending: None if the response was interrupted.
    """
    if ending is None:
        events = calls.settle("the response was interrupted", broken=True)
    else:
        reason = ending.reason
        events = calls.settle(CUTS.get(reason, ""), broken=reason == "error", barred=reason in TAKEN_BACK)
    if usage is not None:
        events.append(usage)
    if ending is not None:
        events.append(ending)
    return events
