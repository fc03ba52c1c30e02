"""The events of one run as the spans that a page's protocol has: turns, texts, calls. Pure; writes no protocol.

One reading for all protocols: where a turn begins, which text is open, the id of each call, and its arguments as JSON
text. An encoder adds only how each span is written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from agentkit.agent import Lifecycle, RunResult, TurnStarted
from agentkit.errors import AgentkitError, ErrorCode, ProviderError, StoreConflict, StoreError, ThreadBusy
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    InventedResult,
    ModelSelected,
    SourceEvent,
    Text,
    Thinking,
    ToolCompleted,
    ToolEvent,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    UnreadCall,
    Usage,
)
from agentkit.messages import ResultContent, ToolCall
from agentkit.models.argument_text import ArgumentText, ContradictedArguments
from agentkit.processor.error_results import cap
from agentkit.processor.not_run import PREFIX
from agentkit.tool.result import ToolResult
from agentkit.toolspec import ToolSpec

PageEvent = dict[str, Any]
"""One event of a page's protocol, as a JSON object."""

Answered = ToolCompleted | ToolFailed | ToolSkipped

PageStatus = Literal["done", "failed", "denied", "stopped", "skipped", "interrupted"]
"""How a call ended. `stopped`: with its run. `interrupted`: nobody knows whether it had its effects."""

MAX_RESULT: Final = 100_000
"""Characters of one result that a page gets, by default as many as a model; of a longer one the middle is left out."""

NO_TOOLS: Final[Mapping[str, ToolSpec]] = MappingProxyType({})

_STATUS: Final[Mapping[ErrorCode | None, PageStatus]] = {
    None: "done",
    "denied": "denied",
    "cancelled": "stopped",
    "skipped": "skipped",
    "interrupted": "interrupted",
}
_CUT: Final = "the reply was interrupted inside this call"
_TOOL_EVENTS: Final = frozenset((ToolStarted, ToolCompleted, ToolFailed, ToolSkipped, ApprovalRequired))


def call_status(code: ErrorCode | None, text: str) -> PageStatus:
    """Return how a call ended.

    Args:
        code: of its answer; None for a success.
        text: of its answer: that of a call which never started says so, even in a copy of its thread.
    """
    if code == "interrupted" and text.startswith(PREFIX):
        return "skipped"
    return _STATUS.get(code, "failed")


def page_content(result: ToolResult) -> ResultContent:
    """Return the content of a result for a page."""
    return cap(result.parts, MAX_RESULT)


def run_error(error: BaseException) -> tuple[str, str]:
    """Return the message and the code that a page reads for an exception that ended a run.

    Only agentkit's own errors say what happened: any other message may contain what is not for a page.
    """
    match error:
        case ProviderError():
            return str(error), error.kind
        case ThreadBusy() | StoreConflict():
            return str(error), "thread_busy"
        case StoreError():
            return str(error), "store_failed"
        case AgentkitError():
            return str(error), "agent_failed"
        case Exception():
            return f"the agent failed ({type(error).__name__})", "agent_failed"
        case _:
            return f"the run was ended ({type(error).__name__})", "run_ended"


@dataclass(slots=True, eq=False)
class SentCall:
    """A call that has not ended yet.

    Attributes:
        name: the tool's name.
        text: its arguments as JSON text.
        id: its id; None while only its end will say it: then nothing of it has been sent.
        held: the text that waits for the id.
    """

    name: str
    text: ArgumentText
    id: str | None = None
    held: list[str] = field(default_factory=list)


