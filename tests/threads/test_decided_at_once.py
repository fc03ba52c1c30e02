"""Who decides about a call at the moment of its event is heard; and so is an answer that comes from outside a run."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deciding import EDITED, Decide, Overtaken, Till, decide, late, moves
from thread_kit import planned

from agentkit.agent import Agent, RunFinish, RunStream
from agentkit.errors import ConfigError
from agentkit.events import (
    ApprovalRequired,
    CallEnd,
    Event,
    Finish,
    FinishReason,
    SourceEvent,
    Text,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
)
from agentkit.messages import TextPart, ToolCall, ToolMessage
from agentkit.models.base import ModelRequest
from agentkit.processor import ProcessorConfig
from agentkit.processor.config import Execute, Strategy
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.threads.store import Change, Move
from agentkit.tool.codec import to_json
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio

PAY, SLOW, PAY_MORE = ToolCall("c1", "pay", {"n": 1}), ToolCall("c2", "slow"), ToolCall("c3", "pay", {"n": 2})
DONE: dict[Decide, list[int]] = {"approve": [1], "deny": [], "edit": [EDITED]}


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
async def managers(tmp_path: Path, till: Till) -> AsyncIterator[tuple[ThreadManager, ThreadManager]]:
    """Two managers, as of two processes, on one file."""
    both = [ThreadManager(SQLiteStore(tmp_path / "t.db", durability="process"), ToolRegistry(till)) for _ in range(2)]
    yield (both[0], both[1])
    for one in both:
        await one.aclose()


async def answers(threads: ThreadManager) -> dict[str, str | None]:
    """Each call's answer: its error, or None."""
    return {m.call_id: m.error for m in await threads.get_llm_messages("t") if isinstance(m, ToolMessage)}


@pytest.mark.parametrize("then", ["go on", "cancel", "leave"])
@pytest.mark.parametrize("what", ["approve", "deny", "edit"])
@pytest.mark.parametrize("execute", ["stream", "end"])
@pytest.mark.parametrize("strategy", ["parallel", "sequential"])
async def test_a_decision_at_the_event_is_heard(
    managers: tuple[ThreadManager, ThreadManager],
    till: Till,
    strategy: Strategy,
    execute: Execute,
    what: Decide,
    then: str,
) -> None:
    first, second = managers
    await first.create_thread("t", messages="Go")
    config = ProcessorConfig(strategy=strategy, execute=execute)
    agent = Agent(ScriptedModel([[PAY, SLOW, "and", PAY_MORE]]), [till], config=config)
    async with first.run_agent("t", agent) as run:
        async for event in run:
            if isinstance(event, ApprovalRequired) and event.call.id == "c1":
                assert "c1" in [call.id for call in await second.pending("t")]
                await decide(second, what)
                if then == "cancel":
                    run.cancel()
                elif then == "leave":
                    break
    assert run.result.finish == ("approval" if then == "go on" else "cancelled")
    assert [call.id for call in await second.pending("t")] == (["c3"] if then == "go on" else [])
    for call in await second.pending("t"):
        await decide(second, "deny", call.id)
    assert (await second.run_thread("t", model=ScriptedModel(["Done."]))).text == "Done."
    assert till.paid == DONE[what]
    assert (await answers(first))["c1"] == ("denied" if what == "deny" else None)


@pytest.mark.parametrize("finish", ["content_filter", "refusal"])
@pytest.mark.parametrize("what", ["approve", "edit", "deny"])
async def test_a_call_whose_response_is_then_retracted_does_not_run_and_its_answer_says_why(
    managers: tuple[ThreadManager, ThreadManager], till: Till, what: Decide, finish: FinishReason
) -> None:
    first, second = managers
    await first.create_thread("t", messages="Go")
    model = ScriptedModel([[PAY, Text("More"), Finish(finish)], "Done."], chunk=1)
    told: list[str | None] = []
    async with first.run_thread("t", model=model) as run:
        async for event in run:
            if isinstance(event, ApprovalRequired):
                await decide(second, what)
            elif isinstance(event, ToolSkipped):
                told.append(event.result.error)
    await second.run_thread("t", model=ScriptedModel(["Done."]))
    (answer,) = [m for m in await first.get_llm_messages("t") if isinstance(m, ToolMessage)]
    retracted = f"not run: the response finished with {finish}, which retracts its calls"
    assert (answer.error, till.paid) == ("denied", [])
    assert told == ([] if what == "deny" else [retracted])
    assert (answer.text == retracted) == (what != "deny")


