"""What the three providers' wires share: their shape, and a response's native calls on their way to events.

A wire is a state machine: `feed(wire event) -> events`, no I/O, no SDK. A whole response goes through the same machine,
as the wire events it would have been streamed in.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

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
    Usage,
)
from agentkit.messages import ToolCall
from agentkit.models.native_arguments import ArgumentsError, read_arguments
from agentkit.unicode import Joiner, clean, clean_json

_LOG: Final = logging.getLogger("agentkit.models")

WireEvent = Mapping[str, Any]
"""One event of a provider's stream, as its JSON says it."""

DONE: Final[WireEvent] = {"[DONE]": True}
"""The wire event of a stream's closing line `data: [DONE]`."""


class ErrorInStream(Exception):
    """The provider reported an error inside a response that had begun well.

    Args:
        message: the provider's words.
        code: its code or type, as it wrote it; None when it named none.
        body: the error object.
    """

    def __init__(self, message: str, code: str | None, body: object) -> None:
        super().__init__(message)
        self.code = code
        self.body = body

    @classmethod
    def of(cls, error: object) -> ErrorInStream:
        """From an error object as any provider writes it; of what is too long for an error, the beginning."""
        given = error if isinstance(error, Mapping) else {"message": error}
        code = given.get("code") or given.get("type")
        message = _short(str(given.get("message") or "no reason given"), MAX_MESSAGE)
        code = None if code is None else _short(str(code), MAX_CODE)
        whole = json.dumps(error, ensure_ascii=False, default=str)
        body = error if len(whole) <= MAX_BODY else _short(whole, MAX_MESSAGE)
        return cls(message, code, body)


MAX_MESSAGE: Final = 4_000
"""Characters of what a provider says of an error."""

MAX_CODE: Final = 200
"""Characters of the code of an error."""

MAX_BODY: Final = 1024 * 1024
"""Characters of an error object that is kept whole: as much as is read of an HTTP error's body."""


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


class Wire(Protocol):
    """One response of one provider, as a state machine."""

    @property
    def done(self) -> bool:
        """Whether the response came to its end; False also when the provider broke off."""
        ...

    @property
    def called(self) -> bool:
        """Whether a call came."""
        ...

    @property
    def over(self) -> bool:
        """Whether nothing more is to come; a response that is done may still tell its usage."""
        ...

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """What this wire event means.

        Raises:
            ErrorInStream: it reports an error.
        """
        ...

    def close(self) -> list[SourceEvent]:
        """The last events, when nothing more will come.

        Ends with `Finish` if the response was done; else its open calls are truncated and there is no `Finish`.
        """
        ...


def text_of(value: object) -> str:
    """A string field of a wire event; the empty string where a server left it out or wrote something else."""
    return value if isinstance(value, str) else ""


def json_text_of(value: object) -> str:
    """What a call hands over, as JSON text. Servers write a text, an object, nothing, or what is refused later."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def mapping_of(value: object) -> Mapping[str, Any]:
    """An object field of a wire event; an empty one where a server left it out or wrote something else."""
    return value if isinstance(value, Mapping) else {}


def items_of(value: object) -> list[Mapping[str, Any]]:
    """The objects of an array field of a wire event."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def count_of(value: object) -> int:
    """A count of tokens; 0 where a server left it out or wrote something else."""
    return value if isinstance(value, int) and value > 0 else 0


def provider_block(
    provider: str, data: Mapping[str, Any], *, thinking: bool = False, index: int | None = None
) -> ProviderBlock:
    """A provider's own block, as it came but for characters that could not be sent back."""
    return ProviderBlock(provider, clean_json(data), thinking, index)


def finish(reasons: Mapping[str, FinishReason], raw: str | None, *, calls: bool, refused: bool = False) -> Finish:
    """The finish of a response.

    A server that says `stop`, or nothing, after calls means calls.

    Args:
        reasons: the provider's words and what they mean here.
        raw: the provider's word.
        calls: whether the response held a call.
        refused: whether it held a refusal.
    """
    reason = reasons.get(raw, "unknown") if raw else "unknown"
    if calls and reason in ("stop", "unknown"):
        reason = "tool_calls"
    if refused and reason in ("stop", "tool_calls"):
        reason = "refusal"
    return Finish(reason, raw or None)


_SHAPE: Final = frozenset(("$schema", "type", "title", "description", "properties", "required", "additionalProperties"))