class RunEncoder(ABC):
    """Writes one run's events as the events of a page's protocol.

    Args:
        run_id: begins the ids of its messages.
        tools: the agent's tools by name. With them, the deltas of arguments never contradict the call.
    """

    def __init__(self, run_id: str, tools: Mapping[str, ToolSpec] = NO_TOOLS) -> None:
        self.run_id = run_id
        """The id of the run."""
        self.turn = 0
        """The number of the response that is read: 0 before the first, while calls of an earlier run are answered."""
        self.tools = tools
        """The agent's tools by name."""
        self._in_turn = False  # from a response's first event to its finish
        self._open: type[Text] | type[Thinking] | None = None
        self._span = 0  # the number of the text or thinking that is open, or was last, in its turn
        self._calls: dict[int, SentCall] = {}
        self._events: list[PageEvent] = []

    @abstractmethod
    def start(self) -> list[PageEvent]:
        """Return the first events of the run."""

    @abstractmethod
    def finish(self, result: RunResult[Any]) -> list[PageEvent]:
        """Return the last events of a run that ended without an error."""

    @abstractmethod
    def fail(self, error: BaseException) -> list[PageEvent]:
        """Return the last events of a run that raised an error; see `run_error`."""

    def feed(self, event: Event | Lifecycle) -> list[PageEvent]:
        """Return the page's events for one event of the run, in the run's order. Events for hooks may be among them."""
        kind = type(event)
        if kind is Text or kind is Thinking:
            self._say(kind, event.text)  # type: ignore[union-attr]  # both have a text
        elif (read := _READERS.get(kind)) is not None:
            read(self, event)
        elif kind in _TOOL_EVENTS:
            self._write_tool(event)  # type: ignore[arg-type]  # it is one
        return self._take()

    def _take(self) -> list[PageEvent]:
        taken, self._events = self._events, []
        return taken

    def _put(self, kind: str, /, **fields: Any) -> None:
        self._events.append({"type": kind, **fields})

    # -------------------------------------------------------------- turns

    def _begin(self, number: int) -> None:
        self._close()
        self.turn, self._in_turn, self._span = number, True, 0
        self._write_turn()

    def _ensure_turn(self) -> None:
        """Begin a turn if none is open: a run's events have no other sign of it."""
        if not self._in_turn:
            self._begin(self.turn + 1)

    def _read_finish(self, event: Finish) -> None:
        self._ensure_turn()
        self._close(event)

    def _close(self, finish: Finish | None = None) -> None:
        """End whatever is open; calls without an end were interrupted."""
        self._end_span()
        for index, call in list(self._calls.items()):
            if call.id is not None:
                self._read_error(CallError(index, "truncated_call", _CUT, ToolCall(call.id, call.name)))
        self._calls.clear()
        if self._in_turn:
            self._in_turn = False
            self._write_turn_end(finish)

    # -------------------------------------------------------------- texts

    def _say(self, kind: type[Text] | type[Thinking], text: str) -> None:
        if not text:
            return
        if self._open is not kind:
            self._ensure_turn()
            self._end_span()
            self._open, self._span = kind, self._span + 1
            self._write_span(kind)
        self._write_delta(kind, text)

    def _end_span(self) -> None:
        if self._open is not None:
            kind, self._open = self._open, None
            self._write_span_end(kind)

    # -------------------------------------------------------------- calls

    def _read_start(self, event: CallStart) -> None:
        self._ensure_turn()
        self._end_span()
        self._calls[event.index] = call = SentCall(event.name, ArgumentText(self.tools.get(event.name)), event.id)
        if call.id is not None:
            self._write_call(call.id, call.name)

    def _read_arguments(self, event: ArgumentDelta) -> None:
        call = self._calls.get(event.index)
        if call is None or not (text := call.text.feed(event)):
            return
        if call.id is None:
            call.held.append(text)
        else:
            self._write_arguments(call.id, text)

    def _read_end(self, event: CallEnd) -> None:
        call = self._calls.pop(event.index, None)
        if call is None and self.turn == 0:  # an earlier run sent it: only its answer is new
            return
        call = self._opened_call(call, event.call)
        try:
            rest = call.text.end(event.call)
        except ContradictedArguments:
            rest = ""  # the end has the arguments
        if text := "".join(call.held) + rest:
            self._write_arguments(event.call.id, text)
        self._write_call_end(event)

    def _read_error(self, event: CallError) -> None:
        self._opened_call(self._calls.pop(event.index, None), event.call)
        self._write_call_error(event)

    def _opened_call(self, call: SentCall | None, found: ToolCall) -> SentCall:
        """A call that ends; its beginning is written if that could not be done before."""
        if call is None or call.id is None:
            self._ensure_turn()
            self._end_span()
            self._write_call(found.id, found.name)
        return call or SentCall(found.name, ArgumentText(self.tools.get(found.name)))

    def _read_other(self, event: SourceEvent) -> None:
        self._ensure_turn()
        self._write_other(event)

    def _read_usage(self, event: Usage) -> None:
        if not self.turn:
            self._ensure_turn()
        self._write_other(event)  # that of a response whose end was not read follows its finish

    # -------------------------------------------------------------- what a protocol writes

    @abstractmethod
    def _write_turn(self) -> None:
        """Begin the turn `self.turn`."""

    def _write_turn_end(self, finish: Finish | None) -> None:  # noqa: B027 - not every protocol has it
        """End the turn; `finish` is None if the response was interrupted."""

    @abstractmethod
    def _write_span(self, kind: type[Text] | type[Thinking]) -> None:
        """Begin a text or thinking, number `self._span` of the turn."""

    @abstractmethod
    def _write_delta(self, kind: type[Text] | type[Thinking], text: str) -> None:
        """Continue it; the text is not empty."""

    @abstractmethod
    def _write_span_end(self, kind: type[Text] | type[Thinking]) -> None:
        """End it."""

    @abstractmethod
    def _write_call(self, id: str, name: str) -> None:
        """Begin a call."""

    @abstractmethod
    def _write_arguments(self, id: str, text: str) -> None:
        """Continue the JSON text of its arguments; the text is not empty."""

    @abstractmethod
    def _write_call_end(self, event: CallEnd) -> None:
        """End a call that can be run."""

    @abstractmethod
    def _write_call_error(self, event: CallError) -> None:
        """End a call that cannot be run; its answer follows, unless the run was interrupted."""

    @abstractmethod
    def _write_tool(self, event: ToolEvent) -> None:
        """Write what happened to a call."""

    def _write_other(self, event: SourceEvent) -> None:  # noqa: B027 - as above
        """Write the usage, an `InventedResult`, an `UnreadCall` or a `ModelSelected`."""


_READERS: Final[Mapping[type, Callable[[RunEncoder, Any], None]]] = {
    TurnStarted: lambda encoder, event: encoder._begin(event.number),
    CallStart: RunEncoder._read_start,
    ArgumentDelta: RunEncoder._read_arguments,
    CallEnd: RunEncoder._read_end,
    CallError: RunEncoder._read_error,
    InventedResult: RunEncoder._read_other,
    UnreadCall: RunEncoder._read_other,
    ModelSelected: RunEncoder._read_other,
    Usage: RunEncoder._read_usage,
    Finish: RunEncoder._read_finish,
}
"""Events that are not here change nothing: markup, quotes, a provider's blocks, which only the store has to keep."""
