"""A row or a cell of a thread that is missing or damaged: it is told, with its place, or changes nothing that is read.

No call runs that no response asks for, none is left without its answer, and no words are lost in silence.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_rows import execute
from thread_kit import said

from agentkit.errors import StoreError, ThreadNotFound
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.threads.store import CallStatus
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry

TABLES = {
    "threads": (
        *("id", "metadata", "entries", "created", "updated", "version"),
        *("lease_owner", "lease_fence", "lease_until", "lease_seconds"),
    ),
    "entries": ("thread", "seq", "kind", "key", "body", "created"),
    "calls": ("thread", "seq", "ordinal", "id", "status", "body", "note", "answer", "attempts", "started", "ended"),
}
KEYS = {"threads": ("id",), "entries": ("thread", "seq"), "calls": ("thread", "seq", "ordinal")}
TEXTS = [
    "",
    "x",
    "null",
    "[]",
    '{"a": 1',
    '{"kind": "no"}',
    "partial",
    "compaction",
    "waiting",
    "planned",
    "started",
    "approved",
    "answered",
    "b",
]
NUMBERS = [-1, 0, 1, 10**9, 10**18]
FLOATS = [-1.0, 0.0, 1.5, float("inf")]
REALS = {"created", "updated", "lease_until", "lease_seconds", "started", "ended"}
WHOLE = {"entries", "version", "lease_fence", "seq", "ordinal", "attempts"}

Rows = dict[str, list[tuple[Any, ...]]]
Damage = tuple[str, tuple[Any, ...], str | None, Any]
"""Table, key of the row, column (None: the row is missing), value."""


class Work:
    """Two tools, and what was run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    @openapi_schema
    def look(self, at: str) -> str:
        """Look."""
        self.ran.append(at)
        return f"saw {at}"

    @openapi_schema(requires_approval=True)
    def pay(self, to: str) -> str:
        """Pay."""
        self.ran.append(f"pay {to}")
        return f"paid {to}"


def look(id: str, at: str) -> ToolCall:
    return ToolCall(id, "look", {"at": at})


async def build(store: Any) -> None:
    """A thread with answered calls, and one that was approved and edited and has not run yet; and another thread."""
    threads = ThreadManager(store, ToolRegistry(Work()))
    await threads.create_thread("t", messages="Go", metadata={"title": "T"})
    turns = [[look("a", "one"), look("b", "two")], ["Now pay.", ToolCall("c", "pay", {"to": "Bo"})]]
    await threads.run_thread("t", model=ScriptedModel(turns)).complete()
    await threads.approve("t", "c", arguments={"to": "Al"})
    await threads.create_thread("other", messages="Hi")


async def rows_of(store: Any) -> Rows:
    """All that the tables hold."""
    queries = {table: f"SELECT {', '.join(columns)} FROM {{p}}{table}" for table, columns in TABLES.items()}
    if isinstance(store, SQLiteStore):
        with closing(sqlite3.connect(store.name)) as connection:
            return {table: connection.execute(sql.format(p="")).fetchall() for table, sql in queries.items()}
    import asyncpg

    connection = await asyncpg.connect(store.dsn)
    try:
        prefix = f'"{store.schema}".'
        return {table: [tuple(r) for r in await connection.fetch(q.format(p=prefix))] for table, q in queries.items()}
    finally:
        await connection.close()


async def restore(store: Any, rows: Rows) -> None:
    for table, columns in TABLES.items():
        await execute(store, f"DELETE FROM {{p}}{table}")
        for row in rows[table]:
            places = ", ".join("?" * len(columns))
            await execute(store, f"INSERT INTO {{p}}{table} ({', '.join(columns)}) VALUES ({places})", *row)


def damages_of(rows: Rows, sqlite: bool) -> list[Damage]:
    """Every damage of one row, and of one cell, of thread `t`."""
    found: list[Damage] = []
    for table, columns in TABLES.items():
        for row in rows[table]:
            if row[0] != "t":
                continue
            key = row[: len(KEYS[table])]
            found.append((table, key, None, None))
            for column, value in zip(columns, row, strict=True):
                fitting: list[Any] = FLOATS if column in REALS else NUMBERS if column in WHOLE else TEXTS
                values = [*FLOATS, *NUMBERS, *TEXTS, b"\xff", None] if sqlite else [*fitting, None]
                found += [(table, key, column, new) for new in values if new != value]
    return found


async def do(store: Any, damage: Damage) -> bool:
    """Damage a row; False where the database itself does not take this."""
    table, key, column, value = damage
    where = " AND ".join(f"{name} = ?" for name in KEYS[table])
    try:
        if column is None:
            await execute(store, f"DELETE FROM {{p}}{table} WHERE {where}", *key)
        else:
            await execute(store, f"UPDATE {{p}}{table} SET {column} = ? WHERE {where}", value, *key)
    except Exception as e:
        if type(e).__module__.startswith(("sqlite3", "asyncpg")):
            return False
        raise
    return True


class Seen:
    """What each way of reading a thread gives: a value, or words of an error of the store."""

    def __init__(self, store: Any) -> None:
        self.work = Work()
        self.threads = ThreadManager(store, ToolRegistry(self.work))
        self.model = ScriptedModel(lambda _: "Done.")

    async def of(self, damage: Damage | None) -> dict[str, Any]:
        threads = self.threads

        async def run() -> list[str]:
            await threads.run_thread("t", model=self.model).complete()
            return said(await threads.get_llm_messages("t"))

        ways: dict[str, Callable[[], Any]] = {
            "messages": lambda: threads.get_llm_messages("t"),
            "pending": lambda: threads.pending("t"),
            "run": run,
            "say": lambda: threads.add_message("t", "And?"),
            "fork": lambda: threads.fork_thread("t", new_id="u"),
        }
        seen: dict[str, Any] = {"list": {t.id: t.damage for t in await threads.list_threads()}}
        for name, way in ways.items():
            try:
                seen[name] = await way()
            except StoreError as e:
                seen[name] = e
        for name, error in seen.items():
            if isinstance(error, StoreError):
                assert "thread 't'" in str(error), (damage, name, error)
                in_thread = damage is not None and (damage[0] == "threads" or damage[2] == "thread")
                assert in_thread or "entry " in str(error), (damage, name, error)
        return seen


