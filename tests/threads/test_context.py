"""Runs on threads that become too long for their model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentkit.agent import AskAgain, Budget, Guards, RunStream, Spending
from agentkit.agent.run_budget import ask_model
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import Event, Finish, SourceEvent, Text, Thinking, ToolCompleted, Usage
from agentkit.messages import AssistantMessage, Message, SystemMessage, TextPart, ToolCall, ToolMessage, UserMessage
from agentkit.models.base import Model, ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.threads import Compaction, SQLiteStore, StoredResults, ThreadManager
from agentkit.threads.summary import LEFT_OUT, SUMMARY, Writer
from agentkit.threads.thread_journal import ThreadJournal
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext, ToolResult

pytestmark = pytest.mark.anyio

POLICY = Compaction(window=2_000, keep_results=1, keep_turns=2, result_tokens=40, summary_tokens=100)


def read_page(number: int) -> str:
    """Read a page."""
    return f"Page {number}: " + "".join(f"line {n} of it; " for n in range(100)) + "the end."


def asks(model: Model, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
    """Asks a model at nobody's expense."""
    return ask_model(Spending(Budget()), model, request)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    opened = SQLiteStore(tmp_path / "chat.db", durability="process")
    yield opened
    await opened.aclose()


def reader(pages: int, *after: str) -> ScriptedModel:
    """Reads so many pages, one by one, then says what is left to say."""
    calls = [ToolCall(f"p{n}", "read_page", {"number": n}) for n in range(pages)]
    return ScriptedModel([*calls, *(after or ["Read."])])


def texts(messages: list[Message] | tuple[Message, ...]) -> list[str]:
    return [
        "".join(p.text for p in m.content if isinstance(p, TextPart))
        for m in messages
        if not isinstance(m, SystemMessage)
    ]


async def test_a_long_run_stays_below_the_window_and_the_store_keeps_all(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page), compaction=POLICY)
    thread = await threads.create_thread(messages="Read all pages.")
    summariser = ScriptedModel(lambda request: "Pages were read.", name="small")
    model = reader(30)
    policy = replace(POLICY, summary_model=summariser)
    result = await threads.run_thread(thread, "Be brief.", model, compaction=policy).complete()
    assert (result.text, result.turns) == ("Read.", 31)

    last = model.requests[-1].messages
    assert [type(m) for m in last[:3]] == [SystemMessage, UserMessage, UserMessage]
    assert texts(last)[0].startswith(f"{SUMMARY}\n\nPages were read.")
    assert texts(last)[1] == "Read all pages."
    log = await threads.get_log(thread)
    assert [read_page(n) in str(call.answer) for n, call in enumerate(log.calls)] == [True] * 30
    compactions = [e for e in log.entries if e.kind == "compaction"]
    assert compactions[-1].body["model"] == "small"
    assert {e.body["tokens"][0] >= 1_600 > e.body["tokens"][1] for e in compactions} == {True}
    assert texts(result.new_messages)[1] == read_page(0)
    assert len(result.new_messages) == 61


async def test_the_model_reads_a_shortened_result_again(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page), compaction=POLICY)
    thread = await threads.create_thread(messages="Read all pages.")
    again = ToolCall("r", "read_result", {"call_id": "1/0", "offset": 1_300, "limit": 8_000})
    calls = [ToolCall(f"p{n}", "read_page", {"number": n}) for n in range(4)]
    model = ScriptedModel([*calls, again, "Done."])
    done: list[Event] = [e async for e in threads.run_thread(thread, model=model) if isinstance(e, ToolCompleted)]
    shown = texts(model.requests[4].messages)[2]
    assert shown.startswith("Page 0: line 0 of it;")
    assert 'read_result(call_id="1/0", offset=' in shown
    assert shown.endswith("the end.")
    page = done[-1]
    assert isinstance(page, ToolCompleted)
    whole = read_page(0)
    assert page.result.output == f"[characters 1,300 to {len(whole):,} of {len(whole):,}]\n{whole[1_300:]}"


