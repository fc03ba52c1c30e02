"""Several processes, killed processes, broken connections: nothing is lost, nothing is half, nobody gets in twice."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, get_args

import pytest
from breaking_proxy import Way, proxy
from other_process import CHILDREN, CROWD, EACH
from processes import begin, do, end
from thread_kit import integrity

from agentkit.errors import StoreError
from agentkit.threads.sql.postgres import PostgresStore
from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.threads.store import Append, Store

KILLS = 6

NewStore = Callable[..., Any]


def test_processes_that_open_a_new_store_at_once_leave_no_gap(new_store: NewStore) -> None:
    store = new_store()
    for process in [begin("write", store, name) for name in "xyz"]:
        end(process)

    async def look() -> list[str]:
        async with store:
            return [entry.body["text"] for entry in (await store.load("t")).entries]

    said = asyncio.run(look())
    assert sorted(said) == sorted(f"{name}{i}{end}" for name in "xyz" for i in range(EACH) for end in "ab")
    assert [a[:-1] for a in said[::2]] == [b[:-1] for b in said[1::2]]


def test_one_of_several_processes_gets_the_lease(new_store: NewStore) -> None:
    store = new_store()
    asyncio.run(store.create("t"))
    said = sorted(end(process) for process in [begin("acquire", store, name) for name in "xyz"])
    assert [line.split()[0] for line in said] == ["busy", "busy", "got"]
    assert said[0] == said[1]
    asyncio.run(store.aclose())


def test_what_a_killed_process_was_told_is_there_and_nothing_is_half(new_store: NewStore) -> None:
    store = new_store()
    asyncio.run(store.create("t"))
    told, chance = 0, random.Random(type(store).__name__)
    for _ in range(KILLS):
        process = begin("write_on", store)
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 60)):
            told = int(process.stdout.readline().split()[1])
        process.kill()
        rest = process.stdout.read()  # not communicate: it would miss what the reader has taken already
        process.communicate()
        whole = rest.rpartition("\n")[0]  # it may be killed in the middle of a line
        told = max([told, *(int(line.split()[1]) for line in whole.splitlines())])
    log = asyncio.run(store.load("t"))
    assert [e.seq for e in log.entries] == list(range(len(log.entries)))
    assert [e.body["text"] for e in log.entries] == ["a", "b"] * (len(log.entries) // 2)
    assert [call.seq for call in log.calls] == list(range(0, len(log.entries), 2))
    assert told < len(log.entries) <= told + 1 + 2 * KILLS
    asyncio.run(store.aclose())
    if isinstance(store, SQLiteStore):
        assert integrity(store.name) == "ok"


def test_both_sides_of_a_fork_may_go_on(new_store: NewStore) -> None:
    store = new_store()
    asyncio.run(store.create("t"))
    assert do("fork", store) == "0 before child parent\n"
    asyncio.run(store.aclose())


@pytest.mark.share(3)
@pytest.mark.parametrize("before", ["cold", "warm", "busy"])
def test_in_the_child_of_a_fork_several_threads_may_begin_at_once(new_store: NewStore, before: str) -> None:
    store = new_store()
    asyncio.run(store.create("t"))
    assert do("fork_crowd", store, before) == f"{' '.join(CHILDREN * '0')}\n"
    log = asyncio.run(store.load("t"))
    assert [entry.body["text"] for entry in log.entries].count("child") == CHILDREN * CROWD
    asyncio.run(store.aclose())


def test_what_a_child_writes_stays_if_the_parent_closes_first(new_store: NewStore) -> None:
    store = new_store()
    asyncio.run(store.create("t"))
    assert do("fork_and_close", store) == "0\n"
    log = asyncio.run(store.load("t"))
    asyncio.run(store.aclose())
    assert [entry.body["text"] for entry in log.entries] == ["before", "after"]


def test_an_error_of_the_hook_reaches_the_caller_and_changes_nothing(new_store: NewStore) -> None:
    broken = False

    def hook(moment: str, sql: str) -> None:
        if broken and (moment, sql) == ("before", "COMMIT"):
            raise OSError("no power")

    async def run() -> None:
        nonlocal broken
        async with new_store(on_statement=hook) as store:
            await store.create("t")
            broken = True
            commits = [store.commit("t", [Append({"text": f"{i}"})]) for i in range(20)]
            got = await asyncio.gather(*commits, return_exceptions=True)
            assert {type(g) for g in got} <= {OSError, StoreError}
            broken = False
            assert (await store.get("t")).entries == 0
            assert await store.commit("t", [Append({"text": "a"})]) == (0,)

    asyncio.run(run())


def test_a_lost_connection_is_an_error_and_the_next_operation_connects_again(postgres_dsn: str) -> None:
    import asyncpg

    async def run() -> None:
        async with PostgresStore(postgres_dsn, schema="lost", connections=1) as store:
            await store.create("t")
            other = await asyncpg.connect(postgres_dsn)
            await other.execute("BEGIN; SELECT * FROM lost.threads FOR UPDATE")
            waiting = asyncio.create_task(store.commit("t", [Append({"text": "a"})]))
            kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while not await other.fetch(kill):  # noqa: ASYNC110 (the server cannot set an event)
                await asyncio.sleep(0.01)
            with pytest.raises(StoreError, match=r"^postgresql:///postgres"):
                await waiting
            await other.close()
            assert await store.commit("t", [Append({"text": "b"})]) == (0,)

    asyncio.run(run())


async def end_connections(dsn: str) -> None:
    """End all connections to a server but this one."""
    import asyncpg

    other = await asyncpg.connect(dsn)
    await other.fetch(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    await other.close()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_that_the_server_ends_is_told_as_lost(postgres_dsn: str, moment: str) -> None:
    """At every statement, and between two operations; never in the words of the driver about its own states."""
    left = -1  # statements until the connection is ended; not if negative

    def hook(now: str, sql: str) -> None:
        nonlocal left
        if now == moment:
            left -= 1
            if left == 0:
                ending = Thread(target=lambda: asyncio.run(end_connections(postgres_dsn)))
                ending.start()
                ending.join()

    async def run() -> list[str]:
        nonlocal left
        seen = []
        schema = f"ended_{moment}"
        async with PostgresStore(postgres_dsn, schema=schema, connections=1, on_statement=hook) as store:
            await store.create("t")
            for number in range(30):
                try:
                    await store.commit("t", [Append({"text": "a"})])
                    left = number // 2 + 1  # each twice: at first statements take more than one round trip
                    await store.commit("t", [Append({"text": "a"})])
                except StoreError as e:
                    seen.append(str(e))
                left = -1
                if number % 3 == 0:
                    await end_connections(postgres_dsn)
        return seen

    seen = asyncio.run(run())
    lost = "postgresql:///postgres: there is no connection, so nothing was changed: "
    unknown = (
        "postgresql:///postgres: the connection broke during COMMIT, so it is unknown whether the changes were made"
    )
    told = [
        "terminating connection due to administrator command",
        "connection was closed in the middle of operation",
        "the server or the network closed it",
    ]
    assert len(seen) > 3
    assert set(seen) <= {f"{lost}{why}" for why in told} | {f"{unknown} ({why})" for why in told}


@pytest.mark.parametrize("way", get_args(Way))
def test_what_an_error_says_of_a_broken_connection_is_true(postgres_dsn: str, way: Way) -> None:
    """At every statement of a commit: nothing was changed, or it is said that nobody knows."""
    statements: list[str] = []
    broken_at = -1

    async def run() -> list[tuple[str, bool, str]]:
        nonlocal broken_at

        def hook(moment: str, sql: str) -> None:
            if moment == "before":
                breaking.way = way if len(statements) == broken_at else None
                statements.append(sql.split()[0])

        seen = []
        async with (
            proxy(postgres_dsn) as (breaking, dsn),
            PostgresStore(dsn, schema=f"broken_{way}", connections=1, on_statement=hook) as store,
        ):
            await store.create("t")
            for number in itertools.count():
                broken_at = -1
                for _ in range(2):  # the second time each statement is one round trip
                    await store.commit("t", [Append({"text": "a"})])
                before = (await store.get("t")).entries
                statements.clear()
                broken_at = number
                try:
                    await store.commit("t", [Append({"text": "b"})])
                except StoreError as e:
                    at = statements[number]
                    broken_at = -1
                    seen.append((at, (await store.get("t")).entries > before, str(e).partition(" (")[0]))
                else:
                    return seen
        raise AssertionError

    seen = asyncio.run(run())
    *early, last = seen
    assert [at for at, _, _ in early][:1] == ["BEGIN"]
    assert len(early) > 2
    for _, changed, error in early:
        assert not changed
        assert "postgresql:///postgres: there is no connection, so nothing was changed: " in error
    unknown = (
        "postgresql:///postgres: the connection broke during COMMIT, so it is unknown whether the changes were made"
    )
    assert last == ("COMMIT", way != "before", unknown)


def test_a_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("asyncpg")

    async def run() -> None:
        async with PostgresStore(f"postgresql://me:secret@/db?host={tmp_path}") as store:
            with pytest.raises(StoreError, match="there is no connection, so nothing was changed") as e:
                await store.get("t")
            assert "secret" not in str(e.value)

    asyncio.run(run())


def test_a_schema_of_another_agentkit_is_refused(new_store: NewStore) -> None:
    from agentkit.threads.sql import operations as sql

    async def run(store: Store) -> None:
        await store.create("t")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sql, "SCHEMA_VERSION", 0)
            newer = reopened(store)
            with pytest.raises(StoreError, match=r"the tables have version 2, but this agentkit supports only 0"):
                await newer.get("t")
            with pytest.raises(StoreError, match=r"the tables have version 2, but this agentkit supports only 0"):
                await newer.create("u")
            await newer.aclose()
        await store.aclose()

    asyncio.run(run(new_store()))


def reopened(store: Any) -> Any:
    """Another object for the same place."""
    if isinstance(store, SQLiteStore):
        return SQLiteStore(store.name)
    return PostgresStore(store.dsn, schema=store.schema)
