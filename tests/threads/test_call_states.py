"""The diagram of a stored call's states in docs/threads.md is exactly what runs, decisions and crashes do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from thread_kit import planned

from agentkit import ProcessorConfig, ThreadManager, ToolCall, ToolContext, ToolRegistry, openapi_schema
from agentkit.events import ToolStarted
from agentkit.testing import ScriptedModel
from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.threads.store import Change, Move

PAGE = (Path(__file__).parents[2] / "docs" / "threads.md").read_text()
DIAGRAM = set(re.findall(r"^ +(\S+) --> (\S+)$", PAGE.split("```mermaid")[1].split("```")[0], re.MULTILINE))


def add(a: int) -> int:
    """Add."""
    return a


@openapi_schema(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@openapi_schema(requires_approval=True, idempotent=True)
def pay_once(amount: int) -> str:
    """Pay, once for each key."""
    return f"paid {amount}"


class Watched(SQLiteStore):
    """A store that notes each change of a call's state, and each further attempt."""

    def __init__(self, seen: set[tuple[str, str]]) -> None:
        super().__init__(":memory:")
        self.seen = seen
        self.last: dict[tuple[int, int], tuple[str, int]] = {}
        self.then: Callable[[], Awaitable[None]] | None = None  # done once, after the next commit

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        written = await super().commit(thread_id, changes, fence=fence)
        for call in (await self.load(thread_id)).calls:
            before = self.last.get((call.seq, call.ordinal), ("[*]", 0))
            if before != (call.status, call.attempts):
                self.seen.add((before[0], call.status))
            self.last[call.seq, call.ordinal] = call.status, call.attempts
        then, self.then = self.then, None
        if then is not None:
            await then()
        return written


def plan(threads: ThreadManager, store: Watched) -> Awaitable[Any]:
    return store.commit("t", planned(ONCE)[1:])


CAREFUL = ProcessorConfig(requires_approval=True)


async def ask(threads: ThreadManager, store: Watched) -> None:
    """A run in which every call requires approval."""
    await threads.run_thread("t", model=ScriptedModel([]), processor_config=CAREFUL).complete()


Step = Callable[[ThreadManager, Watched], Awaitable[Any]]


def run(*script: Any) -> Step:
    """Run the thread, one call after another at the end of the response; the tool `stop` cancels it."""
    config = ProcessorConfig(strategy="sequential", execute="end")

    async def step(threads: ThreadManager, store: Watched) -> None:
        cancel = asyncio.Event()
        model = ScriptedModel(script)
        await threads.run_thread(
            "t", model=model, processor_config=config, cancel=cancel, context=cancel, max_turns=len(script)
        ).complete()

    return step


async def stop(context: ToolContext[asyncio.Event]) -> None:
    """Cancel the run, then take a while."""
    context.state.set()
    await asyncio.sleep(30)


def approve(threads: ThreadManager, store: Watched) -> Awaitable[Any]:
    return threads.approve("t", "c1")


def deny(threads: ThreadManager, store: Watched) -> Awaitable[Any]:
    return threads.deny("t", "c1", "too dear")


async def allow(threads: ThreadManager, store: Watched) -> None:
    await threads.allow("t", "pay")


async def revoke_in_between(threads: ThreadManager, store: Watched) -> None:
    """A rule lets the waiting call run, and is revoked before the run asks again."""
    store.then = lambda: threads.revoke("t", "pay")
    await run("Done.")(threads, store)


def write(threads: ThreadManager, store: Watched) -> Awaitable[Any]:
    return threads.add_message("t", "Never mind.")


async def stop_at_the_start(threads: ThreadManager, store: Watched) -> None:
    """A run that is cancelled after it has written the call's start, before the tool's first step."""
    run = threads.run_thread("t", model=ScriptedModel([]))
    async for event in run:
        if isinstance(event, ToolStarted):
            run.cancel()


async def die_in_the_tool(threads: ThreadManager, store: Watched) -> None:
    """What a process leaves behind that dies while the call runs."""
    (call,) = (await store.load("t")).calls
    body = {**call.body, "idempotent": call.body["name"] == "pay_once"}
    await store.commit("t", [Move(call.seq, call.ordinal, "started", ("planned", "approved"), body=body)])


ADD, PAY = ToolCall("c1", "add", {"a": 1}), ToolCall("c1", "pay", {"amount": 1})
ONCE, NONE = ToolCall("c1", "pay_once", {"amount": 1}), ToolCall("c2", "nothing", {})
SCENES: tuple[tuple[Step, ...], ...] = (
    (run([ADD, ToolCall("c2", "add", {"a": 2}), NONE], "Done."),),
    (run([ToolCall("c0", "stop"), ADD, ToolCall("c2", "pay", {"amount": 1})]),),
    (run(PAY), approve, run("Done.")),
    (run(PAY), approve, stop_at_the_start, run("Done.")),
    (run(PAY), deny, run("Done.")),
    (run(PAY), allow, run("Done.")),
    (run(PAY), allow, revoke_in_between, approve, run("Done.")),
    (run(PAY), approve, write, run("Done.")),
    (run(PAY), approve, die_in_the_tool, run("Done.")),
    (run(ONCE), approve, die_in_the_tool, run("Done.")),
    (plan, die_in_the_tool, ask, deny, run("Done.")),
)


def test_the_diagram_is_what_happens_to_calls() -> None:
    seen: set[tuple[str, str]] = set()

    async def played(scene: tuple[Step, ...]) -> None:
        store = Watched(seen)
        async with ThreadManager(store, ToolRegistry([add, pay, pay_once, stop])) as threads:
            await threads.create_thread("t", messages="Go.")
            for step in scene:
                await step(threads, store)

    for scene in SCENES:
        asyncio.run(played(scene))
    assert seen | {("answered", "[*]")} == DIAGRAM
