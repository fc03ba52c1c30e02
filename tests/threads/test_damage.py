"""What somebody else changed in a store's tables: every way of reading says what is damaged, and where, and no more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_rows import execute

from agentkit.cli.transcript import state, totals, transcript, words
from agentkit.errors import ConfigError, StoreError, ThreadNotFound
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.testing import ScriptedModel
from agentkit.threads import Append, Compaction, NewCall, SQLiteStore, StoredResults, ThreadManager, open_store
from agentkit.threads.entries import planned_call
from agentkit.threads.export import export_messages
from agentkit.tool.codec import to_json
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext


def note(text: str) -> str:
    """Write down."""
    return text


ASKED = {"message": to_json(UserMessage((TextPart("Write it down."), ImagePart(b"png"))))}
CALL = ToolCall("c1", "note", {"text": "x"})
OTHER = ToolCall("c2", "note", {"text": "y"}, "xml", "<note/>")
SAID = {
    "message": to_json(
        AssistantMessage(
            (ThinkingPart("Hm.", "anthropic", {"s": 1}), TextPart("So."), CALL, OTHER, ProviderPart("x", {}))
        )
    ),
    "read": 0,
    "response": {"run": "r", "model": "m", "usage": [9, 2, 0, 0, 0], "finish": "tool_calls", "seconds": 0.5},
}
DONE = to_json(ToolMessage("c1", "note", (TextPart("x"),)))
SHORTER = {
    "answers": {"1/0": "short"},
    "tokens": [90, 40],
    "start": 0,
    "summary": "They met.",
    "user": 0,
    "usage": [1, 2],
}
THREAD = [
    Append(ASKED),
    Append(
        SAID, calls=[NewCall("c1", planned_call(CALL), "answered", DONE), NewCall("c2", planned_call(OTHER), "waiting")]
    ),
    Append(SHORTER, "compaction"),
]

SMALL = Compaction(window=2_000, summary_tokens=0)
COLUMNS = ["entries.body", "calls.body", "calls.note", "calls.answer", "threads.metadata"]
ANY_VALUE = ["entries.kind", "entries.created", "entries.key", "calls.status", "calls.id", "calls.attempts"]
ANY_VALUE += ["calls.started", "threads.entries", "threads.version", "threads.updated", "threads.lease_until"]
ANY_VALUE += ["threads.lease_fence", "threads.lease_owner", "threads.lease_seconds", "threads.created"]
ORIGINAL: dict[str, list[Any]] = {
    "entries.body": [ASKED, SAID, SHORTER],
    "calls.body": [planned_call(CALL), planned_call(OTHER)],
    "calls.note": [{"by": "ada", "hash": "0", "edited": True}],
    "calls.answer": [DONE],
    "threads.metadata": [{"title": "a"}],
}
ODD = st.sampled_from(["x", b"\xff", -1, 1.5, "\\u12", 10**18])
WRONG = st.sampled_from([None, 0, -1, 1.5, True, "", "x", [], {}, [1], {"a": 1}, ["x"], 10**30, "[" * 5000, [[]] * 3])


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, child in children for place in places(child, (*at, key)))]


@st.composite
def damaged_json(draw: st.DrawFn, column: str) -> str:
    """One of a column's bodies: with a value dropped or replaced, or cut, or something else altogether."""
    text = json.dumps(draw(st.sampled_from(ORIGINAL[column])))
    how = draw(st.sampled_from(["drop", "replace", "replace", "cut", "other"]))
    if how == "cut":
        return text[: draw(st.integers(0, len(text) - 1))]
    if how == "other":
        return draw(st.sampled_from(["", "null", "5", '"x"', "[]", "{}", "{oops", "NaN", "[" * 5000, '{"message": 5}']))
    body = json.loads(text)
    *way, last = draw(st.sampled_from(places(body)[1:]))
    holder = body
    for key in way:
        holder = holder[key]
    if how == "drop":
        del holder[last]
    else:
        holder[last] = draw(WRONG)
    return json.dumps(body)


async def everything(store: Any, id: str) -> list[tuple[str, Exception]]:
    """What each way of reading a thread raises."""
    threads = ThreadManager(store, ToolRegistry(note))
    read = StoredResults(store).read_result

    async def drawn() -> None:
        log = await threads.get_log(id)
        list(transcript(log, 80, lambda text, *_: text, full=True))
        state(log), totals(log), words(log, 40)
        messages = await threads.get_llm_messages(id)
        for wire in ("json", "openai", "anthropic", "hermes"):
            json.dumps(export_messages(messages, wire, []))

    class Run:
        thread_id = id

    ways: dict[str, Callable[[], Awaitable[Any]]] = {
        "thread": lambda: threads.get_thread(id),
        "drawn": drawn,
        "pending": lambda: threads.pending(id),
        "result": lambda: read("1/0", ToolContext("c", "read_result", run=Run())),  # type: ignore[arg-type]
        "fork": lambda: threads.fork_thread(id),
        "approve": lambda: threads.approve(id, "c2"),
        "answer": lambda: threads.add_message(id, ToolMessage("c2", "note", (TextPart("y"),))),
        "say": lambda: threads.add_message(id, "Go on."),
        "run": lambda: threads.run_thread(
            id, model=ScriptedModel(["Done."]), compaction=Compaction(window=2_000, summary_tokens=0)
        ).complete(),
        "delete": lambda: threads.delete_thread(id),
    }
    raised: list[tuple[str, Exception]] = []
    for name, way in ways.items():
        try:
            await way()
        except Exception as e:  # noqa: BLE001 - what it is, is the question
            raised.append((name, e))
    return raised


