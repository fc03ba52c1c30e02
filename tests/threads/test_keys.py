"""Who may be taken for whom: idempotency keys, and the threads of sub-agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from thread_kit import planned

from agentkit import Agent, ThreadManager, ToolCall, ToolContext, openapi_schema
from agentkit.errors import ConfigError, ThreadBusy, ThreadNotFound
from agentkit.events import ToolStarted
from agentkit.messages import user
from agentkit.testing import ScriptedModel
from agentkit.threads.entries import edited_call, planned_call

pytestmark = pytest.mark.anyio


class Bank:
    """Pays once per key."""

    def __init__(self) -> None:
        self.paid: dict[str, int] = {}

    @openapi_schema(idempotent=True)
    async def pay(self, amount: int, context: ToolContext) -> str:
        """Pay."""
        self.paid.setdefault(context.idempotency_key, amount)
        return f"paid {self.paid[context.idempotency_key]}"

    @openapi_schema(requires_approval=True)
    async def refund(self, amount: int) -> str:
        """Refund."""
        return f"refunded {amount}"


async def test_a_thread_that_is_made_anew_has_other_keys() -> None:
    bank, threads = Bank(), ThreadManager(":memory:")
    threads.add_tool(bank)
    for amount in (10, 999):
        await threads.create_thread("ada", messages="Pay.")
        await threads.run_thread("ada", model=ScriptedModel([ToolCall("c1", "pay", {"amount": amount}), "ok"]))
        await threads.delete_thread("ada")
    assert list(bank.paid.values()) == [10, 999]


async def test_two_runs_without_a_store_have_other_keys() -> None:
    bank = Bank()
    for amount in (10, 999):
        await Agent(ScriptedModel([ToolCall("c1", "pay", {"amount": amount}), "ok"]), bank).run("Pay.")
    assert list(bank.paid.values()) == [10, 999]


async def test_a_sub_agent_takes_no_thread_of_that_name_and_goes_with_its_caller() -> None:
    threads = ThreadManager(":memory:")
    await threads.create_thread("z/call_1", messages="I am someone else.")
    for task in ("customer 3?", "customer 4?"):
        model = ScriptedModel(["known"])
        boss = Agent(
            ScriptedModel([ToolCall("call_1", "expert", {"task": task}), "ok"]),
            Agent(model).as_tool("expert", "Knows."),
        )
        await threads.create_thread("z", messages="Go")
        await threads.run_agent("z", boss)
        assert list(model.requests[0].messages) == [user(task)]
        await threads.delete_thread("z")
    assert [thread.id for thread in await threads.list_threads()] == ["z/call_1"]


async def test_an_edit_that_the_tool_does_not_take_is_refused_and_can_be_made_again() -> None:
    threads = ThreadManager(":memory:")
    threads.add_tool(Bank)
    thread = await threads.create_thread(messages="Refund 5.")
    await threads.run_thread(thread, model=ScriptedModel([ToolCall("c1", "refund", {"amount": 5})]))
    with pytest.raises(ConfigError, match="/amount"):
        await threads.approve(thread, "c1", arguments={})
    await threads.approve(thread, "c1", arguments={"amount": 4})
    result = await threads.run_thread(thread, model=ScriptedModel(["Done."]))
    assert "refunded 4" in str(result.messages[2])


def test_an_edited_call_has_another_key() -> None:
    """A service that has seen the first key would answer for the arguments that came with it."""
    call = planned_call(ToolCall("c1", "pay", {"amount": 5}), idempotent=True)
    edited = edited_call(call, ToolCall("c1", "pay", {"amount": 4}))
    assert edited["key"] != call["key"]
    assert {**edited, "key": call["key"]} == planned_call(ToolCall("c1", "pay", {"amount": 4}), idempotent=True) | {
        "key": call["key"]
    }


@pytest.mark.parametrize("approved", [True, False])
async def test_what_a_user_said_last_goes_before_an_approval(approved: bool) -> None:
    threads = ThreadManager(":memory:")
    threads.add_tool(Bank)
    thread = await threads.create_thread(messages="Refund 5.")
    await threads.run_thread(thread, model=ScriptedModel([ToolCall("c1", "refund", {"amount": 5})]))
    if approved:
        await threads.approve(thread, "c1")
    await threads.add_message(thread, "Stop! Do not refund.")
    assert await threads.pending(thread) == ()
    if not approved:
        with pytest.raises(ConfigError, match="the user wrote again"):
            await threads.approve(thread, "c1")
    result = await threads.run_thread(thread, model=ScriptedModel(["All right."]))
    assert result.messages[2].error == "cancelled"  # type: ignore[union-attr]


async def test_a_run_that_this_process_left_says_so(tmp_path: Path) -> None:
    threads = ThreadManager(tmp_path / "t.db")
    threads.add_tool(Bank)
    thread = await threads.create_thread(messages="Pay.")
    async with threads.run_thread(thread, model=ScriptedModel([ToolCall("c1", "pay", {"amount": 5}), "ok"])) as run:
        async for event in run:
            if isinstance(event, ToolStarted):
                with pytest.raises(ThreadBusy, match=r"this process on .* Wait for that run"):
                    await threads.run_thread(thread, model=ScriptedModel([]))
    with pytest.raises(ThreadNotFound):
        await threads.run_thread("nowhere", model=ScriptedModel([]))
    await threads.aclose()


async def test_a_budget_of_calls_holds_for_those_of_an_earlier_run_too() -> None:
    from agentkit import Budget

    bank, threads = Bank(), ThreadManager(":memory:")
    threads.add_tool(bank)
    calls = [ToolCall(f"c{n}", "pay", {"amount": n}) for n in range(3)]
    await threads.store.create(thread := "t", {}, planned(*calls))
    result = await threads.run_thread(thread, model=ScriptedModel([]), budget=Budget(tool_calls=1))
    assert (result.finish, list(bank.paid.values())) == ("call_budget", [0])
    result = await threads.run_thread(thread, model=ScriptedModel(["Paid."]))
    assert (result.finish, list(bank.paid.values())) == ("stop", [0, 1, 2])
