"""The actions of a person on a thread: say, decide, stop, resume. Knows no HTTP, only what is refused, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from agentkit.agent import call_hash
from agentkit.agent.agent_tools import agent_of
from agentkit.errors import ConfigError
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.events.ag_ui_request import said_in
from agentkit.gateway.ui.live_threads import LiveThread
from agentkit.gateway.ui.thread_hub import ThreadHub
from agentkit.gateway.ui.thread_settings import ThreadSettings
from agentkit.gateway.ui.thread_snapshot import is_unknown
from agentkit.messages import FilePart, TextPart, ToolCall, ToolMessage, UserMessage
from agentkit.models.files_taken import check_model_files
from agentkit.processor.not_run import CANCELLED
from agentkit.schemas.words import InvalidArguments
from agentkit.threads import AllowRule
from agentkit.threads.allowing_threads import change_metadata
from agentkit.threads.conversation import decision_in_words, is_denied
from agentkit.threads.lease import acquire_unheld
from agentkit.threads.log_reader import read_log
from agentkit.threads.resume import answer, may_have_run, not_again, waits_inside
from agentkit.threads.store import ask_store
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.registry import ToolRegistry

BY: Final = "page"
"""Who decided, in a call's record."""

_OWN_ID: Final = re.compile("m[0-9]+")
"""The ids of the messages that were added without one."""


class FieldsRefused(RequestRefused):
    """Edited arguments that do not fit the tool's schema.

    Args:
        error: what is wrong.
    """

    def __init__(self, error: InvalidArguments) -> None:
        super().__init__(422, str(error), "invalid_arguments")
        self.fields = {problem.path or "/": str(problem) for problem in error.problems}
        """What is wrong, by its place in the arguments, a JSON pointer."""


