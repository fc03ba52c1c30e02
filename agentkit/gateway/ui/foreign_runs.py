"""Runs for other clients of AG-UI: one request is one run, of the same threads that the page shows.

A client that leaves does not end its run. Source: AG-UI 1.0 on interrupts, November 2026.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from agentkit.agent import Approved, Decision, Denied, call_hash
from agentkit.errors import AgentkitError, ThreadExists, ThreadNotFound
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.events.ag_ui import PROTOCOL, sse
from agentkit.gateway.events.page_request import GivenDecision, PageRequest, check_decisions
from agentkit.gateway.events.run_encoder import run_error
from agentkit.gateway.ui.live_state import LiveRun
from agentkit.gateway.ui.live_threads import LiveThread
from agentkit.gateway.ui.thread_actions import ThreadActions
from agentkit.gateway.ui.thread_hub import ThreadHub
from agentkit.gateway.ui.thread_settings import ThreadSettings
from agentkit.gateway.ui.thread_snapshot import message_id
from agentkit.threads import Call, ThreadManager
from agentkit.threads.children import call_key, child_id
from agentkit.threads.conversation import is_denied, role_of
from agentkit.tool.codec import call_from_json

_LAST: Final = ("RUN_FINISHED", "RUN_ERROR")


async def foreign_run(hub: ThreadHub, asked: PageRequest) -> AsyncGenerator[bytes, None]:
    """The events of the run that answers a request, from its start to its end.

    Args:
        hub: the threads.
        asked: the request.
    """
    thread = hub.get(asked.thread_id)
    ids = {"threadId": asked.thread_id, "runId": asked.run_id}
    woken = thread.join()
    begun = False
    try:
        live = await _begin(hub, thread, asked)
        if live is None:
            yield sse({"type": "RUN_STARTED", **ids, "protocolVersion": PROTOCOL})
            begun = True
            yield sse({"type": "RUN_FINISHED", **ids, "outcome": {"type": "success"}})
            return
        position = live.base
        while True:
            woken.clear()
            events = thread.log.after(position)
            if events is None:
                raise refusal("the client was too slow; ask for the thread's events", "too_slow")
            for number, event in events:
                position = number
                begun = begun or event["type"] == "RUN_STARTED"
                yield sse(event if "runId" not in event else {**event, "runId": asked.run_id})
                if event["type"] in _LAST:
                    return
            if not events:
                if live.over or hub.closing:
                    raise refusal(thread.trouble.in_words() or "the run was ended", "thread_busy")
                await woken.wait()
    except (RequestRefused, AgentkitError) as e:
        message, code = (e.message, e.code) if isinstance(e, RequestRefused) else run_error(e)
        if not begun:
            yield sse({"type": "RUN_STARTED", **ids, "protocolVersion": PROTOCOL})
        yield sse({"type": "RUN_ERROR", "message": message, "code": code})
    finally:
        thread.part(woken)


async def _begin(hub: ThreadHub, thread: LiveThread, asked: PageRequest) -> LiveRun | None:
    """Add what is new to the thread, and start its run; None if there is nothing to do."""
    actions, before = ThreadActions(hub, thread), thread.newest
    await _create(hub, asked)
    waiting = await hub.threads.pending(asked.thread_id)
    stored = await _stored_ids(hub, asked.thread_id)
    new = [(id, message) for id, message in asked.messages if id not in stored]
    if waiting:
        if new:
            raise refusal("calls wait: answer every open interrupt, and send nothing else", "interrupted")
        check_decisions(asked.decisions, waiting)
        await _decide(actions, asked.decisions)
    elif asked.decisions and not new:
        await _repeated(hub, asked)
    for id, message in new:
        await actions.say(id, message)
    if not (waiting or new or thread.live) and await _is_open(hub, asked.thread_id):
        await actions.resume()
    return thread.live if thread.newest is before else thread.newest


async def _decide(actions: ThreadActions, decisions: Sequence[GivenDecision]) -> None:
    """Store decisions; all are checked before the first is stored."""
    for id, seen, decision in decisions:
        await actions.check(id, seen, decision.arguments if isinstance(decision, Approved) else None)
    for id, seen, decision in decisions:
        if isinstance(decision, Approved):
            await actions.decide(id, seen, approved=True, arguments=decision.arguments)
        else:
            await actions.decide(id, seen, approved=False, reason=decision.reason)


async def _repeated(hub: ThreadHub, asked: PageRequest) -> None:
    """Accept answers that were given before; refuse any other."""
    for id, seen, decision in asked.decisions:
        record = await _record(hub.threads, asked.thread_id, id)
        if record is None:
            raise refusal(f"there is no interrupt {id}:{seen}", "unknown_interrupt")
        if not _is_the_answer(decision, seen, record):
            raise refusal(f"the interrupt {id}:{seen} has another answer, or is not open", "decision_outdated")


async def _record(threads: ThreadManager, thread: str, id: str) -> Call | None:
    """The record of a call; `outer/inner` is in the thread of a sub-agent. None if there is none."""
    for call in reversed((await threads.get_log(thread)).calls):
        if call.id == id:
            return call
        if id.startswith(f"{call.id}/"):
            with suppress(ThreadNotFound):
                return await _record(threads, child_id(thread, call_key(thread, call)), id.removeprefix(f"{call.id}/"))
    return None


def _is_the_answer(decision: Decision, seen: str, record: Call) -> bool:
    call = call_from_json(record.body)
    if isinstance(decision, Denied):
        return is_denied(record) and seen == call_hash(call)
    edited = decision.arguments
    return record.note.get("hash") == (seen if edited is None else call_hash(replace(call, arguments=edited)))


async def _create(hub: ThreadHub, asked: PageRequest) -> None:
    """Create a thread that a client begins, with the conversation that it has."""
    try:
        await hub.threads.get_thread(asked.thread_id)
    except ThreadNotFound:
        with suppress(ThreadExists):
            await hub.threads.create_thread(
                asked.thread_id, metadata=ThreadSettings().in_metadata({}), messages=list(asked.history)
            )
            hub.list_changed()


async def _stored_ids(hub: ThreadHub, thread: str) -> set[str]:
    """The ids of the user's messages in a thread, as a snapshot has them."""
    log = await hub.threads.get_log(thread)
    return {message_id(entry) for entry in log.entries if role_of(entry) == "user"}


async def _is_open(hub: ThreadHub, thread: str) -> bool:
    return (await hub.list.summary(await hub.threads.get_thread(thread))).state == "interrupted"


def refusal(message: str, code: str) -> RequestRefused:
    """Return why a well-formed request is refused."""
    return RequestRefused(409, message, code)
