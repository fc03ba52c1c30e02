"""What a person decides about the calls of a sub-agent is done, however the run ends that was to do it.

In a thread, the next run acts on it. Without one, the calls that did not start are in `pending` again.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from itertools import count, product
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pytest
from deciding import EDITED, Decide

from agentkit import Agent, Approved, Budget, Denied, ProcessorConfig, ThreadManager, ToolCall, openapi_schema
from agentkit.agent import RunResult
from agentkit.errors import ConfigError
from agentkit.events import CallEnd, Finish, SourceEvent, Text, ToolCompleted, ToolFailed, ToolSkipped
from agentkit.messages import ToolMessage
from agentkit.models.base import ModelRequest
from agentkit.processor.config import Strategy
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore

pytestmark = pytest.mark.anyio

How = Literal["cancel", "token", "task"]
CHOICES: Final[tuple[Decide | None, ...]] = ("approve", "edit", "deny", None)
NOWHERE: Final = 10**9
SOAK: Final = int(os.environ.get("AGENTKIT_EXAMPLES", "0")) >= 100


class Till:
    """Pays, and takes its time."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    @openapi_schema(requires_approval=True)
    async def pay(self, n: int) -> str:
        """Pay."""
        self.paid.append(n)
        await asyncio.sleep(0.002)
        return f"paid {n}"


class Calls:
    """A model that makes these calls first, and then has nothing more to say."""

    format = None

    def __init__(self, *calls: ToolCall) -> None:
        self.name, self.calls = "calls", calls

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        if any(isinstance(m, ToolMessage) for m in request.messages):
            yield Text("Done.")
        else:
            for index, call in enumerate(self.calls):
                yield CallEnd(index, call)
        yield Finish("stop")


class Case(NamedTuple):
    """What is decided about the calls inside, and how the run ends that is to act on it."""

    choices: tuple[Decide | None, ...]
    depth: int = 1
    how: How = "cancel"
    where: int = NOWHERE
    strategy: Strategy = "parallel"
    budget: int | None = None
    own_budget: int | None = None
    timeout: float | None = None
    agents: int = 1

    def office(self, till: Till, *hooks: Any, lacks: str = "") -> Agent[Any, Any]:
        """The agents. Only those of the run that is to end early have its hook, and limits."""
        plain = not hooks
        config = ProcessorConfig(strategy=self.strategy)
        calls = [ToolCall(f"x{n}", "pay", {"n": n}) for n in range(1, len(self.choices) + 1)]
        own = None if plain or self.own_budget is None else Budget(tool_calls=self.own_budget)
        agent = Agent(Calls(*calls), [] if lacks == "pay" else [till], config=config, budget=own, name="clerk")
        for level in range(1, self.depth):
            tools = [agent.as_tool("ask", "Asks.")]
            agent = Agent(Calls(ToolCall(f"m{level}", "ask", {"task": "t"})), tools, name=f"middle{level}")
        asks = [ToolCall(f"c{n}", "ask", {"task": "t"}) for n in range(1, self.agents + 1)]
        budget = None if plain or self.budget is None else Budget(tool_calls=self.budget)
        limits = ProcessorConfig(timeout=None if plain else self.timeout)
        tools = [] if lacks == "ask" else [agent.as_tool("ask", "Asks.")]
        return Agent(Calls(*asks), tools, budget=budget, config=limits, hooks=hooks, name="boss")

    def of(self, id: str) -> Decide | None:
        """What is decided about a call."""
        return self.choices[int(id.rpartition("/x")[2]) - 1]

    @property
    def agreed(self) -> list[int]:
        """What is to be paid for each of the agents, if the calls without a decision are approved in the end."""
        agreed = [EDITED if what == "edit" else n for n, what in enumerate(self.choices, 1) if what != "deny"]
        return sorted(agreed * self.agents)


class Ender:
    """Ends a run at one of its events, which it counts."""

    seen = 0

    async def ended_run(self, case: Case, start: Any) -> RunResult[Any]:
        """The result of a run that is ended as the case wants."""
        token, runs = asyncio.Event(), []

        def end(event: object, run: object) -> None:
            self.seen += 1
            if self.seen == case.where:
                if case.how == "cancel":
                    runs[0].cancel()
                elif case.how == "token":
                    token.set()
                else:
                    task.cancel()

        async def act() -> None:
            runs.append(start(token, end))
            await runs[0].complete()

        task = asyncio.create_task(act())
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
        return runs[0].result  # type: ignore[no-any-return]


