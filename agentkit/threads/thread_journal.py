"""The journal of one run on one thread: each step is in the store before it happens.

A response and its calls are written in one transaction, a call is `started` before its tool starts, and its answer is
written before anyone else sees it. In addition to the store, the conversation that the model reads is kept in memory.

Only this file knows all of these four parts: the lease under which it writes (`lease`), the response that is being
written (`open_response`), the model's conversation (`model_view`), and how that is shortened (`run_compaction`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentkit.agent.cancellation import shield
from agentkit.agent.decisions import call_hash
from agentkit.agent.journal import STAYS_WAITING, Ask, LeftOpen, Response, StaysWaiting, UnansweredCalls
from agentkit.errors import ConfigError, StoreConflict, StoreError, ThreadExists
from agentkit.events import ToolCompleted, ToolEvent, ToolFailed, ToolSkipped
from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, user
from agentkit.models.render_cache import RenderCache
from agentkit.processor import ask_outcome
from agentkit.threads.allow_rules import AllowRule, is_allowed, rules_in
from agentkit.threads.children import call_key, child_id, refuse_inside
from agentkit.threads.compaction import Compaction
from agentkit.threads.conversation import answer_of, messages_of, untold
from agentkit.threads.entries import OWN
from agentkit.threads.known_threads import KnownThreads
from agentkit.threads.lease import HeldLease
from agentkit.threads.log_reader import read_log, readable
from agentkit.threads.model_view import ModelView
from agentkit.threads.open_response import UNANSWERED, OpenResponse
from agentkit.threads.resume import (
    INTERRUPTED,
    Settlement,
    answer,
    asked_for,
    has_open,
    may_continue,
    may_have_run,
    open_note,
    settle,
    waits_inside,
)
from agentkit.threads.run_compaction import RunCompaction
from agentkit.threads.stable_prefix import ThreadContent
from agentkit.threads.store import Append, Body, Call, Change, Entry, Log, Move, Revise, Store, ask_store
from agentkit.threads.summary import Writer
from agentkit.tool.codec import call_from_json, to_json
from agentkit.tool.result import ToolContext
from agentkit.tool.suspension import SuspendedCall

if TYPE_CHECKING:
    from agentkit.processor.approval import Allows
    from agentkit.tool.bound_tool import BoundTool
    from agentkit.tool.registry import ToolRegistry

ASKING: Final = 60.0  # seconds that a tool without a timeout has to report a call's outcome


class _Places:
    """Which entries of the thread the run knows."""

    def __init__(self) -> None:
        self.last = -1  # the newest one in the conversation in memory
        self.sent = -1  # the newest one in the last request
        self._own: set[int] = set()  # entries that this run wrote

    def wrote(self, places: Sequence[int]) -> None:
        self._own.update(places)
        if places and places[0] == self.last + 1:  # no one else wrote in between
            self.last += 1

    def others(self, log: Log) -> tuple[Entry, ...]:
        """Entries that were written by someone else."""
        return tuple(e for e in log.entries if e.seq not in self._own)


class ThreadJournal:
    """Writes a run to its thread.

    Args:
        store: contains the thread.
        thread_id: the thread's id.
        temporary: a message put before the last user message; not stored in the thread.
        compaction: when and how the conversation is shortened; None never shortens it.
        writer: writes the summaries; None for no summaries.
        known: the threads of the store that were read before; by default none.
    """

    def __init__(
        self,
        store: Store,
        thread_id: str,
        *,
        temporary: Message | None = None,
        compaction: Compaction | None = None,
        writer: Writer | None = None,
        known: KnownThreads | None = None,
    ) -> None:
        self.thread_id = thread_id
        self.lease = HeldLease(store, thread_id)
        """The lease under which it writes."""
        self._store = store
        self._known = KnownThreads(store) if known is None else known
        self._temporary = temporary
        self._compaction = RunCompaction(compaction, writer)
        self._view = ModelView(temporary, counts=compaction is not None)
        self._open = OpenResponse()
        self._places = _Places()
        self._new: list[Message] = []
        self._ruled = False

    @property
    def call_ids(self) -> Iterable[str]:
        """The ids of all calls of the thread, the compacted ones included."""
        return self._view.taken

    @property
    def render_cache(self) -> RenderCache:
        """The cache of the conversation as it was rendered for requests."""
        return self._view.rendered

    left_open = LeftOpen()  # the thread itself keeps what waits

    @property
    def settled(self) -> bool:
        """True if the response and all its answers are in the store."""
        return self._open.complete

    @property
    def allows(self) -> Allows | None:
        """Says if a rule of the thread covers a call; None if it had no rules at the last request."""
        return self._allows if self._ruled else None

    async def _allows(self, call: ToolCall, tool: BoundTool) -> bool:
        try:  # the rules of now: one may have been revoked
            return is_allowed(await self._rules(), call, tool)
        except StoreError:
            return False  # a person decides, and the next write says what is wrong with the store

    async def _rules(self) -> tuple[AllowRule, ...]:
        rules = rules_in((await ask_store(self._store.get, self.thread_id)).metadata)
        self._ruled = bool(rules)
        return rules

    # -------------------------------------------------------------- the beginning

    def instruct(self, system: str) -> None:
        """Put the instructions before the conversation, in this run."""
        self._view.instruct(system)

    async def open(self, registry: ToolRegistry, ask: Ask) -> UnansweredCalls:
        """Acquire the thread's lease, and settle what an interrupted run left open.

        Args:
            registry: the run's tools.
            ask: asks a model for a summary.

        Raises:
            ThreadBusy: the thread is already being run.
            ThreadNotFound: there is no such thread.
            ConfigError: the thread has no message to answer.
        """
        await self.lease.take()
        content = await self._content()
        while (settled := await self._settle(content, registry)) is None:  # a call was decided or answered since
            content = await self._content()
        plan, answers, ended, changes = settled
        if changes:
            content = await self._content()
        self._open.tools = registry
        self._compaction.open(registry, ask)
        self._view.weigh(registry)
        self._read(content)
        self._places.sent = self._places.last
        if not self._view.answerable:
            raise ConfigError(f"thread {self.thread_id!r} has no message to answer: call add_message first")
        reopened = [
            (self._open.reopen(call, call_key(self.thread_id, call), self._view.taken), call) for call in plan.run
        ]
        approved = {
            said.id: None if waits_inside(call) else asked_for(call) for said, call in reopened if may_continue(call)
        }
        finish = None if self._temporary is not None and plan.finish != "approval" else plan.finish
        waiting = tuple(
            call_from_json(c.body) for c in content.rest.calls if c.status == "waiting" and not waits_inside(c)
        )
        ended += [(call_from_json(call.body), answer) for call, answer in answers]
        started = {said.id: call_hash(call_from_json(call.body)) for said, call in reopened if may_have_run(call)}
        return UnansweredCalls(tuple(said for said, _ in reopened), approved, finish, waiting, tuple(ended), started)

    async def _settle(
        self, content: ThreadContent, registry: ToolRegistry
    ) -> tuple[Settlement, list[tuple[Call, ToolMessage]], list[tuple[ToolCall, ToolMessage]], list[Change]] | None:
        """Answer or reopen open calls: the plan, the answers given now and since the last run, and the changes written.

        None if someone else was faster, so that the thread has to be read again.
        """
        plan = settle(content.rest, registry, await self._rules())
        await refuse_inside(self._known, self.thread_id, plan.run, registry)
        ended = [(call_from_json(call.body), answer_of(call)) for call in untold(content.rest)]
        answers = [*plan.answer, *[(call, await self._reconciled(call, registry)) for call in plan.ask]]
        changes = _changes_of(plan, answers)
        try:
            await self._write(changes)
        except StoreConflict as e:
            if (await self._content()).rest != content.rest:
                return None
            self.lease.void = e
            raise
        return plan, answers, ended, changes

    async def _reconciled(self, call: Call, registry: ToolRegistry) -> ToolMessage:
        """The answer to an interrupted call, from the tool that knows its outcome."""
        tool, said = registry.get_tool(str(call.body["name"])), call_from_json(call.body)
        assert tool is not None, "only existing tools are asked for an outcome"
        context = ToolContext(call.id, tool.name, idempotency_key=call_key(self.thread_id, call), attempt=call.attempts)
        try:
            arguments = tool.validate(said.arguments, lenient=True)
            async with asyncio.timeout(tool.timeout or ASKING):
                result = await ask_outcome(tool, arguments, context)
        except Exception:  # noqa: BLE001 - no answer in time, changed arguments, or its author's validator failed
            result = None
        if result is None:
            return answer(call, "interrupted", INTERRUPTED)
        return ToolMessage(call.id, tool.name, result.parts, result.code)

    async def _content(self) -> ThreadContent:
        return await self._known.read(self.thread_id)

    def _read(self, content: ThreadContent) -> None:
        self._view.read(content)
        self._places.last = content.last

    # -------------------------------------------------------------- what the model reads

    async def messages(self) -> Sequence[Message]:
        """Return the conversation, with the messages that others added since the last request."""
        await self._write_new()
        await self._rules()
        log = await read_log(self._store, self.thread_id, after=self._places.last)
        if log.entries:
            self._view.say(messages_of(replace(log, entries=self._places.others(log))))
            self._places.last = log.entries[-1].seq
        if (policy := self._compaction.due(self._view.tokens)) is not None:
            await self._compact(policy)
        self._places.sent = self._places.last
        return self._view.messages

    async def news(self) -> bool:
        """Return True if anyone else added a message since the last request."""
        log = await read_log(self._store, self.thread_id, after=self._places.sent)
        return bool(self._places.others(log))

    async def shrink(self) -> bool:
        """Shorten the conversation: its provider refused it as too long. False if that is not possible."""
        policy = self._compaction.after_refusal(self._view.tokens)
        return policy is not None and await self._compact(policy)

    async def _compact(self, policy: Compaction) -> bool:
        """Compact the thread; whether there was anything to gain."""
        view, places = self._view, self._places
        log = await read_log(self._store, self.thread_id)
        body = await self._compaction.body(log, policy, view.tokens)
        if body is not None:
            await self._write([Append(body, "compaction")])
            log = await read_log(self._store, self.thread_id)
            late = tuple(e for e in places.others(log) if e.seq > places.last)
            view.shorten(log, late)  # these came while the summary was being written
            places.last = log.entries[-1].seq
        self._compaction.note_attempt(policy, view.tokens)
        return body is not None

    def add(self, message: Message) -> None:
        """Add one of the run's own messages; written before the next request."""
        self._new.append(message)

    def all(self) -> tuple[Message, ...]:
        """The conversation, as it was before the compactions of this run."""
        return (*self._view.all(), *self._new)

    def messages_read(self) -> Sequence[Message]:
        """The conversation, with everything that compactions, of this run or earlier ones, removed or put into it."""
        return (*self._view.full_history(), *self._new)

    # -------------------------------------------------------------- what happens

    def context(self, call: ToolCall) -> ToolContext:
        """A call's idempotency key, and which attempt this is."""
        return self._open.context(call)

    async def record(
        self, event: ToolEvent, said: AssistantMessage | None, answer: ToolMessage | None, response: Response | None
    ) -> ToolMessage | StaysWaiting | None:
        """Write the event before the consumer sees it; together with the response, once that is over.

        A caller that is cancelled in the meantime still knows the changes that were written.
        """
        return await shield(self._record(event, said, answer, response))

    async def _record(
        self, event: ToolEvent, said: AssistantMessage | None, answer: ToolMessage | None, response: Response | None
    ) -> ToolMessage | StaysWaiting | None:
        opened, id = self._open, event.call.id
        await self._write_response(opened.changes(event, said, answer, response, self._places.sent))
        if isinstance(event, (ToolCompleted, ToolFailed, ToolSkipped)):
            opened.close_call(id, complete=response is not None)
        if id in opened.stays and (isinstance(event, ToolSkipped) or (answer is not None and id in opened.inside)):
            return STAYS_WAITING
        given = opened.given.get(id)
        return None if given == answer else given

    async def respond(
        self,
        said: AssistantMessage,
        answers: Sequence[ToolMessage],
        response: Response | None,
        skipped: Container[str] = (),
    ) -> Collection[str]:
        """Write the response, complete, and the answers that are not in the store yet, in one transaction."""
        if self.lease.void is not None:
            await self.lease.save(self._open.unsaved_answers(answers, skipped))
            raise self.lease.void
        await self._write_response(self._open.rest(said, answers, response, self._places.sent, skipped))
        given, stay = self._open.given, frozenset(self._open.stays)
        answers = [given.get(answer.call_id, answer) for answer in answers if answer.call_id not in stay]
        self._open.end()
        if response is None:
            self._read(await self._content())
        elif said.content:
            self._view.say([said, *answers])
            self._view.measure(response.usage, answers)
        return stay

    async def child(self, call_id: str, task: str) -> ThreadJournal:
        """A separate thread, named after the call's key, so that it already exists if the call is run again."""
        self._open.begin_inside(call_id)
        id = child_id(self.thread_id, self._open.key(call_id))
        first = Append({"message": to_json(user(task))})
        try:
            with suppress(ThreadExists):
                await ask_store(
                    self._store.create, id, {"parent": self.thread_id, "call": call_id}, readable([first], id)
                )
        except asyncio.CancelledError as e:
            if call_id in self._open.inside:
                raise SuspendedCall(()) from e
            raise
        compaction = self._compaction
        return ThreadJournal(self._store, id, compaction=compaction.policy, writer=compaction.writer, known=self._known)

    def mark(self, call_id: str, *, inside: bool) -> None:
        """Remember the outcome of a sub-agent until the call's answer is written."""
        (self._open.inside.add if inside else self._open.inside.discard)(call_id)

    async def has_open_calls(self) -> bool:
        """Return True if a later run of the thread has calls to act on, or to leave waiting."""
        return has_open(await self._known.changeable(self.thread_id))

    async def close(self) -> None:
        """Release the lease."""
        self._new.clear()  # a question that will not be asked
        await self.lease.give_back()

    # -------------------------------------------------------------- the store

    async def _write(self, changes: Sequence[Change]) -> tuple[int, ...]:
        """Commit under the lease; returns the positions."""
        places = await self.lease.commit(changes)
        self._places.wrote(places)
        return places

    async def _write_response(self, changes: Sequence[Change]) -> None:
        """Write changes of the response; what someone else has decided or answered in the meantime stays."""
        try:
            places = await self._write(changes)
        except StoreConflict as e:
            before = min((change.seq for change in changes if isinstance(change, Move)), default=0) - 1
            left = self._open.possible(changes, (await read_log(self._store, self.thread_id, after=before)).calls)
            if len(left) == len(changes):
                self.lease.void = e
                raise
            return await self._write_response(left)
        self._open.set_places(changes, places)

    async def _write_new(self) -> None:
        new, self._new = self._new, []
        for message in new:
            await self._write([Append({"message": to_json(message), OWN: True})])
            self._view.say([message])


def _changes_of(plan: Settlement, answers: Sequence[tuple[Call, ToolMessage]]) -> list[Change]:
    """The changes that settle the calls of an interrupted run, except for those that are to be run."""
    changes: list[Change] = [Revise(e.seq, _interrupted(e.body)) for e in plan.close]
    changes += [_answered(call, said) for call, said in answers]
    changes += [Move(c.seq, c.ordinal, "planned", ("waiting",)) for c in plan.plan]
    changes += [Move(c.seq, c.ordinal, "waiting", ("approved",), body=c.body, note=open_note(c)) for c in plan.wait]
    return changes


def _interrupted(body: Body) -> Body:
    return {**body, "response": {**body.get("response", {}), "finish": "interrupted"}}


def _answered(call: Call, said: ToolMessage) -> Move:
    return Move(call.seq, call.ordinal, "answered", UNANSWERED, answer=to_json(said))