class ThreadActions:
    """The actions of a person on one thread.

    Args:
        hub: all threads.
        thread: the thread.
    """

    def __init__(self, hub: ThreadHub, thread: LiveThread) -> None:
        self._hub = hub
        self._threads = hub.threads
        self._thread = thread

    async def say(self, id: str, content: Any) -> dict[str, Any]:
        """Add a user's message, and let it be answered.

        Args:
            id: the client's id: saying it again under the same id changes nothing.
            content: a string, AG-UI's parts, or a message.

        Raises:
            RequestRefused: the content says nothing, or is something else, or the id is one of the server's own (400).
            ConfigError: the thread's model does not take a file in it.
        """
        if _OWN_ID.fullmatch(id):
            raise RequestRefused(400, f"id: {id} is one of the server's own ids", "invalid_request", param="id")
        message = content if isinstance(content, UserMessage) else said_in(content, "content")
        if message is None:
            raise RequestRefused(400, "content: there is nothing in it", "invalid_request", param="content")
        thread = self._thread
        async with thread.lock:
            stored = await self._threads.get_thread(thread.id)
            if any(isinstance(part, FilePart) for part in message.content):
                check_model_files(self._hub.models.agent_for(ThreadSettings.of(stored), []).model, [message])
            before = stored.entries
            seq = await self._threads.add_message(thread.id, message, client_id=id)
            live = thread.live
            if seq >= before:
                log = await ask_store(self._threads.store.load, thread.id, after=seq - 1, limit=1)
                if live is not None:
                    live.said[seq] = log.entries[0]
                thread.tell_user(log.entries[0], queued=live is not None)
            elif live is None and seq + 1 < before:  # it was answered
                return {"run": None, "queued": False}
            run = await thread.start()
        return {"run": run, "queued": live is not None and seq >= before}

    async def decide(
        self,
        call: str,
        seen: str,
        *,
        approved: bool,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
        always: Mapping[str, Any] | bool = False,
    ) -> dict[str, Any]:
        """Decide about a waiting call, and resume the thread when no more calls wait.

        Args:
            call: its id.
            seen: the hash of the call that the person saw.
            approved: whether it may run.
            arguments: it runs with these instead.
            reason: why it may not run.
            always: whether to allow later calls of the tool too; or the patterns of the arguments of those.

        Raises:
            RequestRefused: the call does not wait, or is not the one that the person saw (409); the arguments do not
                fit (422); the patterns are not about this call, or it is a sub-agent's (400).
        """
        thread, threads = self._thread, self._threads
        async with thread.lock:
            found = await self.check(call, seen, arguments)
            found = found if arguments is None else replace(found, arguments=arguments)
            rule = always if isinstance(always, bool) else AllowRule(found.name, always)
            if approved and rule:
                _check_rule(rule, call, found)
            try:
                if approved:
                    await threads.approve(thread.id, call, arguments=arguments, seen=seen, by=BY, remember=rule)
                else:
                    await threads.deny(thread.id, call, reason, by=BY)
            except ConfigError as e:
                raise RequestRefused(409, str(e), "decided") from e
            decision = "approved" if approved else "denied"
            edited = None if arguments is None else dict(arguments)
            thread.tell("decided", toolCallId=call, decision=decision, by=BY, reason=reason, arguments=edited)
            left = await thread.undecided_calls()
            await self._resume_after(left)
        return {"waiting": left}

    async def check(self, call: str, seen: str, arguments: Mapping[str, Any] | None) -> ToolCall:
        """Return the call that waits, if a decision about it is valid.

        Raises:
            RequestRefused: as `decide`.
        """
        found = await self._waiting(call, seen)
        if arguments is not None:
            tool = self._tool(call, found.name, await self._threads.get_log(self._thread.id))
            if tool is not None:
                _check(tool, arguments)
        return found

    async def outcome(self, call: str, *, happened: bool, text: str) -> None:
        """Say what became of a call that a dead run had started.

        Raises:
            RequestRefused: its outcome is known (409).
        """
        thread = self._thread
        async with thread.lock:
            log = await self._threads.get_log(thread.id)
            known = [one for one in log.calls if one.id == call and is_unknown(one, self._hub.agent.registry)]
            if thread.live is not None or not known:
                raise RequestRefused(409, f"the outcome of the call {call[:100]!r} is not asked for", "decided")
            if happened:
                name = str(known[-1].body["name"])
                said = ToolMessage(call, name, (TextPart(text or "the user says that it was done"),))
            else:
                why = f": {text}" if text else ""
                said = answer(known[-1], "cancelled", f"interrupted, and the user says that it was not done{why}")
            await self._threads.add_message(thread.id, said)
            await thread.renew()

    async def resume(self) -> dict[str, Any]:
        """Resume what an interrupted run left open."""
        async with self._thread.lock:
            return {"run": await self._thread.start()}

    async def stop(self) -> None:
        """End the live run, and answer the calls that wait: no model is asked.

        Raises:
            ThreadBusy: another process runs the thread.
        """
        thread, store = self._thread, self._threads.store
        await thread.stop()
        async with thread.lock:
            if thread.live is not None:  # it does not end
                return
            lease = await acquire_unheld(store, thread.id)
            thread.trouble.owner = None
            try:
                stopped = await self._stop_calls()
            finally:
                await ask_store(store.release, lease)
            if stopped or (await thread.refresh(known=True)).state != "idle":
                stored = await self._threads.get_thread(thread.id)
                await self.change(replace(ThreadSettings.of(stored), stopped=stored.entries - 1))
            if stopped:
                await thread.renew()

    async def change(self, settings: ThreadSettings) -> None:
        """Store a thread's settings. The lock is held."""
        await change_metadata(self._threads.store, self._thread.id, settings.in_metadata)
        await self._thread.refresh(known=True)

    async def _stop_calls(self) -> bool:
        """Answer the calls that wait or were not started yet; return whether there were any."""
        log = await self._threads.get_log(self._thread.id)
        calls = [call for call in log.calls if call.status in ("planned", "waiting", "approved")]
        for call in calls:
            said = answer(call, CANCELLED.code, CANCELLED.text())
            await self._threads.add_message(self._thread.id, not_again(said) if may_have_run(call) else said)
        return bool(calls)

    async def _resume_after(self, left: int) -> None:
        if left or self._thread.live is not None:  # a live run is followed by another
            await self._thread.refresh(known=True)
        else:
            await self._thread.start()

    async def _waiting(self, id: str, seen: str) -> ToolCall:
        for call in await self._threads.pending(self._thread.id):
            if call.id == id:
                if call_hash(call) != seen:
                    raise RequestRefused(409, "the call has changed since it was shown", "changed")
                return call
        raise RequestRefused(409, await self._decided(id), "decided")

    async def _decided(self, id: str) -> str:
        """Why a call does not wait."""
        log = await read_log(self._threads.store, self._thread.id)
        for call in reversed(log.calls):
            if call.id != id:
                continue
            if decision := decision_in_words(call):
                return f"this call was already {decision}"
            if call.status == "answered" and not is_denied(call):
                return "this call already has its answer"
            if call.status == "waiting" and not waits_inside(call):
                return "this call no longer waits: the user wrote again after it"
        return f"no call {id[:100]!r} waits here"

    def _tool(self, id: str, name: str, log: Any) -> BoundTool | None:
        """The tool of a waiting call: the agent's, or that of one of its sub-agents."""
        registry: ToolRegistry = self._hub.agent.registry
        names = {call.id: str(call.body["name"]) for call in log.calls}
        for outer in id.split("/")[:-1]:
            inner = agent_of(registry.get_tool(names.get(outer, "")))
            if inner is None:
                return None
            registry, names = inner.registry, {}
        return registry.get_tool(name)


def _check(tool: BoundTool, arguments: Mapping[str, Any]) -> None:
    try:
        tool.validate(arguments, lenient=False)
    except InvalidArguments as e:
        raise FieldsRefused(e) from e


def _check_rule(rule: AllowRule | bool, id: str, call: ToolCall) -> None:
    """Refuse a rule that is not about the call that is approved with it."""
    if "/" in id:
        raise RequestRefused(400, f"{call.name} is a sub-agent's tool, which always asks", "invalid_request")
    if isinstance(rule, AllowRule) and not rule.covers(call):
        raise RequestRefused(400, "These patterns do not fit this call itself.", "invalid_request", param="always")
