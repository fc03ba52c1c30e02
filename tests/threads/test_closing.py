"""A manager that is closed over a run in progress: the run ends first, and what it had done is in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from agentkit import ThreadManager, ToolCall, ToolRegistry
from agentkit.agent import RunStream
from agentkit.events import Event, Text
from agentkit.messages import AssistantMessage
from agentkit.models import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore

pytestmark = pytest.mark.anyio


class Desk:
    """Two tools: one is quick, and one waits until it is cancelled."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()

    async def quick(self) -> str:
        """Take a moment."""
        await asyncio.sleep(0.0005)
        return "ok"

    async def slow(self) -> str:
        """Take for ever."""
        self.waits.set()
        await asyncio.Event().wait()
        return "never"


class Slow(ScriptedModel):
    """Writes a word at each few steps of the event loop."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Event]:
        async for event in super().stream(request):
            for _ in range(3):
                await asyncio.sleep(0)
            yield event


CALL = ToolCall("c1", "quick")
SCRIPT = [["One ", "two ", "three ", CALL], ["four ", "five ", "six "]]


def opened(path: Path) -> tuple[ThreadManager, Desk]:
    desk = Desk()
    return ThreadManager(SQLiteStore(path, durability="process"), ToolRegistry(desk.quick, desk.slow)), desk


def holders(path: Path) -> list[str]:
    with closing(connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT lease_owner FROM threads WHERE lease_owner IS NOT NULL")]


async def stored(path: Path, thread: str) -> tuple[str, list[str]]:
    """The text of the replies in the store, and the states of the calls."""
    threads, _ = opened(path)
    async with threads:
        text = [m.text for m in await threads.get_llm_messages(thread) if isinstance(m, AssistantMessage)]
        return "".join(text), [call.status for call in (await threads.get_log(thread)).calls]


class Consumer:
    """Iterates over a run and keeps the text that it saw."""

    def __init__(self, run: RunStream) -> None:
        self.run = run
        self.text = ""

    async def read(self) -> None:
        async for event in self.run:
            if isinstance(event, Text):
                self.text += event.text


@pytest.mark.parametrize("how", ["cancelled", "cancelled in its task group", "iterating"])
async def test_a_manager_is_closed_at_any_step_of_a_run(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After 0, 1, 2, … steps of the event loop: nothing that a consumer has seen is lost, and no lease is held."""
    path = tmp_path / "t.db"
    for steps in (*range(12), *range(12, 160, 12)):
        threads, _ = opened(path)
        thread = await threads.create_thread(messages="Go")
        consumer = Consumer(threads.run_thread(thread, model=Slow(SCRIPT)))

        async def group(consumer: Consumer = consumer) -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(consumer.read())

        task = asyncio.create_task(group() if how == "cancelled in its task group" else consumer.read())
        for _ in range(steps):
            await asyncio.sleep(0)
        begun = consumer.run._begun
        if how != "iterating":
            task.cancel()
        await threads.aclose()
        if not begun:
            await consumer.run.aclose()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        if begun:
            assert outcome is None or isinstance(outcome, asyncio.CancelledError), (steps, outcome)
            assert consumer.run.result.finish in ("cancelled", "stop")
        text, calls = await stored(path, thread)
        assert text.startswith(consumer.text), steps
        assert set(calls) <= {"answered"}, steps
        assert holders(path) == [], steps
    assert [r for r in caplog.records if r.levelno > logging.INFO] == []


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_running_tool_is_cancelled_and_answered(tmp_path: Path, cancelled: bool) -> None:
    threads, desk = opened(tmp_path / "t.db")
    thread = await threads.create_thread(messages="Go")
    run = threads.run_thread(thread, model=ScriptedModel([["Hm.", ToolCall("c1", "slow")]]))
    task = asyncio.create_task(run.complete())
    await desk.waits.wait()
    if cancelled:
        task.cancel()
    await threads.aclose()
    await asyncio.wait([task])
    assert task.cancelled() == cancelled
    assert run.result.finish == "cancelled"
    assert await stored(tmp_path / "t.db", thread) == ("Hm.", ["answered"])


async def test_a_run_that_nobody_continues_is_ended(tmp_path: Path) -> None:
    """Its consumer waits for something else, such as a client that reads nothing, or for this very call."""
    threads, _ = opened(tmp_path / "t.db")
    thread = await threads.create_thread(messages="Go")
    run = threads.run_thread(thread, model=ScriptedModel([["One ", "two "]]))
    events = aiter(run)
    while not isinstance(await anext(events), Text):
        pass
    await asyncio.wait_for(threads.aclose(), 30)
    assert run.result.finish == "cancelled"
    assert [event async for event in events] == []
    assert (await stored(tmp_path / "t.db", thread))[0].startswith("One ")


async def test_the_same_task_may_close_it_in_the_loop(tmp_path: Path) -> None:
    threads, _ = opened(tmp_path / "t.db")
    thread = await threads.create_thread(messages="Go")
    seen = ""
    async for event in threads.run_thread(thread, model=ScriptedModel([["One ", "two "]])):
        if isinstance(event, Text):
            seen += event.text
            await asyncio.wait_for(threads.aclose(), 30)
    assert (await stored(tmp_path / "t.db", thread))[0].startswith(seen)
