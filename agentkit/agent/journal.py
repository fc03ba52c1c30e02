"""A run's record of what happens. The plain journal is a list in memory; that of `agentkit.threads` is persistent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agentkit.agent.decisions import Approved, Decision, Denied, denial, edited
from agentkit.agent.options import RunFinish
from agentkit.agent.unanswered import settled
from agentkit.errors import ConfigError
from agentkit.events import CallEnd, Event, SourceEvent, ToolCompleted, ToolEvent, ToolFailed, ToolSkipped, Usage
from agentkit.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, user
from agentkit.models.base import Model, ModelRequest
from agentkit.models.rendered_once import Rendered
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.result import ToolContext, ToolResult

if TYPE_CHECKING:
    from agentkit.agent.outcome import RunResult
    from agentkit.tool.registry import ToolRegistry

Ask = Callable[[Model, ModelRequest], AsyncGenerator[SourceEvent, None]]
"""Asks a model at the run's expense. Raises `BudgetSpent` if nothing is left of the run's budget."""


class Unsettled(NamedTuple):
    """Calls that an earlier run left without an answer, to be run before the model is asked.

    Attributes:
        calls: the calls to run, with the arguments to use.
        approved: the ids of those that a person approved.
        finish: why there is nothing more to do, such as `approval` if a call still waits; None to continue.
        waiting: the calls that still wait for a person.
        answered: the calls that were answered without being run since the last run, each with its answer.
    """

    calls: tuple[ToolCall, ...] = ()
    approved: frozenset[str] = frozenset()
    finish: RunFinish | None = None
    waiting: tuple[ToolCall, ...] = ()
    answered: tuple[tuple[ToolCall, ToolMessage], ...] = ()

    def ends(self) -> Iterator[Event]:
        """The events of the calls that were answered; their indices follow those of the calls to run."""
        for index, (call, answer) in enumerate(self.answered, len(self.calls)):
            yield CallEnd(index, call)
            yield end_of(index, call, answer)


_NOT_RUN: Final = ("denied", "cancelled", "skipped")
"""The codes of the answers to calls that did not start."""


def end_of(index: int, call: ToolCall, answer: ToolMessage) -> ToolCompleted | ToolFailed | ToolSkipped:
    """The event of a call that has its answer without having run."""
    if answer.error is None:
        return ToolCompleted(index, call, ToolResult(content=answer.content), 0.0)
    result = ToolResult(error=answer.text, code=answer.error)
    return ToolSkipped(index, call, result) if answer.error in _NOT_RUN else ToolFailed(index, call, result, 0.0)


class LeftOpen(NamedTuple):
    """What waits in a conversation in memory before its run has started. If it never starts, its result passes this on.

    Attributes:
        waiting: by the ids of the open calls, what waits for a person: the call itself, or those inside it.
        delegated: what the sub-agents continue from of which calls wait.
    """

    waiting: Mapping[str, tuple[ToolCall, ...]] = MappingProxyType({})
    delegated: Mapping[str, RunResult[Any]] = MappingProxyType({})

    def only(self, ids: Container[str]) -> LeftOpen:
        """The same of these calls alone."""
        return LeftOpen(
            {id: calls for id, calls in self.waiting.items() if id in ids},
            {id: result for id, result in self.delegated.items() if id in ids},
        )


class Response(NamedTuple):
    """What is known of a response other than its message. `seconds` is the wall clock time of the turn."""

    run: str
    model: str
    usage: Usage
    finish: RunFinish
    seconds: float


class Journal(Protocol):
    """What a run reports: each step before it happens, and each result before anyone else sees it.

    Every method may raise; the run then ends with that error, and its running tools are cancelled.
    """

    @property
    def thread_id(self) -> str | None:
        """The thread that it writes to; None for one in memory."""
        ...

    @property
    def taken(self) -> Iterable[str]:
        """The ids of all calls of the conversation."""
        ...

    @property
    def left_open(self) -> LeftOpen:
        """What waits before the run has started; nothing if a store keeps it."""
        ...

    @property
    def rendered(self) -> Rendered:
        """What was made of the conversation for requests; the same object as long as the conversation only grows."""
        ...

    @property
    def settled(self) -> bool:
        """Whether nothing is left to write for the current turn.

        While this is true, `record` is not called, and `respond` does not wait for anything.
        """
        ...

    def instruct(self, system: str) -> None:
        """Set the instructions before the conversation; called at most once, before `open`."""
        ...

    async def open(self, registry: ToolRegistry, ask: Ask) -> Unsettled:
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
        """Whether a message was added from outside since the last request."""
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
    ) -> ToolMessage | None:
        """A call is about to start, has its answer, or waits for a person.

        Returns the answer of a call that was about to start or to wait, if someone else has answered it before that.

        Args:
            event: which of these happened.
            said: the response so far, if a call is about to start or the response is complete; otherwise None.
            answer: the call's answer, once it has one.
            response: what is known of the complete response, if this is the last event of its turn; otherwise None.
        """
        ...

    async def respond(self, said: AssistantMessage, answers: Sequence[ToolMessage], response: Response | None) -> None:
        """A turn is over, possibly early or with an error: its message and its answers are complete.

        `response` is None for a turn that answered calls of an earlier response.
        """
        ...

    async def close(self) -> None:
        """The run is over."""
        ...

    def all(self) -> tuple[Message, ...]:
        """The current conversation."""
        ...

    def heard(self) -> Sequence[Message]:
        """The current conversation, with all that compactions have removed: everything the model may have read."""
        ...

    async def child(self, call_id: str, task: str) -> Journal:
        """A journal for the sub-agent that a call of this run starts; the same call continues the same journal."""
        ...


class Conversation:
    """The journal of a run without a store: a list of messages that lives as long as the run's result.

    Args:
        messages: the conversation so far; the list is kept and extended. A call in it without an answer is answered
            when the run starts, except for those at its end, which wait for a decision.
        decisions: on calls at its end that wait for approval, by call id.
        delegated: what the sub-agents continue from of which calls wait, by the ids of the calls that started them.

    Raises:
        ConfigError: a decision is for a call that is not waiting.
    """

    thread_id = None
    settled = True

    def __init__(
        self,
        messages: list[Message],
        decisions: Mapping[str, Decision] = MappingProxyType({}),
        delegated: Mapping[str, RunResult[Any]] = MappingProxyType({}),
    ) -> None:
        self._messages = messages
        self.rendered = Rendered()
        self._decisions = decisions
        self._delegated = delegated
        self._edits: dict[str, Mapping[str, object]] = {}
        self._messages[:], self._open, self._passed_over = settled(messages)
        self.left_open = LeftOpen({call.id: self._inside(call) for call in self._open}, delegated)
        waiting = [call.id for calls in self.left_open.waiting.values() for call in calls]
        unknown = decisions.keys() - set(waiting)
        if unknown:
            raise ConfigError(
                f"no call waits under the id {', '.join(sorted(map(repr, unknown)))}; "
                f"waiting: {', '.join(map(repr, waiting)) or _why_none(messages, unknown)}{_whose(unknown, waiting)}"
            )

    def _inside(self, call: ToolCall) -> tuple[ToolCall, ...]:
        """What a person decides on for an open call: the call itself, or those that wait inside it."""
        kept = self._delegated.get(call.id)
        if kept is None:
            return (call,)
        return tuple(replace(inner, id=f"{call.id}/{inner.id}") for inner in kept.pending)

    @property
    def taken(self) -> Iterable[str]:
        """The ids of all calls of the conversation."""
        return {call.id for m in self._messages if isinstance(m, AssistantMessage) for call in m.calls}

    def instruct(self, system: str) -> None:
        """Put the instructions first."""
        self._messages.insert(0, SystemMessage(system))

    async def open(self, registry: ToolRegistry, ask: Ask) -> Unsettled:
        """Answer the denied calls; the approved ones are to be run."""
        run: list[ToolCall] = []
        answered = [*self._passed_over]
        for call in self._open:
            if call.id in self._delegated:  # its agent continues, and acts on the decisions itself
                run.append(call)
                continue
            match self._decisions.get(call.id):
                case Approved(arguments):
                    if arguments is not None:
                        _check(call, arguments, registry)
                        self._edits[call.id] = arguments
                        call = ToolCall(call.id, call.name, arguments, call.format, call.raw)
                    run.append(call)
                case Denied(reason):
                    answered.append((call, said := denial(call, reason)))
                    self._messages.append(said)
        decided = {*self._decisions, *self._delegated}
        waiting = tuple(call for call in self._open if call.id not in decided)
        approved = frozenset(call.id for call in run)
        return Unsettled(tuple(run), approved, "approval" if waiting else None, waiting, tuple(answered))

    async def messages(self) -> Sequence[Message]:
        """The list itself."""
        return self._messages

    async def news(self) -> bool:
        """Always False: no one else adds to the list."""
        return False

    async def shrink(self) -> bool:
        """Not possible: a conversation in memory belongs to the caller."""
        return False

    def add(self, message: Message) -> None:
        """Add a message at the end."""
        self._messages.append(message)

    def context(self, call: ToolCall) -> ToolContext | None:
        """The default."""
        return None

    async def record(
        self, event: ToolEvent, said: AssistantMessage | None, answer: ToolMessage | None, response: Response | None
    ) -> ToolMessage | None:
        """Do nothing: `respond` adds everything."""

    async def respond(self, said: AssistantMessage, answers: Sequence[ToolMessage], response: Response | None) -> None:
        """Add a response and its answers; a response without content is not added, because providers refuse it."""
        if response is not None and said.content:
            self._messages.append(said)
        for result in answers:
            edits = self._edits.get(result.call_id)
            self._messages.append(result if edits is None else edited(result, edits))

    async def close(self) -> None:
        """Nothing to close."""

    def all(self) -> tuple[Message, ...]:
        """A copy of the list."""
        return tuple(self._messages)

    def heard(self) -> Sequence[Message]:
        """The list itself."""
        return self._messages

    async def child(self, call_id: str, task: str) -> Journal:
        """A new conversation, or the one that waits for a person."""
        kept = self._delegated.get(call_id)
        if kept is None:
            return Conversation([user(task)])
        within = f"{call_id}/"
        decisions = {id.removeprefix(within): d for id, d in self._decisions.items() if id.startswith(within)}
        return Conversation(list(kept.messages), decisions, kept.delegated)


def _check(call: ToolCall, arguments: Mapping[str, Any], registry: ToolRegistry) -> None:
    """Raise ConfigError if a call's tool does not accept the arguments that a person wrote."""
    if (tool := registry.get_tool(call.name)) is not None:
        try:
            tool.validate(arguments, lenient=False)
        except InvalidArguments as e:
            raise ConfigError(f"Approved(arguments=…) for the call {call.id!r}: {e}") from e


def _whose(unknown: Iterable[object], waiting: Sequence[str]) -> str:
    """A hint for decisions on calls of sub-agents, whose conversations are not among the messages."""
    if any(str(id).startswith(f"{call}/") for id in unknown for call in waiting):
        return "; for a call of a sub-agent, pass the result itself, as in agent.run(result, decisions={…})"
    return ""


def _why_none(messages: Sequence[Message], decided: Iterable[object]) -> str:
    """Why no call waits at the end of the conversation."""
    there = {call.id for m in messages if isinstance(m, AssistantMessage) for call in m.calls}
    if there & set(decided):
        return "none: it was answered, or superseded by a later message; decide first, with agent.run(messages)"
    return "none: pass the conversation that contains it, as in agent.run(result.messages, decisions={…})"
