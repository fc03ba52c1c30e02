"""What a test lets another process do with a store: `python other_process.py <what> <store> <schema> <name>`.

The store is a path or a PostgreSQL DSN; the schema is of the latter.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
import warnings
from contextlib import suppress
from typing import Any

from agentkit.errors import StoreError, ThreadBusy, ThreadExists
from agentkit.threads.sql.postgres import PostgresStore
from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.threads.store import Append, NewCall, Store

EACH = 40  # commits of one process
CHILDREN = 5
CROWD = 6  # threads of one child
HANGS = 10.0  # seconds after which a thread counts as one that never ends


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


async def fork_crowd(store: Store, name: str) -> None:
    """Write in children by several threads at once, from the first moment on; say how many of each child hung.

    The store is "cold" if it was not used before the fork, "warm" if it was, "busy" if other threads use it meanwhile.
    """
    warnings.simplefilter("ignore", DeprecationWarning)
    if name != "cold":
        await store.get("t")
    over = threading.Event()
    users = [asyncio.to_thread(_write_until, store, over) for _ in range(3 if name == "busy" else 0)]
    using = asyncio.gather(*users)
    print(*[await asyncio.to_thread(_crowd, store) for _ in range(CHILDREN)])
    over.set()
    await using
    await store.get("t")


async def fork_and_close(store: Store, name: str) -> None:
    """Close the store in the parent while a child that has used it writes on."""
    await store.get("t")
    warnings.simplefilter("ignore", DeprecationWarning)
    used, closed = os.pipe(), os.pipe()
    if (child := os.fork()) == 0:
        loop = asyncio.new_event_loop()
        asyncio._set_running_loop(None)
        loop.run_until_complete(store.commit("t", [Append({"text": "before"})]))
        os.write(used[1], b".")
        os.read(closed[0], 1)
        loop.run_until_complete(store.commit("t", [Append({"text": "after"})]))
        os._exit(0)
    os.read(used[0], 1)
    await store.aclose()
    os.write(closed[1], b".")
    print(os.waitpid(child, 0)[1])  # noqa: ASYNC222 (nothing else runs here)


def _crowd(store: Store) -> int:
    """How many threads hang of a child in which several write at once."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.setswitchinterval(1e-6)
    at_once = threading.Barrier(CROWD)

    def work() -> None:
        at_once.wait()
        asyncio.run(store.commit("t", [Append({"text": "child"})]))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(CROWD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS)
    os._exit(sum(thread.is_alive() for thread in threads))


def _write_until(store: Store, over: threading.Event) -> None:
    while not over.is_set():
        asyncio.run(store.commit("t", [Append({"text": "parent"})]))


async def main(what: str, where: str, schema: str, name: str) -> None:
    """Do it, as nobody where a name says so: root may write everything."""
    if name == "nobody" and os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    store = open_here(where, schema)
    await {f.__name__: f for f in (write, acquire, write_on, fill, read_then_write, fork, fork_crowd, fork_and_close)}[
        what
    ](store, name)
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
