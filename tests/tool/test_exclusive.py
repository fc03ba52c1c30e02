"""Calls that must not run beside each other: in one response, in several runs, on several event loops and threads."""

from __future__ import annotations

# ruff: noqa: E501 (an answer stands in one line)
import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentkit import Agent, ToolCall, ToolContext, ToolRegistry, openapi_schema
from agentkit.errors import SchemaError
from agentkit.messages import ToolMessage
from agentkit.processor import exclusive_locks
from agentkit.testing import ScriptedModel


class Counter:
    """Reads, waits and writes: beside itself it loses counts."""

    def __init__(self) -> None:
        self.count = 0
        self.at_work = self.most = 0
        self.go = threading.Event()

    def _step(self) -> None:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        seen = self.count
        time.sleep(0.005)
        self.count = seen + 1
        self.at_work -= 1

    @openapi_schema(exclusive=True)
    def inc(self) -> int:
        """Count."""
        self._step()
        return self.count

    @openapi_schema(exclusive=True)
    async def inc_async(self) -> int:
        """Count."""
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        seen = self.count
        await asyncio.sleep(0.005)
        self.count = seen + 1
        self.at_work -= 1
        return self.count

    @openapi_schema(exclusive=True, timeout=0.5)  # long enough for a thread to begin on a busy machine
    def hold(self) -> str:
        """Hold on."""
        self.go.wait(30)
        return "let go"

    @openapi_schema
    def look(self) -> int:
        """Look."""
        self.go.set()
        return self.count


def calling(*names: str) -> ScriptedModel:
    return ScriptedModel([[ToolCall("", name) for name in names], "done"])


def answers(result: Any) -> list[tuple[str | None, str]]:
    return [(m.error, m.text) for m in result.messages if isinstance(m, ToolMessage)]


@pytest.fixture(autouse=True)
def _nobody_is_left_in_line() -> Iterator[None]:
    yield
    deadline = time.monotonic() + 30
    while exclusive_locks._LOCKS.held and time.monotonic() < deadline:
        time.sleep(0.01)  # a thread that was given up
    assert (exclusive_locks._LOCKS.held, exclusive_locks._LOCKS.waiting) == ({}, {})


@pytest.mark.parametrize("names", [["inc"] * 5, ["inc_async"] * 5, ["inc", "inc_async"] * 3])
def test_calls_of_one_response_count_all(names: list[str]) -> None:
    counter = Counter()
    result = Agent(calling(*names), [counter]).run_sync("go")
    assert (counter.count, counter.most) == (len(names), 1)
    assert [error for error, _ in answers(result)] == [None] * len(names)


def test_plain_methods_without_the_keyword_run_beside_each_other() -> None:
    counter, meeting = Counter(), threading.Barrier(5)

    def inc() -> int:
        seen = counter.count
        meeting.wait(30)
        counter.count = seen + 1
        return counter.count

    Agent(calling(*["inc"] * 5), [inc]).run_sync("go")
    assert counter.count == 1


def test_runs_on_event_loops_of_their_own_share_the_line() -> None:
    counter = Counter()
    with ThreadPoolExecutor(4) as pool:
        agents = [Agent(calling("inc", "inc_async", "inc"), [counter]) for _ in range(4)]
        list(pool.map(lambda agent: agent.run_sync("go"), agents))
    assert (counter.count, counter.most) == (12, 1)


def test_a_method_without_the_keyword_runs_beside_an_exclusive_one() -> None:
    counter = Counter()
    registry = ToolRegistry()
    registry.register_tool(counter, ["look"])
    registry.register_function(counter.hold, timeout=10)
    result = Agent(calling("hold", "look"), registry).run_sync("go")
    assert answers(result) == [(None, "let go"), (None, "0")]


def test_two_instances_have_lines_of_their_own() -> None:
    """Each waits until the other has begun."""
    meeting = threading.Barrier(2)

    class Meets:
        @openapi_schema(exclusive=True)
        def meet(self) -> str:
            """Meet."""
            meeting.wait(30)
            return "met"

    registry = ToolRegistry()
    registry.register_tool(Meets())
    registry.register_tool(Meets(), {"meet": "other"})
    assert answers(Agent(calling("meet", "other"), registry).run_sync("go")) == [(None, "met")] * 2


def test_a_function_is_a_line_of_its_own() -> None:
    counter = Counter()

    def inc() -> None:
        counter._step()

    registry = ToolRegistry()
    registry.register_function(inc, exclusive=True)
    Agent(calling(*["inc"] * 4), registry).run_sync("go")
    assert (counter.count, counter.most) == (4, 1)


def test_a_call_that_was_given_up_holds_its_line_until_its_thread_has_ended() -> None:
    counter = Counter()
    result = Agent(calling("hold", "inc"), [counter]).run_sync("go")
    assert answers(result) == [
        ("timeout", "no result after 0.5 s: the tool was stopped; it may still be running, and its effects may yet appear"),
        ("limit", "not run: inc runs one call at a time, and an earlier call of it was given up but has not ended"),
    ]  # fmt: skip
    counter.go.set()
    while exclusive_locks._LOCKS.held:
        time.sleep(0.005)
    assert answers(Agent(calling("inc"), [counter]).run_sync("go")) == [(None, "1")]


def test_waiting_in_line_does_not_count_as_time_of_the_tool() -> None:
    class Slow:
        @openapi_schema(exclusive=True)
        async def work(self) -> str:
            """Work."""
            await asyncio.sleep(1.2)
            return "done"

        @openapi_schema(exclusive=True, timeout=1.0)
        async def at_once(self) -> str:
            """Do nothing."""
            return "done"

    result = Agent(calling("work", "at_once"), [Slow()]).run_sync("go")
    assert answers(result) == [(None, "done")] * 2


async def _cancelled() -> Counter:
    counter = Counter()
    registry = ToolRegistry()
    registry.register_function(counter.hold, timeout=10)
    registry.register_tool(counter, ["inc"])
    async with Agent(calling("hold", "inc"), registry).stream("go") as run:
        async for event in run:
            if type(event).__name__ == "ToolStarted":
                break
    counter.go.set()
    return counter


def test_a_run_that_is_left_leaves_the_line() -> None:
    counter = asyncio.run(_cancelled())
    assert counter.count == 0


def test_a_call_from_within_itself_is_answered_and_does_not_wait_for_itself() -> None:
    class Asks:
        @openapi_schema(exclusive=True)
        async def ask(self, context: ToolContext) -> str:
            """Ask another agent that has the same tool."""
            result = await Agent(calling("ask"), [self]).run("go")
            return answers(result)[0][1]

    assert answers(Agent(calling("ask"), [Asks()]).run_sync("go")) == [
        (None, "not run: ask runs one call at a time, and this call is made from within another call of it, so that each would wait for the other")
    ]  # fmt: skip


def test_the_keyword_is_yes_or_no() -> None:
    with pytest.raises(SchemaError, match="exclusive='yes': expected True or False"):
        ToolRegistry().register_function(Counter().inc, exclusive="yes")  # type: ignore[typeddict-item]
