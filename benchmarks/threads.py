"""The cost of storing a thread: commits per second, sequentially and from a thousand tasks at once.

A commit is the most frequent write of a run: an answer to a call with its next entry (`Move` and `Append`), under a
lease. Wall clock, since a commit waits for the disk; it depends mostly on the disk, so the floor is also measured: the
time of one write and flush of 4 KiB in the same folder.

    python benchmarks/threads.py [folder]

PostgreSQL is measured if it is installed, on our own server with its default flushing.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.threads.store import Append, Move, NewCall, Store

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from postgres_server import Absent, server

TASKS = 1000
ROUNDS = 5  # commits of each task
SERIAL_SECONDS = 2.0

BODY = {"role": "assistant", "text": "x" * 300}
ANSWER = {"output": "y" * 300}


async def serial(store: Store) -> float:
    """Commits per second of one task."""
    await store.create("serial", {}, [Append(BODY, calls=[NewCall("c", BODY)])])
    fence = (await store.acquire("serial", "me", 600)).fence
    seq, count, start = 0, 0, time.perf_counter()
    while time.perf_counter() - start < SERIAL_SECONDS:
        move = Move(seq, 0, "answered", expect=("planned",), answer=ANSWER)
        (seq,) = await store.commit("serial", [move, Append(BODY, calls=[NewCall("c", BODY)])], fence=fence)
        count += 1
    return count / (time.perf_counter() - start)


async def one(store: Store, name: str, waits: list[float]) -> None:
    """The commits of one of many tasks, each with its own thread."""
    await store.create(name, {}, [Append(BODY, calls=[NewCall("c", BODY)])])
    fence = (await store.acquire(name, "me", 600)).fence
    seq = 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        move = Move(seq, 0, "answered", expect=("planned",), answer=ANSWER)
        (seq,) = await store.commit(name, [move, Append(BODY, calls=[NewCall("c", BODY)])], fence=fence)
        waits.append(time.perf_counter() - start)


async def many(store: Store) -> tuple[float, float]:
    """Transactions per second of a thousand tasks, and the median wait of a commit in milliseconds."""
    waits: list[float] = []
    start = time.perf_counter()
    await asyncio.gather(*(one(store, f"t{i}", waits) for i in range(TASKS)))
    elapsed = time.perf_counter() - start
    return TASKS * (ROUNDS + 2) / elapsed, sorted(waits)[len(waits) // 2] * 1e3


async def loading(store: Store) -> float:
    """Microseconds to load a thread of a hundred entries with their calls."""
    await store.create("long", {}, [Append(BODY, calls=[NewCall("c", BODY)]) for _ in range(100)])
    start = time.perf_counter()
    for _ in range(100):
        await store.load("long")
    return (time.perf_counter() - start) / 100 * 1e6


def flush(folder: Path) -> float:
    """Microseconds for one write and flush."""
    with (folder / "flush").open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(100):
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
        return (time.perf_counter() - start) / 100 * 1e6


async def row(name: str, store: Store) -> None:
    """One line of the table."""
    async with store:  # type: ignore[attr-defined]
        alone = await serial(store)
        together, wait = await many(store)
        load = await loading(store)
    print(f"{name:<36}{alone:>10,.0f}{1e6 / alone:>11,.0f}{together:>12,.0f}{wait:>10.1f}{load:>12,.0f}")


def main() -> None:
    """Print the table."""
    with ExitStack() as stack:
        parent = sys.argv[1] if len(sys.argv) > 1 else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=parent)))
        print(f"one write and flush: {flush(folder):,.0f} µs")
        print(f"{'':<36}{'serial':>21}{f'{TASKS} tasks':>22}{'load 100':>12}")
        print(f"{'store':<36}{'commits/s':>10}{'µs':>11}{'txns/s':>12}{'wait ms':>10}{'µs':>12}")
        asyncio.run(row("SQLite, durability=power", SQLiteStore(folder / "power.db")))
        asyncio.run(row("SQLite, durability=process", SQLiteStore(folder / "process.db", durability="process")))
        asyncio.run(row("SQLite, :memory:", SQLiteStore(":memory:")))
        try:
            from agentkit.threads.sql.postgres import PostgresStore

            dsn = stack.enter_context(server("max_connections=60"))
            asyncio.run(row("PostgreSQL, 10 connections", PostgresStore(dsn)))
            asyncio.run(row("PostgreSQL, 40 connections", PostgresStore(dsn, schema="more", connections=40)))
        except (Absent, ImportError) as e:
            print(f"PostgreSQL: not measured, {e}")


if __name__ == "__main__":
    main()
