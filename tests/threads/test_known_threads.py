"""A long thread: an exchange reads, decodes and renders what is new, whatever others wrote, and however long it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agentkit.messages import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, UserMessage, user
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel
from agentkit.threads import Compaction, SQLiteStore, ThreadManager
from agentkit.threads import log_reader as reading_module
from agentkit.threads.known_threads import KnownThreads
from agentkit.threads.store import Log, Move
from agentkit.tool.codec import to_json
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


TOOLS = ToolRegistry(add)


def exchanges(count: int) -> list[Message]:
    """A question, a call, its result, an answer: four messages each."""
    messages: list[Message] = []
    for n in range(count):
        call = ToolCall(f"c{n}", "add", {"a": n, "b": 1}, raw=f'{{"a": {n}, "b": 1}}')
        messages += [user(f"{n} + 1?"), AssistantMessage(call), ToolMessage(call.id, "add", (TextPart(str(n + 1)),))]
        messages.append(AssistantMessage(f"{n + 1}."))
    return messages


class Counting(SQLiteStore):
    """Counts the entries and calls that are read from it."""

    entries = calls = 0

    async def load(self, thread_id: str, *, after: int = -1, limit: int | None = None) -> Log:
        """See `Store.load`."""
        log = await super().load(thread_id, after=after, limit=limit)
        self.entries += len(log.entries)
        self.calls += len(log.calls)
        return log


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Counting]:
    opened = Counting(tmp_path / "chat.db", durability="process")
    yield opened
    await opened.aclose()


def replies(n: int = 0) -> ScriptedModel:
    return ScriptedModel([ToolCall(f"new{n}", "add", {"a": n, "b": 2}), "Done."])


async def exchange(threads: ThreadManager, thread: str, n: int = 0, **options: Any) -> list[Message]:
    """One more exchange with two turns; what the model was sent first."""
    model = replies(n)
    await threads.add_message(thread, "And now?")
    await threads.run_thread(thread, "Be brief.", model, **options).complete()
    return list(model.requests[0].messages)


@pytest.mark.parametrize("compaction", [None, Compaction(window=1_000_000)])
async def test_an_exchange_on_a_long_thread_reads_as_much_as_on_a_short_one(
    store: Counting, compaction: Compaction | None
) -> None:
    threads = ThreadManager(store, TOOLS, compaction=compaction)
    read: dict[int, list[int]] = {}
    for count in (50, 1_000):
        thread = await threads.create_thread(messages=exchanges(count))
        await exchange(threads, thread)
        for n in (1, 2):
            store.entries = 0
            await exchange(threads, thread, n)
            read.setdefault(count, []).append(store.entries)
    assert read[50] == read[1_000]
    assert max(read[50]) < 20


async def test_an_exchange_on_a_long_thread_decodes_as_much_as_on_a_short_one(
    store: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = 0
    original = reading_module.from_json

    def counting(body: Any) -> Message:
        nonlocal decoded
        decoded += 1
        return original(body)

    monkeypatch.setattr("agentkit.threads.log_reader.from_json", counting)
    monkeypatch.setattr("agentkit.threads.conversation.from_json", counting)
    threads = ThreadManager(store, TOOLS)
    found = []
    for count in (50, 1_000):
        thread = await threads.create_thread(messages=exchanges(count))
        await exchange(threads, thread)
        decoded = 0
        await exchange(threads, thread, 1)
        found.append(decoded)
    assert found[0] == found[1] < 40


async def test_the_messages_of_the_next_run_are_the_same_objects(store: Counting) -> None:
    """So that what a provider makes of a message can be kept with it."""
    threads = ThreadManager(store, TOOLS)
    thread = await threads.create_thread(messages=exchanges(50))
    await exchange(threads, thread)
    before = await exchange(threads, thread, 1)
    after = await exchange(threads, thread, 2)
    assert len([m for m, same in zip(before[1:], after[1:], strict=False) if m is same]) >= 200


async def test_what_another_process_writes_is_read(store: Counting, tmp_path: Path) -> None:
    threads, others = ThreadManager(store, TOOLS), ThreadManager(tmp_path / "chat.db", TOOLS)
    thread = await threads.create_thread(messages=exchanges(20))
    await exchange(threads, thread)
    await others.add_message(thread, "This came from elsewhere.")
    await exchange(others, thread, 1)
    sent = await exchange(threads, thread, 2)
    said = [part.text for m in sent if isinstance(m, UserMessage) for part in m.content if isinstance(part, TextPart)]
    assert said[-3:] == ["This came from elsewhere.", "And now?", "And now?"]
    assert await threads.get_llm_messages(thread) == await others.get_llm_messages(thread)
    await others.aclose()


async def test_an_approval_in_another_process_is_read(store: Counting, tmp_path: Path) -> None:
    threads, others = ThreadManager(store, TOOLS), ThreadManager(tmp_path / "chat.db", TOOLS)
    thread = await threads.create_thread(messages=exchanges(20))
    asks = ProcessorConfig(requires_approval=True)
    await threads.add_message(thread, "Add.")
    await threads.run_thread(thread, None, replies(), asks).complete()
    (call,) = await others.pending(thread)
    await others.approve(thread, call.id)
    result = await threads.run_thread(thread, None, ScriptedModel(["Done."]), asks).complete()
    assert (result.text, await threads.pending(thread)) == ("Done.", ())
    await others.aclose()


async def test_a_decision_reads_its_thread_once(store: Counting) -> None:
    threads, asks = ThreadManager(store, TOOLS), ProcessorConfig(requires_approval=True, max_calls=None)
    for count in (20, 80):
        thread = await threads.create_thread(messages="Add.")
        calls = [ToolCall(f"c{n}", "add", {"a": n, "b": 1}) for n in range(count)]
        await threads.run_thread(thread, None, ScriptedModel([calls]), asks).complete()
        store.calls = 0
        for n in range(count):
            await (threads.approve if n % 2 else threads.deny)(thread, f"c{n}")
        assert store.calls == count**2


async def test_a_thread_that_was_deleted_and_created_again_elsewhere_is_another_one(
    store: Counting, tmp_path: Path
) -> None:
    threads, others = ThreadManager(store, TOOLS), ThreadManager(tmp_path / "chat.db", TOOLS)
    for count in (30, 20, 40):
        await others.create_thread("t", messages=[user(f"Of {count}."), *exchanges(count)])
        assert await threads.get_llm_messages("t") == [user(f"Of {count}."), *exchanges(count)]
        await others.delete_thread("t")
    await others.aclose()


async def test_a_result_that_the_application_adds_is_read(store: Counting) -> None:
    threads = ThreadManager(store, TOOLS)
    call = ToolCall("open", "add", {"a": 1, "b": 2})
    thread = await threads.create_thread(messages=[*exchanges(20), user("?"), AssistantMessage(call)])
    assert len(await threads.get_llm_messages(thread)) == 83
    await threads.add_message(thread, {"role": "tool", "tool_call_id": "open", "content": "3"})
    assert (await threads.get_llm_messages(thread))[-1] == ToolMessage("open", "add", (TextPart("3"),))


async def test_an_open_call_and_all_that_follows_are_read_again(store: Counting) -> None:
    known = KnownThreads(store, shortest=1)
    threads = ThreadManager(store, TOOLS)
    open_call = AssistantMessage(ToolCall("open", "add", {"a": 1, "b": 2}))
    thread = await threads.create_thread(messages=[*exchanges(5), user("?"), open_call])
    for message in exchanges(5):
        await threads.add_message(thread, message)
    content = await known.read(thread)
    assert (content.prefix.end, content.rest.entries[0].seq) == (15, 15)
    answer = to_json(ToolMessage("open", "add", (TextPart("3"),)))
    await store.commit(thread, [Move(16, 0, "answered", ("waiting",), answer=answer)])
    content = await known.read(thread)
    assert (content.prefix.end, len(content.rest.entries)) == (31, 1)


async def test_a_long_thread_is_read_in_pages_outside_the_event_loop(
    store: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[int] = []
    here: list[int] = []
    original = reading_module.check_log

    def checking(log: Log, thread_id: str) -> Log:
        loaded.append(len(log.entries))
        if threading.current_thread() is threading.main_thread():
            here.append(len(log.entries))
        return original(log, thread_id)

    monkeypatch.setattr("agentkit.threads.known_threads.check_log", checking)
    threads = ThreadManager(store, TOOLS)
    thread = await threads.create_thread(messages=exchanges(1_000))
    ticks = 0

    async def ticking() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(ticking())
    assert len(await threads.get_llm_messages(thread)) == 4_000
    task.cancel()
    assert max(loaded) <= 501
    assert max(here, default=0) < reading_module.LONG
    assert ticks > len(loaded)


async def test_only_so_much_is_kept_in_memory(store: Counting) -> None:
    threads = ThreadManager(store, TOOLS)
    known = KnownThreads(store, memory=100_000)
    ids = [await threads.create_thread(messages=exchanges(20)) for _ in range(4)]
    for id in ids:
        await known.read(id)
    kept = []
    for id in reversed(ids):
        store.entries = 0
        await known.read(id)
        kept.append(store.entries < 10)
    assert kept == [True, True, False, False]