LOST_WORDS: dict[str, Any] = {
    "refused": [ProviderError("overloaded", kind="overloaded", provider="small")],
    "late": [TimeoutError()],
    "nothing": [Finish("stop")],
    "white space": ["  \n", Finish("stop")],
    "only thinking": [Thinking("hm"), Finish("stop")],
    "only a call": [ToolCall("a", "read_page", {"number": 99})],
    "a refusal": ["I cannot help with that.", Finish("refusal")],
    "cut at its limit": ["The user wan", Finish("length")],
    "filtered": ["The", Finish("content_filter")],
    "a failure": ["The", Finish("error")],
    "a pause": ["The", Finish("pause")],
    "broken off": ["half a summ", ProviderError("lost", kind="connection", provider="small")],
    "never said to be over": ["half a summ", Finish("unknown")],
    "own errors": ["half", ValueError("x")],
    "no key": [ConfigError("no key")],
    "its own bug": [KeyError("x")],
}


class Cancels:
    """A model whose stream cancels itself."""

    name = "small"
    format = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        yield Text("half")
        raise asyncio.CancelledError


class Cut:
    """A model whose stream ends without a word."""

    name = "small"
    format = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        yield Text("half a summ")


class Endless:
    """A model that never waits and never ends."""

    name = "small"
    format = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        while True:
            yield Text("more ")


WRITERS = {
    **{why: ScriptedModel(lambda request, said=said: said, name="small") for why, said in LOST_WORDS.items()},
    **{type_.__name__: type_() for type_ in (Cancels, Cut, Endless)},
    "a string without a key": "anthropic:claude-x",
}


@pytest.mark.share(6)
@pytest.mark.parametrize("why", WRITERS)
async def test_a_summary_that_fails_leaves_the_oldest_turns_out(
    store: SQLiteStore, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    threads = ThreadManager(store, ToolRegistry(read_page))
    thread = await threads.create_thread(messages="Read all pages.")
    policy = replace(POLICY, summary_model=WRITERS[why], summary_timeout=0.05 if why == "Endless" else 30.0)
    model = reader(28)
    result = await threads.run_thread(thread, model=model, compaction=policy, max_turns=100).complete()
    assert result.text == "Read."
    assert texts(model.requests[-1].messages)[:2] == [LEFT_OUT, "Read all pages."]


async def test_a_summary_model_without_a_key_is_missed_only_when_it_is_needed(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    threads = ThreadManager(store, compaction=replace(POLICY, summary_model="anthropic:claude-x"))
    thread = await threads.create_thread(messages="Hi")
    assert (await threads.run_thread(thread, model=ScriptedModel(["Hello."])).complete()).text == "Hello."


async def test_the_next_run_goes_on_from_the_compaction(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page), compaction=POLICY)
    thread = await threads.create_thread(messages="Read all pages.")
    summaries = ScriptedModel(lambda request: "Pages were read.")
    policy = replace(POLICY, summary_model=summaries)
    first = reader(28)
    await threads.run_thread(thread, model=first, compaction=policy).complete()
    asked = len(summaries.requests)
    await threads.add_message(thread, "Thanks.")
    second = ScriptedModel(["Welcome."])
    await threads.run_thread(thread, model=second, compaction=policy).complete()
    expected = [*texts(first.requests[-1].messages), "Read.", "Thanks."]
    assert texts(second.requests[0].messages) == expected
    assert len(summaries.requests) == asked


async def test_a_summary_is_told_the_one_before_it(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page))
    thread = await threads.create_thread(messages="Read all pages.")
    small = ScriptedModel(lambda request: f"Summary {len(small.requests)}.")
    policy = replace(POLICY, summary_model=small)
    await threads.run_thread(thread, model=reader(40), compaction=policy).complete()
    (first, *_, last) = (texts(request.messages)[0] for request in small.requests)
    assert first.startswith("<conversation>\nUser: Read all pages.\n\nAssistant calls read_page: ")
    assert f"Summary {len(small.requests) - 1}." in last.partition("</summary_so_far>")[0]


async def test_the_providers_count_decides(store: SQLiteStore) -> None:
    threads = ThreadManager(store)
    thread = await threads.create_thread(messages="Hi, how are you? " * 10)
    for _ in range(9):
        await threads.run_thread(thread, model=ScriptedModel([["I am well. " * 10, Usage(100, 10)]])).complete()
        await threads.add_message(thread, "And now? " * 10)
    model = ScriptedModel([["Still well.", Usage(1_900, 10)]])
    await threads.run_thread(thread, model=model, compaction=POLICY).complete()
    assert len(model.requests) == 1  # the estimate is far below the window
    await threads.add_message(thread, "Sure?")
    sure = ScriptedModel(["We met.", "Yes."])
    await threads.run_thread(thread, model=sure, compaction=POLICY).complete()
    assert texts(sure.requests[1].messages)[0].startswith(f"{SUMMARY}\n\nWe met.")


