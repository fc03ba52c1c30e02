"""What a test lets another process do with a store: `python other_process.py <what> <store> <schema> <name>`.

The store is a path or a PostgreSQL DSN; the schema is of the latter.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import warnings
from contextlib import suppress
from typing import Any

from agentkit.errors import StoreError, ThreadBusy, ThreadExists
from agentkit.threads.sql.postgres import PostgresStore
from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.threads.store import Append, NewCall, Store

EACH = 40  # commits of one process


def open_here(where: str, schema: str) -> Any:
    return PostgresStore(where, schema=schema) if where.startswith("postgresql:") else SQLiteStore(where)


async def write(store: Store, name: str) -> None:
    """Make the thread if nobody did, then commit pairs of entries."""
    with suppress(ThreadExists):
        await store.create("t")
    for i in range(EACH):
        await store.commit("t", [Append({"text": f"{name}{i}a"}), Append({"text": f"{name}{i}b"})])


async def acquire(store: Store, name: str) -> None:
    """Say whether we got the lease."""
    try:
        lease = await store.acquire("t", name, 60)
        print("got", lease.fence)
    except ThreadBusy as e:
        print("busy", e.owner, e.fence)


async def write_on(store: Store, name: str) -> None:
    """Commit pairs until we are killed, saying each when it is safe."""
    while True:
        a, b = await store.commit("t", [Append({"text": "a"}, calls=[NewCall("c", {})]), Append({"text": "b"})])
        print(a, b, flush=True)


async def fill(store: Store, name: str) -> None:
    """Write until the limit on file sizes stands in for a full disk; then go on when there is room again."""
    await store.create("t")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    done = 0
    try:
        for _ in range(1000):
            await store.commit("t", [Append({"text": "x" * 3000}), Append({"text": "x" * 3000})])
            done += 2
    except StoreError as e:
        print(e)
    print(done, len((await store.load("t")).entries))
    got = await asyncio.gather(
        *(store.commit("t", [Append({"text": "x" * 3000})]) for _ in range(5)), return_exceptions=True
    )
    print(sorted({type(g).__name__ for g in got}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    print(*await store.commit("t", [Append({"text": "room again"})]))


async def read_then_write(store: Store, name: str) -> None:
    """Say what reading and what writing gives."""
    try:
        print((await store.get("t")).entries)
    except StoreError as e:
        print(e)
    try:
        print(await store.commit("t", [Append({"text": "a"})]))
    except StoreError as e:
        print(e)


async def fork(store: Store, name: str) -> None:
    """Write on both sides of a fork."""
    await store.commit("t", [Append({"text": "before"})])
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of a fork with threads: that is the test
    child = os.fork()
    if child == 0:
        loop = asyncio.new_event_loop()
        asyncio._set_running_loop(None)
        loop.run_until_complete(store.commit("t", [Append({"text": "child"})]))
        loop.run_until_complete(store.aclose())
        os._exit(0)
    _, status = os.waitpid(child, 0)  # noqa: ASYNC222 (nothing else runs here)
    await store.commit("t", [Append({"text": "parent"})])
    print(status, *(entry.body["text"] for entry in (await store.load("t")).entries))


async def main(what: str, where: str, schema: str, name: str) -> None:
    """Do it, as nobody where a name says so: root may write everything."""
    if name == "nobody" and os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    store = open_here(where, schema)
    await {f.__name__: f for f in (write, acquire, write_on, fill, read_then_write, fork)}[what](store, name)
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
