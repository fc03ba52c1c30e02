"""The threads of sub-agents, each named after the call that started it; and the calls that wait in them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from agentkit.agent.agent_tools import agent_of
from agentkit.errors import ThreadNotFound
from agentkit.messages import ToolCall
from agentkit.threads.known_threads import KnownThreads
from agentkit.threads.resume import settle, waiting, waits_inside
from agentkit.threads.store import Call, Log
from agentkit.tool.codec import call_from_json

if TYPE_CHECKING:
    from agentkit.tool.registry import ToolRegistry


def call_key(thread_id: str, call: Call) -> str:
    """The idempotency key of a call; its position if it was stored without a key."""
    return str(call.body.get("key") or f"{thread_id}/{call.seq}/{call.ordinal}")


def child_id(thread_id: str, key: str) -> str:
    """The thread of the sub-agent that a call starts; no one else can choose this name for a thread."""
    return f"{thread_id}/{key[:16]}"


async def all_waiting(known: KnownThreads, thread_id: str) -> tuple[tuple[ToolCall, Call], ...]:
    """The calls that a person can still approve or deny, oldest first; for one that waits inside, the calls in there.

    Each with its stored record.

    Raises:
        ThreadNotFound: there is no such thread.
        StoreError: an entry is damaged.
    """
    found: list[tuple[ToolCall, Call]] = []
    for call in waiting(await known.changeable(thread_id)):
        if not waits_inside(call):
            found.append((call_from_json(call.body), call))
            continue
        try:
            inner = await all_waiting(known, child_id(thread_id, call_key(thread_id, call)))
        except ThreadNotFound:  # deleted, or this is a copy: the call starts anew when the thread is run
            continue
        found += [(replace(one, id=f"{call.id}/{one.id}"), stored) for one, stored in inner]
    return tuple(found)


async def locate_call(known: KnownThreads, thread_id: str, call_id: str) -> tuple[str, str, Log]:
    """Return the thread of a waiting call, its id there, and the part of that thread that may still change."""
    log = await known.changeable(thread_id)
    for call in waiting(log):
        if waits_inside(call) and call_id.startswith(f"{call.id}/"):
            inner = child_id(thread_id, call_key(thread_id, call))
            return await locate_call(known, inner, call_id.removeprefix(f"{call.id}/"))
    return thread_id, call_id, log


async def refuse_inside(known: KnownThreads, thread_id: str, calls: Sequence[Call], registry: ToolRegistry) -> None:
    """Refuse a run whose sub-agents cannot continue.

    Args:
        known: the threads.
        thread_id: the thread of the run.
        calls: the calls that it is to run.
        registry: its tools.

    Raises:
        ConfigError: a sub-agent lacks the tool of a call that is approved, or that waits for its own sub-agent.
        StoreError: an entry is damaged.
    """
    for call in calls:
        agent = agent_of(registry.get_tool(str(call.body["name"])))
        if agent is None or not call.attempts:
            continue
        inner = child_id(thread_id, call_key(thread_id, call))
        with suppress(ThreadNotFound):  # it starts anew
            plan = settle((await known.read(inner)).rest, agent.registry)
            await refuse_inside(known, inner, plan.run, agent.registry)
