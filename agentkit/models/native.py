"""A response's native calls, and its end, as events: the same for the three providers' wires.

A call is read once, when its response is over.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from agentkit.checks.unicode import Joiner, clean, clean_json
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
from agentkit.formats.pieces import Pieces
from agentkit.messages import ToolCall
from agentkit.models.native_arguments import ArgumentsError, NativeArguments, read_arguments, readable
from agentkit.schemas.typed.exact import exactly, rounded

_LOG: Final = logging.getLogger("agentkit.models")

QUIET: Final = ("ping", "keepalive")  # the types of events that keep a connection open

_SHAPE: Final = frozenset(("$schema", "type", "title", "description", "properties", "required", "additionalProperties"))


def provider_block(
    provider: str, data: Mapping[str, Any], *, thinking: bool = False, index: int | None = None
) -> ProviderBlock:
    """Return a provider's own block, unchanged except for characters that could not be sent back."""
    return ProviderBlock(provider, clean_json(data), thinking, index)


def takes_no_arguments(schema: Mapping[str, Any]) -> bool:
    """Return whether a tool with this schema can only be called without arguments."""
    return schema.keys() <= _SHAPE and not (schema.get("properties") or schema.get("additionalProperties"))


@dataclass(slots=True, eq=False)
class NativeCall:
    """A call that is being received.

    Attributes:
        index: the number of calls that started before it; -1 before its own start.
        blank: whether nothing but space has come of its arguments.
        has_arguments: whether the provider said what its arguments are, even if there are none: an empty string, or
            null.
        end: what the provider said of its end.
        ambiguity: why it is ambiguous what belongs to it; such a call never executes.
        extras: what its provider adds to name and arguments, and requires back with them.
    """

    id: str
    name: str = ""
    index: int = -1
    pieces: Pieces = field(default_factory=Pieces)
    joiner: Joiner = field(default_factory=Joiner)
    blank: bool = True
    has_arguments: bool = False
    end: Literal["", "complete", "incomplete"] = ""
    ambiguity: str = ""
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The arguments' text so far."""
        return self.pieces.text()

    @property
    def values(self) -> dict[str, Any] | None:
        """The arguments, if the text so far is a complete object; otherwise None."""
        return readable(self.text) if self.pieces.last(8).rstrip().endswith("}") else None

    def call(self, arguments: Mapping[str, Any] | None = None) -> ToolCall:
        """Return the call as a value; without arguments if they could not be read."""
        return ToolCall(self.id, self.name, arguments or {}, None, self.text)