def bare(tools: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """The names of the tools that can only be called without arguments.

    Args:
        tools: their schemas by name.
    """
    return frozenset(
        name
        for name, schema in tools.items()
        if schema.keys() <= _SHAPE and not (schema.get("properties") or schema.get("additionalProperties"))
    )


@dataclass(slots=True, eq=False)
class NativeCall:
    """A call that is being received.

    Attributes:
        told: the provider said what its arguments are, be it that it has none: an empty text, or null.
        stopped: the provider said that nothing more of it will come.
        doubt: why nobody can tell what belongs to it; such a call never executes.
        late: what came for it once it had ended.
        beside: what its provider says of it beside name and arguments, and wants to see again with it.
    """

    index: int
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    joiner: Joiner = field(default_factory=Joiner)
    started: bool = False
    told: bool = False
    stopped: bool = False
    ended: bool = False
    doubt: str = ""
    late: list[str] = field(default_factory=list)
    beside: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The arguments' text so far."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    @property
    def values(self) -> Mapping[str, Any] | None:
        """The arguments that have come, if they are whole."""
        if not self.text.rstrip().endswith("}"):  # not to read all of it for each piece
            return None
        try:
            return read_arguments(self.text).values
        except ArgumentsError:
            return None

    def call(self, arguments: Mapping[str, Any] | None = None) -> ToolCall:
        """The call as a value; without arguments when they could not be read."""
        return ToolCall(self.id, self.name, arguments or {}, None, self.text)


class NativeCalls:
    """The native calls of one response, in the order in which they began. Each ends once: in `CallEnd` or `CallError`.

    Args:
        provider: whose calls these are.
        marks_ends: whether the provider says of each call that it is over. Where it does, a call of a broken response
            without that mark is truncated, and a marked one ends with `go_on`. Elsewhere what comes after a call is the
            mark: the next call, or the finish.
        whole_names: whether a name comes whole. Where it may come in fragments, a call is told of once its name is
            whole: with the first of its arguments, or when the next call begins.
        bare: the names of the offered tools that take no arguments: their calls lack nothing where none came.

    Attributes:
        held: whether calls end only with the response: its end is known to bar them.
    """

    def __init__(
        self,
        provider: str,
        *,
        marks_ends: bool,
        whole_names: bool = True,
        bare: Collection[str] = (),
    ) -> None:
        self.all: list[NativeCall] = []
        self.held = False
        self._provider = provider
        self._bare = bare
        self._marks_ends = marks_ends
        self._whole_names = whole_names
        self._marked: list[NativeCall] = []  # complete, and the response has not gone on behind them

    def begin(self, id: str, name: str) -> tuple[NativeCall, list[SourceEvent]]:
        """A new call; its name may still be to come."""
        call = NativeCall(len(self.all), clean(id))
        self.all.append(call)
        return call, self.more(call, name=name)

    def more(self, call: NativeCall, text: str = "", *, name: str = "") -> list[SourceEvent]:
        """More of a call: its name, of which the first one counts, and more of its arguments' text; see `rename`.

        What comes for a call that has ended is dropped: some servers repeat a call that was complete.
        """
        if call.ended:
            call.late.append(text)
            return []
        if name and not call.name:
            call.name = clean(name)
        piece = call.joiner.feed(text) if text else ""
        if piece:
            call.pieces.append(piece)
        if not call.started:
            return self._start(call) if call.name and (self._whole_names or call.text) else []
        return [ArgumentDelta(call.index, piece)] if piece else []

    def tell(self, call: NativeCall, whole: str) -> list[SourceEvent]:
        """The arguments as the provider tells them whole, if it does: they decide over what came in pieces."""
        whole = clean(whole)
        if not whole:
            return []
        if call.ended:
            _warn_if_other(call, whole)
            return []
        call.joiner = Joiner()
        if whole.startswith(call.text):
            return self.more(call, whole[len(call.text) :])
        call.pieces[:] = [whole]
        return []

    def rename(self, call: NativeCall, name: str) -> None:
        """Set the name of a call of which more has come; that of a call that has ended stays."""
        if not call.ended:
            call.name = clean(name)

    def end(self, call: NativeCall) -> list[SourceEvent]:
        """Nothing more of this call is expected. It ends now, or with `go_on`, if its arguments are complete.

        A call without arguments, or with broken ones, waits for `settle`: why the response ended tells whether it was
        cut.
        """
        call.stopped = True
        if call.ended or not call.name or call.doubt or self.held:
            return []
        events = [] if call.started else self._start(call)
        if self._marks_ends:
            self._marked.append(call)
            return events
        return events + self._complete(call)

    def go_on(self) -> list[SourceEvent]:
        """The response goes on behind the calls that were marked as over, or finishes well: they end.

        Before that the provider might take them back: its filter's word follows at once on the call that it is about.
        """
        if not self._marked or self.held:
            return []
        marked, self._marked = self._marked, []
        return [event for call in marked if not (call.ended or call.doubt) for event in self._complete(call)]

    def _complete(self, call: NativeCall) -> list[SourceEvent]:
        try:
            arguments = read_arguments(call.text)
        except ArgumentsError:
            return []
        if not arguments.values:
            return []
        return self._close(call, CallEnd(call.index, call.call(arguments.values), arguments.repairs))

    def settle(self, cut: str = "", *, broken: bool = False, barred: bool = False) -> list[SourceEvent]:
        """End every open call.

        Args:
            cut: why the response was cut short; empty when it was not. A call that was cut never executes.
            broken: whether the response ended without saying so.
            barred: whether no call of the response may run, not even a complete one.
        """
        silent = [c for c in self.all if not (c.ended or c.text.strip() or c.name in self._bare)]
        if silent and any(_holds_others(call) for call in self.all):
            for call in silent:
                call.doubt = call.doubt or UNCLAIMED
        return [event for call in self.all if not call.ended for event in self._settle(call, cut, broken, barred)]

    def _settle(self, call: NativeCall, cut: str, broken: bool, barred: bool) -> list[SourceEvent]:
        rest = call.joiner.close()
        events = self.more(call, rest) if rest else []
        if not call.started:
            events += self._start(call)
        if call.doubt:
            return events + self._fail(call, "ambiguous_call", call.doubt, 0)
        try:
            arguments = read_arguments(call.text)
        except ArgumentsError as e:
            return events + (self._cut(call, cut) if cut else self._fail(call, e.code, str(e), e.position))
        if cut and self._may_be_cut(call, arguments.values, broken):
            return events + self._cut(call, cut)
        if barred:
            return events + self._fail(call, "denied", f"not run: {cut}, and with it this call", 0)
        if not call.name:
            return events + self._fail(call, "unknown_tool", "the call names no tool", 0)
        if not (call.told or call.text.strip() or call.name in self._bare):
            return events + self._fail(call, "truncated_call", NO_ARGUMENTS, 0)
        return events + self._close(call, CallEnd(call.index, call.call(arguments.values), arguments.repairs))

    def _may_be_cut(self, call: NativeCall, arguments: Mapping[str, Any], broken: bool) -> bool:
        """Whether a call whose arguments can be read was cut all the same: no arguments may mean none so far."""
        marked = call.stopped if self._marks_ends else not broken
        return not marked or (call is self.all[-1] and not arguments)

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

    def _close(self, call: NativeCall, end: CallEnd | CallError) -> list[SourceEvent]:
        call.ended = True
        beside = [provider_block(self._provider, call.beside, index=call.index)] if call.beside else []
        return [*beside, end]


NO_ARGUMENTS: Final = "no arguments of this call came, not even word that it has none; call again with them"

UNCLAIMED: Final = "no arguments of this call came, and some came that fit no call; call again with them"

CONTRADICTED: Final = "the response tells its arguments twice, and not the same"

CUTS: Mapping[FinishReason, str] = {
    "length": "the response reached its limit of tokens",
    "content_filter": "the provider's filter ended the response (content_filter)",
    "refusal": "the model refused to go on (refusal)",
    "error": "the provider failed",
}
"""The finishes that cut a response short, and what is said of the call that was being written."""


def _holds_others(call: NativeCall) -> bool:
    """Whether what came for a call may be another one's: it names no tool, or came when the call was over."""
    if call.ended:
        return "".join(call.late).strip() not in call.text
    return bool(call.text.strip()) and not call.name


def contradict(one: str, other: str) -> bool:
    """Whether two texts of arguments can both be read, and are not the same arguments."""
    if not (one.strip() and other.strip()):
        return False
    try:
        return read_arguments(one).values != read_arguments(other).values
    except ArgumentsError:
        return False


def _warn_if_other(call: NativeCall, whole: str) -> None:
    if contradict(call.text, whole):
        _LOG.warning(
            "the finished response tells other arguments for the call %r of %r than it had told before; the call "
            "had ended, with those told first",
            call.id,
            call.name,
        )


def last_events(calls: NativeCalls, usage: Usage | None, ending: Finish | None) -> list[SourceEvent]:
    """The end of any response: its open calls, its usage, its finish.

    Args:
        calls: the response's calls.
        usage: None when the provider named none.
        ending: None when the response broke off.
    """
    if ending is None:
        events = calls.settle("the response broke off", broken=True)
    else:
        events = calls.settle(CUTS.get(ending.reason, ""), barred=ending.reason in TAKEN_BACK)
    if usage is not None:
        events.append(usage)
    if ending is not None:
        events.append(ending)
    return events
