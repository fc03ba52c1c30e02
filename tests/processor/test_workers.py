"""Plain tools that never return: what becomes of the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentkit.events import CallEnd
from agentkit.messages import ToolCall
from agentkit.processor import ProcessorConfig, ResponseProcessor, Turn, tool_run, tooltask
from agentkit.processor.workers import Claim, NoThread, Workers
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Tools:
    """Tools that return when they are let."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.began: list[str] = []

    def never(self) -> str:
        """Wait."""
        self.began.append("never")
        self.gate.wait(60)
        return "at last"

    def quick(self) -> str:
        """Return."""
        self.began.append("quick")
        return "quick"

    async def on_the_loop(self) -> str:
        """Return."""
        return "on the loop"


@pytest.fixture
def tools() -> Iterator[Tools]:
    made = Tools()
    yield made
    made.gate.set()


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Workers:
    """A process with two threads for plain tools."""
    small = Workers(limit=2)
    monkeypatch.setattr(tool_run, "WORKERS", small)
    monkeypatch.setattr(tooltask, "WORKERS", small)
    return small


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - a thread cannot set an event of the loop
        await asyncio.sleep(0.001)


async def called(tools: Tools, *names: str, timeout: float | None = 0.5) -> Turn:
    """A turn with these calls; their time is long enough for a thread to begin on a busy machine."""
    registry = ToolRegistry(tools.never, tools.quick, tools.on_the_loop)
    calls = [CallEnd(i, ToolCall(f"c{i}", name)) for i, name in enumerate(names)]
    turn = ResponseProcessor(registry, ProcessorConfig(timeout=timeout)).process(calls)
    async for _ in turn:
        pass
    return turn


LOST = (
    "not run: 2 plain tools of this process have not returned, and no further one can be started until one of them "
    "does; tools written with `async def` still run"
)


async def test_when_every_thread_is_lost_the_next_tool_is_told_so_at_once(tools: Tools, pool: Workers) -> None:
    stuck = await called(tools, "never", "never")
    assert [r.error for r in stuck.results] == ["timeout", "timeout"]
    turn = await asyncio.wait_for(called(tools, "quick", "on_the_loop", timeout=None), 30)
    assert [(r.error, r.text) for r in turn.results] == [("limit", LOST), (None, "on the loop")]
    assert tools.began == ["never", "never"]
    tools.gate.set()
    await until(lambda: not pool._lost)
    assert [r.text for r in (await called(tools, "quick", timeout=30)).results] == ["quick"]


async def test_those_in_line_are_told_when_the_last_thread_is_lost(tools: Tools, pool: Workers) -> None:
    registry = ToolRegistry(tools.never, tools.quick)
    stuck = asyncio.create_task(called(tools, "never", "never"))
    await until(lambda: len(tools.began) == 2)
    line = ResponseProcessor(registry, ProcessorConfig(timeout=None)).process([CallEnd(0, ToolCall("q", "quick"))])

    async def read() -> None:
        async for _ in line:
            pass

    await asyncio.wait_for(asyncio.gather(read(), stuck), 30)
    assert [(r.error, r.text) for r in line.results] == [("limit", LOST)]


async def test_what_never_began_was_not_stopped(tools: Tools, pool: Workers) -> None:
    """The threads are at work for somebody who waits: the third call waits for one until its time is over."""
    at_work = asyncio.create_task(called(tools, "never", "never", timeout=None))
    await until(lambda: len(tools.began) == 2)
    turn = await called(tools, "quick", timeout=0.05)
    [told] = turn.results
    assert (told.error, told.text) == (
        "timeout",
        "not run: no thread was free for it within 0.05 s: 2 plain tools of this process are running",
    )
    tools.gate.set()
    assert [r.text for r in (await at_work).results] == ["at last", "at last"]
    assert tools.began == ["never", "never"]


async def test_what_never_began_was_not_cancelled_while_it_ran(tools: Tools, pool: Workers) -> None:
    registry = ToolRegistry(tools.never)
    calls = [CallEnd(i, ToolCall(f"c{i}", "never")) for i in range(3)]
    turn = ResponseProcessor(registry).process(calls)

    async def read() -> None:
        async for _ in turn:
            pass

    reading = asyncio.create_task(read())
    await until(lambda: len(tools.began) == 2)
    turn.cancel()
    await asyncio.wait_for(reading, 30)
    assert [r.text.partition(":")[0] for r in turn.results] == ["cancelled while it ran"] * 2 + ["not run"]


async def test_a_claim_that_was_taken_lets_nothing_begin() -> None:
    claim = Claim()
    began: list[Any] = []
    assert claim.take()
    waiting = asyncio.create_task(Workers(limit=1).run(lambda: began.append(1), claim))
    await asyncio.wait([waiting], timeout=0.05)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert (began, claim.take()) == ([], False)


async def test_a_pool_without_a_thread_left_raises(tools: Tools) -> None:
    pool = Workers(limit=1)
    stuck = asyncio.create_task(pool.run(tools.never))
    await until(lambda: bool(tools.began))
    stuck.cancel()
    await asyncio.wait([stuck])
    with pytest.raises(NoThread, match="1 plain tools of this process have not returned"):
        await pool.run(tools.quick)
