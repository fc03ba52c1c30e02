"""Work that is over at its first step, and work that waits before it: only the time may differ."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Agent, Budget, ToolResult
from agentkit.events import CallEnd, Event, Finish, SourceEvent, ToolCompleted, ToolFailed, ToolStarted, Usage
from agentkit.messages import ToolCall
from agentkit.models.base import ModelRequest
from agentkit.processor import ProcessorConfig, ResponseProcessor
from agentkit.processor.eager_tasks import SLICE, start_now
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio

SAID: ContextVar[str] = ContextVar("said", default="nothing")

VALUES: dict[str, Callable[[], Any]] = {
    "int": lambda: 3,
    "text": lambda: "x" * 300,
    "none": lambda: None,
    "dict": lambda: {"a": [1.5, None]},
    "error": lambda: ToolResult(error="no such file"),
    "reward": lambda: ToolResult("done", reward=0.5, metadata={"steps": 2}),
    "object": object,
}
RAISED = {"ValueError": ValueError("no"), "exit": SystemExit(3), "cancelled": asyncio.CancelledError()}


class Tools:
    """What a tool may do, with or without waiting first."""

    def __init__(self, *, waits: bool) -> None:
        self.waits = waits

    async def act(self, what: str) -> Any:
        """Act.

        Args:
            what: what to do
        """
        before = SAID.get()
        SAID.set(what)
        if self.waits:
            await asyncio.sleep(0)
        if what in RAISED:
            raise RAISED[what]
        if what == "context":
            return f"{before}, then {SAID.get()}"
        if what == "timeout":
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        return VALUES[what]()


ACTIONS = st.lists(st.sampled_from([*VALUES, *RAISED, "context", "timeout"]), min_size=1, max_size=4)


def seen(event: Event) -> object:
    """What an event tells, without how long it took and where an error was raised."""
    if isinstance(event, ToolCompleted | ToolFailed):
        return (
            type(event),
            event.index,
            event.result.output if event.result.ok else event.result.error,
            event.result.code,
        )
    return event


async def run(actions: Sequence[str], *, waits: bool, **config: Any) -> tuple[list[object], list[object]]:
    """The events of a response with these calls, and the answers to them."""
    registry = ToolRegistry(Tools(waits=waits).act)
    calls = [CallEnd(i, ToolCall(f"c{i}", "act", {"what": what})) for i, what in enumerate(actions)]
    turn = ResponseProcessor(registry, ProcessorConfig(max_output=200, **config)).process(
        [*calls, Finish("tool_calls")]
    )
    events = [seen(event) async for event in turn]
    return events, [replace(answer, content=answer.text) for answer in turn.results]


@given(ACTIONS, st.sampled_from(["parallel", "sequential"]), st.sampled_from(["stream", "end"]))
def test_a_call_that_is_over_at_once_is_answered_like_one_that_waits(
    actions: list[str], strategy: str, execute: str
) -> None:
    async def both() -> list[tuple[list[object], list[object]]]:
        return [await run(actions, waits=waits, strategy=strategy, execute=execute) for waits in (False, True)]

    [(events, answers), (later_events, later_answers)] = asyncio.run(both())
    assert [a for a in answers if "object" not in str(a)] == [a for a in later_answers if "object" not in str(a)]
    assert sorted(map(_kind, events)) == sorted(map(_kind, later_events))
    if strategy == "sequential" or len(actions) == 1:
        assert list(map(_kind, events)) == list(map(_kind, later_events))


def _kind(event: object) -> str:
    return str(event[0].__name__ if isinstance(event, tuple) and isinstance(event[0], type) else event)


async def test_each_parallel_call_takes_its_first_step_when_its_start_was_seen() -> None:
    log: list[str] = []

    async def note(n: int) -> str:
        """Note it."""
        log.append(f"runs {n}")
        return "noted"

    calls = [CallEnd(i, ToolCall(f"c{i}", "note", {"n": i})) for i in range(3)]
    async for event in ResponseProcessor(ToolRegistry(note)).process([*calls, Finish("tool_calls")]):
        match event:
            case ToolStarted(index):
                log.append(f"starts {index}")
    assert log == ["starts 0", "runs 0", "starts 1", "runs 1", "starts 2", "runs 2"]


async def test_the_only_call_of_a_response_runs_before_the_event_loop_does_anything_else() -> None:
    log: list[str] = []

    async def note() -> str:
        """Note it."""
        log.append("runs")
        return "noted"

    asyncio.get_running_loop().call_soon(log.append, "something else")
    response = [CallEnd(0, ToolCall("c", "note", {})), Usage(3, 2), Finish("tool_calls")]
    async for event in ResponseProcessor(ToolRegistry(note)).process(response):
        log.append(type(event).__name__)  # noqa: PERF401 - the tool writes to it meanwhile
    assert log == ["CallEnd", "Usage", "Finish", "ToolStarted", "runs", "ToolCompleted"]


async def test_one_after_another_each_call_runs_as_soon_as_it_has_started() -> None:
    log: list[object] = []

    async def note(n: int) -> str:
        """Note it."""
        log.append(n)
        return "noted"

    asyncio.get_running_loop().call_soon(log.append, "something else")
    response = [*(CallEnd(i, ToolCall(f"c{i}", "note", {"n": i})) for i in range(3)), Finish("tool_calls")]
    async for event in ResponseProcessor(ToolRegistry(note), ProcessorConfig(strategy="sequential")).process(response):
        if isinstance(event, ToolStarted | ToolCompleted):
            log.append(type(event).__name__)  # noqa: PERF401 - the tool writes to it meanwhile
    assert log == [told for n in range(3) for told in ("ToolStarted", n, "ToolCompleted")]


async def test_a_task_takes_its_first_step_in_a_context_and_a_name_of_its_own() -> None:
    outer = asyncio.current_task()

    async def work() -> tuple[object, str]:
        SAID.set("mine")
        return asyncio.current_task(), SAID.get()

    task = start_now(work(), asyncio.get_running_loop())
    assert task.done()
    assert (await task, SAID.get(), asyncio.current_task()) == ((task, "mine"), "nothing", outer)


async def test_what_waits_at_its_first_step_goes_on_as_any_task_does() -> None:
    gate = asyncio.Event()

    async def work() -> str:
        async with asyncio.timeout(30):
            await gate.wait()
        return "done"

    task = start_now(work(), asyncio.get_running_loop())
    assert not task.done()
    gate.set()
    assert await task == "done"
    cancelled = start_now(asyncio.Event().wait(), asyncio.get_running_loop())
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_the_task_factory_of_an_application_makes_the_tasks() -> None:
    made: list[str] = []

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        made.append(work.__qualname__)
        return asyncio.Task(work, loop=loop, **options)

    asyncio.get_running_loop().set_task_factory(factory)
    events, _ = await run(["int"], waits=False)
    assert ("ToolTask._run" in made, [_kind(e) for e in events][-1]) == (True, "ToolCompleted")


class Endless:
    """A model that calls again and again, and never has to wait."""

    name = "endless"
    format = None

    def __init__(self) -> None:
        self.asked = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        self.asked += 1
        yield CallEnd(0, ToolCall(f"c{self.asked}", "count", {"n": self.asked}))
        yield Finish("tool_calls")


async def count(n: int) -> int:
    """Count."""
    return n


async def test_a_run_that_never_waits_ends_when_its_time_is_up() -> None:
    result = await Agent(Endless(), [count], max_turns=10_000_000, budget=Budget(seconds=3 * SLICE)).run("Go.")
    assert result.finish == "time_budget"


async def test_a_run_that_never_waits_lets_others_run() -> None:
    run = Agent(Endless(), [count], max_turns=10_000_000).stream("Go.")

    async def stop() -> None:
        await asyncio.sleep(SLICE)
        run.cancel()

    stopping = asyncio.create_task(stop())
    assert (await run.complete()).finish == "cancelled"
    await stopping


def test_a_ctrl_c_in_a_first_step_ends_the_loop_from_the_loop() -> None:
    left: list[str] = []

    async def pressed() -> None:
        """Press Ctrl-C."""
        raise KeyboardInterrupt

    async def main() -> None:
        try:
            turn = ResponseProcessor(ToolRegistry(pressed)).process([CallEnd(0, ToolCall("c", "pressed", {}))])
            left.extend([_kind(event) async for event in turn])
            await asyncio.sleep(30)
        except BaseException as e:
            left.append(type(e).__name__)
            raise

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert left[-1] == "CancelledError", "code around the call is cancelled, as by any Ctrl-C"
