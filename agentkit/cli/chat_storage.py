"""The storage of a chat's conversation: in memory, or in a thread that outlives it. Never writes to the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agentkit.agent import Agent, Approved, Decision, RunResult, RunStream, call_hash
from agentkit.agent.lifecycle import TurnStarted
from agentkit.cli.approval_prompt import who
from agentkit.errors import ThreadNotFound
from agentkit.events import ApprovalRequired
from agentkit.messages import Message, TextPart, ToolCall, UserMessage, user
from agentkit.threads import AllowRule, Log, ThreadManager
from agentkit.threads.allow_rules import bound_to, is_allowed
from agentkit.threads.conversation import role_of
from agentkit.threads.log_reader import read_log
from agentkit.threads.resume import is_unfinished
from agentkit.threads.stored_answer import put
from agentkit.tool.codec import from_json
from agentkit.tool.output import label


class InMemory:
    """A conversation that ends with the chat.

    A failed or stopped answer is kept as far as it got, each of its calls with a result; a call that never started is
    removed together with its question, so that the next one can be asked.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.messages: tuple[Message, ...] = ()
        self._before: tuple[Message, ...] = ()
        self._unsaid: tuple[Message, ...] = ()  # before the user's last message
        self._last: RunResult | None = None
        self._decisions: dict[str, Decision] = {}
        self._rules: tuple[AllowRule, ...] = ()
        self._for_a_person: set[str] = set()  # calls that wait for another reason than their tool's: rules cover none

    async def say(self, text: str) -> None:
        """Add the user's message."""
        self._unsaid = self._before = self.messages
        self.messages = (*self.messages, user(text))

    def run(self) -> RunStream:
        """Let the model continue."""
        decisions, self._decisions = self._decisions, {}
        last = self._last
        agent = self.agent.adapt(hooks=[lambda event, _: self.watch(event)])
        if last is not None and last.messages is self.messages:  # it may have more than its messages: sub-agents
            return agent.stream(last, decisions=decisions)
        return agent.stream(self.messages, decisions=decisions)

    def keep(self, result: RunResult) -> None:
        """Continue from the run's messages."""
        self.messages = self._before = result.messages if result.new_messages else self._before
        self._last = result

    def forget_last(self) -> None:
        """Remove the last message of the user, if it is still there, and its answer."""
        self.messages = self._before = self._unsaid

    async def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for approval."""
        return () if self._last is None else self._last.pending

    async def started_before(self) -> frozenset[str]:
        """Return no calls: an interrupted run in memory is gone."""
        return frozenset()

    async def decide(self, call: ToolCall, decision: Decision, remember: AllowRule | bool = False) -> None:
        """Decide whether a waiting call may run, and later ones with it."""
        self._decisions[call.id] = decision
        if remember:
            await self.allow(call.name if isinstance(remember, bool) else remember)

    async def allows(self, call: ToolCall) -> bool:
        """Let a call run that a rule covers; False if none does, or if a guard asked for a person."""
        tool = self.agent.registry.get_tool(call.name)
        if "/" in call.id or call.id in self._for_a_person or tool is None or not is_allowed(self._rules, call, tool):
            return False
        self._decisions[call.id] = Approved()
        return True

    async def allow(self, rule: AllowRule | str) -> None:
        """Let calls run without asking, until the chat ends."""
        new = bound_to(rule, self.agent.registry)
        self._rules = (*(one for one in self._rules if one.key != new.key), new)

    async def allow_rules(self) -> tuple[AllowRule, ...]:
        """The rules, oldest first."""
        return self._rules

    async def revoke(self, rule: AllowRule) -> None:
        """Ask about these calls again."""
        self._rules = tuple(one for one in self._rules if one.key != rule.key)

    def watch(self, event: object) -> Awaitable[None] | None:
        """Remember the calls that a guard asked about: a hook."""
        if isinstance(event, ApprovalRequired) and event.reason:
            self._for_a_person.add(event.call.id)
        return None


class InThread:
    """A conversation in a thread, created with its first message.

    Args:
        manager: the manager of the store.
        id: the thread's id.
        agent: who answers.
        others: called with the texts that others add to the thread while it is answered here.
    """

    def __init__(self, manager: ThreadManager, id: str, agent: Agent, others: Callable[[str], None]) -> None:
        self.manager = manager
        self.id = id
        self.agent = agent
        self.others = others
        self._own: set[int] = set()  # entries written here
        self._known = -1  # the newest entry that the user has seen or written
        self._said: tuple[AllowRule, ...] = ()  # the rules since the last run, which has read the others

    async def log(self) -> Log | None:
        """The thread's log; None if there is no thread yet."""
        try:
            return await self.manager.get_log(self.id)
        except ThreadNotFound:
            return None

    async def show(self) -> Log | None:
        """`log`, for the user to read; none of it will be shown again."""
        log = await self.log()
        self._known = max((entry.seq for entry in log.entries), default=-1) if log is not None else -1
        return log

    async def say(self, text: str) -> None:
        """Add the user's message."""
        entry = await put(self.manager, self.id, text)
        if entry == self._known + 1:  # otherwise others wrote before it, and their entries are shown first
            self._known = entry
        self._own.add(entry)

    def watch(self, event: object) -> Awaitable[None] | None:
        """Show the messages of others before each request: a hook."""
        return self._show_from_elsewhere() if isinstance(event, TurnStarted) else None

    async def _show_from_elsewhere(self) -> None:
        log = await read_log(self.manager.store, self.id, after=self._known)
        for entry in log.entries:
            self._known = entry.seq
            if entry.seq in self._own or role_of(entry) != "user":
                continue
            message = from_json(entry.body["message"])
            assert isinstance(message, UserMessage)
            self.others("".join(p.text if isinstance(p, TextPart) else label(p) for p in message.content))

    def run(self) -> RunStream:
        """Let the model continue."""
        self._said = ()
        return self.manager.run_agent(self.id, self.agent)

    def keep(self, result: RunResult) -> None:
        """Nothing to do: it is in the store."""

    async def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for approval."""
        return () if await self.log() is None else await self.manager.pending(self.id)

    async def started_before(self) -> frozenset[str]:
        """The ids of those of them that were started and interrupted."""
        return await self.manager.started_before(self.id)

    async def decide(self, call: ToolCall, decision: Decision, remember: AllowRule | bool = False) -> None:
        """Decide whether a waiting call may run, and later ones with it; applies only to the call as it was shown."""
        if isinstance(decision, Approved):
            given, seen = decision.arguments, call_hash(call)
            await self.manager.approve(self.id, call.id, arguments=given, seen=seen, by=who(), remember=remember)
            self._said = await self.allow_rules() if remember else self._said
        else:
            await self.manager.deny(self.id, call.id, decision.reason, by=who())

    async def allows(self, call: ToolCall) -> bool:
        """Say if a rule since the last run covers a call: it need not be asked about, since the next run decides."""
        tool = self.agent.registry.get_tool(call.name)
        return "/" not in call.id and tool is not None and is_allowed(self._said, call, tool)

    async def allow(self, rule: AllowRule | str) -> None:
        """Let calls run without asking in this thread."""
        await self.manager.allow(self.id, rule, registry=self.agent.registry)

    async def allow_rules(self) -> tuple[AllowRule, ...]:
        """The rules of the thread, oldest first."""
        return () if await self.log() is None else await self.manager.allow_rules(self.id)

    async def revoke(self, rule: AllowRule) -> None:
        """Ask about these calls again."""
        await self.manager.revoke(self.id, rule)

    def is_unfinished(self, log: Log) -> bool:
        """Say if a run was interrupted, so that the thread has to be run to end it."""
        return is_unfinished(log, self.agent.registry)


KeptChat = InMemory | InThread
