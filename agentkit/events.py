"""Events of a source and of a run: one vocabulary for native calls and for calls written as text.

Events are named tuples: one is made per streamed delta, and a frozen dataclass of three fields costs twice as much to
make (0.54 against 0.29 µs on the machine where `benchmarks/formats.py` was written). Unlike bare tuples they are
equal only to events of their own type. A field called `index` hides the tuple method of that name, which is not needed
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import add
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from agentkit.checks.spelling import no_item
from agentkit.errors import ErrorCode
from agentkit.foreign.absent import suggest_attributes
from agentkit.foreign.absent_imports import explained_module
from agentkit.messages import ToolCall

if TYPE_CHECKING:
    from agentkit.agent.event_json import from_json as from_json
    from agentkit.agent.event_json import to_json as to_json
    from agentkit.tool.result import ToolResult

__all__ = [
    "ApprovalRequired", "ArgumentDelta", "CallEnd", "CallError", "CallQuoted", "CallStart", "Event", "Finish",
    "FinishReason", "InventedResult", "Markup", "ModelSelected", "ProviderBlock", "SourceEvent", "Text", "Thinking",
    "ToolCompleted", "ToolEvent", "ToolFailed", "ToolSkipped", "ToolStarted", "UnreadCall", "Usage", "from_json",
    "merge", "to_json",
]  # fmt: skip

FinishReason = Literal[
    "stop",
    "tool_calls",
    "length",
    "content_filter",
    "refusal",
    "pause",
    "error",
    "unknown",
    "tool_limit_reached",
    "cancelled",
]
"""Why a response ended: the model's own reasons, independent of the provider's terms, and the processor's.

