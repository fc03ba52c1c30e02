"""Who decides about a call at the moment of its event is heard; and so is an answer that comes from outside a run."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from agentkit.agent import Agent, RunFinish, RunStream
from agentkit.errors import ConfigError
from agentkit.events import ApprovalRequired, Event, SourceEvent, Text, ToolCompleted, ToolSkipped, ToolStarted
from agentkit.messages import AssistantMessage, TextPart, ToolCall, ToolMessage
from agentkit.models.base import ModelRequest
from agentkit.processor import ProcessorConfig
from agentkit.processor.config import Execute, Strategy
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.threads.store import Change, Move
from agentkit.tool.codec import to_json
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio

PAY, SLOW, PAY_MORE = ToolCall("c1", "pay", {"n": 1}), ToolCall("c2", "slow"), ToolCall("c3", "pay", {"n": 2})
Decide = Literal["approve", "deny", "edit"]
DONE: dict[Decide, list[int]] = {"approve": [1], "deny": [], "edit": [7]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Till:
    """Tools that remember what they did."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.slept = 0

    @openapi_schema(requires_approval=True)
    async def pay(self, n: int) -> str:
        """Pay."""
        self.paid.append(n)
        return f"paid {n}"

    @openapi_schema
    async def slow(self) -> str:
        """Take some time."""
        self.slept += 1
        await asyncio.sleep(0)
        return "slept"


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


async def decide(threads: ThreadManager, what: Decide, call: str = "c1") -> None:
    if what == "deny":
        await threads.deny("t", call, "no")
    else:
        await threads.approve("t", call, arguments={"n": 7} if what == "edit" else None)


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


# -------------------------------------------------------------- what comes from outside between reading and writing


class Overtaken(SQLiteStore):
    """A store in which someone else is faster: `act` happens right before a commit that makes a chosen change."""

    def when(self, chosen: Callable[[Change], bool], act: Callable[[], Any]) -> None:
        self._chosen: Callable[[Change], bool] | None = chosen
        self._act = act

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        chosen = getattr(self, "_chosen", None)
        if fence is not None and chosen is not None and any(map(chosen, changes)):
            self._chosen = None
            await self._act()
        return await super().commit(thread_id, changes, fence=fence)


@pytest.fixture
async def overtaken(tmp_path: Path, till: Till, managers: Any) -> AsyncIterator[ThreadManager]:
    threads = ThreadManager(Overtaken(tmp_path / "t.db", durability="process"), ToolRegistry(till))
    yield threads
    await threads.aclose()


def moves(to: str) -> Callable[[Change], bool]:
    return lambda change: isinstance(change, Move) and change.to == to


def late(id: str, name: str) -> ToolMessage:
    return ToolMessage(id, name, (TextPart("from outside"),))


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
    await other.create_thread("t", messages=["Go", AssistantMessage((asks, ToolCall("c9", "slow")))])
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
    await other.create_thread("t", messages=["Go", AssistantMessage((PAY,))])
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