async def test_a_hook_and_another_task_decide_at_the_event_too(
    managers: tuple[ThreadManager, ThreadManager], till: Till
) -> None:
    first, second = managers
    await first.create_thread("t", messages="Go")
    tasks: list[asyncio.Task[None]] = []

    async def hook(event: object, run: Any) -> None:
        if isinstance(event, ApprovalRequired) and event.call.id == "c1":
            await first.approve("t", "c1")
        elif isinstance(event, ApprovalRequired):
            tasks.append(asyncio.create_task(second.approve("t", "c3")))
            await asyncio.sleep(0.01)

    model = ScriptedModel([[PAY, PAY_MORE]])
    await first.run_agent("t", Agent(model, [till], hooks=[hook]))
    await asyncio.gather(*tasks)
    await second.run_thread("t", model=ScriptedModel(["Done."]))
    assert sorted(till.paid) == [1, 2]


async def test_the_call_can_be_decided_while_the_response_still_arrives(
    managers: tuple[ThreadManager, ThreadManager], till: Till
) -> None:
    first, second = managers
    await first.create_thread("t", messages="Go")
    decided = asyncio.Event()

    class Halting(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
            async for event in super().stream(request):
                if isinstance(event, Text):
                    await decided.wait()
                yield event

    async for event in first.run_thread("t", model=Halting([[PAY, "More to come"]])):
        if isinstance(event, ApprovalRequired):
            await second.approve("t", "c1")
            decided.set()
    await second.run_thread("t", model=ScriptedModel(["Done."]))
    assert till.paid == [1]
    log = await first.get_log("t")
    assert [e.kind for e in log.entries] == ["message", "message", "message"]


async def test_a_call_that_a_cancelled_run_answers_no_longer_waits(
    managers: tuple[ThreadManager, ThreadManager], till: Till
) -> None:
    first, second = managers
    await first.create_thread("t", messages="Go")
    events: list[Event] = []
    async with first.run_thread("t", model=ScriptedModel([[PAY, SLOW]])) as run:
        async for event in run:
            events.append(event)
            if isinstance(event, ToolStarted):  # by then, the other call waits in the store
                run.cancel()
    assert "c1" in [e.call.id for e in events if isinstance(e, ToolSkipped)]
    assert await second.pending("t") == ()
    assert (await answers(second))["c1"] == "cancelled"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", ["break", "cancel", "task"])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_resumed_run_that_is_left_at_its_first_event_warns_of_nothing(
    managers: tuple[ThreadManager, ThreadManager], till: Till, capsys: Any, how: str, waits: bool
) -> None:
    first, _ = managers
    await first.create_thread("t", messages="Go")
    await first.run_thread("t", model=ScriptedModel([[PAY, PAY_MORE]]))
    await first.deny("t", "c1")
    await (first.approve("t", "c3") if waits else first.deny("t", "c3"))
    model = ScriptedModel(["Done."])

    async def leave(run: RunStream[Any]) -> RunFinish:
        async with run:
            async for _ in run:
                if how == "break":
                    break
                if how == "cancel":
                    run.cancel()
                else:
                    await asyncio.sleep(9)
        return run.result.finish

    task = asyncio.create_task(leave(first.run_thread("t", model=model)))
    await asyncio.sleep(0.05)
    if how == "task":
        task.cancel()
    await asyncio.wait([task])
    assert how == "task" or task.result() == "cancelled"
    del task
    gc.collect()
    assert model.requests == []
    assert capsys.readouterr().err == ""


# -------------------------------------------------------------- a run that ends as an approved call starts


@pytest.mark.parametrize("what", ["approve", "edit"])
@pytest.mark.parametrize("end", ["cancel", "leave", "while it is written"])
async def test_an_approval_stays_if_the_run_ends_before_the_tools_first_step(
    managers: tuple[ThreadManager, ThreadManager], overtaken: ThreadManager, till: Till, end: str, what: Decide
) -> None:
    _, other = managers
    await other.create_thread("t", messages="Go")
    await other.run_thread("t", model=ScriptedModel([[PAY]]))
    await decide(other, what)
    for _ in range(2):
        await ended_at_the_start(overtaken, end)
        assert (till.paid, [call.status for call in (await other.get_log("t")).calls]) == ([], ["approved"])
    assert (await overtaken.run_thread("t", model=ScriptedModel(["Done."]))).text == "Done."
    assert (till.paid, await answers(other)) == (DONE[what], {"c1": None})