def decision(what: Decide | None) -> Approved | Denied:
    return Denied("no") if what == "deny" else Approved({"n": EDITED} if what == "edit" else None)


async def in_a_thread(case: Case, path: Path, number: int) -> bool:
    """Play a case in a thread; whether the run ended early."""
    till, ender, t = Till(), Ender(), f"t{number}"
    told: Counter[tuple[str, str]] = Counter()

    def hear(event: object, run: Any) -> None:
        if isinstance(event, ToolCompleted | ToolFailed | ToolSkipped) and event.result.code != "denied":
            told[run.thread_id, event.call.id] += 1

    async with ThreadManager(SQLiteStore(path, durability="process"), hooks=[hear]) as threads:
        await threads.say(t, "Go.", agent=case.office(till))
        calls = await threads.pending(t)
        assert len(calls) == len(case.choices) * case.agents
        for call in calls:
            what = case.of(call.id)
            if what == "deny":
                await threads.deny(t, call.id, "no")
            elif what is not None:
                await threads.approve(t, call.id, arguments={"n": EDITED} if what == "edit" else None)
        undecided = {call.id for call in calls if case.of(call.id) is None}

        def start(token: asyncio.Event, end: Any) -> Any:
            return threads.run_agent(t, case.office(till, end), cancel=token)

        result = await ender.ended_run(case, start)
        assert {call.id for call in await threads.pending(t)} == undecided, case
        assert {call.id for call in result.pending} <= undecided, case
        assert result.finish != "approval" or result.pending, case
        result = await threads.run_agent(t, case.office(till))
        assert {call.id for call in await threads.pending(t)} == {call.id for call in result.pending} == undecided, case
        for id in undecided:
            await threads.approve(t, id)
        result = await threads.run_agent(t, case.office(till))
        assert result.finish == "stop", case
        check_the_end(case, till, result)
        assert set(told.values()) <= {1}, (case, told)
        for thread in await threads.list_threads(limit=4):
            assert all(call.status == "answered" for call in (await threads.get_log(thread.id)).calls), case
    return ender.seen >= case.where


async def in_memory(case: Case) -> bool:
    """Play a case without a store; whether the run ended early."""
    till, ender = Till(), Ender()
    asked = await case.office(till).run("Go.")
    assert len(asked.pending) == len(case.choices) * case.agents
    decisions = {call.id: decision(case.of(call.id)) for call in asked.pending if case.of(call.id) is not None}

    def start(token: asyncio.Event, end: Any) -> Any:
        return case.office(till, end).stream(asked, decisions=decisions, cancel=token)

    result = await ender.ended_run(case, start)
    started = Counter(till.paid)
    for call in result.pending:
        assert case.of(call.id) is None or call.id in decisions
    undecided = {call.id for call in asked.pending if case.of(call.id) is None}
    assert undecided <= {call.id for call in result.pending}, case
    again = {call.id: decision(case.of(call.id)) for call in result.pending}
    assert len(again) >= sum((Counter(case.agreed) - started).values()), case
    if again:
        result = await case.office(till).run(result, decisions=again)
    else:
        result = await case.office(till).run([*result.messages, "And now?"])
    assert (result.finish, result.pending) == ("stop", ()), case
    check_the_end(case, till, result)
    return ender.seen >= case.where


def check_the_end(case: Case, till: Till, result: RunResult[Any]) -> None:
    """What was agreed on was done, once; each call has one answer, which is true."""
    assert sorted(till.paid) == case.agreed, case
    answers = [m for m in result.messages if isinstance(m, ToolMessage)]
    assert sorted(m.call_id for m in answers) == [f"c{n}" for n in range(1, case.agents + 1)], case
    assert not any("waits for" in m.text for m in answers), (case, answers)


PAIRS: Final = list(product(CHOICES, CHOICES))
TRIPLES: Final = list(product(CHOICES, CHOICES, CHOICES))


def some(number: int) -> tuple[Decide | None, ...]:
    """One of the ways to decide; each has its turn."""
    return (PAIRS[number * 5 % len(PAIRS)], TRIPLES[number * 11 % len(TRIPLES)], (CHOICES[number % 2],))[number % 3]


async def play(case: Case, path: Path | None, number: int) -> bool:
    return await (in_memory(case) if path is None else in_a_thread(case, path, number))


