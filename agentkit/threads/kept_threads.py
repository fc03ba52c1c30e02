"""Stored threads: created, read, written to, forked, their calls approved or denied. Knows no model and no run.

All state is in the store.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from agentkit.agent.decisions import call_hash, denial
from agentkit.agent.prompts import Prompt, messages_from
from agentkit.checks.bounds import TEXT, YES_OR_NO, Bound, Bounds, instance, or_none, refuse, whole
from agentkit.checks.spelling import methods_take, takes
from agentkit.errors import ConfigError, StoreConflict, StoreError, ThreadExists, ThreadNotFound
from agentkit.foreign import argument_names
from agentkit.messages import Message, ToolCall, ToolMessage
from agentkit.schemas.words import InvalidArguments
from agentkit.threads.allow_rules import ALLOWED, AllowRule, with_rules
from agentkit.threads.allowing_threads import AllowingThreads
from agentkit.threads.children import all_waiting, child_id, locate_call
from agentkit.threads.entries import TOOL, edited_call, entries_of, one_message
from agentkit.threads.fork import copy_entries
from agentkit.threads.known_threads import KnownThreads
from agentkit.threads.lease import delete_unheld
from agentkit.threads.log_reader import read_log, readable
from agentkit.threads.open_response import UNANSWERED
from agentkit.threads.resume import may_have_run, not_again, waiting, waits_inside
from agentkit.threads.store import Call, Log, Move, Store, Thread, ask_store
from agentkit.tool.codec import call_from_json, to_json
from agentkit.tool.registry import ToolRegistry

_LOG = logging.getLogger("agentkit.threads")
_NOTHING: Mapping[str, Any] = MappingProxyType({})

_ID: Final = Bound(lambda value: isinstance(value, str) and value != "", "a string that is not empty")
_NEW: Final[Bounds] = {
    "thread_id": or_none(_ID, "for a new one"),
    "new_id": or_none(_ID, "for a new one"),
    "metadata": instance(Mapping, "a mapping, such as {'title': 'Holidays'}"),
    "exist_ok": YES_OR_NO,
}
_THREAD: Final[Bounds] = {
    "thread_id": _ID,
    "client_id": or_none(TEXT),
    "by": or_none(TEXT),
    "until": or_none(whole(0)),
    "remember": instance((AllowRule, bool), "True for all calls of the tool, an AllowRule, or False"),
}
_PAGE: Final[Bounds] = {"limit": whole(0), "before": or_none(instance(Thread, "a thread from list_threads"))}


@methods_take
class KeptThreads(AllowingThreads):
    """The threads of a store.

    Args:
        store: contains the threads.
        registry: the tools, which validate the arguments that a call is approved with.
    """

    def __init__(self, store: Store, registry: ToolRegistry) -> None:
        self.store = store
        self._known = KnownThreads(store)
        self.registry = registry

    # -------------------------------------------------------------- threads

    @takes(others=argument_names.CREATE_THREAD)
    async def create_thread(
        self,
        thread_id: str | None = None,
        *,
        metadata: Mapping[str, Any] = _NOTHING,
        messages: Prompt | Iterable[Prompt] = (),
        exist_ok: bool = False,
    ) -> str:
        """Create a thread and return its id.

        Args:
            thread_id: its id; a new one by default.
            metadata: the application's data: a JSON object.
            messages: its first messages, in one transaction with the thread itself; see `add_message`.
            exist_ok: if there is a thread with this id, leave it as it is: its metadata and messages do not change.

        Raises:
            ThreadExists: there is a thread with this id, and `exist_ok` is false.
            ConfigError: as `add_message`, or the metadata is not a mapping, or it has rules for approvals (`allowed`),
                which only `allow` may add.
            StoreError: the metadata contains a value that JSON cannot represent, or a key that is not a string.
        """
        refuse("create_thread", {"thread_id": thread_id, "metadata": metadata, "exist_ok": exist_ok}, _NEW)
        if ALLOWED in metadata:
            raise ConfigError(
                f"create_thread(metadata={{{ALLOWED!r}: …}}): under this name are the rules of threads.allow(…)"
            )
        id = secrets.token_hex(8) if thread_id is None else thread_id
        with suppress(*(ThreadExists,) * exist_ok):
            await ask_store(self.store.create, id, metadata, readable(entries_of(messages_from(messages)), id))
        return id

    async def get_thread(self, thread_id: str) -> Thread:
        """A thread's own data.

        Raises:
            ThreadNotFound: there is none with this id.
        """
        refuse("get_thread", {"thread_id": thread_id}, _THREAD)
        return await ask_store(self.store.get, thread_id)

    async def list_threads(self, *, limit: int = 100, before: Thread | None = None) -> tuple[Thread, ...]:
        """Threads, the last changed first, including threads whose data is damaged, with their `damage`.

        Args:
            limit: the maximum number of threads, 0 or more.
            before: the last thread of the previous page; None for the first page.
        """
        refuse("list_threads", {"limit": limit, "before": before}, _PAGE)
        return await ask_store(self.store.list, limit=limit, before=before)

    async def delete_thread(self, thread_id: str) -> None:
        """Remove a thread and everything that belongs to it, including the threads of its sub-agents.

        A thread that is damaged in the store can also be deleted. If its calls cannot be read, the threads of its
        sub-agents remain, and a warning is logged.

        Raises:
            ThreadBusy: it is being run.
        """
        refuse("delete_thread", {"thread_id": thread_id}, _THREAD)
        keys: list[Any] = []
        try:
            keys = [call.body.get("key") for call in (await ask_store(self.store.load, thread_id)).calls]
        except ThreadNotFound:
            raise
        except StoreError as e:
            _LOG.warning("thread %s is deleted without the threads of its sub-agents: %s", thread_id, e)
        await delete_unheld(self.store, thread_id)
        self._known.forget(thread_id)
        for key in keys:
            if isinstance(key, str) and key:
                with suppress(ThreadNotFound):  # most calls start no sub-agent
                    await self.delete_thread(child_id(thread_id, key))

    async def fork_thread(
        self,
        thread_id: str,
        *,
        until: int | None = None,
        new_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Create a thread that starts as a copy of another, and return its id.

        A call without an answer is answered in the copy, so that its effect happens in at most one thread: with
        `interrupted` if it has started, so that its effects may have happened, and with `cancelled` otherwise. The
        rules of `allow` are not copied: a person said them for the original thread.

        Args:
            thread_id: the thread to copy.
            until: the last entry to copy, by its `seq`; None copies all.
            new_id: the new thread's id; a random one by default.
            metadata: the new thread's metadata; by default the original thread's. `forked_from` is added.

        Raises:
            ThreadNotFound: there is no such thread.
            ThreadExists: there is a thread with the new id.
            ConfigError: the thread has no entry `until`.
        """
        refuse("fork_thread", {"thread_id": thread_id, "until": until}, _THREAD)
        refuse("fork_thread", {"new_id": new_id, "metadata": {} if metadata is None else metadata}, _NEW)
        thread, log = await ask_store(self.store.get, thread_id), await read_log(self.store, thread_id)
        if until is not None and until not in (entry.seq for entry in log.entries):
            raise ConfigError(
                f"fork_thread(until={until!r}): thread {thread_id!r} has {len(log.entries)} entries, from 0"
            )
        id = new_id or secrets.token_hex(8)
        said = with_rules(thread.metadata if metadata is None else metadata, ()) | {"forked_from": thread_id}
        await ask_store(self.store.create, id, said, readable(copy_entries(log, until), id))
        return id

    # -------------------------------------------------------------- messages

    @takes(others=argument_names.ADD_MESSAGE)
    async def add_message(self, thread_id: str, message: Prompt, *, client_id: str | None = None) -> int:
        """Add a message at the end and return its `seq`.

        A run in progress sends it with its next request, and makes one more request if it was about to end.

        A `ToolMessage` does not become a separate entry: it answers the newest call with its id that has no answer yet.

        Args:
            thread_id: the thread.
            message: one message, in any form that a prompt accepts: a string, a part, a dict of OpenAI's chat API.
            client_id: the client's id of the message: adding it again under the same id changes nothing.

        Raises:
            ThreadNotFound: there is no such thread.
            ConfigError: it is a system message (pass that to the run), or a result without a call that waits for it.
        """
        refuse("add_message", {"thread_id": thread_id, "client_id": client_id}, _THREAD)
        answers = isinstance(message, Mapping) and message.get("role") == "tool"
        names = await self._names(thread_id) if answers else {}
        one = one_message(message, names)
        if isinstance(one, ToolMessage):
            return await self._answer(thread_id, one)
        (entry,) = entries_of([one])
        (seq,) = await ask_store(self.store.commit, thread_id, readable([replace(entry, key=client_id)], thread_id))
        return seq

    async def get_llm_messages(self, thread_id: str) -> list[Message]:
        """The conversation as a model reads it, after the newest compaction; every call is followed by its answer."""
        refuse("get_llm_messages", {"thread_id": thread_id}, _THREAD)
        return (await self._known.read(thread_id)).messages()

    async def get_log(self, thread_id: str) -> Log:
        """Everything in the thread, as stored.

        Raises:
            StoreError: an entry is damaged; the message names it. `store.load` shows its readable part.
        """
        refuse("get_log", {"thread_id": thread_id}, _THREAD)
        return await read_log(self.store, thread_id)

    # -------------------------------------------------------------- approvals

    async def pending(self, thread_id: str) -> tuple[ToolCall, ...]:
        """The calls that wait for approval, oldest first.

        Calls after which the user wrote again are not included: they are no longer run. The id of a call that waits in
        the thread of a sub-agent is that of the call that started it, a `/`, and its own.
        """
        refuse("pending", {"thread_id": thread_id}, _THREAD)
        return tuple(call for call, _ in await all_waiting(self._known, thread_id))

    async def started_before(self, thread_id: str) -> frozenset[str]:
        """The ids of the `pending` calls that were started and interrupted: their effects may have happened.

        Such a call waits because its tool is idempotent, and the run that was to start it again requires approval.
        """
        refuse("started_before", {"thread_id": thread_id}, _THREAD)
        return frozenset(call.id for call, record in await all_waiting(self._known, thread_id) if may_have_run(record))

    @takes(others=argument_names.APPROVE)
    async def approve(
        self,
        thread_id: str,
        call_id: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        seen: str | None = None,
        by: str | None = None,
        remember: AllowRule | bool = False,
    ) -> None:
        """Let a waiting call run when the thread is resumed, by this or by another process.

        Args:
            thread_id: the thread.
            call_id: the call.
            arguments: run it with these instead; the model is informed.
            seen: the `call_hash` of the call that the person saw; refused if the call has changed since.
            by: who approved it; stored with the call.
            remember: also `allow` later calls: those that a rule covers, which must cover this one, with the
                `arguments` that it runs with; True covers all calls of its tool.

        Raises:
            ConfigError: no such call waits, it is not the one that the person saw, its tool does not accept these
                arguments, or the rule is not about this call, or about a call of a sub-agent.
        """
        refuse("approve", {"thread_id": thread_id, "by": by, "remember": remember}, _THREAD)
        outer, (thread_id, record) = thread_id, await self._waiting(thread_id, call_id)
        call = call_from_json(record.body)
        if seen is not None and seen != call_hash(call):
            raise ConfigError(
                f"call {call_id!r} is not the one that was shown: it is {call.name} {dict(call.arguments)}"
            )
        if arguments is not None:
            call = replace(call, arguments=arguments)
            self._check(call)
        if remember and outer != thread_id:
            raise ConfigError(f"approve(remember=…): {call_id!r} is a call of a sub-agent, and no rule covers those")
        rule = self._rule_for(call, record, remember) if remember else None
        edited = arguments is not None or bool(record.note.get("edited"))
        note = {"hash": call_hash(call), "by": by, "edited": edited}
        body = edited_call(record.body, call) if arguments is not None else None
        await self._decide(thread_id, Move(record.seq, record.ordinal, "approved", ("waiting",), body=body, note=note))
        if rule is not None:  # only now: a decision that is refused allows nothing
            await self._remember(thread_id, rule)

    async def deny(self, thread_id: str, call_id: str, reason: str = "", *, by: str | None = None) -> None:
        """Deny a waiting call. The model reads the reason when the thread is resumed.

        If the call was started before (`started_before`), the model reads that its effects may have happened.

        Raises:
            ConfigError: no such call waits.
        """
        refuse("deny", {"thread_id": thread_id, "by": by}, _THREAD)
        thread_id, record = await self._waiting(thread_id, call_id)
        said = denial(call_from_json(record.body), reason)
        if may_have_run(record):
            said = not_again(said)
        note = {"by": by, **({"edited": True} if record.note.get("edited") else {})}
        move = Move(record.seq, record.ordinal, "answered", ("waiting",), note=note, answer=to_json(said))
        await self._decide(thread_id, move)

    def _rule_for(self, call: ToolCall, record: Call, remember: AllowRule | bool) -> AllowRule:
        """The rule to remember with an approval, for the tool that the call was made with."""
        rule = AllowRule(call.name) if isinstance(remember, bool) else remember
        tool = self.registry.get_tool(call.name)
        digest = record.body.get(TOOL) or (tool.digest if tool is not None else "")
        if not digest or rule.digest not in ("", digest):
            raise ConfigError(f"approve(remember=…): it is not known with which tool {call.name!r} the call was made")
        if not rule.covers(call):
            raise ConfigError(f"approve(remember=…): the rule {str(rule)!r} does not cover this call: {call.arguments}")
        return replace(rule, digest=digest)

    def _check(self, call: ToolCall) -> None:
        """Raise ConfigError if the call's tool is known here and does not accept the arguments."""
        tool = self.registry.get_tool(call.name)
        if tool is None:
            return
        try:
            tool.validate(call.arguments, lenient=False)
        except InvalidArguments as e:
            raise ConfigError(f"approve(arguments=…): {e}") from e

    async def _decide(self, thread_id: str, move: Move) -> None:
        try:
            await ask_store(self.store.commit, thread_id, readable([move], thread_id))
        except StoreConflict as e:
            raise ConfigError("this call was already approved, denied or answered in the meantime") from e

    async def _waiting(self, thread_id: str, call_id: str) -> tuple[str, Call]:
        """A waiting call, and the thread that it is in: that of a sub-agent, for an id with a `/`."""
        inner, id, log = await locate_call(self._known, thread_id, call_id)
        for call in waiting(log):
            if call.id == id and not waits_inside(call):  # that one waits for others, which are decided
                return inner, call
        for call in log.calls:
            if call.id == id and call.status == "waiting" and not waits_inside(call):
                raise ConfigError(f"call {call_id!r} is no longer waiting: the user wrote again after it")
        listed = ", ".join(repr(call.id) for call, _ in await all_waiting(self._known, thread_id)) or "none"
        raise ConfigError(
            f"no call waits for approval under the id {call_id!r} in thread {thread_id!r}; waiting: {listed}"
        )

    async def _names(self, thread_id: str) -> dict[str, str]:
        """The tool names of the calls that have no answer yet, by call id."""
        calls = (await self._known.changeable(thread_id)).calls
        return {call.id: str(call.body["name"]) for call in calls if call.status != "answered"}

    async def _answer(self, thread_id: str, answer: ToolMessage) -> int:
        """Answer a call, whatever becomes of it in the meantime, unless that is another answer."""
        while True:
            call = await self._open_call(thread_id, answer.call_id)
            move = Move(call.seq, call.ordinal, "answered", UNANSWERED, answer=to_json(answer))
            try:
                await ask_store(self.store.commit, thread_id, readable([move], thread_id))
                return call.seq
            except StoreConflict:  # it was answered; an older one with its id may not be
                continue

    async def _open_call(self, thread_id: str, call_id: str) -> Call:
        log = await self._known.changeable(thread_id)
        for call in reversed(log.calls):
            if call.id == call_id and call.status != "answered":
                return call
        raise ConfigError(f"no call {call_id!r} of thread {thread_id!r} waits for an answer")