`pause`: the provider expects the turn to be sent back to continue. `tool_limit_reached`: the rest was not read
(`ProcessorConfig.max_calls`). `cancelled`: `Turn.cancel`.
"""

TAKEN_BACK: Final[frozenset[FinishReason]] = frozenset(("content_filter", "refusal"))
"""The finish reasons that retract the response: none of its calls may start any more."""

E = TypeVar("E", bound=type)


def _equal(self: tuple[Any, ...], other: object) -> bool:
    return type(self) is type(other) and tuple.__eq__(self, other)


def _unequal(self: tuple[Any, ...], other: object) -> bool:
    return not _equal(self, other)


def _hash(self: tuple[Any, ...]) -> int:
    return hash((type(self), *self))


def _item(self: tuple[Any, ...], key: Any) -> Any:
    if isinstance(key, str):
        raise no_item(self, key)
    return tuple.__getitem__(self, key)


def event(cls: E) -> E:
    """Make a named tuple equal only to its own type, with errors that suggest the right attribute for a wrong one."""
    cls.__eq__, cls.__ne__, cls.__hash__ = _equal, _unequal, _hash  # type: ignore[assignment]
    setattr(cls, "__getitem__", _item)  # noqa: B010 - type checkers would treat an assignment as part of the class's interface
    return suggest_attributes(cls)


@event
class Text(NamedTuple):
    """Visible text, as it streams."""

    text: str


@event
class Thinking(NamedTuple):
    """Thinking text, as it streams; never parsed for calls."""

    text: str


@event
class Markup(NamedTuple):
    """Characters of a text format that are not displayed: wrappers and white space around calls, thinking tags.

    With `Text`, `Thinking`, `InventedResult` and the `raw` of calls, in order, they are exactly the parsed input.
    """

    text: str


@event
class InventedResult(NamedTuple):
    """A delta of text that the model wrote as a tool's result or as another role's turn: no part of its reply.

    Only its tools and its user say such things, so it is neither displayed nor kept, and no call in it is read. It
    extends to the end of the text; a reply that is read as text ends with it.
    """

    text: str


@event
class UnreadCall(NamedTuple):
    """The reply that is now over plainly calls a tool in a way that could not be read: it is not an answer.

    Attributes:
        text: the attempt as it was written; of a native call whose name is unknown, its arguments. A run keeps the text
            of a reply without other calls as a `MarkupPart`.
        name: the tool; empty if it is unknown.
    """

    text: str
    name: str


@event
class ProviderBlock(NamedTuple):
    """A provider's own block, to be sent back unchanged.

    `thinking` is True if it completes the thinking streamed before it (a signature, an encrypted item). `index` is the
    call it belongs to (the block then arrives between that call's start and end); None for an independent block.
    """

    provider: str
    data: Mapping[str, Any]
    thinking: bool = False
    index: int | None = None  # type: ignore[assignment]


@event
class CallStart(NamedTuple):
    """A call has started and its name is known.

    `index` counts the calls of one response from 0, including damaged ones. `id` is the provider's; None for a text
    call.
    """

    index: int  # type: ignore[assignment]
    name: str
    id: str | None = None


@event
class ArgumentDelta(NamedTuple):
    """More of a call's arguments.

    If `key` is None, `text` continues the JSON text of the whole arguments object; otherwise it continues the raw value
    of the parameter `key` (for a string parameter, the joined deltas are exactly its value).
    """

    index: int  # type: ignore[assignment]
    text: str
    key: str | None = None


@event
class CallEnd(NamedTuple):
    """A call is complete and can be executed.

    Attributes:
        index: its position among the response's calls.
        call: the call, with its arguments.
        repairs: codes of the repairs that were needed to read it; `agentkit.formats.REPAIRS` explains each.
    """

    index: int  # type: ignore[assignment]
    call: ToolCall
    repairs: tuple[str, ...] = ()


@event
class CallError(NamedTuple):
    """A call that cannot be executed as written. It still gets exactly one answer.

    Attributes:
        index: its position among the response's calls.
        code: `invalid_json`, `invalid_arguments`, `truncated_call`, `ambiguous_call`, `unknown_tool` or `limit`.
        message: what was found, what was expected, where.
        call: its known parts; `call.raw` is the exact source text, `call.name` may be empty.
        position: offset in the parsed text (or in a native call's argument text) at which reading failed.
    """

    index: int  # type: ignore[assignment]
    code: ErrorCode
    message: str
    call: ToolCall
    position: int = 0


@event
class CallQuoted(NamedTuple):
    """A call in the text of a natively calling model that may be a quote, since untrusted input names the tool.

    It is not run. Precedes the text, which still contains the call. `call_id` is the id of the call whose result names
    the tool; None if a user message, an earlier reply, the result of a server-side tool or an example does.
    """

    call: ToolCall
    call_id: str | None = None


@event
class Usage(NamedTuple):
    """Tokens of one response.

    Attributes:
        input_tokens: all prompt tokens, including cached ones.
        output_tokens: all generated tokens, including reasoning.
        cached_tokens: prompt tokens read from a cache.
        cache_write_tokens: prompt tokens written to a cache.
        reasoning_tokens: the part of `output_tokens` spent on reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def plus(self, other: Usage) -> Usage:
        """The sum, field by field."""
        return Usage(*map(add, self, other))


@event
class ModelSelected(NamedTuple):
    """The model of a chain (`agentkit.first_of`) to which the events that follow belong; other models do not say it.

    Attributes:
        model: its model string.
        failed: why the models before it did not answer, in their order.
    """

    model: str
    failed: tuple[str, ...] = ()


@event
class Finish(NamedTuple):
    """The model's response is over. `raw` is the provider's own word; None when the stream ended without one."""

    reason: FinishReason
    raw: str | None = None


@event
class ToolStarted(NamedTuple):
    """A call passed validation and its tool is about to run; emitted before any side effect."""

    index: int  # type: ignore[assignment]
    call: ToolCall


@event
class ToolCompleted(NamedTuple):
    """A tool returned. `seconds` is wall-clock time."""

    index: int  # type: ignore[assignment]
    call: ToolCall
    result: ToolResult
    seconds: float


@event
class ToolFailed(NamedTuple):
    """A call was answered with an error: it could not be read, was invalid, raised an exception, or timed out."""

    index: int  # type: ignore[assignment]
    call: ToolCall
    result: ToolResult
    seconds: float


@event
class ToolSkipped(NamedTuple):
    """A call was answered without being run: it was denied, or came after a terminating call or a cancellation."""

    index: int  # type: ignore[assignment]
    call: ToolCall
    result: ToolResult


@event
class ApprovalRequired(NamedTuple):
    """A call waits for a person's approval, and has no answer yet.

    It was not run, or it started an agent, of which some calls wait.

    Attributes:
        index: the call's index in the response.
        call: the call.
        reason: empty, or that the call was started before and interrupted, so that its effects may have happened, or
            why the function that decides about approval failed.
        inside: the calls that wait in the agent that the call started; each id begins with that of `call` and a `/`.
    """

    index: int  # type: ignore[assignment]
    call: ToolCall
    reason: str = ""
    inside: tuple[ToolCall, ...] = ()


SourceEvent = (
    Text
    | Thinking
    | Markup
    | InventedResult
    | UnreadCall
    | ProviderBlock
    | CallStart
    | ArgumentDelta
    | CallEnd
    | CallError
    | CallQuoted
    | Usage
    | ModelSelected
    | Finish
)
"""What a model adapter, a format's parser or the recovery of calls yields."""

ToolEvent = ToolStarted | ToolCompleted | ToolFailed | ToolSkipped | ApprovalRequired
"""What the processor adds."""

Event = SourceEvent | ToolEvent


def merge(events: Iterable[Event]) -> list[Event]:
    """Join adjacent events that are separate only because of where the stream was cut.

    >>> merge([Text("a"), Text("b"), ArgumentDelta(0, "x", "k"), ArgumentDelta(0, "y", "k")])
    [Text(text='ab'), ArgumentDelta(index=0, text='xy', key='k')]
    """
    out: list[Event] = []
    pieces: list[str] = []  # of the last event, if more than one
    kind: type | None = None
    for event in events:
        if type(event) is kind and kind in _STREAMED and _same_value(out[-1], event):
            pieces = pieces or [out[-1].text]  # type: ignore[union-attr]  # an event that is streamed has text
            pieces.append(event.text)  # type: ignore[union-attr]
            continue
        if pieces:
            out[-1] = out[-1]._replace(text="".join(pieces))  # type: ignore[call-arg]
            pieces = []
        kind = type(event)
        out.append(event)
    if pieces:
        out[-1] = out[-1]._replace(text="".join(pieces))  # type: ignore[call-arg]
    return out


_STREAMED: Final = frozenset((Text, Thinking, Markup, InventedResult, ArgumentDelta))


def _same_value(last: Event, event: Event) -> bool:
    """Return True unless two events of one kind belong to the arguments of different calls or parameters."""
    if not isinstance(event, ArgumentDelta) or not isinstance(last, ArgumentDelta):
        return True
    return event.key == last.key and event.index == last.index


explained_module(__name__, homes={"agentkit.agent.event_json": "from_json to_json"})
