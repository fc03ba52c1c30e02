"""Budgets hold for a run and for all that it employs, whatever works at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Guards, first_of
from agentkit.agent import Agent, Budget, Price, RunStream
from agentkit.agent.limits import REPLY_TOKENS
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import Finish, SourceEvent, Text, Usage
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, user
from agentkit.models.base import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.threads import Compaction, ThreadManager
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import ToolSpec

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


Tree = list[list[Any]]
"""What an agent does: response by response, its calls. A call is None for work, or what a sub-agent does."""

TREES: st.SearchStrategy[Any] = st.recursive(
    st.lists(st.lists(st.none(), min_size=1, max_size=3), max_size=3),
    lambda inner: st.lists(st.lists(st.none() | inner, min_size=1, max_size=3), min_size=1, max_size=2),
    max_leaves=8,
)


class House:
    """Agents that act out a tree, and what they spent."""

    def __init__(self, costs: list[int], waits: list[int], tells: bool) -> None:
        self.costs = itertools.cycle(costs)
        self.waits = itertools.cycle(waits)
        self.tells = tells
        self.spent: list[int] = []
        self.ran = 0

    def agent(self, tree: Tree, budget: Budget | None = None) -> Agent:
        """An agent; its sub-agents are its tools `ask0`, `ask1` and so on."""
        asked = [call for calls in tree for call in calls if call is not None]
        tools = [self.agent(sub).as_tool(f"ask{n}", "Ask.") for n, sub in enumerate(asked)]
        numbers = itertools.count()
        turns = [
            [ToolCall("", "work") if call is None else ToolCall("", f"ask{next(numbers)}", {"task": "x"}) for call in c]
            for c in tree
        ]

        async def speak(request: ModelRequest) -> Any:
            done = sum(isinstance(m, AssistantMessage) for m in request.messages)
            for _ in range(next(self.waits)):
                await asyncio.sleep(0)
            cost = next(self.costs)
            self.spent.append(cost)
            said: list[Any] = turns[done] if done < len(turns) else ["done"]
            return [*said, Usage(cost // 2, cost - cost // 2)] if self.tells else said

        async def work() -> str:
            """Work."""
            self.ran += 1
            await asyncio.sleep(0)
            return "ok"

        return Agent(ScriptedModel(speak), [work, *tools], budget=budget, max_repeats=None, max_depth=9, max_tokens=100)


COSTS = st.lists(st.integers(2, 100), min_size=1, max_size=5)
WAITS = st.lists(st.integers(0, 4), min_size=1, max_size=5)


@given(TREES, COSTS, WAITS, st.integers(1, 800))
def test_tokens_are_overshot_by_less_than_one_response(
    tree: Tree, costs: list[int], waits: list[int], most: int
) -> None:
    house = House(costs, waits, tells=True)
    result = asyncio.run(house.agent(tree, Budget(tokens=most)).run("x"))
    assert sum(house.spent) < most + max(house.spent)
    assert result.usage.input_tokens + result.usage.output_tokens == sum(house.spent)
    assert not result.estimated
    if sum(house.spent) < most:
        assert result.finish == "stop"


@given(TREES, COSTS, WAITS, st.integers(1, 800))
def test_cost_is_overshot_by_less_than_a_response(tree: Tree, costs: list[int], waits: list[int], most: int) -> None:
    house = House(costs, waits, tells=True)
    budget = Budget(cost=most / 1_000_000, prices={"scripted": Price(1, 1)})
    asyncio.run(house.agent(tree, budget).run("x"))
    assert sum(house.spent) < most + max(house.spent) + 1e-6


@given(TREES, WAITS, st.integers(1, 12))
def test_calls_are_never_overshot(tree: Tree, waits: list[int], most: int) -> None:
    house = House([2], waits, tells=True)
    result = asyncio.run(house.agent(tree, Budget(tool_calls=most)).run("x"))
    asked = sum(isinstance(m, ToolMessage) and m.name.startswith("ask") and m.error != "limit" for m in result.messages)
    assert house.ran + asked <= most
    replies = [m for m in result.messages if isinstance(m, AssistantMessage)]
    assert [len(m.calls) for m in replies] == [*map(len, tree), 0][: len(replies)]  # all that were written are there
    answered = [m.call_id for m in result.messages if isinstance(m, ToolMessage)]
    assert answered == [call.id for m in replies for call in m.calls]


@given(TREES, WAITS)
def test_without_a_bound_everything_is_done_at_once(tree: Tree, waits: list[int]) -> None:
    def works(tree: Tree) -> int:
        return sum(1 if call is None else works(call) for calls in tree for call in calls)

    house = House([2], waits, tells=True)
    result = asyncio.run(house.agent(tree).run("x"))
    assert (result.finish, house.ran) == ("stop", works(tree))


# ---------------------------------------------------------------- calls


WORKS = [[None] * 5] * 3


@pytest.mark.parametrize("agents", [1, 4, 8])
async def test_sub_agents_at_once_share_the_calls(agents: int) -> None:
    house = House([2], [1], tells=True)
    result = await house.agent([[WORKS] * agents], Budget(tool_calls=10)).run("x")
    assert (result.finish, house.ran + agents) == ("call_budget", 10)


async def test_the_calls_that_are_left_are_for_who_comes_first() -> None:
    house = House([2], [0], tells=True)
    boss = house.agent([[WORKS, WORKS]], Budget(tool_calls=4))
    result = await boss.run("x")
    first, second = [m.text for m in result.messages if isinstance(m, ToolMessage)]
    early, not_run = "the agent stopped early (call_budget)", "not run: the run's budget for calls is exhausted"
    assert (first, house.ran) in [(early, 3), (early, 2)]
    assert second == (not_run if house.ran == 3 else early)  # it may start before the first one has made three calls


# ---------------------------------------------------------------- tokens


@pytest.mark.parametrize("agents", [1, 4, 8])
async def test_sub_agents_at_once_wait_for_each_other_where_little_is_left(agents: int) -> None:
    house = House([100], [3], tells=True)
    result = await house.agent([[WORKS] * agents], Budget(tokens=300)).run("x")
    assert (result.finish, house.spent) == ("token_budget", [100] * 3)


async def test_with_much_left_they_ask_at_once() -> None:
    under_way = 0
    most = 0

    async def speak(request: ModelRequest) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return "done"

    tools = [Agent(ScriptedModel(speak)).as_tool(f"ask{n}", "Ask.") for n in range(8)]
    boss = ScriptedModel([[ToolCall("", f"ask{n}", {"task": "x"}) for n in range(8)], "done"])
    await Agent(boss, tools, budget=Budget(tokens=10 * REPLY_TOKENS)).run("x")
    assert most == 8


@pytest.mark.parametrize(
    "larger",
    [{"max_tokens": 9_000}, {"messages": [user("word " * 9_000)]}, {"tools": [ToolSpec("f", "word " * 9_000, {})]}],
    ids=["reply", "messages", "tools"],
)
async def test_reserved_is_what_the_request_of_a_guard_may_cost(larger: dict[str, Any]) -> None:
    under_way: list[int] = [0]

    def enlarge(request: ModelRequest, run: RunStream[Any]) -> ModelRequest:
        return replace(request, **larger) if "x" in request.messages[-1].text else request

    async def speak(request: ModelRequest) -> list[str | SourceEvent]:
        under_way.append(under_way[-1] + 1)
        await asyncio.sleep(0.01)
        under_way.append(under_way[-1] - 1)
        return ["done", Usage(10, 10)]

    guards = Guards(request=[enlarge])
    tools = [Agent(ScriptedModel(speak), guards=guards, max_tokens=100).as_tool(f"ask{n}", "Ask.") for n in range(2)]
    boss = ScriptedModel([[ToolCall("", f"ask{n}", {"task": "x"}) for n in range(2)], "done"])
    result = await Agent(boss, tools, max_tokens=100, budget=Budget(tokens=8_000)).run("Ask both!")
    assert (result.finish, under_way) == ("stop", [0, 1, 0, 1, 0])


async def test_a_run_that_waits_for_its_turn_can_be_cancelled() -> None:
    asked = asyncio.Event()

    async def hang(request: ModelRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    tools = [Agent(ScriptedModel(hang)).as_tool(f"ask{n}", "Ask.") for n in range(2)]
    boss = ScriptedModel([[ToolCall("", f"ask{n}", {"task": "x"}) for n in range(2)], "done"])
    run = Agent(boss, tools, budget=Budget(tokens=1_000)).stream("x")
    task = asyncio.create_task(run.complete())
    await asked.wait()
    run.cancel()
    assert (await asyncio.wait_for(task, 30)).finish == "cancelled"


# ---------------------------------------------------------------- models that do not tell


@given(TREES, WAITS, st.integers(50, 2_000))
def test_a_model_that_tells_nothing_is_estimated(tree: Tree, waits: list[int], most: int) -> None:
    house = House([2], waits, tells=False)
    result = asyncio.run(house.agent(tree, Budget(tokens=most)).run("x"))
    assert result.estimated
    assert result.usage.input_tokens > len(house.spent)
    assert result.usage.output_tokens >= len(house.spent)


async def test_an_estimate_ends_a_run() -> None:
    house = House([2], [0], tells=False)
    result = await house.agent([[None]] * 50, Budget(tokens=1_000)).run("x")
    assert (result.finish, result.estimated) == ("token_budget", True)
    assert 1_000 <= sum(result.usage[:2]) < 1_500


async def test_without_a_budget_nothing_is_estimated() -> None:
    result = await House([2], [0], tells=False).agent([[None]]).run("x")
    assert (result.usage, result.estimated) == (Usage(), False)


@pytest.mark.parametrize("budget", [None, Budget(tokens=1_000_000)], ids=["unbounded", "bounded"])
async def test_what_the_responses_told_is_counted_once(budget: Budget | None) -> None:
    """Bounded or not, be it in several turns or in a response that goes on in a further one."""
    start, rest = '<tool_call>{"name": "page", "arguments": {"n"', ": 1}}</tool_call>"
    cut: list[Any] = [start, Usage(100, 10), Finish("length")]
    model = ScriptedModel([cut, [rest, Usage(110, 5)], ["End.", Usage(200, 2)]], format="hermes", continues=True)
    result = await Agent(model, ToolRegistry(page), budget=budget).run("x")
    assert (result.turns, result.usage, result.estimated) == (2, Usage(410, 17), False)


@pytest.mark.parametrize(("budget", "cost"), [(Budget(prices={"scripted": Price(3, 15)}), 0.0105), (None, None)])
def test_a_result_has_its_cost_where_there_are_prices(budget: Budget | None, cost: float | None) -> None:
    model = ScriptedModel([["Hi", Usage(1_000, 500)]])
    assert Agent(model, budget=budget).run_sync("Hi").cost == cost


def test_the_model_of_a_chain_that_answered_is_paid() -> None:
    chain = first_of(ScriptedModel([["Hi", Usage(1_000, 500)]], name="a"), ScriptedModel([], name="b"))
    prices = {"a": Price(3, 15), "b": Price(30, 150)}
    assert Agent(chain, budget=Budget(prices=prices)).run_sync("Hi").cost == 0.0105


async def test_a_response_that_breaks_off_costs_what_it_said() -> None:
    model = ScriptedModel([["word " * 400, ProviderError("lost", kind="connection", provider="p")]])
    with pytest.raises(ProviderError) as raised:
        await Agent(model, budget=Budget(tokens=10_000)).run("x")
    assert 300 < raised.value.result.usage.output_tokens < 700
    assert raised.value.result.estimated


async def test_a_refused_request_costs_nothing() -> None:
    model = ScriptedModel([ProviderError("no", kind="bad_request", provider="p")])
    with pytest.raises(ProviderError) as raised:
        await Agent(model, budget=Budget(tokens=10_000)).run("x")
    assert raised.value.result.usage == Usage()


# ---------------------------------------------------------------- summaries


def page(n: int) -> str:
    """Read."""
    return f"page {n} " + "words and more words " * 200


class Costly:
    """Writes summaries at a price."""

    name = "scripted:costly"
    format = None

    def __init__(self) -> None:
        self.asked = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        self.asked += 1
        yield Text("A summary.")
        yield Usage(5_000, 1_000)
        yield Finish("stop")


def reads(pages: int) -> ScriptedModel:
    return ScriptedModel([[f"Page {n}. " * 60, ToolCall("", "page", {"n": n})] for n in range(pages)] + ["End."])


def policy(model: Any) -> Compaction:
    return Compaction(
        window=4_000, keep_results=1, keep_turns=1, result_tokens=50, summary_tokens=300, summary_model=model
    )


async def test_summaries_are_paid_by_the_run() -> None:
    threads = ThreadManager(":memory:", ToolRegistry(page), compaction=policy(writer := Costly()))
    thread = await threads.create_thread(messages="Read.")
    result = await threads.run_thread(thread, model=reads(20), budget=Budget(tokens=30_000)).complete()
    assert (result.finish, writer.asked > 0) == ("token_budget", True)
    assert 30_000 <= sum(result.usage[:2]) < 36_000
    await threads.aclose()


async def test_they_count_without_a_budget_too() -> None:
    threads = ThreadManager(":memory:", ToolRegistry(page), compaction=policy(writer := Costly()))
    thread = await threads.create_thread(messages="Read.")
    result = await threads.run_thread(thread, model=reads(12)).complete()
    assert (result.finish, writer.asked > 0) == ("stop", True)
    assert result.usage == Usage(5_000 * writer.asked, 1_000 * writer.asked)
    await threads.aclose()


async def test_a_summary_that_has_no_price_is_refused_before_the_run() -> None:
    threads = ThreadManager(":memory:", ToolRegistry(page), compaction=policy(Costly()))
    budget = Budget(cost=1, prices={"scripted": Price(1, 1)})
    with pytest.raises(ConfigError, match="no price for 'scripted:costly'"):
        threads.run_thread("t", model=reads(1), budget=budget)
    await threads.aclose()
