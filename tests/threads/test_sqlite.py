"""What is special to the file: its errors in words, the clock, group commit, its threads."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import do
from thread_kit import integrity

from agentkit.errors import StoreError, ThreadBusy
from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.threads.store import Append, Store


def ask(store: Store, write: bool = True) -> None:
    """One operation, then the end."""

    async def run() -> None:
        try:
            await (store.create("t") if write else store.get("t"))
        finally:
            await store.aclose()

    asyncio.run(run())


def refusal(store: Store, write: bool = True) -> str:
    """What the store says why it cannot."""
    with pytest.raises(StoreError) as e:
        ask(store, write)
    assert type(e.value) is StoreError
    return str(e.value)


@pytest.mark.parametrize("write", [True, False])
def test_a_missing_folder_is_named_and_not_made(tmp_path: Path, write: bool) -> None:
    said = refusal(SQLiteStore(tmp_path / "no" / "a.db"), write)
    assert f"there is no folder {tmp_path / 'no'}; create it first" in said
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "expected a file, found a folder" in refusal(SQLiteStore(tmp_path))


@pytest.mark.parametrize("write", [True, False])
def test_another_kind_of_file_is_left_alone(tmp_path: Path, write: bool) -> None:
    file = tmp_path / "a.db"
    file.write_text("a diary, not a database; " * 100)
    assert f"thread store {file}: the file is not a SQLite database" in refusal(SQLiteStore(file), write)
    assert file.read_text() == "a diary, not a database; " * 100


def test_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    other = sqlite3.connect(file)
    other.executescript("CREATE TABLE threads (colour TEXT); INSERT INTO threads VALUES ('red')")
    before = file.read_bytes()
    assert "table 'threads' was not created by agentkit" in refusal(SQLiteStore(file))
    assert file.read_bytes() == before
    other.close()


def test_tables_of_another_program_may_live_next_to_ours(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    other = sqlite3.connect(file)
    other.executescript("CREATE TABLE colours (name TEXT); INSERT INTO colours VALUES ('red')")
    ask(SQLiteStore(file))
    assert other.execute("SELECT name FROM colours").fetchall() == [("red",)]
    other.close()


def test_a_file_locked_by_another_is_an_error_after_the_timeout(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    ask(SQLiteStore(file))
    other = sqlite3.connect(file, isolation_level=None)

    async def run() -> None:
        async with SQLiteStore(file, busy_timeout=0.05) as store:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match=r"another process kept it locked for 0\.05 s; nothing was changed"):
                await store.commit("t", [Append({"text": "a"})])
            assert (await store.get("t")).entries == 0
            other.execute("COMMIT")
            assert await store.commit("t", [Append({"text": "a"})]) == (0,)

    asyncio.run(run())
    other.close()


def test_many_that_wait_for_a_locked_file_wait_but_once(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    ask(SQLiteStore(file))
    other = sqlite3.connect(file, isolation_level=None)
    said: list[str] = []

    async def run() -> None:
        async with SQLiteStore(file, busy_timeout=0.01, on_statement=lambda _, sql: said.append(sql)) as store:
            await store.get("t")
            other.execute("BEGIN IMMEDIATE")
            commits = [store.commit("t", [Append({"text": f"{i}"})]) for i in range(50)]
            got = await asyncio.gather(*commits, return_exceptions=True)
            assert {type(g) for g in got} == {StoreError}

    asyncio.run(run())
    other.close()
    assert said.count("BEGIN IMMEDIATE") < 10


def test_a_group_that_finds_no_room_is_tried_one_by_one(tmp_path: Path) -> None:
    jobs = 0
    failed = 0

    def hook(moment: str, sql: str) -> None:
        nonlocal jobs, failed
        jobs = 0 if sql.startswith("BEGIN") else jobs + ((moment, sql) == ("before", "SAVEPOINT job"))
        if (moment, sql) == ("before", "COMMIT") and jobs > 1:
            failed += 1
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    async def run() -> None:
        async with SQLiteStore(tmp_path / "a.db", on_statement=hook) as store:
            await store.create("t")
            got = await asyncio.gather(*(store.commit("t", [Append({"text": f"{i}"})]) for i in range(20)))
            assert sorted(got) == [(i,) for i in range(20)]
            assert (await store.get("t")).entries == 20

    asyncio.run(run())
    assert failed > 0


def test_a_full_disk_is_an_error_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    error, counts, others, last = do("fill", SQLiteStore(file)).splitlines()
    assert error.startswith(
        f"thread store {file}: the disk, a quota or a file size limit prevented it; nothing was changed"
    )
    done, found = map(int, counts.split())
    assert 0 < done == found
    assert "StoreError" in others
    assert int(last) >= found
    assert integrity(file) == "ok"


def test_a_read_only_file_can_be_read_but_not_written(open_folder: Path) -> None:
    file = open_folder / "a.db"
    ask(SQLiteStore(file))
    file.chmod(0o444)
    entries, error = do("read_then_write", SQLiteStore(file), "nobody").splitlines()
    assert entries == "0"
    assert f"thread store {file}: the file, or its folder, is read-only; nothing was changed" in error


def test_a_read_only_folder_can_be_read_but_not_written(open_folder: Path) -> None:
    file = open_folder / "a.db"
    ask(SQLiteStore(file))
    file.chmod(0o644)
    open_folder.chmod(0o555)
    entries, error = do("read_then_write", SQLiteStore(file), "nobody").splitlines()
    assert entries == "0"
    assert f"thread store {file}: the file, or its folder, is read-only; nothing was changed" in error


def test_a_new_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "a.db")
    ask(store)
    assert {file.name[4:]: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}.items() >= {"": 0o600}.items()
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_a_read_only_folder_is_an_error(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    for error in do("read_then_write", SQLiteStore(open_folder / "a.db"), "nobody").splitlines():
        assert "no permission to read and write there; nothing was changed" in error


def test_a_folder_that_one_may_not_look_into_is_an_error(open_folder: Path) -> None:
    (open_folder / "shut" / "in").mkdir(parents=True)
    (open_folder / "shut").chmod(0o000)
    store = SQLiteStore(open_folder / "shut" / "in" / "a.db")
    for error in do("read_then_write", store, "nobody").splitlines():
        assert f"no permission to access {open_folder}/shut/in; nothing was changed" in error
    (open_folder / "shut").chmod(0o700)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder into which any user may come and write; pytest shuts its own against others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def test_a_file_removed_while_in_use_is_an_error_and_then_made_anew(tmp_path: Path) -> None:
    async def run() -> None:
        file = tmp_path / "a.db"
        async with SQLiteStore(file) as store:
            await store.create("t")
            for path in ("a.db", "a.db-wal", "a.db-shm"):
                (tmp_path / path).unlink()
            with pytest.raises(StoreError, match="the file was removed while in use; nothing was changed"):
                await store.commit("t", [Append({"text": "a"})])
            await store.create("t")
            assert file.exists()

    asyncio.run(run())


def test_a_clock_that_goes_back_turns_no_time_around_and_a_holder_who_lives_goes_on(tmp_path: Path) -> None:
    now = 1000.0

    async def run() -> None:
        nonlocal now
        async with SQLiteStore(tmp_path / "a.db", clock=lambda: now) as store:
            await store.create("t", {}, [Append({"text": "a"})])
            lease = await store.acquire("t", "first", 60)
            assert lease.until == 1060
            now = 500.0
            await store.create("u")
            await store.commit("t", [Append({"text": "b"})], fence=lease.fence)
            assert [e.created for e in (await store.load("t")).entries] == [1000, 1000]
            assert [(t.id, t.created, t.updated) for t in await store.list()] == [("t", 1000, 1000), ("u", 500, 500)]
            assert (await store.renew(lease, 60)).until == 560
            with pytest.raises(ThreadBusy):
                await store.acquire("t", "second", 60)
            now = 561.0
            assert (await store.acquire("t", "second", 60)).fence > lease.fence
            with pytest.raises(ThreadBusy):
                await store.commit("t", [Append({"text": "c"})], fence=lease.fence)

    asyncio.run(run())


def test_commits_that_wait_together_are_flushed_together(tmp_path: Path) -> None:
    said: list[str] = []
    threads: set[threading.Thread] = set()

    def hook(moment: str, sql: str) -> None:
        threads.add(threading.current_thread())
        if moment == "before":
            said.append(sql)

    async def run() -> None:
        async with SQLiteStore(tmp_path / "a.db", on_statement=hook) as store:
            await store.create("t")
            said.clear()
            await asyncio.gather(*(store.commit("t", [Append({"text": f"{i}"})]) for i in range(500)))

    asyncio.run(run())
    assert said.count("SAVEPOINT job") == 500
    assert said.count("COMMIT") <= 50
    assert threading.main_thread() not in threads


@pytest.mark.parametrize(("durability", "level"), [("power", "FULL"), ("process", "NORMAL")])
def test_durability_is_a_matter_of_flushing(tmp_path: Path, durability: str, level: str) -> None:
    said: list[str] = []
    store = SQLiteStore(tmp_path / "a.db", durability=durability, on_statement=lambda _, sql: said.append(sql))  # type: ignore[arg-type]
    ask(store)
    assert {"PRAGMA journal_mode = WAL", f"PRAGMA synchronous = {level}"} <= set(said)


@pytest.mark.parametrize("make", [lambda path: SQLiteStore(path), lambda path: SQLiteStore(":memory:")])
def test_a_forgotten_store_ends_its_threads(tmp_path: Path, make: Callable[[Path], SQLiteStore]) -> None:
    before = set(threading.enumerate())
    store = make(tmp_path / "a.db")
    asyncio.run(store.create("t"))
    mine = set(threading.enumerate()) - before
    assert {thread.name for thread in mine} <= {"agentkit-writer", "agentkit-reader"}
    assert all(thread.daemon for thread in mine)
    del store
    gc.collect()
    for _ in range(200):
        if not any(thread.is_alive() for thread in mine):
            return
        time.sleep(0.01)
    pytest.fail("they live on")
