"""Where a chat keeps its conversation: in memory, or in a thread that outlives it. Writes nothing to the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from agentkit.agent import Agent, Approved, Decision, RunResult, RunStream, call_hash
from agentkit.agent.lifecycle import TurnStarted
from agentkit.cli.asking import who
from agentkit.errors import ThreadNotFound
from agentkit.messages import Message, TextPart, ToolCall, UserMessage, user
from agentkit.threads import Log, ThreadManager
from agentkit.threads.codec import from_json
from agentkit.threads.conversation import role_of
from agentkit.threads.reading import read_log
from agentkit.threads.resume import settle


class KeptChat(Protocol):
    """What a chat asks of its conversation."""

    async def say(self, text: str) -> None:
        """Add what the user said."""
        ...

    def run(self) -> RunStream:
        """Let the model go on."""
        ...

    def keep(self, result: RunResult) -> None:
        """A run ended, be it early or with an error."""
        ...

    async def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for approval."""
        ...

    async def decide(self, call: ToolCall, decision: Decision) -> None:
        """Say whether a waiting call may run; the next run does it."""
        ...


class InMemory:
    """A conversation that ends with the chat.

    A failed or stopped answer stays as far as it came, each of its calls with a result; one that never began is taken
    back together with its question, so that the next one can be asked.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._messages: tuple[Message, ...] = ()
        self._before: tuple[Message, ...] = ()
        self._waiting: tuple[ToolCall, ...] = ()
        self._decisions: dict[str, Decision] = {}

    async def say(self, text: str) -> None:
        """Add what the user said."""
        self._before, self._messages = self._messages, (*self._messages, user(text))

    def run(self) -> RunStream:
        """Let the model go on."""
        decisions, self._decisions = self._decisions, {}
        return self.agent.stream(self._messages, decisions=decisions)

    def keep(self, result: RunResult) -> None:
        """Go on from what the run added."""
        self._messages = self._before = result.messages if result.new_messages else self._before
        self._waiting = result.pending

    async def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for approval."""
        return self._waiting

    async def decide(self, call: ToolCall, decision: Decision) -> None:
        """Say whether a waiting call may run."""
        self._decisions[call.id] = decision


class InThread:
    """A conversation in a thread; made with its first message.

    Args:
        manager: of the store.
        id: the thread's.
        agent: who answers.
        others: told of what others write into the thread while it is answered here.
    """

    def __init__(self, manager: ThreadManager, id: str, agent: Agent, others: Callable[[str], None]) -> None:
        self.manager = manager
        self.id = id
        self.agent = agent
        self.others = others
        self._own: set[int] = set()  # entries that were written here
        self._known = -1  # the newest entry that the user has seen, or wrote

    async def log(self) -> Log | None:
        """What the thread holds; None when there is none yet."""
        try:
            return await self.manager.get_log(self.id)
        except ThreadNotFound:
            return None

    async def show(self) -> Log | None:
        """`log`, for the user to read: nothing of it is told again."""
        log = await self.log()
        self._known = max((entry.seq for entry in log.entries), default=-1) if log is not None else -1
        return log

    async def say(self, text: str) -> None:
        """Add what the user said."""
        try:
            said = await self.manager.add_message(self.id, text)
        except ThreadNotFound:
            await self.manager.create_thread(self.id, messages=text)
            said = 0
        if said == self._known + 1:  # else others wrote before it, and are told of first
            self._known = said
        self._own.add(said)

    def watch(self, event: object) -> Awaitable[None] | None:
        """A hook: before each request, tell of what others have written."""
        return self._tell_of_others() if isinstance(event, TurnStarted) else None

    async def _tell_of_others(self) -> None:
        log = await read_log(self.manager.store, self.id, after=self._known)
        for entry in log.entries:
            self._known = entry.seq
            if entry.seq in self._own or role_of(entry) != "user":
                continue
            message = from_json(entry.body["message"])
            assert isinstance(message, UserMessage)
            self.others("".join(part.text for part in message.content if isinstance(part, TextPart)) or "(image)")

    def run(self) -> RunStream:
        """Let the model go on."""
        return self.manager.run_agent(self.id, self.agent)

    def keep(self, result: RunResult) -> None:
        """Nothing: it is in the store."""

    async def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for approval."""
        return () if await self.log() is None else await self.manager.pending(self.id)

    async def decide(self, call: ToolCall, decision: Decision) -> None:
        """Say whether a waiting call may run; bound to the call as it was shown."""
        if isinstance(decision, Approved):
            seen = call_hash(call)
            await self.manager.approve(self.id, call.id, arguments=decision.arguments, seen=seen, by=who())
        else:
            await self.manager.deny(self.id, call.id, decision.reason, by=who())

    def is_unfinished(self, log: Log) -> bool:
        """Whether a run on it broke off: there is something to settle, or the model has not answered yet.

        After a run that was stopped on purpose it is the user's turn.
        """
        plan = settle(log, self.agent.registry)
        if plan.close or plan.answer or plan.ask or plan.run or plan.finish == "approval":
            return True
        stopped = bool(log.entries) and log.entries[-1].body.get("response", {}).get("finish") == "cancelled"
        return bool(log.entries) and plan.finish is None and not stopped