async def ended_at_the_start(threads: ThreadManager, end: str) -> None:
    """A run that is ended at the first `ToolStarted`, or while that is written; it says nothing more of the call."""
    run, events = threads.run_thread("t", model=ScriptedModel([])), []

    async def cancel() -> None:
        run.cancel()

    if end == "while it is written":
        assert isinstance(threads.store, Overtaken)
        threads.store.when(moves("started"), cancel)
    async with run:
        async for event in run:
            events.append(type(event))
            if isinstance(event, ToolStarted) and end == "leave":
                break
            if isinstance(event, ToolStarted):
                run.cancel()
    assert (events, run.result.finish, run.result.pending) == ([CallEnd, ToolStarted], "cancelled", ())
    waits = [m.text for m in run.result.messages if isinstance(m, ToolMessage)]
    assert waits == ["no result yet: the user approved this call, and it has not started"]


@pytest.mark.parametrize("then", ["the user writes", "the process dies"])
async def test_what_becomes_of_an_approval_that_stayed_at_the_calls_start(
    managers: tuple[ThreadManager, ThreadManager], overtaken: ThreadManager, till: Till, then: str
) -> None:
    _, other = managers
    await other.create_thread("t", messages="Go")
    await other.run_thread("t", model=ScriptedModel([[PAY]]))
    await other.approve("t", "c1")
    await ended_at_the_start(overtaken, "cancel")
    if then == "the user writes":
        await other.add_message("t", "Never mind.")
    else:
        (call,) = (await other.get_log("t")).calls
        await other.store.commit("t", [Move(call.seq, call.ordinal, "started", ("approved",))])
    await other.run_thread("t", model=ScriptedModel(["Done."]))
    (answer,) = [m for m in await other.get_llm_messages("t") if isinstance(m, ToolMessage)]
    assert (answer.error, till.paid) == ("cancelled" if then == "the user writes" else "interrupted", [])


async def test_an_answer_by_hand_as_the_approval_is_put_back_stays(
    managers: tuple[ThreadManager, ThreadManager], overtaken: ThreadManager, till: Till
) -> None:
    _, other = managers
    await other.create_thread("t", messages="Go")
    await other.run_thread("t", model=ScriptedModel([[PAY]]))
    await other.approve("t", "c1")
    run, told = overtaken.run_thread("t", model=ScriptedModel([])), []
    async with run:
        async for event in run:
            told += [event.result.text] if isinstance(event, ToolCompleted | ToolSkipped | ToolFailed) else []
            if isinstance(event, ToolStarted):
                assert isinstance(overtaken.store, Overtaken)
                overtaken.store.when(moves("approved"), lambda: other.add_message("t", late("c1", "pay")))
                run.cancel()
    assert told == [m.text for m in run.result.messages if isinstance(m, ToolMessage)] == ["from outside"]
    assert (await answers(other), till.paid) == ({"c1": None}, [])


# -------------------------------------------------------------- what comes from outside between reading and writing


@pytest.fixture
async def overtaken(tmp_path: Path, till: Till, managers: Any) -> AsyncIterator[ThreadManager]:
    threads = ThreadManager(Overtaken(tmp_path / "t.db", durability="process"), ToolRegistry(till))
    yield threads
    await threads.aclose()


async def test_a_call_that_is_decided_while_a_run_withdraws_it_keeps_the_decision(
    managers: tuple[ThreadManager, ThreadManager], overtaken: ThreadManager, till: Till
) -> None:
    _, other = managers
    await other.create_thread("t", messages="Go")
    await other.run_thread("t", model=ScriptedModel([[PAY]]))
    await other.add_message("t", "Something else")
    record = (await other.get_log("t")).calls[0]
    denied = to_json(
        ToolMessage("c1", "pay", (TextPart("no"),), "denied")
    )  # by someone who had read the thread before the message
    move = Move(record.seq, record.ordinal, "answered", ("waiting",), answer=denied)
    assert isinstance(overtaken.store, Overtaken)
    overtaken.store.when(moves("answered"), lambda: other.store.commit("t", [move]))
    assert (await overtaken.run_thread("t", model=ScriptedModel(["Done."]))).text == "Done."
    assert await answers(other) == {"c1": "denied"}


