"""Agents as tools of other agents: budgets, approvals, cancellation, crashes in the middle."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from thread_kit import Failing, said
from wire_rules import check_chat

from agentkit.agent import Agent, Budget
from agentkit.errors import ConfigError, ProviderError, StoreError
from agentkit.events import Finish, ToolStarted, Usage
from agentkit.messages import ToolCall, ToolMessage
from agentkit.models.openai import chat_messages
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.tool.declare import openapi_schema

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Desk:
    """Tools of the sub-agent."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.gate = asyncio.Event()
        self.hanging = asyncio.Event()

    @openapi_schema
    async def note(self, text: str) -> str:
        """Take a note."""
        self.made.append(text)
        return f"noted {text}"

    @openapi_schema(requires_approval=True)
    async def send(self, text: str) -> str:
        """Send."""
        self.made.append(text)
        return "sent"

    @openapi_schema
    async def hang(self) -> str:
        """Hang."""
        self.made.append("hang")
        self.hanging.set()
        await self.gate.wait()
        return "never"


async def child_of(threads: ThreadManager, parent: str) -> str:
    """The thread of a caller's sub-agent."""
    return next(t.id for t in await threads.list_threads() if t.metadata.get("parent") == parent)


ASK = ToolCall("ask1", "research", {"task": "Note a."})


def note(text: str) -> ToolCall:
    return ToolCall("", "note", {"text": text})


