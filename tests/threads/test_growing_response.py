"""A response that grows call by call: it is stored piece by piece, and read as a whole at every moment."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.events import ApprovalRequired, ToolEvent, ToolStarted
from agentkit.messages import AssistantMessage, MarkupPart, TextPart, ThinkingPart, ToolCall
from agentkit.processor.config import ProcessorConfig
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.threads.log_reader import read_log
from agentkit.threads.open_response import OpenResponse
from agentkit.threads.store import Change
from agentkit.tool.codec import from_json, to_json
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry

WORDS = st.sampled_from(["", "On it.", "\n", "Then\x00 that: ü"])
parts = st.one_of(WORDS.map(TextPart), WORDS.map(ThinkingPart), WORDS.map(MarkupPart), st.just("call"))


def responses(shape: list[Any]) -> list[AssistantMessage]:
    """What is said of a response when each of its calls starts: up to its call, or with a part of what follows."""
    content = [ToolCall(f"c{n}", "go", {"n": n}) if part == "call" else part for n, part in enumerate(shape)]
    return [AssistantMessage(tuple(content[:n])) for n in range(1, len(content) + 1)]


@given(shape=st.lists(parts, max_size=12), skipped=st.sets(st.integers(0, 12)), moved=st.booleans())
def test_at_every_moment_the_store_has_all_that_was_said(shape: list[Any], skipped: set[int], moved: bool) -> None:
    """Also if a part changes that was written before, as no response does."""

    async def told() -> None:
        store = SQLiteStore(":memory:")
        await store.create("t")
        lease = await store.acquire("t", "me", 30)
        one, started = OpenResponse(), set[str]()
        for n, said in enumerate(responses(shape)):
            if moved and n == 5:
                said = AssistantMessage((TextPart("Before. "), *said.content))
            new = [call for call in said.calls if call.id not in started]
            if n in skipped or not new:
                continue
            started |= {call.id for call in new}
            changes = one.changes(ToolStarted(0, new[-1]), said, None, None, read=-1)
            one.set_places(changes, await store.commit("t", changes, fence=lease.fence))
            log = await read_log(store, "t")
            assert from_json(log.entries[0].body["message"]) == said
            assert {call.id for call in log.calls} == started
            assert set(log.entries[0].body) == {"message", "read"}
        await store.aclose()

    asyncio.run(told())


def test_what_a_person_made_of_a_call_does_not_change_what_the_model_wrote() -> None:
    async def told() -> None:
        class Bank:
            @openapi_schema(requires_approval=True)
            def pay(self, amount: int) -> str:
                """Pay."""
                return f"{amount} paid"

        threads = ThreadManager(SQLiteStore(":memory:"), ToolRegistry(Bank()))
        await threads.create_thread("t", messages="Pay both.")
        calls = [ToolCall("a", "pay", {"amount": 1}), ToolCall("b", "pay", {"amount": 2})]
        run = threads.run_thread("t", model=ScriptedModel([["First: ", calls[0], "second: ", calls[1]]]))
        async for event in run:
            if isinstance(event, ApprovalRequired) and event.call.id == "b":
                await threads.approve("t", "b", arguments={"amount": 3})
                log = await threads.get_log("t")
                said = from_json(log.entries[-1].body["message"])
                assert isinstance(said, AssistantMessage)
                assert [call.arguments for call in said.calls] == [{"amount": 1}, {"amount": 2}]
                assert [json.loads(call.body["arguments"]) for call in log.calls] == [{"amount": 1}, {"amount": 3}]
        await threads.aclose()

    asyncio.run(told())


class Counted(OpenResponse):
    """Adds up the characters that are written."""

    written_size = 0

    def changes(self, event: ToolEvent, *rest: Any, **named: Any) -> list[Change]:
        found = super().changes(event, *rest, **named)
        self.written_size += sum(len(str(asdict(change))) for change in found)
        return found


@pytest.mark.parametrize("lead", [0, 1_000], ids=["calls alone", "text between the calls"])
def test_twice_the_calls_are_written_in_twice_the_characters(lead: int) -> None:
    def size(calls: int) -> int:
        one = Counted()
        content: list[Any] = []
        for n in range(calls):
            content += [TextPart("x" * lead), ToolCall(f"c{n}", "write", {"text": "y" * 1_000})]
            said = AssistantMessage((*content, MarkupPart("\n")))
            one.set_places(one.changes(ToolStarted(n, content[-1]), said, None, None, read=-1), [0])
        return one.written_size

    assert size(64) < 2.2 * size(32)


def test_a_run_of_many_calls_is_stored_as_it_was_said() -> None:
    async def told() -> None:
        @openapi_schema
        def go(n: int) -> str:
            """Go."""
            return str(n)

        threads = ThreadManager(SQLiteStore(":memory:"), ToolRegistry(go))
        await threads.create_thread("t", messages="Go.")
        content: list[Any] = [part for n in range(200) for part in (f"{n}: ", ToolCall(f"c{n}", "go", {"n": n}))]
        run = threads.run_thread(
            "t", model=ScriptedModel([content, "Done."]), processor_config=ProcessorConfig(max_calls=None)
        )
        result = await run.complete()
        log = await threads.get_log("t")
        assert to_json(result.messages[1]) == log.entries[1].body["message"]
        assert [call.answer["content"][0]["text"] for call in log.calls if call.answer] == [str(n) for n in range(200)]
        await threads.aclose()

    asyncio.run(told())