def test_a_damaged_row_is_an_error_of_the_store_that_says_where(new_store: Callable[..., Any]) -> None:
    store = new_store()
    sqlite = isinstance(store, SQLiteStore)

    async def story(id: str, column: str, value: Any) -> None:
        await store.create(id, {"title": "a"}, THREAD)
        table, name = column.split(".")
        where = "id" if table == "threads" else "seq = 1 AND thread"
        await execute(store, f"UPDATE {{p}}{table} SET {name} = ? WHERE {where} = ?", value, id)
        for way, error in await everything(store, id):
            assert isinstance(error, StoreError | ConfigError), (way, error)
            if isinstance(error, StoreError) and "damaged" in str(error):
                assert f"thread {id!r}" in str(error)
                assert table == "threads" or "entry " in str(error)

    with asyncio.Runner() as loop:
        names = iter(range(10**6))

        @settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
        @given(st.data())
        def tell(data: st.DataObject) -> None:
            column = data.draw(st.sampled_from(COLUMNS + (ANY_VALUE if sqlite else [])))
            values = damaged_json(column) if column in COLUMNS else ODD
            if sqlite and column in COLUMNS:
                values |= st.sampled_from([b"\xff", 5, 1.5])
            value = data.draw(values)
            try:
                loop.run(story(f"t{next(names)}", column, value))
            finally:
                loop.run(execute(store, "DELETE FROM {p}threads"))

        tell()
        loop.run(store.aclose())


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("{}", "'message' is missing, expected an object"),
        ('{"message": {"role": "wizard", "content": []}}', "unknown role 'wizard'"),
        ('{"message": {"role": "user", "content": [{"type": "hologram"}]}}', "unknown part 'hologram'"),
        ("{oops", "body is not JSON (JSONDecodeError"),
        ("[]", "body is not a JSON object: '[]'"),
        ('{"message": {"role": "assistant", "content": null}}', "content is None"),
    ],
)
def test_a_damaged_body_in_words(tmp_path: Path, body: str, told: str) -> None:
    async def story() -> list[tuple[str, Exception]]:
        async with SQLiteStore(tmp_path / "a.db") as store:
            await store.create("t", {}, [Append(ASKED)])
            await execute(store, "UPDATE entries SET body = ?", body)
            return await everything(store, "t")

    raised = dict(asyncio.run(story()))
    assert raised.keys() >= {"drawn", "pending", "result", "fork", "run"}
    assert "delete" not in raised, "what is damaged can still be removed"
    for way in ("drawn", "pending", "result", "fork", "run"):
        assert isinstance(raised[way], StoreError)
        assert "thread 't', entry 0 is damaged in the store: " in str(raised[way])
        assert told in str(raised[way])


@pytest.mark.parametrize("version", ["x", b"x", 1.5, 0, -1, 999, None])
def test_a_version_of_the_tables_that_is_none_is_an_error(tmp_path: Path, version: object) -> None:
    async def story() -> None:
        async with SQLiteStore(tmp_path / "a.db") as store:
            await store.create("t")
        if version is None:
            await execute(store, "DELETE FROM agentkit WHERE name = 'schema'")
        else:
            await execute(store, "UPDATE agentkit SET value = ? WHERE name = 'schema'", version)
        async with SQLiteStore(tmp_path / "a.db") as store:
            for act in (store.get("t"), store.create("u")):
                with pytest.raises(StoreError, match="the tables have version"):
                    await act

    asyncio.run(story())


@pytest.mark.parametrize("path", ["a\0b", "\ud800.db"])
def test_a_path_that_no_system_takes_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"expected the path of a file, or ':memory:'"):
        open_store(path)


DSNS = [
    "postgresql://u:SECRET@127.0.0.1:abc/db",
    "postgresql://u:SECRET@[",
    "postgresql://u:SEC/RET@127.0.0.1:1/db",  # all up to the slash would be host and port
    "postgresql://u:SECRET@127.0.0.1:99999/db",
    "postgresql://u:SECRET@127.0.0.1/db?port=abc",
    "postgresql://u:SECRET@h\0:1/db",
    "postgresql://u:SECRET@\u2100/db",
    "postgresql://u:SECRET@127.0.0.1:1/db?sslmode=odd",
    "postgresql://u:SECRET@127.0.0.1:1,127.0.0.1:2/db",
]


@pytest.mark.parametrize("dsn", DSNS)
def test_a_wrong_dsn_is_an_error_without_its_password(dsn: str) -> None:
    pytest.importorskip("asyncpg")

    async def story() -> None:
        store: Any = open_store(dsn)
        try:
            await store.get("t")
        finally:
            await store.aclose()

    with pytest.raises((ConfigError, StoreError)) as e:
        asyncio.run(story())
    assert "SEC" not in f"{e.value!r} {e.value.__cause__!r}"


@pytest.mark.parametrize(
    "metadata", [None, [], "x", 5, {1: 2}, {"a": {None: 1}}, {"a": [{(): 1}]}, {"a": float("nan")}]
)
def test_metadata_is_a_json_object(metadata: Any) -> None:
    async def story() -> None:
        threads = ThreadManager(":memory:")
        with pytest.raises((ConfigError, StoreError), match=r"metadata"):
            await threads.create_thread("t", metadata=metadata)
        with pytest.raises(ThreadNotFound):
            await threads.get_thread("t")
        await threads.aclose()

    asyncio.run(story())
