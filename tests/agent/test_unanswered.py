"""A run that was left undecided: every call of a conversation has its answer, or waits for a person and says so."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentkit import Agent, Approved, RunResult, ToolCall, openapi_schema
from agentkit.agent.unanswered_calls import answer_open_calls
from agentkit.messages import AssistantMessage, Message, SystemMessage, TextPart, ToolMessage, user
from agentkit.models.openai import chat_messages
from agentkit.testing import ScriptedModel

LOST = "No result: the run was interrupted"
"""What a wire writes for a call without an answer."""
paid: list[int] = []


@openapi_schema(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    paid.append(amount)
    return f"paid {amount}"


@openapi_schema
def look() -> str:
    """Look."""
    return "a shop"


CALLS = [ToolCall("c1", "pay", {"amount": 5}), ToolCall("c2", "look", {})]


def asked(*script: Any) -> tuple[Agent, RunResult]:
    """An agent whose first run waits for a person."""
    agent = Agent(ScriptedModel([CALLS, *script]), [pay, look])
    result = agent.run_sync("Buy it.")
    assert (result.finish, [call.id for call in result.pending]) == ("approval", ["c1"])
    return agent, result


def told(messages: tuple[Message, ...]) -> list[str]:
    return [f"{m.call_id}: {m.error}: {m.text}" if isinstance(m, ToolMessage) else type(m).__name__ for m in messages]


def test_who_goes_on_talking_leaves_no_call_without_an_answer() -> None:
    agent, first = asked("As you like.")
    second = agent.run_sync([*first.messages, user("Never mind.")])
    assert told(second.messages) == [
        "UserMessage",
        "AssistantMessage",
        "c2: None: a shop",
        "c1: cancelled: no result: the conversation continued before this call was answered",
        "UserMessage",
        "AssistantMessage",
    ]
    assert (second.text, second.pending) == ("As you like.", ())
    assert agent.model.requests[-1].messages == second.messages[:-1]  # type: ignore[attr-defined]


def test_who_decides_nothing_is_asked_again_and_the_model_is_not() -> None:
    agent, first = asked()
    second = agent.run_sync(first.messages)
    assert (second.finish, second.pending, second.turns) == ("approval", first.pending, 0)
    assert second.messages == first.messages


def test_who_decides_late_is_heard() -> None:
    agent, first = asked("Paid.")
    again = agent.run_sync(first.messages)
    done = agent.run_sync(again.messages, decisions={"c1": Approved()})
    assert (done.text, paid) == ("Paid.", [5])
    paid.clear()


ids = st.sampled_from(["a", "b", "c"])
said = st.one_of(
    st.just(user("Go on.")),
    st.just(SystemMessage("Be brief.")),
    st.lists(ids, max_size=3, unique=True).map(
        lambda some: AssistantMessage((TextPart("Well."), *(ToolCall(id, "look", {}) for id in some)))
    ),
    ids.map(lambda id: ToolMessage(id, "look", "a shop")),
)


@given(st.lists(said, max_size=8))
def test_of_any_conversation_no_wire_has_to_invent_an_answer(messages: list[Message]) -> None:
    whole, waiting, _ = answer_open_calls(messages)
    assert [m for m in whole if m in messages] == messages  # nothing is lost or moved
    denied = [ToolMessage(call.id, call.name, "no", "denied") for call in waiting]
    assert LOST not in str(chat_messages([*whole, *denied], "openai"))
    assert answer_open_calls(whole) == (whole, waiting, [])
