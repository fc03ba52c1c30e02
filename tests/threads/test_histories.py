"""Any thread that a store can hold bytes can be read, sent to every provider, resumed, and copied."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from conversations import CONTENT, RESPONSES, RESULTS, TEXTS, USERS
from hypothesis import example, given
from hypothesis import strategies as st
from wire_rules import check_anthropic, check_chat, check_responses, check_text

from agentkit import formats
from agentkit.agent import call_hash
from agentkit.errors import ConfigError
from agentkit.messages import AssistantMessage, Message, SystemMessage, TextPart, ToolCall, ToolMessage, UserMessage
from agentkit.models import valid_history as history
from agentkit.models.base import ModelRequest
from agentkit.models.caching import add_marks
from agentkit.models.messages_body import anthropic_messages, messages_body
from agentkit.models.openai import chat_messages
from agentkit.models.responses import responses_input
from agentkit.models.text import text_messages
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel
from agentkit.threads import Compaction, SQLiteStore, ThreadManager
from agentkit.threads.compaction import entry_body, plan
from agentkit.threads.conversation import ids_of, messages_of, put_in
from agentkit.threads.known_threads import KnownThreads
from agentkit.threads.resume import Settlement, settle
from agentkit.threads.sizes import thread_tokens
from agentkit.threads.store import Append, Call, CallStatus, Entry, Log, Move, NewCall, Revise, Store
from agentkit.tool.codec import call_from_json, call_to_json, to_json
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry

STATUSES: Sequence[CallStatus] = ("planned", "waiting", "approved", "started", "answered")
FINISHES = st.sampled_from([None, "stop", "length", "pause", "error", "cancelled", "interrupted", "tool_calls"])
TEXT_FORMATS = ("xml", "hermes", "invoke")


@openapi_schema
async def add(a: int = 0) -> str:
    """Add."""
    return "done"


TOOLS = ToolRegistry(add)


# ---------------------------------------------------------------- any thread


@st.composite
def records(draw: st.DrawFn, message: AssistantMessage) -> list[NewCall]:
    """The calls of the message, as a store keeps them. Others would be damage: see `test_lost_rows`."""
    return [draw(record(call)) for call in message.calls]


@st.composite
def record(draw: st.DrawFn, call: Any) -> NewCall:
    status = draw(st.sampled_from(STATUSES))
    answer = None
    if status == "answered":
        content, error = draw(CONTENT), draw(st.sampled_from([None, "tool_error"]))
        answer = to_json(draw(RESULTS) if draw(st.integers(0, 9)) == 0 else ToolMessage(call.id, "", content, error))
    return NewCall(call.id, call_to_json(call), status, answer)


@st.composite
def response(draw: st.DrawFn) -> Append:
    message, finish = draw(RESPONSES), draw(FINISHES)
    body = {"message": to_json(message)} | ({} if finish is None else {"response": {"finish": finish}})
    if draw(st.booleans()):
        body["read"] = draw(st.integers(-1, 9))
    return Append(body, draw(st.sampled_from(["message", "message", "partial"])), calls=draw(records(message)))


@st.composite
def compaction(draw: st.DrawFn) -> dict[str, Any]:
    """Which place it begins at, and what it leaves, by chance; `place` is taken modulo the entries that are there."""
    shortened = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=3))
    answers = {f"{seq}/{ordinal}": "[… left out …]" for seq, ordinal in shortened}
    if draw(st.booleans()):
        return {"answers": answers, "tokens": [9, 5]}
    place, summary = draw(st.integers(0, 9)), draw(st.none() | TEXTS)
    return {
        "answers": answers,
        "tokens": [9, 5],
        "start": place,
        "summary": summary,
        "user": draw(st.none() | st.just(0)),
    }


STEPS = st.lists(
    st.one_of(
        USERS.map(lambda m: Append({"message": to_json(m)})),
        response(),
        response(),
        compaction(),
        st.tuples(st.integers(0, 9), RESPONSES),
        st.tuples(st.integers(0, 9), st.sampled_from(STATUSES), CONTENT),
    ),
    max_size=10,
)
Steps = list[Any]


async def written(store: Store, steps: Steps) -> str:
    """A new thread with these steps taken one after the other; those that cannot be are left out."""
    thread_id = f"t{len(await store.list(limit=1_000_000))}"
    await store.create(thread_id)
    for step in steps:
        log = await store.load(thread_id)
        change = _change(step, log)
        if change is not None:
            await store.commit(thread_id, [change])
    return thread_id


def _change(step: Any, log: Log) -> Any:
    match step:
        case Append():
            return step
        case {"start": place}:
            return Append({**step, "start": place % len(log.entries)}, "compaction") if log.entries else None
        case dict():
            return Append(step, "compaction")
        case (place, AssistantMessage() as message):
            partial = [e.seq for e in log.entries if e.kind == "partial"]
            return _revised(partial[place % len(partial)], message, log) if partial else None
        case (place, status, content):
            open_calls = [call for call in log.calls if call.status != "answered"]
            return _moved(open_calls[place % len(open_calls)], status, content) if open_calls else None
    raise AssertionError(step)


def _revised(seq: int, message: AssistantMessage, log: Log) -> Revise:
    """Another text with the calls that are kept."""
    said = [part for part in message.content if not isinstance(part, ToolCall)]
    kept = [call_from_json(call.body) for call in log.calls if call.seq == seq]
    return Revise(seq, {"message": to_json(AssistantMessage([*said, *kept]))})


def _moved(call: Call, status: CallStatus, content: Any) -> Move:
    answer = to_json(ToolMessage(call.id, "", content)) if status == "answered" else None
    note = {"hash": call_hash(call_from_json(call.body))} if status == "approved" else {}
    return Move(call.seq, call.ordinal, status, (call.status,), note=note, answer=answer)


CALLED = Append(
    {"message": to_json(AssistantMessage([ToolCall("c", "add", {})]))},
    calls=[NewCall("c", {"type": "call", "id": "c", "name": "add", "arguments": "{}", "raw": ""})],
)
A_LATER_CALL = [
    {"answers": {}, "tokens": [9, 5], "start": 0, "summary": None, "user": None},
    {"answers": {"3/0": "[… left out …]"}, "tokens": [9, 5]},
    Append({"message": to_json(UserMessage("hi"))}),
    Append({"message": to_json(AssistantMessage("hi"))}),
    CALLED,
]
"""A compaction that shortens the answer to a call which came after it: none of ours writes that."""


@given(STEPS, st.integers(1, 4))
@example(A_LATER_CALL, 1)
def test_a_thread_read_in_parts_is_the_thread_read_whole(steps: Steps, page: int) -> None:
    """After every step: what is known of it, and what is read again, page by page or at once."""

    async def main() -> None:
        store = SQLiteStore(":memory:")
        known = KnownThreads(store, shortest=1)
        await store.create("t")
        for step in steps:
            change = _change(step, await store.load("t"))
            if change is not None:
                await store.commit("t", [change])
            log = await store.load("t")
            for read in (known, KnownThreads(store, shortest=1, page=page)):
                content = await read.read("t")
                assert content.messages() == messages_of(log)
                assert content.messages(sending=True) == messages_of(log, sending=True)
                heard = [*messages_of(replace(log, entries=tuple(_said(log)))), *put_in(log)]
                assert sorted(map(repr, content.full_history())) == sorted(map(repr, heard))
                assert (content.ids(), content.last) == (ids_of(log), len(log.entries) - 1)
                assert content.size().tokens(7) == thread_tokens(log, 7)
                assert _settlement(content.rest) == _settlement(log)
        await store.aclose()

    asyncio.run(main())


def _settlement(log: Log) -> Settlement | str:
    try:
        return settle(log, TOOLS)
    except ConfigError as e:  # a call was approved whose tool is not here
        return str(e)


def _said(log: Log) -> Iterator[Entry]:
    return (entry for entry in log.entries if entry.kind != "compaction")


# ---------------------------------------------------------------- what is sent of it


def check_everywhere(messages: Sequence[Message]) -> None:
    """The conversation in the shape of every provider and of three text formats, these through both providers."""
    check_chat(chat_messages(messages, "openai"))
    check_responses(responses_input(messages, "responses"))
    check_anthropic(anthropic_messages(messages, "anthropic"))
    body = add_marks(messages_body(ModelRequest(messages, TOOLS.specs()), "claude", "anthropic"))
    check_anthropic(body["messages"])
    for name in TEXT_FORMATS:
        format = formats.get(name)
        said = text_messages(messages, format, TOOLS.specs())
        check_text(said, format, list(_answers(messages, format)))
        check_chat(chat_messages(said, "openai"))
        check_anthropic(anthropic_messages(said, "anthropic"))


def _answers(messages: Sequence[Message], format: formats.Format) -> Iterator[str]:
    for message in history.conversation(messages, history.IdRule(limit=10_000)):
        if isinstance(message, ToolMessage):
            images = any(not isinstance(p, TextPart) for p in message.content)
            text = message.text or ("(see the image)" if images else "")
            yield formats.render_result(format, message.name, message.call_id, text, message.error, TOOLS.specs())


@given(STEPS)
def test_any_thread_is_valid_for_every_provider(steps: Steps) -> None:
    async def main() -> None:
        store = SQLiteStore(":memory:")
        threads = ThreadManager(store, TOOLS)
        thread = await written(store, steps)
        check_everywhere(await threads.get_llm_messages(thread))
        check_everywhere(messages_of(await store.load(thread), sending=True))
        check_everywhere(await threads.get_llm_messages(await threads.fork_thread(thread)))
        await threads.aclose()

    asyncio.run(main())


@given(STEPS, st.none() | TEXTS.filter(str.strip), st.sampled_from([None, *TEXT_FORMATS]))
def test_any_thread_can_be_resumed_and_what_is_sent_is_valid(
    steps: Steps, temporary: str | None, format: str | None
) -> None:
    async def main() -> None:
        store = SQLiteStore(":memory:")
        threads = ThreadManager(store, TOOLS)
        thread = await written(store, [*steps, Append({"message": to_json(UserMessage((TextPart("Go on"),)))})])
        model = ScriptedModel(["Done."], format=format)
        result = await threads.run_thread(thread, "Be brief.", model, temporary_message=temporary).complete()
        [request] = model.requests
        assert isinstance(request.messages[0], SystemMessage)
        check_everywhere(request.messages)
        assert result.finish == "stop"
        check_everywhere(await threads.get_llm_messages(thread))
        assert all(call.status == "answered" for call in (await store.load(thread)).calls)
        await threads.aclose()

    asyncio.run(main())


@given(STEPS, st.booleans())
def test_a_run_on_any_thread_ends_well(steps: Steps, asks: bool) -> None:
    """Also where there is nothing to answer, or a call waits for a person."""

    async def main() -> None:
        store = SQLiteStore(":memory:")
        threads = ThreadManager(store, TOOLS)
        thread = await written(store, steps)
        before = await store.load(thread)
        model = ScriptedModel(["Done."])
        config = ProcessorConfig(requires_approval=asks)
        run = threads.run_thread(thread, None, model, config)
        with suppress(ConfigError):  # there is no message to answer, or a call was approved whose tool is not here
            await run.complete()
        if "no tool" in str(run.error):
            assert await store.load(thread) == before
            return
        if run.error is not None:
            assert not any(isinstance(m, UserMessage) for m in messages_of(before, sending=True))
            return
        result = run.result
        for request in model.requests:
            check_everywhere(request.messages)
        check_everywhere(await threads.get_llm_messages(thread))
        log = await store.load(thread)
        assert (result.finish == "approval") == bool(await threads.pending(thread))
        assert {call.status for call in log.calls} <= {"answered", "waiting"}
        assert len(log.entries) - len(before.entries) == len(model.requests)
        assert len(log.calls) == len(before.calls)
        await threads.aclose()

    asyncio.run(main())


@given(STEPS, st.booleans())
def test_any_thread_is_valid_when_it_was_compacted(steps: Steps, summary: bool) -> None:
    async def main() -> None:
        store = SQLiteStore(":memory:")
        thread = await written(store, steps)
        log = await store.load(thread)
        policy = Compaction(window=1_000, threshold=0.2, target=0.1, keep_turns=1, keep_results=1, summary_tokens=20)
        wanted = plan(log, policy, 10_000, summary=summary)
        if wanted is not None:
            await store.commit(thread, [Append(entry_body(wanted, 10_000, "Before: …", {}), "compaction")])
        check_everywhere(messages_of(await store.load(thread), sending=True))
        await store.aclose()

    asyncio.run(main())
