"""Runs for other clients of AG-UI: one request is one run, of the same threads that the page shows.

A client that leaves does not end its run. Source: AG-UI 1.0 on interrupts, November 2026.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from agentkit.agent import call_hash
from agentkit.errors import AgentkitError, ThreadExists, ThreadNotFound
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.events.ag_ui import PROTOCOL, sse
from agentkit.gateway.events.run_encoder import run_error
from agentkit.gateway.ui.agent_input import InterruptAnswer, RunInput, refusal
from agentkit.gateway.ui.live_threads import LiveRun, LiveThread
from agentkit.gateway.ui.thread_actions import ThreadActions
from agentkit.gateway.ui.thread_hub import ThreadHub
from agentkit.gateway.ui.thread_settings import ThreadSettings
from agentkit.gateway.ui.thread_snapshot import decision_json

_LAST: Final = ("RUN_FINISHED", "RUN_ERROR")


async def foreign_run(hub: ThreadHub, asked: RunInput) -> AsyncGenerator[bytes, None]:
    """The events of the run that answers a request, from its start to its end.

    Args:
        hub: the threads.
        asked: the request.
    """
    thread = hub.get(asked.thread)
    ids = {"threadId": asked.thread, "runId": asked.run}
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
                yield sse(event if "runId" not in event else {**event, "runId": asked.run})
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


async def _begin(hub: ThreadHub, thread: LiveThread, asked: RunInput) -> LiveRun | None:
    """Add what is new to the thread, and start its run; None if there is nothing to do."""
    actions, before = ThreadActions(hub, thread), thread.newest
    await _create(hub, asked)
    waiting = {call.id: call_hash(call) for call in await hub.threads.pending(asked.thread)}
    stored = await _stored_ids(hub, asked.thread)
    new = [(id, message) for id, message in asked.said if id not in stored]
    if waiting:
        answers = _checked(asked.answers, waiting, new)
        for one in answers:  # all are checked before the first is stored
            await actions.check(one.call, one.hash, one.arguments)
        for one in answers:
            await actions.decide(one.call, one.hash, approved=one.approved, arguments=one.arguments, reason=one.reason)
    elif asked.answers and not new:
        await _repeated(hub, asked)
    for id, message in new:
        await actions.say(id, message)
    if not (waiting or new or thread.live) and await _is_open(hub, asked.thread):
        await actions.resume()
    return thread.live if thread.newest is before else thread.newest


def _checked(
    answers: Sequence[InterruptAnswer], waiting: Mapping[str, str], new: Sequence[object]
) -> list[InterruptAnswer]:
    """The answers, one to each waiting call."""
    given = {one.call: one for one in answers}
    if new or set(given) != set(waiting):
        open_ids = ", ".join(f"{id}:{digest}" for id, digest in waiting.items())
        raise refusal(
            f"the thread waits: answer every open interrupt, and send nothing else: {open_ids}", "interrupted"
        )
    return [given[id] for id in waiting]


async def _repeated(hub: ThreadHub, asked: RunInput) -> None:
    """Accept answers that were given before; refuse any other."""
    records = {call.id: call for call in (await hub.threads.get_log(asked.thread)).calls}
    for one in asked.answers:
        record = records.get(one.call.partition("/")[0])
        known = None if record is None else decision_json(record)
        if record is None:
            raise refusal(f"there is no interrupt {one.call}:{one.hash}", "unknown_interrupt")
        if "/" not in one.call and (known is None or (known["decision"] == "approved") != one.approved):
            raise refusal(f"the interrupt {one.call}:{one.hash} has another answer, or none is asked for", "decided")


async def _create(hub: ThreadHub, asked: RunInput) -> None:
    """Create a thread that a client begins, with the conversation that it has."""
    try:
        await hub.threads.get_thread(asked.thread)
    except ThreadNotFound:
        with suppress(ThreadExists):
            await hub.threads.create_thread(
                asked.thread, metadata=ThreadSettings().in_metadata({}), messages=asked.history
            )
            hub.list_changed()


async def _stored_ids(hub: ThreadHub, thread: str) -> set[str]:
    """The ids of a thread's messages, as a snapshot has them."""
    log = await hub.threads.get_log(thread)
    return {entry.key or f"m{entry.seq}" for entry in log.entries}


async def _is_open(hub: ThreadHub, thread: str) -> bool:
    return (await hub.list.summary(await hub.threads.get_thread(thread))).state == "interrupted"
