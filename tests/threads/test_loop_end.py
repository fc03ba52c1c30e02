"""An event loop that ends over a run in the background: the lease is given back, and nobody is bothered."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agentkit import ThreadManager, ToolCall, ToolRegistry
from agentkit.errors import ThreadBusy
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore


async def tool(n: str = "") -> str:
    """Answer a moment later."""
    await asyncio.sleep(0.0005)
    return "ok"


SCRIPT = [*([ToolCall(f"c{k}", "tool", {"n": str(k)})] for k in range(4)), "end"]


def holders(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT lease_owner FROM threads WHERE lease_owner IS NOT NULL")]


def test_the_lease_is_given_back_wherever_the_loop_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """From before the lease is taken to after the last answer: after 0, 1, 2, … steps of the event loop."""
    path = tmp_path / "t.db"
    threads = ThreadManager(SQLiteStore(path, durability="process"), ToolRegistry(tool))

    async def left(steps: int) -> str:
        id = await threads.create_thread(messages="go")
        run = asyncio.create_task(threads.run_thread(id, model=ScriptedModel(SCRIPT)).complete())
        for _ in range(steps):
            await asyncio.sleep(0)
        del run
        return id

    async def resumed(id: str) -> str:
        return (await threads.run_thread(id, model=ScriptedModel(["end"])).complete()).finish

    for steps in (*range(24), *range(24, 160, 6)):
        id = asyncio.run(left(steps))
        assert holders(path) == [], steps
        assert asyncio.run(resumed(id)) == "stop"
    asyncio.run(threads.aclose())
    assert caplog.records == []


CLOSED = """
import asyncio, gc, sys
from agentkit import ThreadManager, ToolCall
from agentkit.testing import ScriptedModel

async def tool() -> str:
    "Wait."
    await asyncio.sleep(60)

threads = ThreadManager(sys.argv[1])
threads.registry.register(tool)

async def left(done):
    id = await threads.create_thread(messages="go")
    run = asyncio.create_task(threads.run_thread(id, model=ScriptedModel([[ToolCall("c", "tool", {})]])).complete())
    await asyncio.sleep(0 if done == "at once" else 0.3)
    return id

loop = asyncio.new_event_loop()
id = loop.run_until_complete(left(sys.argv[2]))
loop.close()
del loop
gc.collect()

async def again():
    result = await threads.run_thread(id, model=ScriptedModel(["end"])).complete()
    gc.collect()
    await threads.aclose()
    return result.finish

print(asyncio.run(again()))
"""


@pytest.mark.parametrize("when", ["at once", "in a tool"])
def test_a_loop_that_is_closed_over_a_run_keeps_nobody_out(tmp_path: Path, when: str) -> None:
    """One warning of ours; what asyncio says of the task that was left is the business of who left it."""
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, str(tmp_path / "t.db"), when],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "stop\n"), done.stderr
    assert done.stderr.count("its event loop was closed before it had ended") <= 1
    for noise in ("Traceback", "Exception ignored", "ignored GeneratorExit", "never awaited"):
        assert noise not in done.stderr


def test_a_run_that_lives_keeps_the_others_out_and_the_hint_is_true(tmp_path: Path) -> None:
    async def story() -> str:
        threads = ThreadManager(tmp_path / "t.db")
        await threads.create_thread("t", messages="go")
        gate = asyncio.Event()

        async def wait() -> str:
            """Wait."""
            await gate.wait()
            return "waited"

        threads.registry.register(wait)
        async with threads.run_thread("t", model=ScriptedModel([[ToolCall("c", "wait", {})], "end"])) as first:
            events = aiter(first)
            await anext(events)
            with pytest.raises(ThreadBusy) as e:
                await threads.run_thread("t", model=ScriptedModel(["other"]))
            gate.set()
            async for _ in events:
                pass
        assert (await threads.run_thread("t", model=ScriptedModel(["other"]))).finish == "stop"
        await threads.aclose()
        return str(e.value)

    told = asyncio.run(story())
    assert "this process on " in told
    assert told.endswith(
        "Wait for that run: after a `break` it ends a moment later, and `async with` waits for its end"
    )