async def test_a_refused_conversation_is_made_shorter(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page))
    thread = await threads.create_thread(messages="Read all pages.")
    await threads.run_thread(thread, model=reader(10)).complete()
    await threads.add_message(thread, "Go on.")
    small = ScriptedModel(lambda request: "Pages were read.")
    journal = ThreadJournal(store, thread, compaction=Compaction(window=200_000), writer=Writer(lambda: small))
    await journal.open(threads.registry, asks)
    before = list(await journal.messages())
    assert await journal.shrink()
    after = list(await journal.messages())
    assert sum(map(len, texts(after))) < sum(map(len, texts(before))) / 2
    assert texts(after)[-1] == "Go on."
    await journal.close()


async def test_a_conversation_without_compaction_cannot_be_made_shorter(store: SQLiteStore) -> None:
    threads = ThreadManager(store)
    thread = await threads.create_thread(messages="Hi")
    journal = ThreadJournal(store, thread)
    await journal.open(threads.registry, asks)
    assert not await journal.shrink()
    await journal.close()


async def test_an_unknown_summary_model_is_refused_before_the_run(store: SQLiteStore) -> None:
    threads = ThreadManager(store, compaction=Compaction(summary_model="nowhere:m"))
    with pytest.raises(ConfigError, match="a model string is one of"):
        threads.run_thread("t", model=ScriptedModel([]))


# ---------------------------------------------------------------- the tool


class Run:
    """What `read_result` asks of a run."""

    def __init__(self, thread_id: str | None) -> None:
        self.thread_id = thread_id


async def read(store: SQLiteStore, thread: str | None, call_id: str, **given: int) -> str:
    got = await StoredResults(store).read_result(call_id, ToolContext("c", "read_result", run=Run(thread)), **given)
    assert isinstance(got, ToolResult)
    return got.text


async def test_reading_by_place_by_id_and_page_by_page(store: SQLiteStore) -> None:
    call = ToolCall("p", "read_page", {"number": 1})
    answer = ToolMessage("p", "read_page", (TextPart("0123456789"),))
    thread = await ThreadManager(store).create_thread(messages=[AssistantMessage((call,)), answer])
    assert await read(store, thread, "0/0") == "[characters 0 to 10 of 10]\n0123456789"
    assert await read(store, thread, "p", limit=4) == "[characters 0 to 4 of 10; continue with offset=4]\n0123"
    assert await read(store, thread, "p", offset=8) == "[characters 8 to 10 of 10]\n89"
    assert await read(store, thread, "p", offset=11) == "offset 11 is past the end: the result has 10 characters"
    assert await read(store, thread, "p", offset=-1) == "offset must be 0 or more and limit 1 or more, got -1 and 8000"
    assert await read(store, thread, "q") == "there is no stored result 'q'; use the id in the note that names it"
    assert (await read(store, None, "p")).startswith("there are no stored results here")


async def test_a_tool_of_that_name_is_left_alone(store: SQLiteStore) -> None:
    def read_result(name: str) -> str:
        """Read a sports result."""
        return "1:0"

    registry = ToolRegistry(read_result)
    ThreadManager(store, registry, compaction=POLICY)
    assert registry.tools["read_result"].spec.description == "Read a sports result."


def asked_for(request: ModelRequest) -> list[str]:
    return [spec.name for spec in request.tools]


async def test_the_tool_is_offered_with_compaction_only(store: SQLiteStore) -> None:
    for policy, tools in ((None, []), (POLICY, ["read_result"])):
        threads = ThreadManager(store, compaction=policy)
        thread = await threads.create_thread(messages="Hi")
        model = ScriptedModel(["Hello."])
        await threads.run_thread(thread, model=model).complete()
        assert asked_for(model.requests[0]) == tools


