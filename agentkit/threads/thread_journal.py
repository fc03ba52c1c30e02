"""The journal of one run on one thread: what is about to happen is in the store before it happens.

A response and its calls are written in one transaction, a call is `started` before its tool begins, and its answer is
written before anybody hears of it. What is kept in memory beside the store is the conversation that the model reads.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agentkit.agent.cancelling import uncancelled
from agentkit.agent.decisions import edited
from agentkit.agent.journal import Ask, Response, Unsettled
from agentkit.errors import ConfigError, StoreConflict, StoreError, ThreadBusy, ThreadExists
from agentkit.events import ApprovalRequired, ToolEvent, ToolStarted
from agentkit.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage, user
from agentkit.processor import ask_outcome
from agentkit.threads.codec import call_from_json, planned_call, to_json
from agentkit.threads.compaction import LEAST_GAIN, Compaction, tighter
from agentkit.threads.conversation import ids_of, messages_of
from agentkit.threads.owner import is_dead, this_process
from agentkit.threads.reading import read_log
from agentkit.threads.resume import INTERRUPTED, answer, settle
from agentkit.threads.shortening import READ_RESULT
from agentkit.threads.sizes import thread_tokens
from agentkit.threads.store import (
    Append,
    Body,
    Call,
    CallStatus,
    Change,
    EntryKind,
    Lease,
    Log,
    Move,
    NewCall,
    Revise,
    Store,
)
from agentkit.threads.summary import Writer, compacted
from agentkit.tokens import json_tokens, message_tokens, messages_tokens, text_tokens
from agentkit.tool.result import ToolContext

if TYPE_CHECKING:
    from agentkit.tool.registry import ToolRegistry

ASKING = 60.0  # seconds that a tool without a timeout of its own has to say what became of a call
LEASE = 30.0  # seconds; renewed three times within them. A holder that died on this machine is noticed at once
NEWEST: Final = -1  # stands for the place of an entry until it is written
_UNANSWERED: Final[tuple[CallStatus, ...]] = ("planned", "waiting", "approved", "started")
_LOG = logging.getLogger("agentkit.threads")


_RUNNING: Final[weakref.WeakSet[ThreadJournal]] = weakref.WeakSet()
"""The journals of this process that hold a lease, or are taking one. A lease of this process that none of them holds
was left behind: by an event loop that was closed over a run, or that ended while the lease was being taken."""


class ThreadJournal:
    """Writes a run into its thread.

    Args:
        store: where the thread is.
        thread_id: its id.
        temporary: a message put before the last user message; not kept in the thread.
        compaction: when and how the conversation is made shorter; None never does it.
        writer: who writes the summaries; None for none.
    """

    def __init__(
        self,
        store: Store,
        thread_id: str,
        *,
        temporary: Message | None = None,
        compaction: Compaction | None = None,
        writer: Writer | None = None,
    ) -> None:
        self.thread_id = thread_id
        self._store = store
        self._system: str | None = None  # what the model is told first; not kept in the thread
        self._temporary = temporary
        self._compaction = compaction
        self._writer = writer
        self._ask: Ask | None = None  # how the writer is asked, at the run's expense
        self._readable = False  # whether the model can read stored results again
        self._beside = 0  # tokens of the system prompt and the tools
        self._tokens = 0  # of the conversation, as far as known; counted only for a compaction
        self._due = 0  # tokens below which no further compaction is tried
        self._lease: Lease | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._taking = False  # the lease, just now
        self._renewal: asyncio.Task[None] | None = None
        self._lost: StoreError | asyncio.CancelledError | None = None  # why nothing more can be written
        self._messages: list[Message] = []  # what the model reads
        self._whole: list[Message] = []  # the same without the compactions of this run
        self._past: Log | None = None  # what earlier runs compacted, until it is asked for; then in `_earlier`
        self._earlier: list[Message] = []
        self._taken: set[str] = set()
        self._last = -1  # seq of the newest entry that `_messages` has
        self._seen = -1  # seq of the newest entry that the last request had
        self._own: set[int] = set()  # entries that this run wrote
        self._seq: int | None = None  # the entry of this turn's response, once it is begun
        self._complete = False  # whether it is in the store to its end, all answers included
        self._written: dict[str, int] = {}  # the ordinals of this response's calls that are in the store
        self._open: dict[str, tuple[int, int]] = {}  # calls in the store without an answer; NEWEST for a new entry
        self._held: dict[str, ToolMessage | None] = {}  # answers (None: waits for approval) of calls not written yet
        self._keys: dict[str, str] = {}  # of open calls: under which their effects happen once
        self._attempts: dict[str, int] = {}
        self._edits: dict[str, ToolCall] = {}
        self._new: list[Message] = []

    def holds(self, thread_id: str, fence: int) -> bool:
        """Whether it holds this lease, or may get it now, on an event loop that can still go on with it."""
        if thread_id != self.thread_id or self._loop is None or self._loop.is_closed():
            return False
        return self._taking or (self._lease is not None and self._lease.fence == fence)

    @property
    def taken(self) -> Iterable[str]:
        """The ids of all calls of the thread, the compacted ones included."""
        return self._taken

    @property
    def settled(self) -> bool:
        """Whether the response and all its answers are in the store."""
        return self._complete

    # -------------------------------------------------------------- the beginning

    def instruct(self, system: str) -> None:
        """Put it before the conversation, in this run."""
        self._system = system

    async def open(self, registry: ToolRegistry, ask: Ask) -> Unsettled:
        """Take the thread's lease, and settle what an interrupted run left open.

        Args:
            registry: the run's tools.
            ask: by which a model is asked for a summary.

        Raises:
            ThreadBusy: somebody else runs the thread.
            ThreadNotFound: there is no such thread.
            ConfigError: it has no message that could be answered.
        """
        self._ask = ask
        await uncancelled(self._take(), again=self._take)
        self._renewal = asyncio.create_task(self._renew())
        log = await read_log(self._store, self.thread_id)
        plan = settle(log, registry)
        changes: list[Change] = [Revise(e.seq, _interrupted(e.body)) for e in plan.close]
        changes += [_answered(call, said) for call, said in plan.answer]
        changes += [await self._reconciled(call, registry) for call in plan.ask]
        changes += [Move(c.seq, c.ordinal, "waiting", ("approved",), note=_undecided(c)) for c in plan.wait]
        if changes:
            await self._write(changes)
            log = await read_log(self._store, self.thread_id)
        self._readable = READ_RESULT in registry.tools
        self._beside = _beside(self._system, self._temporary, registry)
        self._read(log)
        self._seen = self._last
        if not any(isinstance(m, UserMessage) for m in self._messages):
            raise ConfigError(f"thread {self.thread_id!r} has no message to answer: add_message comes first")
        calls = [(self._reopened(call), "hash" in call.note) for call in plan.run]  # begun ones were approved, too
        finish = None if self._temporary is not None and plan.finish != "approval" else plan.finish
        approved = frozenset(call.id for call, allowed in calls if allowed)
        waiting = tuple(call_from_json(call.body) for call in log.calls if call.status == "waiting")
        return Unsettled(tuple(call for call, _ in calls), approved, finish, waiting)

    async def _reconciled(self, call: Call, registry: ToolRegistry) -> Move:
        """The answer to an interrupted call, of the tool that knows what became of it."""
        tool, said = registry.get_tool(str(call.body["name"])), call_from_json(call.body)
        assert tool is not None, "calls are asked about only of tools that are there"
        context = ToolContext(call.id, tool.name, idempotency_key=self._key(call), attempt=call.attempts)
        try:
            arguments = tool.validate(said.arguments, lenient=True)
            async with asyncio.timeout(tool.timeout or ASKING):
                result = await ask_outcome(tool, arguments, context)
        except Exception:  # noqa: BLE001 - no answer in time, other arguments since, or its author's validator fails
            result = None
        if result is None:
            return _answered(call, answer(call, "interrupted", INTERRUPTED))
        return _answered(call, ToolMessage(call.id, tool.name, result.parts, result.code))

    def _key(self, call: Call) -> str:
        """Under what its effect happens once; one that was stored without a key has its place."""
        return str(call.body.get("key") or f"{self.thread_id}/{call.seq}/{call.ordinal}")

    def _reopened(self, call: Call) -> ToolCall:
        """A call of an earlier response that is to be run now, under an id that no other one has."""
        id = call.id
        while not id or id in self._open or (id != call.id and id in self._taken):
            id += f"_{call.seq}_{call.ordinal}"
        self._open[id] = (call.seq, call.ordinal)
        self._keys[id] = self._key(call)
        self._attempts[id] = call.attempts + 1
        said = replace(call_from_json(call.body), id=id)
        if call.note.get("edited"):
            self._edits[id] = said
        return said

    async def _take(self) -> None:
        self._loop, self._taking = asyncio.get_running_loop(), True
        _RUNNING.add(self)
        try:
            self._lease = await self._acquire()
        finally:
            self._taking = False

    async def _acquire(self) -> Lease:
        owner = this_process()
        try:
            return await self._store.acquire(self.thread_id, owner, LEASE)
        except ThreadBusy as e:
            others = (journal for journal in tuple(_RUNNING) if journal is not self)
            if e.owner == owner and any(other.holds(self.thread_id, e.fence) for other in others):
                hint = "Wait for that run: one that was left by `break` ends a moment later, `async with` waits for it"
                raise ThreadBusy(f"{e}. {hint}", owner=e.owner, fence=e.fence) from None
            if e.owner != owner and not is_dead(e.owner):
                raise
            return await self._store.acquire(self.thread_id, owner, LEASE, dead=e.fence)

    async def _renew(self) -> None:
        while self._lease is not None:
            await asyncio.sleep(LEASE / 3)
            try:
                self._lease = await self._store.renew(self._lease, LEASE)
            except ThreadBusy as e:
                self._lost = e
                return
            except StoreError as e:  # tried again; every commit checks the fence anyway
                _LOG.warning("thread %s: the lease was not renewed: %s", self.thread_id, e)

    def _read(self, log: Log) -> None:
        """Build the conversation anew."""
        self._messages = self._conversation(log)
        self._whole = list(self._messages)
        self._past = log if any(e.kind == "compaction" for e in log.entries) else None
        self._taken = ids_of(log)
        self._last = max((e.seq for e in log.entries), default=-1)

    def _conversation(self, log: Log) -> list[Message]:
        """What the model reads of a log, and its size."""
        if self._compaction is not None:
            self._tokens = thread_tokens(log, self._beside)
        messages = messages_of(log, sending=True)
        if self._temporary is not None:
            messages.insert(_before_the_users(messages), self._temporary)
        if self._system is not None:
            messages.insert(0, SystemMessage(self._system))
        return messages

    def _say(self, messages: Sequence[Message]) -> None:
        """Add to the conversation."""
        self._messages += messages
        self._whole += messages
        if self._compaction is not None:
            self._tokens += messages_tokens(messages)

    # -------------------------------------------------------------- what the run tells

    async def messages(self) -> Sequence[Message]:
        """The conversation, with what others added since the last request."""
        await self._write_new()
        log = await read_log(self._store, self.thread_id, after=self._last)
        if log.entries:
            others = tuple(e for e in log.entries if e.seq not in self._own)
            self._say(messages_of(replace(log, entries=others)))
            self._last = log.entries[-1].seq
        policy = self._compaction
        if policy is not None and self._tokens >= max(self._due, policy.threshold_tokens):
            await self._compact(policy)
        self._seen = self._last
        return self._messages

    async def news(self) -> bool:
        """Whether somebody added a message since the last request."""
        log = await read_log(self._store, self.thread_id, after=self._seen)
        return any(e.seq not in self._own for e in log.entries)

    async def shrink(self) -> bool:
        """Make the conversation shorter: its provider refused it as too long. False when that is not possible."""
        policy = self._compaction
        return policy is not None and await self._compact(tighter(policy, self._tokens))

    async def _compact(self, policy: Compaction) -> bool:
        """Compact the thread; whether there was anything to gain."""
        log = await read_log(self._store, self.thread_id)
        write = None if self._writer is None or self._ask is None else self._writer.asked_by(self._ask)
        body = await compacted(log, policy, self._tokens, write=write, readable=self._readable)
        if body is not None:
            await self._write([Append(body, "compaction")])
            self._seq = None
            log = await read_log(self._store, self.thread_id)
            self._messages = self._conversation(log)
            late = tuple(e for e in log.entries if e.seq > self._last and e.seq not in self._own)
            self._whole += messages_of(replace(log, entries=late))  # it came while the summary was being written
            self._last = log.entries[-1].seq
        self._due = self._tokens + int(policy.window * LEAST_GAIN)
        return body is not None

    def add(self, message: Message) -> None:
        """A message of the run's own; written before the next request."""
        self._new.append(message)

    def all(self) -> tuple[Message, ...]:
        """The conversation, as it was before the compactions of this run."""
        return (*self._whole, *self._new)

    def heard(self) -> Sequence[Message]:
        """The conversation, with what the compactions of this and of earlier runs took out. Decoded when asked for."""
        if self._past is not None:
            entries = tuple(e for e in self._past.entries if e.kind != "compaction")
            self._earlier, self._past = messages_of(replace(self._past, entries=entries)), None
        return (*self._earlier, *self._whole, *self._new)

    def context(self, call: ToolCall) -> ToolContext:
        """The key under which a call's effect happens once, and which attempt this is."""
        if call.id not in self._open:  # not begun: somebody asks whether it may
            return ToolContext(call.id, call.name)
        key, attempt = self._keys[call.id], self._attempts.get(call.id, 1)
        return ToolContext(call.id, call.name, idempotency_key=key, attempt=attempt)

    async def record(
        self, event: ToolEvent, said: AssistantMessage | None, answer: ToolMessage | None, response: Response | None
    ) -> None:
        """Write what the event says, before the consumer hears of it; with the response, once that is over too.

        The answer to a call that was not begun is written with what comes next: nothing is lost without it. Who is
        cancelled meanwhile still knows what was written.
        """
        await uncancelled(self._record(event, said, answer, response))

    async def _record(
        self, event: ToolEvent, said: AssistantMessage | None, answer: ToolMessage | None, response: Response | None
    ) -> None:
        id = event.call.id
        match event:
            case ToolStarted():
                if id in self._open:
                    begin: Change = Move(*self._open[id], "started", ("planned", "approved", "started"))
                else:
                    assert said is not None
                    begin = self._response(said, "partial", starting=id)
                await self._write([begin])
            case ApprovalRequired() if id in self._open:
                note = {"edited": True} if id in self._edits else {}
                await self._write([Move(*self._open.pop(id), "waiting", ("planned", "approved", "started"), note=note)])
            case ApprovalRequired():
                self._held[id] = None
            case _:
                changes: list[Change] = []
                if id in self._open:
                    changes.append(self._answer(id, answer))
                else:
                    self._held[id] = answer
                if response is not None:
                    assert said is not None
                    changes.insert(0, self._response(said, "message", response))
                await self._write(changes)
                self._open.pop(id, None)
                self._complete = response is not None

    async def respond(self, said: AssistantMessage, answers: Sequence[ToolMessage], response: Response | None) -> None:
        """Write the response, complete, and the answers that are not in the store yet, in one transaction."""
        if self._lost is not None:
            await self._save(answers)
            raise self._lost
        if not self._complete:
            await self._write(self._rest(said, answers, response))
        self._complete = False
        self._seq = None
        self._written.clear()
        self._open.clear()
        self._held.clear()
        if response is None:
            self._read(await read_log(self._store, self.thread_id))
        elif said.content:
            self._say([said, *answers])
            if self._compaction is not None and response.usage.input_tokens:
                self._tokens = response.usage.input_tokens + response.usage.output_tokens
                self._tokens += messages_tokens(answers)

    def _rest(
        self, message: AssistantMessage, answers: Sequence[ToolMessage], response: Response | None
    ) -> list[Change]:
        """What a turn that is over has left to be written."""
        changes: list[Change] = []
        for said in answers:
            if said.call_id in self._open:
                changes.append(self._answer(said.call_id, said))
            elif said.call_id not in self._written:
                self._held[said.call_id] = said
        if response is not None and (message.content or self._seq is not None):
            changes.insert(0, self._response(message, "message", response))
        return changes

    async def _save(self, answers: Sequence[ToolMessage]) -> None:
        """After a write that failed: what tools that were begun have answered, as far as the store takes it."""
        assert self._lease is not None
        for said in answers:
            if self._open.get(said.call_id, (NEWEST, 0))[0] == NEWEST:
                continue
            try:
                await self._store.commit(self.thread_id, [self._answer(said.call_id, said)], fence=self._lease.fence)
            except StoreConflict:  # it is there: the write was done, and then failed
                continue
            except StoreError:
                return

    async def child(self, call_id: str, task: str) -> ThreadJournal:
        """A thread of its own, named after the call's key and there already when the call is run again."""
        id = child_id(self.thread_id, self._keys[call_id])
        with suppress(ThreadExists):
            first = Append({"message": to_json(user(task))})
            await self._store.create(id, {"parent": self.thread_id, "call": call_id}, [first])
        return ThreadJournal(self._store, id, compaction=self._compaction, writer=self._writer)

    async def close(self) -> None:
        """Give the lease back."""
        if self._renewal is not None:
            self._renewal.cancel()
        if self._lease is None:
            return
        self._new.clear()  # a question that nobody will be asked
        try:
            await self._store.release(self._lease)
        except StoreError as e:
            _LOG.warning("thread %s: the lease was not given back: %s", self.thread_id, e)
        self._lease = None  # only now: who is cancelled before that gives it back once more
        _RUNNING.discard(self)

    # -------------------------------------------------------------- the store

    def _response(
        self, message: AssistantMessage, kind: EntryKind, response: Response | None = None, starting: str = ""
    ) -> Change:
        """The response as far as it came, with those of its calls that are not in the store yet; one may start now."""
        seq = NEWEST if self._seq is None else self._seq
        new: list[NewCall] = []
        for call in message.calls:
            if call.id in self._written:
                continue
            self._written[call.id] = ordinal = len(self._written)
            body = planned_call(call)
            self._keys[call.id] = body["key"]
            if call.id not in self._held:
                self._open[call.id] = (seq, ordinal)
                new.append(NewCall(call.id, body, "started" if call.id == starting else "planned"))
            elif (said := self._held.pop(call.id)) is None:
                new.append(NewCall(call.id, body, "waiting"))
            else:
                new.append(NewCall(call.id, body, "answered", to_json(said)))
        content: dict[str, Any] = {"message": to_json(message), "read": self._seen}
        if response is not None:
            content["response"] = response._asdict() | {"usage": list(response.usage)}
        return Append(content, kind, calls=new) if self._seq is None else Revise(seq, content, kind, new)

    def _answer(self, id: str, said: ToolMessage | None) -> Move:
        """A call's answer; with the arguments that it was run with, where a person changed them."""
        assert said is not None
        if id in self._edits:
            said = edited(said, self._edits[id].arguments)
        return Move(*self._open[id], "answered", _UNANSWERED, answer=to_json(said))

    async def _write(self, changes: Sequence[Change]) -> None:
        """Commit under the lease, and learn where a new entry is."""
        if self._lost is not None:
            raise self._lost
        if not changes:
            return
        assert self._lease is not None
        try:
            places = await self._store.commit(self.thread_id, changes, fence=self._lease.fence)
        except (StoreError, asyncio.CancelledError) as e:
            # Whether it was done is not known: what is in memory is no longer what is in the store. Only an event loop
            # that ends cancels a write.
            self._lost = e
            raise
        self._own.update(places)
        if places and places[0] == self._last + 1:  # nobody else wrote in between
            self._last += 1
        if self._seq is None and isinstance(changes[0], Append):
            self._seq = places[0]
            self._open = {id: (self._seq if seq == NEWEST else seq, n) for id, (seq, n) in self._open.items()}

    async def _write_new(self) -> None:
        """The run's own messages."""
        new, self._new = self._new, []
        for message in new:
            await self._write([Append({"message": to_json(message)})])
            self._seq = None
            self._say([message])


def child_id(thread_id: str, key: str) -> str:
    """The thread of the sub-agent that a call employs; nobody else can name a thread so."""
    return f"{thread_id}/{key[:16]}"


def _before_the_users(messages: Sequence[Message]) -> int:
    """The place before the last user's message; the end, where that one has its reply already."""
    if messages and isinstance(messages[-1], AssistantMessage):
        return len(messages)
    return max((i for i, m in enumerate(messages) if isinstance(m, UserMessage)), default=0)


def _undecided(call: Call) -> Body:
    """The note of a call that waits again: nobody has approved it, and it still is what a person made of it."""
    return {"edited": True} if call.note.get("edited") else {}


def _interrupted(body: Body) -> Body:
    return {**body, "response": {**body.get("response", {}), "finish": "interrupted"}}


def _answered(call: Call, said: ToolMessage) -> Move:
    return Move(call.seq, call.ordinal, "answered", _UNANSWERED, answer=to_json(said))


def _beside(system: str | None, temporary: Message | None, registry: ToolRegistry) -> int:
    """The tokens of a request that are in no entry."""
    said = text_tokens(system or "") + (0 if temporary is None else message_tokens(temporary))
    return said + sum(json_tokens([s.name, s.description, s.parameters]) for s in registry.specs())
