"""What a result says about its last reply: what guards accepted is not what a later reply says."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import (
    Agent,
    Approved,
    AskAgain,
    Guards,
    Refused,
    ThreadManager,
    ToolCall,
    openapi_schema,
)
from agentkit.agent import RunStream
from agentkit.errors import ProviderError
from agentkit.messages import AssistantMessage, ToolMessage, user
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@openapi_schema(terminates=True, requires_approval=True)
def submit(answer: str) -> str:
    """Submit the answer."""
    return "submitted"


@openapi_schema(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


def add(a: int) -> int:
    """Add."""
    return a


SUBMIT = ToolCall("s", "submit", {"answer": "a secret"})


def refuses(reply: AssistantMessage, run: RunStream[Any]) -> Refused:
    return Refused("no secrets")


def test_a_call_that_ends_the_run_is_guarded_after_its_approval_too() -> None:
    agent = Agent(ScriptedModel([["Here:", SUBMIT]]), [submit], guards=Guards(reply=[refuses]))
    waits = agent.run_sync("?")
    assert (waits.finish, waits.text) == ("approval", "")
    over = agent.run_sync(waits, decisions={"s": Approved()})
    assert (over.finish, over.text, over.guard_reason) == ("refused_by_guard", "", "no secrets")


async def test_a_stored_call_that_ends_the_run_is_guarded_after_its_approval_too() -> None:
    async with ThreadManager(":memory:") as threads:
        agent = Agent(ScriptedModel([["Here:", SUBMIT]]), [submit], guards=Guards(reply=[refuses]))
        await threads.say("t", "?", agent=agent)
        await threads.approve("t", "s")
        over = await threads.run_agent("t", agent)
    assert (over.finish, over.text, over.guard_reason) == ("refused_by_guard", "", "no secrets")


def test_a_caller_reads_nothing_of_an_approved_call_that_is_refused_as_the_reply() -> None:
    clerk = Agent(ScriptedModel([SUBMIT]), [submit], guards=Guards(reply=[refuses]))
    model = ScriptedModel([ToolCall("c", "ask", {"task": "?"}), "done"])
    boss = Agent(model, clerk.as_tool("ask", "Asks."))
    waits = boss.run_sync("?")
    over = boss.run_sync(waits, decisions={"c/s": Approved()})
    (answer,) = (m.text for m in over.messages if isinstance(m, ToolMessage))
    assert answer == "the agent stopped early (refused_by_guard); a guard: no secrets"


def test_a_run_that_only_answers_waiting_calls_has_the_text_of_their_reply() -> None:
    agent = Agent(ScriptedModel([["Here:", SUBMIT]]), [submit])
    over = agent.run_sync(agent.run_sync("?"), decisions={"s": Approved()})
    assert (over.finish, over.text) == ("agent_terminated", "Here:")


async def test_a_run_that_fails_before_its_first_reply_does_not_show_that_of_an_earlier_run() -> None:
    agent = Agent(ScriptedModel(["Hello.", ProviderError("down", provider="openai", kind="server")]))
    run = agent.stream([*(await agent.run("Hi.")).messages, user("And now?")])
    with pytest.raises(ProviderError):
        await run.complete()
    assert (run.result.finish, run.result.text) == ("error", "")


# ---------------------------------------------------------------- a later reply


async def test_a_reply_that_was_accepted_does_not_show_a_later_one() -> None:
    """A user writes while the guard reads the first reply."""
    async with ThreadManager(":memory:") as threads:

        async def guard(reply: AssistantMessage, run: RunStream[Any]) -> None:
            await threads.add_message("t", "And now?")

        model = ScriptedModel(["Hello.", ["I pay the secret sum.", ToolCall("p", "pay", {"amount": 1})]])
        result = await threads.say("t", "Hi.", agent=Agent(model, [pay], guards=Guards(reply=[guard])))
    assert (result.finish, [call.id for call in result.pending], result.text) == ("approval", ["p"], "")


def test_why_an_earlier_reply_was_not_accepted_is_not_said_of_a_later_one() -> None:
    guards = Guards(reply=[lambda reply, run: AskAgain("be polite")])
    model = ScriptedModel(["No.", ToolCall("a", "add", {"a": 1})])
    result = Agent(model, [add], guards=guards, max_turns=2).run_sync("?")
    assert (result.finish, result.guard_reason) == ("max_turns", None)


def test_what_is_wrong_with_an_earlier_reply_is_not_said_of_a_later_one() -> None:
    model = ScriptedModel(["one", ToolCall("a", "add", {"a": 1})])
    result = Agent(model, [add], output_type=int, max_turns=2).run_sync("?")
    assert (result.finish, result.output_error) == ("max_turns", None)