async def test_a_refused_request_is_asked_again_with_a_shorter_conversation(store: SQLiteStore) -> None:
    small = ScriptedModel(lambda request: "Pages were read.")
    policy = Compaction(window=200_000, summary_model=small)
    threads = ThreadManager(store, ToolRegistry(read_page), compaction=policy)
    thread = await threads.create_thread(messages="Read all pages.")
    calls = [ToolCall(f"p{n}", "read_page", {"number": n}) for n in range(10)]
    refusal = ProviderError("openai 400: too long", kind="too_long", provider="openai")
    model = ScriptedModel([*calls, refusal, "Done."])
    result = await threads.run_thread(thread, model=model).complete()
    assert (result.text, result.finish) == ("Done.", "stop")
    assert sum(map(len, texts(model.requests[-1].messages))) < sum(map(len, texts(model.requests[10].messages))) / 2


async def test_what_asks_again_is_in_the_shorter_conversation_too(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page), compaction=Compaction(window=200_000, summary_tokens=0))
    thread = await threads.create_thread(messages="Read all pages.")
    calls = [ToolCall(f"p{n}", "read_page", {"number": n}) for n in range(10)]
    refusal = ProviderError("openai 400: too long", kind="too_long", provider="openai")
    unread = 'I read on: <tool_call>read_page{"number": 11'
    model = ScriptedModel([*calls, unread, refusal, "Done."])
    assert (await threads.run_thread(thread, model=model).complete()).text == "Done."
    for request in model.requests[-2:]:
        assert "could not be read" in texts(request.messages)[-1]


async def test_what_a_guard_asks_is_once_in_the_shorter_conversation(store: SQLiteStore) -> None:
    def polite(reply: AssistantMessage, run: RunStream[Any]) -> AskAgain | None:
        return None if "please" in reply.text else AskAgain("say please")

    threads = ThreadManager(store, ToolRegistry(read_page), compaction=Compaction(window=200_000, summary_tokens=0))
    thread = await threads.create_thread(messages="Read all pages.")
    calls = [ToolCall(f"p{n}", "read_page", {"number": n}) for n in range(10)]
    refusal = ProviderError("openai 400: too long", kind="too_long", provider="openai")
    model = ScriptedModel([*calls, "Done.", refusal, "Done, please."])
    await threads.run_thread(thread, model=model, guards=Guards(reply=[polite])).complete()
    for request in model.requests[-2:]:
        assert ["say please" in text for text in texts(request.messages)[-2:]] == [False, True]


async def test_a_run_left_after_a_refused_request_was_made_again_is_cancelled_and_no_error(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page), compaction=Compaction(window=200_000, summary_tokens=0))
    thread = await threads.create_thread(messages="Read all pages.")
    calls = [ToolCall(f"p{n}", "read_page", {"number": n}) for n in range(10)]
    refusal = ProviderError("openai 400: too long", kind="too_long", provider="openai")
    async with threads.run_thread(thread, model=ScriptedModel([*calls, refusal, "Done."])) as run:
        async for event in run:
            if isinstance(event, Text):
                break
    assert run.result.finish == "cancelled"


async def test_a_request_refused_twice_ends_the_run(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page), compaction=Compaction(window=200_000, summary_tokens=0))
    thread = await threads.create_thread(messages="Read all pages.")
    calls = [ToolCall(f"p{n}", "read_page", {"number": n}) for n in range(10)]
    refusal = ProviderError("openai 400: too long", kind="too_long", provider="openai")
    with pytest.raises(ProviderError, match="too long"):
        await threads.run_thread(thread, model=ScriptedModel([*calls, refusal, refusal])).complete()


async def test_a_message_that_arrives_while_a_summary_is_written_is_read_and_answered_once(store: SQLiteStore) -> None:
    threads = ThreadManager(store, ToolRegistry(read_page))
    thread = await threads.create_thread(messages="Read all pages.")

    async def summary(request: ModelRequest) -> str:
        await threads.add_message(thread, "And hurry!", client_id="h1")
        return "Pages were read."

    model = reader(30)
    policy = replace(POLICY, summary_model=ScriptedModel(summary, name="small"))
    result = await threads.run_thread(thread, model=model, compaction=policy)
    assert (result.text, result.turns) == ("Read.", 31)
    assert texts(result.messages).count("And hurry!") == 1
    reading = ["And hurry!" in texts(request.messages) for request in model.requests]
    assert reading.index(True) < 30
    assert (await threads.run_thread(thread, model=ScriptedModel([]))).turns == 0