def judge(damage: Damage, sound: dict[str, Any], seen: dict[str, Any], ran: list[str]) -> None:
    """Check that damage is reported, runs nothing, and leaves the rest readable."""
    refused = isinstance(seen["messages"], StoreError)
    renamed = damage[0] == "threads" and damage[2] in (None, "id")
    assert renamed or {"t", "other"} <= set(seen["list"]), damage
    assert ran in ([], ["pay Al"]), (damage, ran)
    if refused:
        assert isinstance(seen["run"], StoreError), damage
        assert not ran, (damage, "nothing runs in a thread that cannot be read")
        return
    assert said(seen["messages"]) == said(sound["messages"]), damage
    if isinstance(seen["run"], StoreError):
        return
    before = [line for line in said(sound["messages"]) if "no result yet" not in line]
    assert seen["run"][: len(before)] == before, damage
    calls = [line for line in seen["run"] if line.startswith(("look ", "pay "))]
    answers = [line for line in seen["run"] if line.startswith("= ")]
    assert len(calls) == len(answers) == 3, (damage, seen["run"])


async def story(store: Any, rows: Rows, sound: dict[str, Any], damage: Damage) -> None:
    await restore(store, rows)
    if not await do(store, damage):
        return
    fresh = Seen(store)
    seen = await fresh.of(damage)
    judge(damage, sound, seen, fresh.work.ran)
    assert said(await fresh.threads.get_llm_messages("other")) == ["user: Hi"]
    try:
        await fresh.threads.delete_thread("t")
    except ThreadNotFound:
        assert damage[0] == "threads", damage
    left = await rows_of(store)
    lost = (damage[0] == "threads" and damage[2] == "id") or damage[2] == "thread"
    assert lost or not [row for table in left for row in left[table] if row[0] == "t"], damage
    await execute(store, "DELETE FROM {p}threads WHERE id NOT IN ('t', 'other')")
    await fresh.threads.create_thread("t", messages="Anew")
    assert said(await fresh.threads.get_llm_messages("t")) == ["user: Anew"]


def checked(new_store: Callable[..., Any], choose: Callable[[list[Damage], Callable[[Damage], None]], None]) -> None:
    store = new_store()
    with asyncio.Runner() as loop:
        loop.run(build(store))
        rows = loop.run(rows_of(store))
        sound = loop.run(Seen(store).of(None))
        edited = 'The user changed the arguments before the call was run: {"to": "Al"}\npaid Al'
        assert sound["run"][-2:] == [f"= ok: {edited}", "assistant: Done."]
        choose(
            damages_of(rows, isinstance(store, SQLiteStore)),
            lambda damage: loop.run(story(store, rows, sound, damage)),
        )
        loop.run(store.aclose())


def test_a_missing_row_is_told(new_store: Callable[..., Any]) -> None:
    def choose(damages: list[Damage], tell: Callable[[Damage], None]) -> None:
        missing = [damage for damage in damages if damage[2] is None]
        assert len(missing) == 1 + 3 + 3
        for damage in missing:
            tell(damage)

    checked(new_store, choose)


def test_a_damaged_cell_is_told_or_changes_nothing(new_store: Callable[..., Any]) -> None:
    def choose(damages: list[Damage], tell: Callable[[Damage], None]) -> None:
        @settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
        @given(st.sampled_from(damages))
        def each(damage: Damage) -> None:
            tell(damage)

        each()

    checked(new_store, choose)


def test_another_status_of_a_call_is_told_or_changes_nothing(new_store: Callable[..., Any]) -> None:
    """Such as that it waits, where the note beside it holds the approval."""

    def choose(damages: list[Damage], tell: Callable[[Damage], None]) -> None:
        statuses = [damage for damage in damages if damage[2] == "status" and damage[3] in get_args(CallStatus)]
        assert len(statuses) == 3 * 4
        for damage in statuses:
            tell(damage)

    checked(new_store, choose)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_every_damaged_cell_is_told_or_changes_nothing(new_store: Callable[..., Any]) -> None:
    """Each of them with 300 examples, as `make soak` asks for; with fewer, so many fewer of them."""
    share = max(1, 300 // int(os.environ.get("AGENTKIT_EXAMPLES", "300")))

    def choose(damages: list[Damage], tell: Callable[[Damage], None]) -> None:
        for damage in damages[::share]:
            tell(damage)

    checked(new_store, choose)


@pytest.mark.parametrize("value", [None, "x", -1, 2**63 - 1])
def test_a_floor_that_is_none_is_told(tmp_path: Any, value: object) -> None:
    async def tell() -> None:
        async with SQLiteStore(tmp_path / "a.db") as store:
            await store.create("t")
            if value is None:
                await execute(store, "DELETE FROM agentkit WHERE name = 'floor'")
            else:
                await execute(store, "UPDATE agentkit SET value = ? WHERE name = 'floor'", value)
            with pytest.raises(StoreError, match="the row 'floor' of the table agentkit is damaged"):
                await store.create("u")
            assert (await store.get("t")).id == "t"
            await store.delete("t")

    asyncio.run(tell())
