"""The journal of a run without a store: a list of messages, with the decisions on the calls that wait at its end."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentkit.agent.agent_tools import agent_of
from agentkit.agent.decisions import Approved, Decision, Denied, add_edit_note, call_hash, denial
from agentkit.agent.journal import STAYS_WAITING, Ask, Journal, LeftOpen, Response, StaysWaiting, UnansweredCalls
from agentkit.agent.outcome import AskedFor
from agentkit.agent.unanswered_calls import answer_open_calls
from agentkit.errors import ConfigError
from agentkit.events import ToolEvent, ToolSkipped
from agentkit.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, user
from agentkit.models.render_cache import RenderCache
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.result import ToolContext

if TYPE_CHECKING:
    from agentkit.agent.outcome import RunResult
    from agentkit.tool.bound_tool import BoundTool
    from agentkit.tool.registry import ToolRegistry


class Conversation:
    """The journal of a run without a store: a list of messages that lives as long as the run's result.

    Args:
        messages: the conversation so far; the list is kept and extended. A call in it without an answer is answered
            when the run starts, except for those at its end, which wait for a decision.
        decisions: on calls at its end that wait for approval, by call id.
        delegated: what the sub-agents continue from of which calls wait, by the ids of the calls that started them.
        asked_for: what the person who approves them sees of the calls that wait, by call id.

    Raises:
        ConfigError: a decision is for a call that is not waiting.
    """

    thread_id = None
    allows = None  # what a person allows for longer than one call is kept with a thread

    def __init__(
        self,
        messages: list[Message],
        decisions: Mapping[str, Decision] = MappingProxyType({}),
        delegated: Mapping[str, RunResult[Any]] = MappingProxyType({}),
        asked_for: Mapping[str, AskedFor] = MappingProxyType({}),
    ) -> None:
        self._asked_for = asked_for
        self._messages = messages
        self.render_cache = RenderCache()
        self._decisions = decisions
        self._delegated = delegated
        self._edits: dict[str, Mapping[str, object]] = {}
        self._withdrawn: tuple[str, ...] = ("limit",)  # with such an answer, an approved call that did not start stays
        self._goes_on = set(delegated)  # the calls that are to continue, or have left calls open again
        self._messages[:], self._open, self._passed_over = answer_open_calls(messages)
        self.left_open = LeftOpen({call.id: self._inside(call) for call in self._open}, delegated, asked_for)
        waiting = [call.id for calls in self.left_open.waiting.values() for call in calls]
        unknown = decisions.keys() - set(waiting)
        if unknown:
            raise ConfigError(
                f"no call waits under the id {', '.join(sorted(map(repr, unknown)))}; "
                f"waiting: {', '.join(map(repr, waiting)) or _why_none(messages, unknown)}{_whose(unknown, waiting)}"
            )

    def _inside(self, call: ToolCall) -> tuple[ToolCall, ...]:
        """The calls that a person decides on for an open call: the call itself, or those that wait inside it."""
        kept = self._delegated.get(call.id)
        if kept is None:
            return (call,)
        return tuple(replace(inner, id=f"{call.id}/{inner.id}") for inner in kept.pending)

    @property
    def settled(self) -> bool:
        """True if no call may have to stay as it is."""
        return not (self._decisions or self._delegated)

    @property
    def call_ids(self) -> Iterable[str]:
        """The ids of all calls of the conversation."""
        return {call.id for m in self._messages if isinstance(m, AssistantMessage) for call in m.calls}

    def instruct(self, system: str) -> None:
        """Put the instructions first."""
        self._messages.insert(0, SystemMessage(system))

    async def open(self, registry: ToolRegistry, ask: Ask) -> UnansweredCalls:
        """Answer the denied calls; the approved ones are to be run.

        Raises:
            ConfigError: a decision cannot be acted on; nothing is changed.
        """
        self.refuse(registry)
        run: list[ToolCall] = []
        approved: dict[str, AskedFor | None] = {}
        answered = [*self._passed_over]
        for call in self._open:
            if call.id in self._delegated:  # its agent continues, and acts on the decisions itself
                run.append(call)
                approved[call.id] = None
                continue
            match self._decisions.get(call.id):
                case Approved(arguments):
                    asked = self._asked_for.get(call.id, AskedFor("", call_hash(call)))
                    if arguments is not None:
                        self._edits[call.id] = arguments
                        call = ToolCall(call.id, call.name, arguments, call.format, call.raw)
                        asked = asked._replace(call=call_hash(call))
                    run.append(call)
                    approved[call.id] = asked
                case Denied(reason):
                    answered.append((call, said := denial(call, reason)))
                    self._messages.append(said)
        decided = {*self._decisions, *self._delegated}
        waiting = tuple(call for call in self._open if call.id not in decided)
        return UnansweredCalls(tuple(run), approved, "approval" if waiting else None, waiting, tuple(answered))

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
    ) -> StaysWaiting | None:
        """Say if a call stays as it is; `respond` adds everything else."""
        skipped = isinstance(event, ToolSkipped) and answer is not None and self._stays(answer, skipped=True)
        return STAYS_WAITING if skipped else None

    def _stays(self, answer: ToolMessage, *, skipped: bool) -> bool:
        """Return True if a call that the run withdraws is left to the next run.

        This also applies to a call whose sub-agent has open calls, and to an approved call for which no budget is left.
        The approved calls of a sub-agent always stay: its caller's program does not know of them.
        """
        id = answer.call_id
        if id in self._delegated and answer.error in ("cancelled", "limit"):
            return id in self._goes_on
        return skipped and answer.error in self._withdrawn and id in self._decisions

    async def respond(
        self,
        said: AssistantMessage,
        answers: Sequence[ToolMessage],
        response: Response | None,
        skipped: Container[str] = (),
    ) -> Collection[str]:
        """Add a response and its answers; a response without content is not added, because providers refuse it."""
        if response is not None and said.content:
            self._messages.append(said)
        stay = {one.call_id for one in answers if self._stays(one, skipped=one.call_id in skipped)}
        for result in answers:
            if result.call_id in stay:
                continue
            edits = self._edits.get(result.call_id)
            self._messages.append(result if edits is None else add_edit_note(result, edits))
        return stay

    def mark(self, call_id: str, *, inside: bool) -> None:
        """Remember it."""
        (self._goes_on.add if inside else self._goes_on.discard)(call_id)

    async def has_open_calls(self) -> bool:
        """Return True if a call at its end waits."""
        return bool(answer_open_calls(self._messages)[1])

    def refuse(self, registry: ToolRegistry) -> None:
        """Refuse a run that cannot act on a decision, here or in the conversations of sub-agents.

        Raises:
            ConfigError: it lacks the tool of a call to continue, or a tool does not accept what a person wrote.
        """
        for call in self._open:
            decision, tool = self._decisions.get(call.id), registry.get_tool(call.name)
            if isinstance(decision, Approved) and decision.arguments is not None:
                _check(call, decision.arguments, registry)
            if call.id not in self._delegated:
                if tool is not None and isinstance(decision, Approved):
                    self._same(call, tool)
                continue
            if tool is None:
                there = ", ".join(map(repr, registry.tools)) or "none"
                raise ConfigError(
                    f"the call {call.id!r} waits for one in its sub-agent, but this run has no tool {call.name!r} to "
                    f"continue it (tools: {there}): run the agent that made it, or continue with a new message"
                )
            if (agent := agent_of(tool)) is not None:
                self._child(call.id).refuse(agent.registry)

    def _same(self, call: ToolCall, tool: BoundTool) -> None:
        """Raise ConfigError if an approved call would run another tool than it was made for."""
        if (asked := self._asked_for.get(call.id)) is not None and asked.tool != tool.digest:
            raise ConfigError(
                f"the call {call.id!r} was approved for another tool: this run's {call.name!r} ({tool.origin}) has "
                "another function, description or schema; run the agent that made the call, or decide again with "
                "agent.run(result.messages, decisions={…})"
            )

    async def close(self) -> None:
        """Nothing to close."""

    def all(self) -> tuple[Message, ...]:
        """A copy of the list."""
        return tuple(self._messages)

    def messages_read(self) -> Sequence[Message]:
        """The list itself."""
        return self._messages

    async def child(self, call_id: str, task: str) -> Journal:
        """A new conversation, or the one that waits for a person."""
        self._goes_on.discard(call_id)  # until it says so, nothing is left open
        return self._child(call_id) if call_id in self._delegated else Conversation([user(task)])

    def _child(self, call_id: str) -> Conversation:
        """The conversation that waits for a person."""
        kept, within = self._delegated[call_id], f"{call_id}/"
        decisions = {id.removeprefix(within): d for id, d in self._decisions.items() if id.startswith(within)}
        child = Conversation(list(kept.messages), decisions, kept.delegated, kept._asked_for)
        child._withdrawn = ("limit", "cancelled")
        return child


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
