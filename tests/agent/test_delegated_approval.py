"""A call of a sub-agent that needs approval: the whole run waits, is answered from outside, and continues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkit import Agent, Approved, Budget, ConfigError, Denied, RunResult, ThreadManager, openapi_schema
from agentkit.events import ApprovalRequired
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore

Decide = dict[str, Approved | Denied]


class Bank:
    """Counts what really happened."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @openapi_schema
    def look_up(self, name: str) -> str:
        """Look up an account."""
        self.done.append(f"look_up {name}")
        return f"account of {name}"

    @openapi_schema(requires_approval=True)
    def pay(self, amount: int) -> str:
        """Pay."""
        self.done.append(f"pay {amount}")
        return f"paid {amount}"


LOOK_UP = ToolCall("a", "look_up", {"name": "Ada"})
PAY = ToolCall("p", "pay", {"amount": 5})
ASK = ToolCall("c1", "ask_clerk", {"task": "Pay Ada."})


def office(bank: Bank, boss: list[Any], clerk: list[Any], **options: Any) -> Agent:
    helper = Agent(ScriptedModel(clerk), [bank], system="You pay.", name="clerk")
    return Agent(ScriptedModel(boss), [helper.as_tool("ask_clerk", "Pays."), bank], **options)


def answers(result: RunResult) -> list[str]:
    return [message.text for message in result.messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize(
    ("decision", "done", "answer"),
    [
        (Approved(), ["look_up Ada", "pay 5"], "Paid."),
        (Approved({"amount": 4}), ["look_up Ada", "pay 4"], "Paid."),
        (Denied("too dear"), ["look_up Ada"], "Paid."),
    ],
)
def test_the_run_waits_and_continues(decision: Approved | Denied, done: list[str], answer: str) -> None:
    bank = Bank()
    agent = office(bank, [ASK, "All done."], [LOOK_UP, PAY, "Paid."])
    waits = agent.run_sync("Pay Ada five.")
    assert (waits.finish, answers(waits), bank.done) == ("approval", [], ["look_up Ada"])
    assert [(call.id, call.name, call.arguments) for call in waits.pending] == [("c1/p", "pay", {"amount": 5})]

    over = agent.run_sync(waits, decisions={"c1/p": decision})
    assert (over.text, answers(over), bank.done) == ("All done.", [answer], done)


def test_undecided_it_waits_again() -> None:
    bank = Bank()
    agent = office(bank, [ASK, "All done."], [LOOK_UP, PAY, "Paid."])
    waits = agent.run_sync(agent.run_sync("Pay Ada five."))
    assert (waits.finish, [call.id for call in waits.pending]) == ("approval", ["c1/p"])
    assert agent.run_sync(waits, decisions={"c1/p": Approved()}).text == "All done."
    assert bank.done == ["look_up Ada", "pay 5"]


def test_other_calls_of_the_same_response_are_answered_or_wait_on_their_own() -> None:
    bank = Bank()
    own = ToolCall("c2", "pay", {"amount": 1})
    agent = office(bank, [[ASK, own, ToolCall("c3", "look_up", {"name": "Bo"})], "All done."], [PAY, "Paid."])
    waits = agent.run_sync("Go.")
    assert ([call.id for call in waits.pending], bank.done) == (["c1/p", "c2"], ["look_up Bo"])

    part = agent.run_sync(waits, decisions={"c2": Approved()})
    assert (part.finish, [call.id for call in part.pending]) == ("approval", ["c1/p"])
    over = agent.run_sync(part, decisions={"c1/p": Approved()})
    assert (over.text, sorted(bank.done)) == ("All done.", ["look_up Bo", "pay 1", "pay 5"])


def test_agents_three_deep() -> None:
    bank = Bank()
    inner = Agent(ScriptedModel([PAY, "paid"]), [bank])
    middle = Agent(ScriptedModel([ToolCall("m", "inner", {"task": "Pay."}), "told"]), [inner.as_tool("inner", "Pays.")])
    outer = Agent(
        ScriptedModel([ToolCall("o", "middle", {"task": "Pay."}), "done"]), [middle.as_tool("middle", "Asks.")]
    )
    waits = outer.run_sync("Go.")
    assert [call.id for call in waits.pending] == ["o/m/p"]
    assert outer.run_sync(waits, decisions={"o/m/p": Approved()}).text == "done"
    assert bank.done == ["pay 5"]


def test_a_run_that_is_cancelled_answers_the_call_that_waits_inside() -> None:
    bank = Bank()
    hangs = ToolCall("h", "hang", {})

    async def hang() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return "never"

    async def cancelled() -> RunResult:
        helper = Agent(ScriptedModel([PAY]), [bank])
        agent = Agent(ScriptedModel([[ASK, hangs]]), [helper.as_tool("ask_clerk", "Pays."), hang])
        run = agent.stream("Go.")
        async for event in run:
            if isinstance(event, ApprovalRequired):
                run.cancel()
        return run.result

    result = asyncio.run(cancelled())
    errors = {message.call_id: message.error for message in result.messages if isinstance(message, ToolMessage)}
    assert (result.finish, result.pending, errors) == ("cancelled", (), {"c1": "cancelled", "h": "cancelled"})
    assert bank.done == []


@pytest.mark.parametrize("stopped", ["cancelled", "time_budget"])
def test_a_run_that_is_stopped_before_it_acts_waits_for_the_same(stopped: str) -> None:
    bank = Bank()
    own, denied = ToolCall("c2", "pay", {"amount": 1}), ToolCall("c3", "pay", {"amount": 2})
    clerk = ScriptedModel([LOOK_UP, PAY, "Paid."])
    tools = [Agent(clerk, [bank], name="clerk").as_tool("ask_clerk", "Pays."), bank]
    agent = Agent(ScriptedModel([[ASK, own, denied], "All done."]), tools)
    hurried = Agent(ScriptedModel([]), tools, budget=Budget(seconds=1e-9))
    waits = agent.run_sync("Go.")
    decisions: Decide = {"c1/p": Approved(), "c2": Approved({"amount": 3}), "c3": Denied("no")}

    async def stop() -> RunResult:
        run = (agent if stopped == "cancelled" else hurried).stream(waits, decisions=decisions)
        if stopped == "cancelled":
            run.cancel()
        return await run.complete()

    result = asyncio.run(stop())
    assert (result.finish, bank.done) == (stopped, ["look_up Ada"])
    assert result.pending == waits.pending[: len(result.pending)], "a call that is denied needs no time"
    over = agent.run_sync(result, decisions={call.id: decisions[call.id] for call in result.pending})
    assert (over.text, sorted(bank.done)) == ("All done.", ["look_up Ada", "pay 3", "pay 5"])


def test_the_event_says_what_waits_inside() -> None:
    agent = office(Bank(), [ASK], [PAY])

    async def required() -> list[ApprovalRequired]:
        async with agent.stream("Go.") as run:
            return [event async for event in run if isinstance(event, ApprovalRequired)]

    [event] = asyncio.run(required())
    assert (event.call.id, [call.id for call in event.inside]) == ("c1", ["c1/p"])


def test_messages_alone_do_not_contain_the_sub_agents_conversation() -> None:
    agent = office(Bank(), [ASK, "All done."], [PAY, "Paid."])
    waits = agent.run_sync("Go.")
    with pytest.raises(ConfigError, match=r"pass the result itself, as in agent.run\(result, decisions=\{…\}\)"):
        agent.run_sync(waits.messages, decisions={"c1/p": Approved()})
    with pytest.raises(ConfigError, match="no call waits under the id 'c1'; waiting: 'c1/p'"):
        agent.run_sync(waits, decisions={"c1": Approved()})


def threads(path: Path, then: Callable[[ThreadManager], Any]) -> Any:
    """Do something in a new process's place: a new manager on the same file."""

    async def run() -> Any:
        async with ThreadManager(SQLiteStore(path)) as manager:
            return await then(manager)

    return asyncio.run(run())


@pytest.mark.parametrize("approve", [True, False])
def test_in_a_thread_another_process_decides_and_continues(tmp_path: Path, approve: bool) -> None:
    bank, path = Bank(), tmp_path / "threads.db"

    async def start(manager: ThreadManager) -> RunResult:
        await manager.create_thread("t", messages="Pay Ada five.")
        return await manager.run_agent("t", office(bank, [ASK], [LOOK_UP, PAY]))

    waits = threads(path, start)
    assert (waits.finish, [call.id for call in waits.pending], bank.done) == ("approval", ["c1/p"], ["look_up Ada"])

    async def decide(manager: ThreadManager) -> None:
        assert [call.id for call in await manager.pending("t")] == ["c1/p"]
        if approve:
            await manager.approve("t", "c1/p", by="Bo")
        else:
            await manager.deny("t", "c1/p", "too dear")
        assert await manager.pending("t") == ()
        with pytest.raises(ConfigError, match="no call waits for approval under the id"):
            await manager.approve("t", "c1/p")

    threads(path, decide)

    async def go(manager: ThreadManager) -> RunResult:
        return await manager.run_agent("t", office(bank, ["All done."], ["Paid."]))

    over = threads(path, go)
    assert (over.text, answers(over)) == ("All done.", ["Paid."])
    assert bank.done == ["look_up Ada", *(["pay 5"] if approve else [])]


@pytest.mark.parametrize("decide", ["approve", "deny"])
def test_in_a_thread_the_callers_call_itself_cannot_be_decided(tmp_path: Path, decide: str) -> None:
    bank, path = Bank(), tmp_path / "threads.db"

    async def start(manager: ThreadManager) -> RunResult:
        await manager.create_thread("t", messages="Pay Ada five.")
        await manager.run_agent("t", office(bank, [ASK], [PAY]))
        with pytest.raises(ConfigError, match="under the id 'c1' in thread 't'; waiting: 'c1/p'"):
            await getattr(manager, decide)("t", "c1")
        await manager.approve("t", "c1/p")
        with pytest.raises(ConfigError, match="'c1' waits for one in its sub-agent, but this run has no tool 'ask_cl"):
            await manager.run_thread("t", model=ScriptedModel([])).complete()
        return await manager.run_agent("t", office(bank, ["All done."], ["Paid."]))

    assert (threads(path, start).text, bank.done) == ("All done.", ["pay 5"])


def test_in_a_thread_the_user_may_write_instead_of_deciding(tmp_path: Path) -> None:
    bank, path = Bank(), tmp_path / "threads.db"

    async def start(manager: ThreadManager) -> RunResult:
        await manager.create_thread("t", messages="Pay Ada five.")
        await manager.run_agent("t", office(bank, [ASK], [PAY]))
        await manager.add_message("t", "Leave it.")
        assert await manager.pending("t") == ()
        return await manager.run_agent("t", office(bank, ["As you like."], []))

    over = threads(path, start)
    assert (over.text, bank.done) == ("As you like.", [])
    assert over.messages[2].error == "interrupted"