@pytest.mark.parametrize("approved", [False, True])
async def test_a_call_that_gets_its_answer_right_before_it_begins_does_not_begin(
    managers: tuple[ThreadManager, ThreadManager], overtaken: ThreadManager, till: Till, approved: bool
) -> None:
    _, other = managers
    asks = PAY if approved else SLOW
    await other.store.create("t", {}, planned(asks, ToolCall("c9", "slow")))
    if approved:
        await other.run_thread("t", model=ScriptedModel([]))
        await other.approve("t", "c1")
    assert isinstance(overtaken.store, Overtaken)
    overtaken.store.when(moves("started"), lambda: other.add_message("t", late(asks.id, asks.name)))
    model = ScriptedModel(["Done."])
    events = [e async for e in overtaken.run_thread("t", model=model)]
    assert asks.id not in [e.call.id for e in events if isinstance(e, ToolStarted)]
    assert [e.result.text for e in events if isinstance(e, ToolCompleted) and e.call.id == asks.id] == ["from outside"]
    assert till.paid == []
    assert till.slept == 1
    assert [m.text for m in model.requests[0].messages if isinstance(m, ToolMessage)] == ["from outside", "slept"]


async def test_the_answer_that_is_there_first_stays(
    managers: tuple[ThreadManager, ThreadManager], overtaken: ThreadManager, till: Till
) -> None:
    _, other = managers
    await other.create_thread("t", messages="Go")
    assert isinstance(overtaken.store, Overtaken)
    overtaken.store.when(moves("answered"), lambda: other.add_message("t", late("c2", "slow")))
    model = ScriptedModel([[SLOW], "Done."])
    result = await overtaken.run_thread("t", model=model)
    told = [m.text for m in model.requests[1].messages if isinstance(m, ToolMessage)]
    assert told == [m.text for m in result.messages if isinstance(m, ToolMessage)] == ["from outside"]
    assert [m.text for m in await other.get_llm_messages("t") if isinstance(m, ToolMessage)] == ["from outside"]


async def test_a_call_that_gets_its_answer_right_before_it_waits_does_not_wait(
    managers: tuple[ThreadManager, ThreadManager], overtaken: ThreadManager, till: Till
) -> None:
    _, other = managers
    await other.store.create("t", {}, planned(PAY))
    assert isinstance(overtaken.store, Overtaken)
    overtaken.store.when(moves("waiting"), lambda: other.add_message("t", late("c1", "pay")))
    run = overtaken.run_thread("t", model=ScriptedModel(["Done."]))
    events = [e async for e in run]
    assert not any(isinstance(e, ApprovalRequired) for e in events)
    assert (run.result.finish, run.result.pending, till.paid) == ("stop", (), [])


async def test_an_answer_from_outside_for_a_call_that_changes_meanwhile(
    managers: tuple[ThreadManager, ThreadManager], till: Till, tmp_path: Path
) -> None:
    first, _ = managers

    class Behind(SQLiteStore):
        act: Callable[[], Any] | None = None

        async def commit(
            self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None
        ) -> tuple[int, ...]:
            if (act := self.act) is not None:
                self.act = None
                await act()
            return await super().commit(thread_id, changes, fence=fence)

    await first.create_thread("t", messages="Go")
    await first.run_thread("t", model=ScriptedModel([[PAY, PAY_MORE]]))
    behind = ThreadManager(Behind(tmp_path / "t.db", durability="process"))
    assert isinstance(behind.store, Behind)
    behind.store.act = lambda: first.approve("t", "c1")
    await behind.add_message("t", late("c1", "pay"))  # it has no answer yet, approved or not
    behind.store.act = lambda: first.deny("t", "c3")
    with pytest.raises(ConfigError, match="no call 'c3' of thread 't' waits for an answer"):
        await behind.add_message("t", late("c3", "pay"))
    await behind.aclose()
