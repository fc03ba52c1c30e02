"""Where a run keeps what happens. The plain journal is a list in memory; `agentkit.threads` has one that survives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agentkit.agent.decisions import Approved, Decision, Denied, denial, edited
from agentkit.agent.options import RunFinish
from agentkit.agent.unanswered import settled
from agentkit.errors import ConfigError
from agentkit.events import SourceEvent, ToolEvent, Usage
from agentkit.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, user
from agentkit.models.base import Model, ModelRequest
from agentkit.tool.result import ToolContext

if TYPE_CHECKING:
    from agentkit.tool.registry import ToolRegistry

Ask = Callable[[Model, ModelRequest], AsyncGenerator[SourceEvent, None]]
"""Asks a model at the run's expense. Raises `BudgetSpent` where nothing is left of the run's budget."""


class Unsettled(NamedTuple):
    """Calls that an earlier run left without an answer, and that are to be run before the model is asked.

    Attributes:
        calls: what to run, with the arguments to run it with.
        approved: the ids of those that a person approved.
        finish: why there is nothing more to do, such as `approval` where a call still waits; None to go on.
        waiting: the calls that still wait for a person.
    """

    calls: tuple[ToolCall, ...] = ()
    approved: frozenset[str] = frozenset()
    finish: RunFinish | None = None
    waiting: tuple[ToolCall, ...] = ()


class Response(NamedTuple):
    """What is known of a response beside its message. `seconds` is the wall clock time of the turn."""

    run: str
    model: str
    usage: Usage
    finish: RunFinish
    seconds: float


class Journal(Protocol):
    """What a run tells as it goes: what is about to happen before it happens, what happened before anyone hears of it.

    Every method may raise; the run then ends with that error, its tools at work cancelled.
    """

    @property
    def thread_id(self) -> str | None:
        """The thread in which it writes; None for one in memory."""
        ...

    @property
    def taken(self) -> Iterable[str]:
        """The ids of all calls of the conversation."""
        ...

    @property
    def settled(self) -> bool:
        """Whether nothing is left to write of the turn that goes on.

        As long as that is so, `record` is not called, and `respond` waits for nothing.
        """
        ...

    def instruct(self, system: str) -> None:
        """What the model is told before the conversation; said once, before `open`."""
        ...

    async def open(self, registry: ToolRegistry, ask: Ask) -> Unsettled:
        """Begin. Settles what an earlier run left open, except for the calls that it returns.

        Args:
            registry: the run's tools.
            ask: by which it asks a model, should it need one.
        """
        ...

    async def messages(self) -> Sequence[Message]:
        """The conversation to be sent now, with whatever was added from outside since. Read, never changed."""
        ...

    async def news(self) -> bool:
        """Whether a message was added from outside since the last request."""
        ...

    async def shrink(self) -> bool:
        """Make the conversation shorter: its provider refused it as too long. False when that is not possible."""
        ...

    def add(self, message: Message) -> None:
        """Add a message of the run's own, such as one that asks for a better answer; written with what comes next."""
        ...

    def context(self, call: ToolCall) -> ToolContext | None:
        """What a call's tool may know of its keeping: the idempotency key and the attempt; None for the usual."""
        ...

    async def record(
        self, event: ToolEvent, said: AssistantMessage | None, answer: ToolMessage | None, response: Response | None
    ) -> None:
        """A call is about to start, has its answer, or waits for a person.

        Args:
            event: which of them.
            said: the response as far as it came, where a call is about to start or the response is whole; else None.
            answer: the call's, once it has one.
            response: what is known of the whole response, where this is the last event of its turn; else None.
        """
        ...

    async def respond(self, said: AssistantMessage, answers: Sequence[ToolMessage], response: Response | None) -> None:
        """A turn is over, be it early or with an error: its message and its answers are complete.

        `response` is None for a turn that answered calls of an earlier response.
        """
        ...

    async def close(self) -> None:
        """The run is over."""
        ...

    def all(self) -> tuple[Message, ...]:
        """The conversation as it stands."""
        ...

    def heard(self) -> Sequence[Message]:
        """The conversation as it stands, with all that compactions ever took out: what the model may have read."""
        ...

    async def child(self, call_id: str, task: str) -> Journal:
        """A journal for the sub-agent that one of this run's calls employs; asked again, the same one goes on."""
        ...


class Conversation:
    """The journal of a run without a store: a list of messages, forgotten with the run's result.

    Args:
        messages: the conversation so far; the list is kept and added to. A call in it that nobody answered is answered
            when the run begins, except for those at its end, which wait for a decision.
        decisions: on calls at its end that wait for approval, by call id.

    Raises:
        ConfigError: a decision on a call that does not wait.
    """

    thread_id = None
    settled = True

    def __init__(self, messages: list[Message], decisions: Mapping[str, Decision] = MappingProxyType({})) -> None:
        self._messages = messages
        self._decisions = decisions
        self._edits: dict[str, Mapping[str, object]] = {}
        self._messages[:], self._open = settled(messages)
        unknown = decisions.keys() - {call.id for call in self._open}
        if unknown:
            raise ConfigError(
                f"no call waits under the id {', '.join(sorted(map(repr, unknown)))}; "
                f"waiting: {', '.join(repr(call.id) for call in self._open) or _none(messages, unknown)}"
            )

    @property
    def taken(self) -> Iterable[str]:
        """The ids of all calls of the conversation."""
        return {call.id for m in self._messages if isinstance(m, AssistantMessage) for call in m.calls}

    def instruct(self, system: str) -> None:
        """Put it first."""
        self._messages.insert(0, SystemMessage(system))

    async def open(self, registry: ToolRegistry, ask: Ask) -> Unsettled:
        """Answer the denied calls; the approved ones are to be run."""
        run: list[ToolCall] = []
        for call in self._open:
            match self._decisions.get(call.id):
                case Approved(arguments):
                    if arguments is not None:
                        self._edits[call.id] = arguments
                        call = ToolCall(call.id, call.name, arguments, call.format, call.raw)
                    run.append(call)
                case Denied(reason):
                    self._messages.append(denial(call, reason))
        waiting = tuple(call for call in self._open if call.id not in self._decisions)
        return Unsettled(tuple(run), frozenset(call.id for call in run), "approval" if waiting else None, waiting)

    async def messages(self) -> Sequence[Message]:
        """The list itself."""
        return self._messages

    async def news(self) -> bool:
        """Nobody else adds to it."""
        return False

    async def shrink(self) -> bool:
        """Not done: a conversation in memory is the caller's."""
        return False

    def add(self, message: Message) -> None:
        """Add a message at the end."""
        self._messages.append(message)

    def context(self, call: ToolCall) -> ToolContext | None:
        """Nothing but the usual."""
        return None

    async def record(
        self, event: ToolEvent, said: AssistantMessage | None, answer: ToolMessage | None, response: Response | None
    ) -> None:
        """Nothing: `respond` brings it all."""

    async def respond(self, said: AssistantMessage, answers: Sequence[ToolMessage], response: Response | None) -> None:
        """Add a response and its answers; one without content adds nothing: providers refuse it."""
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
        """A new conversation."""
        return Conversation([user(task)])


def _none(messages: Sequence[Message], decided: Iterable[object]) -> str:
    """Why no call waits at the end of the conversation."""
    there = {call.id for m in messages if isinstance(m, AssistantMessage) for call in m.calls}
    if there & set(decided):
        return "none: it was answered, or withdrawn by what was said after it; decide first, with agent.run(messages)"
    return "none: give the conversation that it is in, agent.run(result.messages, decisions={…})"
