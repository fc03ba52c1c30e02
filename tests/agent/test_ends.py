"""Who made a model or a store closes it; the instructions and the context of a run; the short ways."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentkit import Agent, ThreadManager, ToolCall, ToolContext, models
from agentkit.errors import ConfigError, StoreError
from agentkit.events import Text
from agentkit.messages import SystemMessage, user
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore


class Closable(ScriptedModel):
    """Notes that it was closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Closable]:
    """The models that model strings make, each of which says hello twice."""
    found: list[Closable] = []

    def model(name: str) -> Closable:
        found.append(Closable(["Hello.", "Hello again."]))
        return found[-1]

    monkeypatch.setattr(models, "model", model)
    return found


# ---------------------------------------------------------------- ends


async def in_block(agent: Agent) -> None:
    async with agent:
        await agent.run("Hi")
        await agent.run("Hi")


def test_an_agent_closes_the_model_that_it_made(made: list[Closable]) -> None:
    asyncio.run(in_block(Agent("openai:gpt-5")))
    assert [model.closed for model in made] == [1]


def test_an_agent_leaves_a_model_that_it_was_given() -> None:
    model = Closable(["Hello.", "Hello again."])
    asyncio.run(in_block(Agent(model)))
    assert model.closed == 0


def test_an_agent_that_never_ran_has_nothing_to_close(made: list[Closable]) -> None:
    asyncio.run(Agent("openai:gpt-5").aclose())
    assert made == []


def test_a_manager_keeps_the_model_that_it_made_and_closes_it(made: list[Closable], tmp_path: Path) -> None:
    async def two_runs() -> None:
        async with ThreadManager(tmp_path / "chat.db") as threads:
            await threads.create_thread("a", messages="Hi")
            await threads.run_thread("a", model="openai:gpt-5")
            await threads.add_message("a", "Hi again")
            await threads.run_thread("a", model="openai:gpt-5")
        with pytest.raises(StoreError, match="the store is closed"):
            await threads.list_threads()

    asyncio.run(two_runs())
    assert [model.closed for model in made] == [1]


def test_a_manager_closes_its_store_and_leaves_a_model_that_it_was_given(tmp_path: Path) -> None:
    store, model = SQLiteStore(tmp_path / "chat.db"), Closable(["Hello."])

    async def use() -> None:
        async with ThreadManager(store) as threads:
            await threads.say("a", "Hi", model)
        with pytest.raises(StoreError, match="the store is closed"):
            await store.get("a")

    asyncio.run(use())
    assert model.closed == 0


# ---------------------------------------------------------------- what a run is given


@dataclass
class Shop:
    name: str


def told(model: ScriptedModel) -> list[Any]:
    """What each request began with."""
    return [getattr(r.messages[0], "content", None) for r in model.requests if isinstance(r.messages[0], SystemMessage)]


def in_the_shop(shop: Shop) -> str:
    return f"You sell in {shop.name}."


async def in_the_shop_later(shop: Shop) -> str:
    await asyncio.sleep(0)
    return in_the_shop(shop)


@pytest.mark.parametrize("system", [in_the_shop, in_the_shop_later])
def test_a_function_writes_the_instructions_of_each_run(system: Any) -> None:
    model = ScriptedModel([ToolCall("c1", "where"), "Here.", "There."])
    agent = Agent(model, [where], system=system)
    first = agent.run_sync("Hi", context=Shop("Ulm"))
    second = agent.run_sync("Hi", context=Shop("Bonn"))
    assert told(model) == ["You sell in Ulm.", "You sell in Ulm.", "You sell in Bonn."]
    assert (first.messages[0], first.new_messages) == (SystemMessage("You sell in Ulm."), first.messages[2:])
    assert second.text == "There."


def where(context: ToolContext[Shop]) -> str:
    """Where are we?"""
    assert type(context.state) is Shop
    return context.state.name


def test_a_conversation_that_has_its_instructions_gets_no_others() -> None:
    model = ScriptedModel(["Yes."])
    Agent(model, system=in_the_shop).run_sync([SystemMessage("Be brief."), user("Hi")])
    assert told(model) == ["Be brief."]


def test_a_tool_finds_the_very_object_that_the_run_was_given() -> None:
    shop, seen = Shop("Ulm"), []

    def look(context: ToolContext[Shop] | None = None) -> str:
        """Look."""
        seen.append(context and context.state)
        return "seen"

    Agent(ScriptedModel([ToolCall("c1", "look"), "ok"]), [look]).run_sync("Hi", context=shop)
    assert seen[0] is shop


def test_instructions_that_are_no_text_end_the_run() -> None:
    def nothing(context: object) -> str:
        return None  # type: ignore[return-value]

    with (
        ScriptedModel([]) as model,
        pytest.raises(ConfigError, match=r"system=.*nothing: expected .* as a string, found None"),
    ):
        Agent(model, system=nothing).run_sync("Hi")


