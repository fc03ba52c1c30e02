"""A run's record of what happens. One is a list in memory (`in_memory`); that of `agentkit.threads` is persistent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agentkit.agent.options import RunFinish
from agentkit.events import CallEnd, Event, SourceEvent, ToolCompleted, ToolEvent, ToolFailed, ToolSkipped, Usage
from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage
from agentkit.models.base import Model, ModelRequest
from agentkit.models.render_cache import RenderCache
from agentkit.tool.result import ToolContext, ToolResult

if TYPE_CHECKING:
    from agentkit.agent.outcome import AskedFor, RunResult
    from agentkit.processor.approval import Allows
    from agentkit.tool.registry import ToolRegistry

Ask = Callable[[Model, ModelRequest], AsyncGenerator[SourceEvent, None]]
"""Asks a model at the run's expense. Raises `BudgetSpent` if nothing is left of the run's budget."""


class UnansweredCalls(NamedTuple):
    """Calls that an earlier run left without an answer, to be run before the model is asked.

    Attributes:
        calls: the calls to run, with the arguments to use.
        approved: by the ids of those that a person approved, what she approved. None for one that continues with the
            calls inside it.
        finish: why there is nothing more to do, such as `approval` if a call still waits; None to continue.
        waiting: the calls that still wait for a person.
        answered: the calls that were answered without being run since the last run, each with its answer.
        started: by the ids of the calls that may have run before, the `call_hash` of what was started: nothing else may
            run under their idempotency keys.
    """

    calls: tuple[ToolCall, ...] = ()
    approved: Mapping[str, AskedFor | None] = MappingProxyType({})
    finish: RunFinish | None = None
    waiting: tuple[ToolCall, ...] = ()
    answered: tuple[tuple[ToolCall, ToolMessage], ...] = ()
    started: Mapping[str, str] = MappingProxyType({})

    def ends(self) -> Iterator[Event]:
        """The events of the calls that were answered; their indices follow those of the calls to run."""
        for index, (call, answer) in enumerate(self.answered, len(self.calls)):
            yield CallEnd(index, call)
            yield end_of(index, call, answer)


_NOT_RUN: Final = ("denied", "cancelled", "skipped")
"""The codes of the answers to calls that did not start."""


def end_of(
    index: int, call: ToolCall, answer: ToolMessage, seconds: float | None = None
) -> ToolCompleted | ToolFailed | ToolSkipped:
    """The event of a call that was answered, but not by its tool.

    Args:
        index: the call's index.
        call: the call.
        answer: its answer.
        seconds: how long its tool ran; None if it did not.
    """
    if answer.error is None:
        return ToolCompleted(index, call, ToolResult(content=answer.content), seconds or 0.0)
    result = ToolResult(error=answer.text, code=answer.error)
    if seconds is None and answer.error in _NOT_RUN:
        return ToolSkipped(index, call, result)
    return ToolFailed(index, call, result, seconds or 0.0)


class LeftOpen(NamedTuple):
    """The waiting calls of a conversation in memory before its run starts. If it never starts, its result keeps them.

    Attributes:
        waiting: by the ids of the open calls, the calls that wait for a person: the call itself, or those inside it.
        delegated: the results from which the sub-agents continue whose calls wait.
        asked_for: what a person was asked for, by the ids of the open calls.
    """

    waiting: Mapping[str, tuple[ToolCall, ...]] = MappingProxyType({})
    delegated: Mapping[str, RunResult[Any]] = MappingProxyType({})
    asked_for: Mapping[str, AskedFor] = MappingProxyType({})

    def only(self, ids: Container[str]) -> LeftOpen:
        """Keep only these calls."""
        return LeftOpen(
            {id: calls for id, calls in self.waiting.items() if id in ids},
            {id: result for id, result in self.delegated.items() if id in ids},
            self.asked_for,
        )


class StaysWaiting:
    """A call that its run has withdrawn: it is unchanged, and the next run acts on it."""


STAYS_WAITING: Final = StaysWaiting()


class Response(NamedTuple):
    """The facts about a response other than its message. `seconds` is the wall clock time of the turn."""

    run: str
    model: str
    usage: Usage
    finish: RunFinish
    seconds: float


class Journal(Protocol):
    """A record of a run: each step before it happens, and each result before anyone else sees it.

    Every method may raise; the run then ends with that error, and its running tools are cancelled.
    """

    @property
    def thread_id(self) -> str | None:
        """The thread that it writes to; None for one in memory."""
        ...

    @property
    def call_ids(self) -> Iterable[str]:
        """The ids of all calls of the conversation."""
        ...

    @property
    def left_open(self) -> LeftOpen:
        """The calls that wait before the run has started; none if a store keeps them."""
        ...

    @property
    def render_cache(self) -> RenderCache:
        """The requests made of the conversation; the same object as long as the conversation only grows."""
        ...

    @property
    def settled(self) -> bool:
        """True if nothing is left to write for the current turn.

        While this is true, `record` is not called, and `respond` does not wait for anything.
        """
        ...

    @property
    def allows(self) -> Allows | None:
        """Says for a call that needs approval if a person has already allowed such calls; None if nobody can have."""
        ...

    def instruct(self, system: str) -> None:
        """Set the instructions before the conversation; called at most once, before `open`."""
        ...

    async def open(self, registry: ToolRegistry, ask: Ask) -> UnansweredCalls:
        """Start. Settles what an earlier run left open, except for the calls that it returns.

        Args:
            registry: the run's tools.
            ask: asks a model, if the journal needs one.
        """
        ...

    async def messages(self) -> Sequence[Message]:
        """The conversation to send now, with all messages added from outside in the meantime. Must not be changed."""
        ...

    async def news(self) -> bool:
        """Return True if a message was added from outside since the last request."""
        ...

    async def shrink(self) -> bool:
        """Make the conversation shorter: the provider refused it as too long. False if that is not possible."""
        ...

    def add(self, message: Message) -> None:
        """Add one of the run's own messages, such as a request for a better answer; written with what follows it."""
        ...

    def context(self, call: ToolCall) -> ToolContext | None:
        """The tool's context for a call, with its idempotency key and attempt; None for the default."""
        ...

    async def record(
        self, event: ToolEvent, said: AssistantMessage | None, answer: ToolMessage | None, response: Response | None
    ) -> ToolMessage | StaysWaiting | None:
        """A call is about to start, has its answer, or waits for a person.

        Returns the answer that the call has instead, if someone else was faster; or that it stays as it was.

        Args:
            event: which of these happened.
            said: the response so far, if a call is about to start or the response is complete; otherwise None.
            answer: the call's answer, once it has one.
            response: what is known of the complete response, if this is the last event of its turn; otherwise None.
        """
        ...

    async def respond(
        self,
        said: AssistantMessage,
        answers: Sequence[ToolMessage],
        response: Response | None,
        skipped: Container[str] = (),
    ) -> Collection[str]:
        """A turn is over, possibly early or with an error: its message and its answers are complete.

        Returns the ids of the calls that stay as they were, because a person has decided about them: the answers by
        which the run withdrew them do not count.

        Args:
            said: the message.
            answers: the answers.
            response: what else is known of it; None for a turn that answered calls of an earlier response.
            skipped: the ids of the calls that have answers although their tools never took a step.
        """
        ...

    def mark(self, call_id: str, *, inside: bool) -> None:
        """The sub-agent of a call has ended; if it has calls `inside` without an answer, a later run continues it."""
        ...

    async def has_open_calls(self) -> bool:
        """Return True if a call of the conversation has no answer, and a later run is to act on it."""
        ...

    async def close(self) -> None:
        """The run is over."""
        ...

    def all(self) -> tuple[Message, ...]:
        """The current conversation."""
        ...

    def messages_read(self) -> Sequence[Message]:
        """The current conversation, and all messages that compactions removed or added: a model may have read them."""
        ...

    async def child(self, call_id: str, task: str) -> Journal:
        """A journal for the sub-agent that a call of this run starts; the same call continues the same journal."""
        ...
