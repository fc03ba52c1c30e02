"""What was begun and not finished: calls that a crash interrupted, a question that was not asked."""

from __future__ import annotations

import asyncio

import pytest
from thread_kit import planned

from agentkit.agent import RunStream, TurnEnded
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.threads import Move, SQLiteStore, ThreadManager
from agentkit.threads.conversation import role_of
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


class Bank:
    """A tool that may be run again after a crash."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    @openapi_schema(idempotent=True, requires_approval=True)
    async def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return f"paid {amount}"


PAY = ToolCall("c1", "pay", {"amount": 5})


async def test_what_was_approved_and_begun_runs_again_without_asking_again() -> None:
    bank = Bank()
    threads = ThreadManager(SQLiteStore(":memory:"), ToolRegistry(bank))
    thread = await threads.create_thread(messages="Pay 5.")
    await threads.run_thread(thread, model=ScriptedModel([PAY])).complete()
    await threads.approve(thread, "c1")
    await threads.store.commit(thread, [Move(1, 0, "started", ("approved",))])  # and the process dies
    result = await threads.resume_thread(thread, model=ScriptedModel(["Paid."])).complete()
    assert (result.finish, bank.paid) == ("stop", [5])


async def test_what_was_begun_and_needs_approval_by_now_waits_for_a_person() -> None:
    bank = Bank()
    threads = ThreadManager(SQLiteStore(":memory:"), ToolRegistry(bank))
    await threads.store.create(thread := "t", {}, planned(PAY))
    (call,) = (await threads.get_log(thread)).calls
    body = {**call.body, "idempotent": True}
    await threads.store.commit(thread, [Move(1, 0, "started", ("planned",), body=body)])
    asked = await threads.resume_thread(thread, model=ScriptedModel([])).complete()
    assert (asked.finish, bank.paid) == ("approval", [])
    await threads.approve(thread, "c1")
    done = await threads.resume_thread(thread, model=ScriptedModel(["Paid."])).complete()
    assert (done.finish, bank.paid) == ("stop", [5])


async def test_a_run_that_is_cancelled_before_it_asks_for_a_better_reply_gives_its_lease_back() -> None:
    def leave(event: object, run: RunStream) -> None:
        if isinstance(event, TurnEnded):
            asyncio.get_running_loop().call_soon(run.cancel)

    threads = ThreadManager(SQLiteStore(":memory:"), hooks=[leave])
    thread = await threads.create_thread(messages="How many?")
    result = await threads.run_thread(thread, model=ScriptedModel(["Many."]), output_type=int).complete()
    assert result.finish == "cancelled"
    await threads.store.release(await threads.store.acquire(thread, "somebody else", 1))
    roles = [role_of(entry) for entry in (await threads.get_log(thread)).entries]
    assert roles in (["user", "assistant"], ["user", "assistant", "user"])  # its question was just being written