def parent(turns: Any, child: Agent, **options: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(turns)
    return Agent(model, [child.as_tool("research", "Find out.")], **options), model


def answers(messages: Any) -> list[str]:
    check_chat(chat_messages(messages, "openai"))
    return [f"{m.error or 'ok'}: {m.text}" for m in messages if isinstance(m, ToolMessage)]


async def test_a_sub_agent_has_a_thread_of_its_own() -> None:
    threads = ThreadManager(":memory:")
    child = Agent(ScriptedModel([note("a"), "It is noted."]), desk := Desk(), system="You take notes.")
    agent, _ = parent([ASK, "Done."], child)
    await threads.create_thread("t", messages="Go")
    result = await threads.run_agent("t", agent).complete()
    assert (answers(result.messages), desk.made) == (["ok: It is noted."], ["a"])
    assert said(await threads.get_llm_messages(await child_of(threads, "t"))) == [
        "user: Note a.",
        "note {'text': 'a'}",
        "= ok: noted a",
        "assistant: It is noted.",
    ]
    assert (await threads.get_thread(await child_of(threads, "t"))).metadata == {"parent": "t", "call": "ask1"}


async def test_wherever_the_store_fails_the_sub_agent_goes_on_and_its_words_arrive() -> None:
    for at in range(1, 30):
        store = SQLiteStore(":memory:")
        threads, desk = ThreadManager(store), Desk()

        def run(manager: ThreadManager, desk: Desk = desk) -> Any:
            def speak(request: Any) -> Any:
                return "It is noted." if answers(request.messages) else note("a")

            def ask(request: Any) -> Any:
                return "Done." if answers(request.messages) else ASK

            agent = Agent(ScriptedModel(ask), [Agent(ScriptedModel(speak), desk).as_tool("research", "Find out.")])
            return manager.run_agent("t", agent).complete()

        await threads.create_thread("t", messages="Go")
        failing = Failing(store, at)
        failed = False
        try:
            await run(ThreadManager(failing))
        except StoreError:
            failed = True
        result = await run(threads)
        assert result.finish == "stop"
        [answer] = answers(await threads.get_llm_messages("t"))
        # an error of the child's own store is an answer like any tool's error; else its words arrive
        assert answer == "ok: It is noted." or failing.uses >= at, (at, answer)
        assert len(desk.made) <= 1
        await store.aclose()
        if not failed and failing.uses < at:
            return
    raise AssertionError("it never came to its end")


async def test_the_words_of_a_sub_agent_that_had_ended_before_the_crash_arrive() -> None:
    store = SQLiteStore(":memory:")
    threads = ThreadManager(store)
    child = Agent(ScriptedModel([note("a"), "It is noted."]), desk := Desk())
    agent, _ = parent([ASK, "Done."], child)
    await threads.create_thread("t", messages="Go")

    class Dies:
        """A store that never hears of the parent's answer: the process is gone."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def commit(self, thread_id: str, changes: Any, *, fence: int | None = None) -> Any:
            if thread_id == "t" and any(getattr(c, "answer", None) for c in changes):
                raise StoreError("gone")
            return await store.commit(thread_id, changes, fence=fence)

    with pytest.raises(StoreError):
        await ThreadManager(Dies()).run_agent("t", agent).complete()
    result = await threads.run_agent("t", Agent(ScriptedModel(["Done."]), agent.registry)).complete()
    assert answers(result.messages) == ["ok: It is noted."]
    assert desk.made == ["a"]
    assert result.text == "Done."


async def test_a_run_on_a_finished_thread_has_its_last_words() -> None:
    threads = ThreadManager(":memory:")
    thread = await threads.create_thread(messages="Hi")
    await threads.run_thread(thread, model=ScriptedModel(["Hello."])).complete()
    assert (await threads.run_thread(thread, model=ScriptedModel([])).complete()).text == "Hello."


async def test_cancelling_the_caller_cancels_the_sub_agent_and_both_threads_are_whole() -> None:
    threads = ThreadManager(":memory:")
    child = Agent(ScriptedModel([["Hm.", ToolCall("h", "hang")]]), desk := Desk())
    agent, _ = parent([ASK], child)
    await threads.create_thread("t", messages="Go")
    run = threads.run_agent("t", agent)
    task = asyncio.create_task(run.complete())
    await desk.hanging.wait()
    run.cancel()
    result = await asyncio.wait_for(task, 30)
    assert result.finish == "cancelled"
    assert answers(result.messages)[0].startswith("cancelled: ")
    [answer] = answers(await threads.get_llm_messages(await child_of(threads, "t")))
    assert answer.startswith("cancelled: ")
    await threads.delete_thread(await child_of(threads, "t"))  # nobody holds it


async def test_a_sub_agent_that_waits_for_approval_can_be_run_by_itself_and_its_caller_after_it() -> None:
    threads = ThreadManager(":memory:")
    child = Agent(ScriptedModel([ToolCall("s", "send", {"text": "hi"})]), desk := Desk())
    agent, _ = parent([ASK, "Done."], child)
    await threads.create_thread("t", messages="Go")
    result = await threads.run_agent("t", agent).complete()
    assert (result.finish, answers(result.messages), desk.made) == ("approval", [], [])
    assert [call.name for call in await threads.pending(await child_of(threads, "t"))] == ["send"]
    await threads.approve(await child_of(threads, "t"), "s")
    await threads.run_agent(await child_of(threads, "t"), Agent(ScriptedModel(["Sent."]), desk)).complete()
    assert desk.made == ["hi"]
    result = await threads.run_agent("t", agent).complete()
    assert (result.finish, answers(result.messages), desk.made) == ("stop", ["ok: Sent."], ["hi"])


# ---------------------------------------------------------------- one budget for all


async def test_a_sub_agent_spends_its_callers_tokens() -> None:
    child = Agent(ScriptedModel([[Usage(50, 50), note("a")], "never said"]), Desk())
    agent, model = parent([[Usage(10, 10), ASK], "never said"], child, budget=Budget(tokens=100))
    result = await agent.run("Go")
    assert (result.finish, len(model.requests)) == ("token_budget", 1)
    assert answers(result.messages) == ["tool_error: the agent stopped early (token_budget)"]


async def test_the_call_of_a_sub_agent_counts_while_it_works() -> None:
    child = Agent(ScriptedModel([[note("a"), note("b")], "never said"]), desk := Desk())
    agent, _ = parent([ASK, "never said"], child, budget=Budget(tool_calls=2))
    result = await agent.run("Go")
    assert (result.finish, desk.made) == ("call_budget", ["a"])


async def test_the_callers_time_ends_its_sub_agents() -> None:
    child = Agent(ScriptedModel([ToolCall("h", "hang")]), desk := Desk())
    agent, _ = parent([ASK], child, budget=Budget(seconds=0.1))
    result = await asyncio.wait_for(agent.run("Go"), 30)
    assert (result.finish, desk.made) == ("time_budget", ["hang"])


async def test_the_callers_hooks_watch_the_sub_agent() -> None:
    seen: list[str] = []

    def watch(event: Any, run: Any) -> None:
        if isinstance(event, ToolStarted):
            seen.append(event.call.name)

    child = Agent(ScriptedModel([note("a"), "Noted."]), Desk())
    agent, _ = parent([ASK, "Done."], child, hooks=[watch])
    await agent.run("Go")
    assert seen == ["research", "note"]


# ---------------------------------------------------------------- how deep


def myself(depth: int | None) -> tuple[Agent, list[int]]:
    """An agent that employs itself, whatever it is told, and how deep each of its runs was."""
    asked: list[int] = []

    def speak(request: Any) -> Any:
        deep = int(request.messages[0].content[0].text)
        asked.append(deep)
        told = answers(request.messages)
        return told[0] if told else ToolCall("", "myself", {"task": str(deep + 1)})

    agent = Agent(ScriptedModel(speak), **({} if depth is None else {"max_depth": depth}))
    agent.registry.register(agent.as_tool("myself", "Ask yourself."))
    return agent, asked


@pytest.mark.parametrize(("bound", "deepest"), [(None, 3), (0, 0), (1, 1), (6, 6)])
async def test_an_agent_that_employs_itself_comes_to_an_end(bound: int | None, deepest: int) -> None:
    agent, asked = myself(bound)
    result = await agent.run("0")
    assert (result.finish, max(asked)) == ("stop", deepest)
    assert "limit: not run: agents are already nested as deep as allowed (max_depth" in result.text


async def test_the_least_bound_counts() -> None:
    agent, asked = myself(6)
    boss, _ = parent([ToolCall("a", "research", {"task": "1"}), "Done."], agent, max_depth=2)
    await boss.run("0")
    assert max(asked) == 2


async def test_a_bound_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Agent\(max_depth=-1\): expected an integer \(0 or more\)"):
        Agent(ScriptedModel([]), max_depth=-1)


@openapi_schema(terminates=True)
async def complete(text: str, sure: bool = True) -> str:
    """Hand in the answer."""
    return text if sure else ""


def ended(**arguments: Any) -> ToolCall:
    return ToolCall("x1", "complete", arguments)


LEFT = [
    (["The words."], "ok: The words."),
    (["", ""], "tool_error: the agent stopped early (empty)"),
    ([["Found 42.", note("a")], "", ""], "tool_error: the agent stopped early (empty); it said: Found 42."),
    ([ended(text="the answer")], "ok: the answer"),
    ([["So:", ended(text="the answer")]], "ok: So:\n\nthe answer"),
    ([ended(text="maybe", sure=False)], 'ok: complete {"text": "maybe", "sure": false}'),
    ([ended(text="yes", sure=True)], 'ok: complete {"text": "yes", "sure": true} returned: yes'),
    ([["Half", Finish("length")]], "tool_error: the agent stopped early (length); it said: Half"),
    ([["No.", Finish("refusal")]], "tool_error: the agent stopped early (refusal); it said: No."),
    ([["One.", note("a")], note("b"), note("c")], "tool_error: the agent stopped early (max_turns); it said: One."),
    (
        [["One.", note("a")], ProviderError("lost", kind="connection", provider="p")],
        "tool_error: ProviderError: lost; until then it said: One.",
    ),
]


@pytest.mark.parametrize(("turns", "told"), LEFT)
@pytest.mark.parametrize("stored", [False, True])
async def test_whatever_a_sub_agent_left_is_told_in_words(turns: list[Any], told: str, stored: bool) -> None:
    child = Agent(ScriptedModel(turns), [Desk(), complete], max_turns=3)
    agent, _ = parent([ASK, "Done."], child)
    if stored:
        threads = ThreadManager(":memory:")
        await threads.create_thread("t", messages="Go")
        result = await threads.run_agent("t", agent).complete()
        await threads.aclose()
    else:
        result = await agent.run("Go")
    assert answers(result.messages) == [told]
