"""What ends a run: limits, budgets, loops, cancellation at any moment; and hooks that misbehave."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from thread_kit import Gated
from wire_rules import check_chat

from agentkit.agent import Agent, Budget, Price, RunStarted, TurnEnded, TurnStarted
from agentkit.errors import ConfigError
from agentkit.events import CallEnd, Finish, Text, ToolCompleted, ToolStarted, Usage
from agentkit.messages import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, UserMessage, user
from agentkit.models.base import ModelRequest
from agentkit.models.openai import chat_messages
from agentkit.testing import ScriptedModel
from agentkit.threads import Compaction, SQLiteStore, ThreadManager
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


MADE: list[str] = []


@openapi_schema
async def note(text: str) -> str:
    """Take a note."""
    MADE.append(text)
    return "noted"


@openapi_schema
async def hang() -> str:
    """Hang."""
    MADE.append("hang")
    await asyncio.Event().wait()
    return "never"


@pytest.fixture(autouse=True)
def _nothing_made() -> None:
    MADE.clear()


def call(text: str) -> ToolCall:
    return ToolCall("", "note", {"text": text})


def valid(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    check_chat(chat_messages(messages, "openai"))
    return messages


# ---------------------------------------------------------------- budgets


SPENT = [Usage(60, 40), call("a"), Finish("tool_calls")]


@pytest.mark.parametrize(
    ("budget", "finish"),
    [
        (Budget(tokens=100), "token_budget"),
        (Budget(cost=0.0001, prices={"scripted": Price(1, 1)}), "cost_budget"),
        (Budget(tool_calls=1), "call_budget"),
    ],
    ids=["tokens", "cost", "calls"],
)
async def test_a_bound_that_is_just_reached_ends_the_run_and_its_calls_are_answered(
    budget: Budget, finish: str
) -> None:
    model = ScriptedModel([SPENT, "never said"])
    result = await Agent(model, note, budget=budget).run("Go")
    assert (result.finish, result.turns, MADE) == (finish, 1, ["a"])
    assert isinstance(valid(result.messages)[-1], ToolMessage)


async def test_a_bound_of_tokens_that_is_not_reached_by_one_changes_nothing() -> None:
    result = await Agent(ScriptedModel([SPENT, "Done."]), note, budget=Budget(tokens=101)).run("Go")
    assert (result.finish, result.turns) == ("stop", 2)


async def test_a_reply_that_reaches_the_bound_is_still_the_reply() -> None:
    result = await Agent(ScriptedModel([["Done.", Usage(60, 40)]]), budget=Budget(tokens=100)).run("Go")
    assert (result.finish, result.text) == ("stop", "Done.")


async def test_of_more_calls_than_may_be_run_the_first_ones_are() -> None:
    model = ScriptedModel([call("a"), [call("b"), call("c"), call("d")], "never said"])
    result = await Agent(model, note, budget=Budget(tool_calls=2)).run("Go")
    assert (result.finish, MADE) == ("call_budget", ["a", "b"])
    answers = [m for m in valid(result.messages) if isinstance(m, ToolMessage)]
    assert [m.error for m in answers] == [None, None, "limit", "limit"]
    assert answers[-1].text == "not run: the run's budget for calls is exhausted"


async def test_time_that_runs_out_ends_a_tool_at_work() -> None:
    result = await Agent(ScriptedModel([["So", ToolCall("", "hang")]]), hang, budget=Budget(seconds=0.05)).run("Go")
    assert (result.finish, MADE) == ("time_budget", ["hang"])
    [answer] = [m for m in valid(result.messages) if isinstance(m, ToolMessage)]
    assert answer.error == "cancelled"


async def test_no_time_at_all_asks_nobody() -> None:
    with ScriptedModel([]) as model:
        result = await Agent(model, note, budget=Budget(seconds=1e-9)).run("Go")
    assert (result.finish, result.turns) == ("time_budget", 0)


@pytest.mark.parametrize("bound", ["tokens", "cost", "seconds", "tool_calls"])
def test_a_budget_of_nothing_is_refused(bound: str) -> None:
    with pytest.raises(ConfigError, match=f"Budget\\({bound}=0\\)"):
        Budget(**{bound: 0}, prices={"m": Price(1, 1)})  # type: ignore[arg-type]


# ---------------------------------------------------------------- going round in circles


async def test_the_same_call_with_the_same_answer_again_and_again() -> None:
    model = ScriptedModel([[call("a"), call("a")], call("a"), "never said"])
    result = await Agent(model, note, max_repeats=3).run("Go")
    assert (result.finish, result.turns, MADE) == ("loop_detected", 2, ["a", "a", "a"])
    valid(result.messages)


async def test_another_call_or_another_answer_between_them_is_no_loop() -> None:
    counted = iter(range(9))

    @openapi_schema
    async def count() -> str:
        """Count."""
        return str(next(counted))

    turns = [call("a"), call("a"), call("b"), call("a"), call("a"), *[ToolCall("", "count")] * 4, "Done."]
    result = await Agent(ScriptedModel(turns), [note, count], max_repeats=3).run("Go")
    assert result.finish == "stop"


async def test_no_bound_on_repeats() -> None:
    assert (await Agent(ScriptedModel([call("a")] * 20 + ["x"]), note, max_repeats=None).run("Go")).finish == "stop"


# ---------------------------------------------------------------- S16: cut at the token limit


WHOLE = "<tool_call>\n" + '{"name": "note", "arguments": {"text": "a long text"}}' + "\n</tool_call>"


@pytest.mark.parametrize("at", range(12, len(WHOLE)))
async def test_s16_a_call_cut_in_two_is_run_once(at: int) -> None:
    script = [[Text(WHOLE[:at]), Finish("length")], WHOLE[at:], "Done."]
    model = ScriptedModel(script, format="hermes", continues=True)
    result = await Agent(model, note).run("Go")
    assert (MADE, result.finish, result.turns) == (["a long text"], "stop", 2)
    assert model.requests[1].messages[-1] == AssistantMessage((TextPart(WHOLE[:at]),))


async def test_s16_a_model_that_begins_the_call_again_runs_it_once() -> None:
    cut = [Text(WHOLE[:40]), Finish("length")]
    result = await Agent(ScriptedModel([cut, WHOLE, "Done."], format="hermes"), note).run("Go")
    assert MADE == ["a long text"]
    answers = [m.error for m in valid(result.messages) if isinstance(m, ToolMessage)]
    assert answers == ["truncated_call", None]


@pytest.mark.parametrize(("allowed", "asked"), [(0, 1), (1, 2), (5, 6)])
async def test_s16_a_model_that_never_ends_is_asked_so_often_and_no_more(allowed: int, asked: int) -> None:
    first = [Text(WHOLE[:60]), Finish("length")]
    more = [[Text(f"and on {n} "), Finish("length")] for n in range(1, asked)]
    model = ScriptedModel([first, *more, "Sorry."], format="hermes", continues=True)
    result = await Agent(model, note, auto_continue=allowed).run("Go")
    assert (len(model.requests), MADE, result.finish) == (asked + 1, [], "stop")
    assert [m.error for m in valid(result.messages) if isinstance(m, ToolMessage)] == ["truncated_call"]


# ---------------------------------------------------------------- cancelled at any moment


@pytest.mark.parametrize("by", ["method", "token"])
async def test_a_run_that_was_cancelled_before_it_began_does_nothing(by: str) -> None:
    token = asyncio.Event()
    store = SQLiteStore(":memory:")
    threads = ThreadManager(store, ToolRegistry(note))
    thread = await threads.create_thread(messages="Go")
    with ScriptedModel([]) as model:
        run = threads.run_thread(thread, model=model, cancel=token)
        run.cancel() if by == "method" else token.set()
        result = await run.complete()
    assert (result.finish, result.turns, result.new_messages) == ("cancelled", 0, ())
    assert (await threads.run_thread(thread, model=ScriptedModel(["Hi."])).complete()).text == "Hi."


@pytest.mark.parametrize("stop_at", [RunStarted, TurnStarted, TurnEnded, CallEnd, ToolStarted, ToolCompleted, Text])
@pytest.mark.parametrize("way", ["cancel", "twice", "aclose", "task"])
async def test_cancelled_at_any_event_the_thread_is_whole(stop_at: type, way: str) -> None:
    store = SQLiteStore(":memory:")
    threads = ThreadManager(store, ToolRegistry(note))
    thread = await threads.create_thread(messages="Go")
    done = asyncio.Event()

    def stop(event: Any, run: Any) -> None:
        if isinstance(event, stop_at) and not done.is_set():
            done.set()
            if way == "task":
                task.cancel()
            else:
                run.cancel()
                if way == "twice":
                    run.cancel()

    async def consume(run: Any) -> None:
        async with run:
            async for event in run:
                if way == "aclose" and isinstance(event, stop_at):
                    break

    if way != "aclose":
        threads.hooks = (stop,)
    run = threads.run_thread(thread, model=ScriptedModel([["So", call("a")], "Done."]))
    task = asyncio.create_task(consume(run))
    await asyncio.wait([task])
    lifecycle = stop_at in (RunStarted, TurnStarted, TurnEnded)
    assert task.cancelled() == (way == "task")
    if not (way == "aclose" and lifecycle):  # only hooks see those
        assert run.result.finish == "cancelled"
    assert MADE in ([], ["a"])
    threads.hooks = ()
    valid(tuple(await threads.get_llm_messages(thread)))
    result = await threads.run_thread(thread, model=ScriptedModel([call("b"), "Done."])).complete()
    assert result.finish == "stop"
    assert all(c.status == "answered" for c in (await store.load(thread)).calls)


@pytest.mark.parametrize("operation", ["acquire", "load", "commit"])
@pytest.mark.parametrize("way", ["cancel", "task"])
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_cancelled_while_the_store_is_at_work(operation: str, way: str, at: int) -> None:
    """Whatever was under way is done, the lease is given back, and the next run goes on."""
    store = SQLiteStore(":memory:")
    gated = Gated(store, at, operation)
    thread = await ThreadManager(store).create_thread(messages="Go")
    run = ThreadManager(gated, ToolRegistry(note)).run_thread(thread, model=ScriptedModel([call("a"), "Done."]))
    task = asyncio.create_task(run.complete())
    reached = asyncio.create_task(gated.reached.wait())
    await asyncio.wait([task, reached], return_when="FIRST_COMPLETED")
    run.cancel() if way == "cancel" else task.cancel()
    await asyncio.sleep(0.01)
    gated.gate.set()
    await asyncio.wait([task])
    reached.cancel()
    made = list(MADE)
    again = ThreadManager(store, ToolRegistry(note))
    valid(tuple(await again.get_llm_messages(thread)))
    assert (await again.run_thread(thread, model=ScriptedModel(["Done."])).complete()).finish == "stop"
    assert len(made) <= 1
    assert made == MADE
    assert all(c.status == "answered" for c in (await store.load(thread)).calls)


async def test_cancelled_while_a_summary_is_written_no_model_is_asked_any_more() -> None:
    asked: list[ModelRequest] = []

    async def slow(request: ModelRequest) -> str:
        asked.append(request)
        asyncio.get_running_loop().call_soon(run.cancel)
        await asyncio.sleep(30)
        return "never"

    store = SQLiteStore(":memory:")
    policy = Compaction(window=1_000, summary_tokens=100, keep_turns=0)
    threads = ThreadManager(store, compaction=policy)
    long = [m for i in range(20) for m in (user(f"{i} " * 200), AssistantMessage((TextPart("x" * 400),)))]
    thread = await threads.create_thread(messages=[*long[:-1], user("Go")])
    run = threads.run_thread(thread, model=ScriptedModel(slow))
    result = await run.complete()
    assert (result.finish, result.turns, len(asked)) == ("cancelled", 0, 1)


# ---------------------------------------------------------------- hooks that misbehave


async def test_a_hook_that_raises_on_every_event_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Any, run: Any) -> None:
        raise ValueError("no")

    result = await Agent(ScriptedModel([call("a"), "Done."]), note, hooks=[broken]).run("Go")
    assert (result.finish, MADE) == ("stop", ["a"])
    assert "a hook failed on RunStarted" in caplog.text


async def test_a_hook_that_hangs_does_not_keep_a_task_from_being_cancelled() -> None:
    waiting = asyncio.Event()

    async def hangs(event: Any, run: Any) -> None:
        if isinstance(event, TurnEnded):
            waiting.set()
            await asyncio.Event().wait()

    run = Agent(ScriptedModel(["Done."]), hooks=[hangs]).stream("Go")
    task = asyncio.create_task(run.complete())
    await waiting.wait()
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=30)
    assert done == {task}
    assert task.cancelled()


async def test_a_hook_that_is_slow_while_time_runs_out() -> None:
    async def slow(event: Any, run: Any) -> None:
        if isinstance(event, TurnStarted):
            await asyncio.sleep(0.1)

    with ScriptedModel([]) as model:
        result = await Agent(model, note, hooks=[slow], budget=Budget(seconds=0.05)).run("Go")
    assert (result.finish, MADE) == ("time_budget", [])


# ---------------------------------------------------------------- messages that come at the wrong moment


async def test_a_message_that_comes_while_the_reply_is_written_is_answered_by_the_same_run() -> None:
    threads = ThreadManager(":memory:")
    thread = await threads.create_thread(messages="Go")
    said: list[list[str]] = []

    async def speak(request: ModelRequest) -> str:
        said.append([m.content[0].text for m in request.messages if isinstance(m, UserMessage)])  # type: ignore[union-attr]
        if len(said) == 1:
            await threads.add_message(thread, "Wait!")
        return "Done."

    result = await threads.run_thread(thread, model=ScriptedModel(speak))
    assert (result.turns, said) == (2, [["Go"], ["Go", "Wait!"]])
    assert [type(m).__name__ for m in await threads.get_llm_messages(thread)] == [
        "UserMessage",
        "AssistantMessage",
        "UserMessage",
        "AssistantMessage",
    ]
    assert (await threads.run_thread(thread, model=ScriptedModel([])).complete()).turns == 0


# ---------------------------------------------------------------- runs beside each other


async def test_two_runs_with_their_own_tools_never_cross() -> None:
    class Book:
        def __init__(self, owner: str) -> None:
            self.owner = owner
            self.notes: list[str] = []

        @openapi_schema
        async def write(self, text: str) -> str:
            """Write."""
            await asyncio.sleep(0)
            self.notes.append(text)
            return f"{self.owner}: {text}"

    store = SQLiteStore(":memory:")
    books = [Book(str(i)) for i in range(20)]

    async def one(book: Book) -> list[str]:
        threads = ThreadManager(store, ToolRegistry(book))
        thread = await threads.create_thread(messages="Go")
        turns = [[ToolCall(f"c{i}", "write", {"text": f"{book.owner}.{i}.{n}"}) for n in range(2)] for i in range(3)]
        result = await threads.run_thread(thread, model=ScriptedModel([*turns, "Done."])).complete()
        return [m.text for m in result.messages if isinstance(m, ToolMessage)]

    for book, answers in zip(books, await asyncio.gather(*map(one, books)), strict=True):
        assert answers == [f"{book.owner}: {text}" for text in book.notes]
        assert sorted(book.notes) == sorted(f"{book.owner}.{i}.{n}" for i in range(3) for n in range(2))
    await store.aclose()
