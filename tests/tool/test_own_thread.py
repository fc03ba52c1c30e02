"""A tool that owns what only the thread that opened it may use: one thread of its own, from its constructor on."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Iterator

import pytest
from rollout_kit import hermes

from agentkit import Agent, openapi_schema
from agentkit.errors import SchemaError
from agentkit.messages import ToolCall, ToolMessage, user
from agentkit.rollout import Rollout, Sample, ScriptedPolicy, ToolKwargs, TrajectoryRecord
from agentkit.testing import ScriptedModel
from agentkit.tool import own_thread
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext

pytestmark = pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # nobody closes those of tools


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Python 3.13 warns of a connection when it is collected: in the test that has opened it."""
    yield
    gc.collect()


class Shop:
    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table tea (name text)")

    @openapi_schema(one_thread=True)
    def add(self, name: str) -> int:
        """Add a tea."""
        self.db.execute("insert into tea values (?)", [name])
        return len(self.db.execute("select * from tea").fetchall())


class Plain(Shop):
    @openapi_schema()
    def add(self, name: str) -> int:
        """Add a tea."""
        return super().add(name)


BUDGETS = {"poor": 100, "rich": 200}
TWO_AT_ONCE = [ToolCall("a", "add", {"name": "oolong"}), ToolCall("b", "add", {"name": "sencha"})]


def answers(*tools: object) -> list[str]:
    """What two calls of one response and one of the next are answered."""
    agent = Agent(ScriptedModel([TWO_AT_ONCE, ToolCall("c", "add", {"name": "assam"}), "Done."]), list(tools))
    return [m.text for m in agent.run_sync("Add them.").messages if isinstance(m, ToolMessage)]


def test_a_class_is_constructed_in_the_thread_of_its_calls() -> None:
    assert answers(Shop) == ["1", "2", "3"]


class Bank:
    """Every plain method uses the connection; each of them is called by something else."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table paid (amount int)")

    def create(self, most: int = 100) -> None:
        self.db.execute("insert into paid values (?)", [-most])

    @openapi_schema(one_thread=True, requires_approval="is_much")
    def pay(self, amount: int) -> int:
        """Pay."""
        self.db.execute("insert into paid values (?)", [amount])
        return self.sum()

    def is_much(self, call: ToolCall, context: ToolContext) -> bool:
        return bool(self.sum() + call.arguments["amount"] > 0)

    def calc_reward(self) -> float:
        return self.sum()

    def release(self) -> None:
        self.db.close()

    def sum(self) -> int:
        found: int = self.db.execute("select coalesce(sum(amount), 0) from paid").fetchone()[0]
        return found


def test_the_predicate_of_an_approval_runs_in_its_thread() -> None:
    agent = Agent(ScriptedModel([ToolCall("a", "pay", {"amount": 0}), ToolCall("b", "pay", {"amount": 5})]), [Bank])
    result = agent.run_sync("Pay.")
    assert [m.text for m in result.messages if isinstance(m, ToolMessage)] == ["0"]
    assert result.finish == "approval"


def test_the_constructor_the_hooks_and_the_predicate_of_a_trajectory_run_in_its_thread() -> None:
    policy = ScriptedPolicy([hermes("pay", amount=60), hermes("pay", amount=60), "Done."])
    samples = [Sample(id, (user("Pay."),), {"pay": ToolKwargs(create={"most": most})}) for id, most in BUDGETS.items()]

    async def all_of() -> dict[str, TrajectoryRecord]:
        return {record.sample_id: record async for record in Rollout([Bank], policy).stream(samples)}

    records = asyncio.run(all_of())
    assert {id: [call.result[:7] for call in records[id].calls] for id in BUDGETS} == {
        "poor": ["-40", "not run"],
        "rich": ["-140", "-80"],
    }
    assert [records[id].reward for id in BUDGETS] == [-40, -80]
    assert [records[id].unreleased for id in BUDGETS] == [{}, {}]


def test_what_a_trajectorys_constructor_raises_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Shop):
        def __init__(self) -> None:
            raise ValueError("no database")

    record = asyncio.run(Rollout([Broken], ScriptedPolicy(["Hi."])).run(Sample("s", (user("Hi."),))))
    assert (record.end, record.error) == ("tool_error", "add: ValueError: no database")
    assert f"raised ValueError: no database, at {__file__}:" in caplog.text


def test_an_instance_that_opens_its_connection_later_needs_no_more() -> None:
    seen: list[int] = []

    class Late:
        @openapi_schema(one_thread=True)
        def add(self, name: str) -> int:
            """Add a tea."""
            return seen.append(threading.get_ident()) or len(seen)  # type: ignore[func-returns-value]

    assert answers(Late()) == ["1", "2", "3"]
    assert len(set(seen)) == 1


def test_the_thread_ends_with_the_instance() -> None:
    gc.collect()
    registry = ToolRegistry(Shop)
    instance = id(registry.tools["add"].instance)
    assert instance in own_thread._THREADS
    del registry
    gc.collect()
    assert instance not in own_thread._THREADS


@pytest.mark.parametrize("tool", [Plain, Plain(), Shop()], ids=["no keyword", "no keyword, instance", "instance"])
def test_without_it_the_error_says_what_to_write(tool: object) -> None:
    said = answers(tool)[0]
    assert said.startswith("ProgrammingError: SQLite objects created in a thread")
    assert "@openapi_schema(one_thread=True), and pass the class" in said


def test_the_constructors_own_error_is_raised() -> None:
    class Broken(Shop):
        def __init__(self) -> None:
            raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        ToolRegistry(Broken)


def test_it_is_for_plain_functions() -> None:
    @openapi_schema(one_thread=True)
    async def add(name: str) -> int:
        """Add a tea."""
        return 1

    with pytest.raises(SchemaError, match="one_thread=True is for a plain function"):
        ToolRegistry(add)
