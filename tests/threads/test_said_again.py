"""`say` again under a `client_id`: the answer to that message as it is stored, or an error; never that to another."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from agentkit.agent import Agent, RunResult
from agentkit.agent.lifecycle import RunStarted
from agentkit.errors import ProviderError, StoreConflict, ThreadBusy
from agentkit.events import Finish, Text
from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.testing.scripted_model import ScriptedTurn
from agentkit.threads import Compaction, ThreadManager
from agentkit.tool.declare import openapi_schema

pytestmark = pytest.mark.anyio
NEVER_ASKED = ScriptedModel([])


class Desk:
    @openapi_schema(idempotent=True)
    async def note(self) -> str:
        """Take a note."""
        return "noted"

    @openapi_schema(requires_approval=True)
    async def send(self) -> str:
        """Send it."""
        return "sent"

    @openapi_schema(terminates=True)
    async def leave(self) -> str:
        """Leave."""
        return "left"


@pytest.fixture
async def threads() -> ThreadManager:
    manager = ThreadManager(":memory:")
    manager.add_tool(Desk)
    return manager


def unanswered(messages: list[Message]) -> str:
    """What users said since the last complete answer."""
    texts: list[str] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and not message.calls:
            break
        if isinstance(message, UserMessage):
            texts.insert(0, message.text)
    return " ".join(texts)


def answering(request: ModelRequest) -> str:
    return f"to {unanswered(list(request.messages))}"


ANSWERING = ScriptedModel(answering)


def telling(tool: str, number: int) -> ScriptedModel:
    """Calls a tool, unless that was done."""

    def turn(request: ModelRequest) -> ScriptedTurn:
        called = isinstance(request.messages[-1], ToolMessage)
        return answering(request) if called else [answering(request), ToolCall(f"c{number}", tool, {})]

    return ScriptedModel(turn)


CALLED = {"called": "note", "left": "leave", "waits": "send", "approved": "send"}


async def told(threads: ThreadManager, key: str, how: str, number: int) -> RunResult | None:
    """Say a message, whose text is its key, in one of the ways in which that can go; its result, if it is complete."""
    match how:
        case "answered":
            return await threads.say("t", key, ANSWERING, client_id=key)
        case "cut off":
            model = ScriptedModel(lambda request: [Text(answering(request)), Finish("length")])
            return await threads.say("t", key, model, client_id=key)
        case "called" | "left" | "waits" | "approved":
            result = await threads.say("t", key, telling(CALLED[how], number), client_id=key)
            if how in ("called", "left"):
                return result
            assert result.finish == "approval"
            if how == "waits":
                return None
            await threads.approve("t", result.pending[0].id)
            return await threads.run_thread("t", model=ANSWERING).complete()
        case "busy":
            lease = await threads.store.acquire("t", "somebody else", 60)
            with pytest.raises(ThreadBusy):
                await threads.say("t", key, NEVER_ASKED, client_id=key)
            await threads.store.release(lease)
        case "failed" | "broken off":
            down = ProviderError("down", kind="connection", provider="x")
            turns = [down] if how == "failed" else [["to nobody", down]]
            with pytest.raises(ProviderError):
                await threads.say("t", key, ScriptedModel(turns), client_id=key)
        case "interrupted":

            async def turn(request: ModelRequest) -> str:
                await threads.add_message("t", f"{key}b", client_id=f"{key}b")  # once, because of its id
                return answering(request)

            await threads.say("t", key, ScriptedModel(turn), client_id=key)
    return None


async def said_again(threads: ThreadManager, key: str) -> RunResult | None:
    """The stored result; None if it is refused because there is none."""
    try:
        return await threads.say("t", key, NEVER_ASKED, client_id=key)
    except StoreConflict:
        return None


WAYS = ["answered", "cut off", "called", "left", "waits", "approved", "busy", "failed", "broken off", "interrupted"]


def histories() -> Iterator[list[str]]:
    dice = random.Random(7)
    yield from ([first, "answered"] for first in WAYS)
    yield from ([first, second, "answered"] for first in WAYS for second in WAYS)
    yield from ([*dice.choices(WAYS, k=6), "answered"] for _ in range(30))


@pytest.mark.share(4)
@pytest.mark.parametrize("ways", list(histories()), ids="-".join)
async def test_no_message_gets_the_answer_to_another(threads: ThreadManager, ways: list[str]) -> None:
    await threads.create_thread("t")
    results = {f"k{n}": await told(threads, f"k{n}", way, n) for n, way in enumerate(ways)}
    results |= {f"k{n}b": None for n, way in enumerate(ways) if way == "interrupted"}
    before = await threads.get_log("t")
    for key, result in results.items():
        again = await said_again(threads, key)
        if result is not None:
            assert again is not None
            assert (again.text, again.finish, again.messages) == (result.text, result.finish, result.messages)
        elif again is not None:
            assert key in again.text.split()
    assert (await threads.get_log("t")).entries == before.entries


async def test_a_stored_answer_is_given_while_another_is_written(threads: ThreadManager) -> None:
    await threads.say("t", "2+2?", ScriptedModel(["4"]), client_id="k1")
    await threads.add_message("t", "3+3?")
    await threads.store.acquire("t", "somebody else", 60)
    result = await threads.say("t", "2+2?", NEVER_ASKED, client_id="k1")
    assert (result.text, result.finish, result.turns, result.new_messages) == ("4", "stop", 0, ())


async def test_a_stored_answer_has_the_type_that_is_asked_for(threads: ThreadManager) -> None:
    """A reply that did not fit, and what it was answered with, are no other message."""
    script = ["four", "4"]
    assert (await threads.say("t", "2+2?", ScriptedModel(script), client_id="k1", output_type=int)).output == 4
    await threads.say("t", "3+3?", ScriptedModel(["6"]))
    again = await threads.say("t", "2+2?", NEVER_ASKED, client_id="k1", output_type=int)
    assert (again.output, again.text) == (4, "4")
    misfit = await threads.say("t", "2+2?", NEVER_ASKED, client_id="k1", output_type=bool | None)
    assert misfit.finish == "invalid_output"
    assert misfit.output_error


async def test_a_compacted_answer_is_still_there(threads: ThreadManager) -> None:
    for number in range(60):
        await threads.say("t", f"{number}?", ScriptedModel([f"{number}!" + " yes" * 20]), client_id=str(number))
    short = Compaction(window=1000, threshold=0.5, target=0.3, keep_turns=1, summary_tokens=0)
    await threads.add_message("t", "And?")
    await threads.run_thread("t", model=ScriptedModel(["Well."]), compaction=short).complete()
    assert any(entry.kind == "compaction" for entry in (await threads.get_log("t")).entries)
    assert (await threads.say("t", "3?", NEVER_ASKED, client_id="3")).text.startswith("3! yes")


async def test_a_stored_answer_is_no_run() -> None:
    events: list[object] = []
    async with ThreadManager(":memory:", hooks=[lambda event, _: events.append(event)]) as threads:
        agent = Agent(ScriptedModel(["4", "6"]))
        await threads.say("t", "2+2?", agent=agent, client_id="k1")
        await threads.say("t", "3+3?", agent=agent)
        events.clear()
        assert (await threads.say("t", "2+2?", agent=agent, client_id="k1")).text == "4"
    assert [event for event in events if isinstance(event, RunStarted)] == []


async def test_why_there_is_no_answer_is_told(threads: ThreadManager) -> None:
    await threads.say("t", "Send it.", telling("send", 1), client_id="k1")
    await threads.say("t", "Leave it.", ANSWERING, client_id="k2")
    with pytest.raises(StoreConflict, match="'t': the message 'k1' got no complete answer before the user wrote again"):
        await threads.say("t", "Send it.", NEVER_ASKED, client_id="k1")