@pytest.fixture(params=["thread", "memory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "threads.db" if request.param == "thread" else None


@pytest.mark.share(18)
@pytest.mark.parametrize("how", ["cancel", "token", "task"])
@pytest.mark.parametrize(("depth", "strategy"), [(1, "parallel"), (1, "sequential"), (2, "sequential")])
async def test_a_run_that_is_ended_at_any_event(path: Path | None, how: How, depth: int, strategy: Strategy) -> None:
    numbers = count()
    for where in count(1):
        reached = False
        for _ in range(3 if SOAK else 1):
            number = next(numbers)
            case = Case(some(number), depth, how, where, strategy)
            reached |= await play(case, path, number)
        if not reached:
            break
    assert where > 8


@pytest.mark.soak
async def test_a_run_whose_budget_ends_first(path: Path | None) -> None:
    numbers = count()
    for choices, budget, own in product([("approve",), *PAIRS], [1, 2, 3, None], [1, None]):
        if budget is not None or own is not None:
            case = Case(choices, budget=budget, own_budget=own, strategy="sequential")
            await play(case, path, next(numbers))


@pytest.mark.share(2)
async def test_agents_that_run_at_once_on_one_budget(path: Path | None) -> None:
    every = list(product(PAIRS, [2, 3, 4]))
    for number, (choices, budget) in enumerate(every if SOAK else every[::4]):
        await play(Case(choices, budget=budget, agents=2), path, number)


@pytest.mark.share(2)
async def test_a_call_whose_time_is_up(path: Path | None) -> None:
    for number, choices in enumerate(PAIRS):
        await play(Case(choices, timeout=0.001, strategy="sequential"), path, number)


@pytest.mark.parametrize("lacks", ["ask", "pay"])
@pytest.mark.parametrize("depth", [1, 2])
async def test_a_run_without_the_tool_is_refused_and_everything_stays(tmp_path: Path, lacks: str, depth: int) -> None:
    case, till = Case(("approve", "edit", None), depth), Till()
    async with ThreadManager(tmp_path / "threads.db") as threads:
        await threads.say("t", "Go.", agent=case.office(till))
        for call in await threads.pending("t"):
            if (what := case.of(call.id)) is not None:
                await threads.approve("t", call.id, arguments={"n": EDITED} if what == "edit" else None)
        for _ in range(2):
            with pytest.raises(ConfigError, match=f"no tool '{lacks}'"):
                await threads.run_agent("t", case.office(till, lacks=lacks))
            assert till.paid == []
        result = await threads.run_agent("t", case.office(till))
        assert (sorted(till.paid), len(result.pending)) == ([1, EDITED], 1)


@pytest.mark.parametrize("depth", [1, 2])
async def test_wrong_arguments_are_an_error_of_the_program(depth: int) -> None:
    case, till = Case(("approve", "edit"), depth), Till()
    agent = case.office(till)
    asked = await agent.run("Go.")
    first, second = (call.id for call in asked.pending)
    with pytest.raises(ConfigError, match=r"'x2': invalid arguments for pay") as caught:
        await agent.run(asked, decisions={first: Approved(), second: Approved({"m": 1})})
    assert till.paid == []
    result = caught.value.result
    assert result is not None
    assert result.pending == asked.pending
    with pytest.raises(ConfigError, match="no tool 'ask'"):
        await case.office(till, lacks="ask").run(asked, decisions={first: Approved(), second: Denied()})
    done = await agent.run(result, decisions={first: Approved(), second: Approved({"n": EDITED})})
    assert (done.finish, sorted(till.paid)) == ("stop", [1, EDITED])


@pytest.mark.parametrize("id", ["c1", "c1/", "c1/c9", "/c1", "c1/c1/c1"])
async def test_an_error_names_calls_inside_by_the_ids_under_which_they_are_decided(id: str) -> None:
    def pay(n: int) -> str:
        """Pay."""
        return f"paid {n}"

    payer = Agent(ScriptedModel([ToolCall("c1", "pay", {"n": 1})]), [openapi_schema(requires_approval=True)(pay)])
    boss = Agent(ScriptedModel([ToolCall("c1", "ask", {"task": "Pay."})]), [payer.as_tool("ask", "Ask.")])
    async with ThreadManager(":memory:") as threads:
        await threads.say("t", "Go.", agent=boss)
        with pytest.raises(ConfigError) as e:
            await threads.deny("t", id)
    assert str(e.value) == f"no call waits for approval under the id {id!r} in thread 't'; waiting: 'c1/c1'"