def test_a_run_that_waits_for_its_instructions_can_be_cancelled() -> None:
    async def hang(context: object) -> str:
        await asyncio.Event().wait()
        return "never"

    async def cancel_it() -> str:
        run = Agent(ScriptedModel([]), system=hang).stream("Hi")
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, run.cancel)
        return (await run).finish

    assert asyncio.run(cancel_it()) == "cancelled"


def test_a_thread_is_given_instructions_that_depend_on_its_context(tmp_path: Path) -> None:
    model = ScriptedModel(["Hello."])
    threads = ThreadManager(tmp_path / "chat.db")
    threads.say_sync("a", "Hi", model, in_the_shop, context=Shop("Ulm"))
    assert told(model) == ["You sell in Ulm."]


def test_a_sub_agent_has_the_context_of_its_caller() -> None:
    model = ScriptedModel(["Here."])
    helper = Agent(model, system=in_the_shop).as_tool("ask", "Knows.")
    Agent(ScriptedModel([ToolCall("c1", "ask", {"task": "Where?"}), "ok"]), [helper]).run_sync("?", context=Shop("Ulm"))
    assert told(model) == ["You sell in Ulm."]


# ---------------------------------------------------------------- short ways


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_the_text_alone_is_streamed() -> None:
    async def read() -> tuple[list[str], str]:
        run = Agent(ScriptedModel([["Let me ", ToolCall("c1", "add", {"a": 1, "b": 2})], "see: 3."]), [add]).stream("?")
        return [text async for text in run.text_stream()], run.result.finish

    assert asyncio.run(read()) == (["Let me ", "see: 3."], "stop")


def test_who_leaves_the_text_ends_the_run() -> None:
    async def leave() -> tuple[str, str]:
        run = Agent(ScriptedModel(["and so on"], chunk=1)).stream("?")
        async with run, aclosing(run.text_stream()) as texts:
            first = await anext(texts)
        return first, run.result.finish

    assert asyncio.run(leave()) == ("a", "cancelled")


def test_say_makes_the_thread_and_remembers(tmp_path: Path) -> None:
    model = Closable(["Hello, Ada.", "Ada."])
    threads = ThreadManager(tmp_path / "chat.db")
    assert threads.say_sync("a", "I am Ada.", model).text == "Hello, Ada."
    assert threads.say_sync("a", "Who am I?", model).text == "Ada."
    assert [type(m).__name__ for m in model.requests[1].messages] == ["UserMessage", "AssistantMessage", "UserMessage"]
    assert model.closed == 2  # each time its event loop ended


def test_say_asks_an_agent_of_your_own(tmp_path: Path) -> None:
    agent = Agent(
        ScriptedModel([ToolCall("c1", "add", {"a": 1, "b": 2}), '{"value": [3]}']), [add], output_type=list[int]
    )
    assert ThreadManager(tmp_path / "chat.db").say_sync("a", "1 + 2?", agent=agent).output == [3]


def test_say_wants_one_who_answers(tmp_path: Path) -> None:
    threads = ThreadManager(tmp_path / "chat.db")
    with pytest.raises(ConfigError, match=r"say_sync\(…\) requires either .* found neither"):
        threads.say_sync("a", "Hi")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="found both"):
        threads.say_sync("a", "Hi", ScriptedModel([]), agent=Agent(ScriptedModel([])))  # type: ignore[call-overload]


def test_nothing_is_added_when_nobody_can_answer(tmp_path: Path) -> None:
    threads = ThreadManager(tmp_path / "chat.db")
    with pytest.raises(ConfigError):
        threads.say_sync("a", "Hi", "nobody:gpt-5")
    assert asyncio.run(threads.list_threads()) == ()


def test_say_sync_in_an_event_loop_says_what_to_await(tmp_path: Path) -> None:
    async def inside() -> None:
        ThreadManager(tmp_path / "chat.db").say_sync("a", "Hi", ScriptedModel([]))

    with pytest.raises(RuntimeError, match=r"write `await threads\.say\(…\)` instead"):
        asyncio.run(inside())


def test_a_manager_says_where_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.INFO, "agentkit.threads"):
        threads = ThreadManager()
    assert repr(threads) == f"<ThreadManager: {tmp_path / 'agentkit.db'}>"
    assert caplog.messages == [f"threads are stored in {tmp_path / 'agentkit.db'}"]


def test_what_was_said_is_kept_though_the_manager_is_closed_behind_a_loop_that_was_left(tmp_path: Path) -> None:
    async def leave() -> None:
        async with ThreadManager(tmp_path / "chat.db") as threads:
            await threads.create_thread("a", messages="Count.")
            async for event in threads.run_thread("a", model=ScriptedModel(["one two three"], chunk=4)):
                if isinstance(event, Text):
                    break

    async def kept() -> list[Any]:
        async with ThreadManager(tmp_path / "chat.db") as threads:
            return await threads.get_llm_messages("a")

    asyncio.run(leave())
    said, answer = asyncio.run(kept())
    assert said == user("Count.")
    assert "one two three".startswith(answer.text)
    assert answer.text
