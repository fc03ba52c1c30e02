"""A run on an event loop of its own ends, whatever becomes of its tools."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agentkit.agent import Agent, Budget
from agentkit.agent.own_loop import OwnLoop
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import ScriptedModel


async def deaf() -> str:
    """Try again and again, whatever happens."""
    while True:
        try:
            await asyncio.sleep(1000)
        except BaseException:  # noqa: BLE001 - as some retry loops do
            continue


async def elsewhere() -> str:
    """Start work that nothing ends, and wait for it."""
    return await asyncio.create_task(deaf(), name="the deaf one")


FREED: list[threading.Event] = []


async def blocked() -> str:
    """Wait in a thread, as long as nobody sets the event."""
    FREED.append(threading.Event())
    await asyncio.to_thread(FREED[-1].wait)
    return "free"


@pytest.mark.parametrize(
    ("tool", "named"),
    [
        (deaf, ["tool 'deaf', call 'c1'"]),
        (elsewhere, ["the deaf one", "tool 'elsewhere', call 'c1'"]),
        (blocked, []),
    ],
)
def test_a_run_ends_although_its_tool_does_not(
    tool: object, named: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    call = ToolCall("c1", tool.__name__, {})  # type: ignore[attr-defined]
    began = time.monotonic()
    try:
        result = Agent(ScriptedModel([call, "Done."]), [tool], budget=Budget(seconds=0.5)).run_sync("Go")
    finally:
        for event in FREED:
            event.set()
    assert time.monotonic() - began < 60, "it would never have ended"
    assert result.finish == "time_budget"
    assert [m.error for m in result.messages if isinstance(m, ToolMessage)] == ["cancelled"]
    told = "abandoned, because it did not end when it was cancelled: "
    assert sorted(r.getMessage() for r in caplog.records) == [told + name for name in named]


def test_an_interrupt_just_after_the_work_was_done_stays_one() -> None:
    """What was to stop the loop is still in it then."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def work() -> None:
        asyncio.get_running_loop().call_soon(interrupt)  # runs before what the end of this one starts

    with pytest.raises(KeyboardInterrupt), OwnLoop() as loop:
        loop.run(work())
