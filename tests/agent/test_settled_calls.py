"""A call that ended between two runs, denied or because the user wrote something else: the next run yields its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentkit import Agent, Approved, Denied, ThreadManager, ToolCall, openapi_schema
from agentkit.agent import RunStream
from agentkit.errors import ConfigError
from agentkit.events import ApprovalRequired, CallEnd, Event, ToolCompleted, ToolFailed, ToolSkipped, ToolStarted
from agentkit.messages import user
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio
ENDS = (ToolCompleted, ToolFailed, ToolSkipped)


@openapi_schema(requires_approval=True)
def refund(amount: int) -> str:
    """Refund."""
    return f"refunded {amount}"


FIRST, SECOND = (ToolCall(f"c{n}", "refund", {"amount": n}) for n in (1, 2))


def agent(*said: Any) -> Agent:
    return Agent(ScriptedModel(list(said)), [refund])


async def of_calls(run: RunStream) -> list[tuple[str, int, str]]:
    """The events of the calls: what happened, the index, and the call's id."""
    kinds = (CallEnd, ToolStarted, ApprovalRequired, *ENDS)
    return [(type(e).__name__, e.index, e.call.id) async for e in run if isinstance(e, kinds)]


def checked(events: Sequence[tuple[str, int, str]], **ends: str) -> None:
    """Each call has a `CallEnd`, then exactly one end, and its index is its own."""
    for id, end in ends.items():
        mine = [(kind, index) for kind, index, call in events if call == id]
        assert [kind for kind, _ in mine if kind != "ToolStarted"] == ["CallEnd", end], mine
        assert len({index for _, index in mine}) == 1
    assert len({index for _, index, _ in events}) == len(ends)


async def test_a_denied_call_ends_in_the_run_that_gets_the_decision() -> None:
    desk = agent([FIRST, SECOND], "Sorry.")
    asked = await desk.run("Refund both.")
    events = await of_calls(desk.stream(asked, decisions={"c1": Denied("too dear"), "c2": Approved()}))
    checked(events, c1="ToolSkipped", c2="ToolCompleted")


async def test_arguments_that_do_not_fit_the_tool_are_refused_and_the_call_can_still_be_approved() -> None:
    desk = agent(FIRST, "Done.")
    asked = await desk.run("Refund.")
    with pytest.raises(ConfigError, match=r"for the call 'c1': (?s:.*)/amount: expected integer"):
        await desk.run(asked, decisions={"c1": Approved({"amount": "x"})})
    assert (await desk.run(asked, decisions={"c1": Approved({"amount": 5})})).text == "Done."


async def test_a_call_that_the_user_passed_over_ends_in_the_next_run() -> None:
    desk = agent(FIRST, "Fine.")
    asked = await desk.run("Refund.")
    checked(await of_calls(desk.stream([*asked.messages, user("Never mind.")])), c1="ToolSkipped")


async def test_what_a_denial_ends_with() -> None:
    desk = agent(FIRST, "Sorry.")
    asked = await desk.run("Refund.")
    events: list[Event] = [e async for e in desk.stream(asked, decisions={"c1": Denied("too dear")})]
    skipped = next(e for e in events if isinstance(e, ToolSkipped))
    assert (skipped.call.id, skipped.result.code) == ("c1", "denied")
    assert skipped.result.error == "not run: the user denied this call: too dear"
    assert events[0] == CallEnd(0, skipped.call)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("known", [False, True])
async def test_in_a_thread_a_denied_call_ends_in_the_next_run_and_only_there(
    tmp_path: Path, *, long: bool, writes: bool, known: bool
) -> None:
    """Also in a thread that is so long that its beginning is not read again, by the same process or another."""
    before = [user("Hi") if n % 2 == 0 else {"role": "assistant", "content": "Hello."} for n in range(80 * long)]
    desk = agent([FIRST, SECOND], "Sorry.", "Bye.")
    path = tmp_path / "t.db"
    async with ThreadManager(path) as threads:
        await threads.create_thread("ada", messages=before)
        await threads.say("ada", "Refund both.", agent=desk)
        await threads.deny("ada", "c1", "too dear")
        await (threads.deny if writes else threads.approve)("ada", "c2")
        if writes:
            await threads.add_message("ada", "Why not?")
        elsewhere = threads if known else ThreadManager(path)
        events = await of_calls(elsewhere.run_agent("ada", desk))
        checked(events, c1="ToolSkipped", c2="ToolSkipped" if writes else "ToolCompleted")
        await elsewhere.add_message("ada", "Bye.")
        assert await of_calls(elsewhere.run_agent("ada", desk)) == []
        if not known:
            await elsewhere.aclose()


async def test_in_a_thread_a_withdrawn_call_ends_in_the_next_run_and_only_there(tmp_path: Path) -> None:
    desk = agent(FIRST, "Fine.", "Bye.")
    async with ThreadManager(tmp_path / "t.db") as threads:
        await threads.say("ada", "Refund.", agent=desk)
        await threads.add_message("ada", "Never mind.")
        checked(await of_calls(threads.run_agent("ada", desk)), c1="ToolSkipped")
        await threads.add_message("ada", "Bye.")
        assert await of_calls(threads.run_agent("ada", desk)) == []