class NativeCalls:
    """The native calls of one response. Each ends with it, in `CallEnd` or `CallError`.

    Args:
        provider: the provider that made the calls.
        marks_ends: whether the provider marks the end of each call. If it does, a call of an interrupted response
            without that mark is truncated.
        whole_names: whether a name comes complete. If it may come in fragments, a call is reported once its name is
            complete: with the first of its arguments, or when the next call starts.
        schemas: those of the offered tools, by name. The calls of a tool that takes no arguments are complete without
            any. A number whose digits a float would change is read as its schema says: as an integer or a string.

    Attributes:
        all: the calls, in the order in which they began.
        lost: pieces of arguments that fit no call. A call without arguments may be the one that lacks them. It may also
            lack pieces if another call may hold some that are not its own.
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
        self.lost: list[str] = []
        self._provider = provider
        self._schemas = schemas
        self._marks_ends = marks_ends
        self._whole_names = whole_names
        self._started = 0
        self._reported = self._lacking = False

    def begin(self, id: str, name: str) -> tuple[NativeCall, list[SourceEvent]]:
        """Begin a new call, whose name may arrive later."""
        events = [event for last in self.all[-1:] if last.name and last.index < 0 for event in self._start(last)]
        call = NativeCall(clean(id))
        self.all.append(call)
        return call, events + self.more(call, name=name)

    def more(self, call: NativeCall, text: str = "", *, name: str = "") -> list[SourceEvent]:
        """Add to a call: its name, of which the first one counts, and more of its arguments' text."""
        call.name = call.name or clean(name)
        piece = call.joiner.feed(text) if text else ""
        if piece:
            call.pieces.add(piece)
            call.blank = call.blank and piece.isspace()
        if call.index >= 0:
            return [ArgumentDelta(call.index, piece)] if piece else []
        return self._start(call) if call.name and (self._whole_names or call.pieces) else []

    def set_arguments(self, call: NativeCall, whole: str) -> list[SourceEvent]:
        """Set the complete arguments of a call, which override the pieces."""
        whole = clean(whole)
        if not whole:
            return []
        call.joiner = Joiner()
        if whole.startswith(call.text):
            return self.more(call, whole[len(call.text) :])
        call.pieces, call.blank = Pieces(whole), whole.isspace()
        return []

    def takes_nothing(self, name: str) -> bool:
        """Return whether the tool of this name is known, and takes no arguments."""
        return name in self._schemas and takes_no_arguments(self._schemas[name])

    def unread(self, event: Mapping[str, Any]) -> None:
        """Log that an event has a shape that is not known: once in a response, without its values."""
        if not self._reported and any(event.values()) and event.get("type") not in QUIET:
            names = ", ".join(sorted(map(repr, event)))[:200]  # the values may be anybody's words
            _LOG.warning("an event of the response has a shape that cannot be read, with the fields %s", names)
            self._reported = True

    def close(self, usage: Usage | None, ending: Finish | None) -> list[SourceEvent]:
        """End the response: its calls, its usage, its finish.

        Args:
            usage: None if the provider reported none.
            ending: None if the response was interrupted.
        """
        reason = None if ending is None else ending.reason
        cut, broken, barred = CUTS.get(reason, ""), reason in (None, "error"), reason in TAKEN_BACK
        lost = "".join(self.lost)
        self._lacking = bool(self.lost) or (len(self.all) > 1 and any(map(_may_hold_others, self.all)))
        known = set[tuple[str, str, str]]()
        for call in self.all:
            if (same := (call.id, call.name, call.text)) in known and call.id:
                call.ambiguity = SENT_TWICE
            known.add(same)
        events: list[SourceEvent] = [UnreadCall(lost, "")] if lost and not barred else []
        events += [event for call in self.all for event in self._settle(call, cut, broken, barred)]
        return events + [event for event in (usage, ending) if event is not None]

    def _settle(self, call: NativeCall, cut: str, broken: bool, barred: bool) -> list[SourceEvent]:
        """Return the last events of a call; one without a name is reported as unread: it could not be sent back."""
        events = self.more(call, rest) if (rest := call.joiner.close()) else []
        if not call.name:
            return [] if barred else [UnreadCall(call.text, "")]
        if call.index < 0:
            events += self._start(call)
        if call.extras:
            events.append(provider_block(self._provider, call.extras, index=call.index))
        return [*events, self._end(call, cut, broken, barred)]

    def _end(self, call: NativeCall, cut: str, broken: bool, barred: bool) -> CallEnd | CallError:
        def fail(code: ErrorCode, message: str, position: int = 0) -> CallError:
            return CallError(call.index, code, message, call.call(), position)

        if call.ambiguity or self._may_lack(call):
            return fail("ambiguous_call", call.ambiguity or UNCLAIMED)
        cut = cut or (INCOMPLETE if call.end == "incomplete" else "")
        arguments: NativeArguments | None = None
        try:
            arguments = read_arguments(call.text)
        except ArgumentsError as e:
            if not cut:
                return fail(e.code, str(e), e.position)
        if arguments is None or (cut and self._may_be_cut(call, arguments.values, broken)):
            at = len(call.text)
            end = f"{cut} inside this call, after {at} characters of its arguments; call again, in full"
            return fail("truncated_call", end, at)
        if barred:
            return fail("denied", f"not run: {cut}, and this call with it")
        if call.blank and not (call.has_arguments or self.takes_nothing(call.name)):
            return fail("truncated_call", NO_ARGUMENTS)
        schema = self._schemas.get(call.name, {})
        made = exactly(arguments.values, schema, schema) if rounded(arguments.values) else arguments.values
        return CallEnd(call.index, call.call(made), arguments.repairs)

    def _may_lack(self, call: NativeCall) -> bool:
        """Return whether what was lost may be the arguments of a call: it has none, and its tool takes some."""
        return self._lacking and not self.takes_nothing(call.name) and readable(call.text) == {}

    def _may_be_cut(self, call: NativeCall, arguments: Mapping[str, Any], broken: bool) -> bool:
        """Return whether a call whose arguments can be read was nevertheless cut: no arguments may mean none so far."""
        last = call is self.all[-1]
        if self._marks_ends:
            return call.end != "complete" or (last and not arguments)
        return (last and broken) or (not arguments and (last or (broken and not self.takes_nothing(call.name))))

    def _start(self, call: NativeCall) -> list[SourceEvent]:
        call.index = self._started
        self._started += 1
        arguments = [ArgumentDelta(call.index, call.text)] if call.pieces else []
        return [CallStart(call.index, call.name, call.id or None), *arguments]


NO_ARGUMENTS: Final = "no arguments of this call came, nor a statement that it has none; call again with them"
UNCLAIMED: Final = "no arguments of this call came, but some came that fit no call; call again with them"
SENT_TWICE: Final = "not run again: the response has the same call, with the same id, twice"
INCOMPLETE: Final = "the provider stopped"

CUTS: Mapping[FinishReason | None, str] = {
    None: "the response was interrupted",
    "length": "the response reached its limit of tokens",
    "content_filter": "the provider's filter ended the response (content_filter)",
    "refusal": "the model refused to continue (refusal)",
    "error": "the provider failed",
}
"""How the error of a call says why its response was cut short, by the finish; by None if no finish came."""


def _may_hold_others(call: NativeCall) -> bool:
    """Return whether a call may have another one's pieces: it has no name, is ambiguous, or has several objects."""
    try:
        read_arguments(call.text)
    except ArgumentsError as e:
        return e.code == "ambiguous_call"
    return bool(call.ambiguity) or not (call.name or call.blank)
