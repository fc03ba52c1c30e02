"""The cost of one more exchange on a long thread, of a request on it, and how long its loading holds the event loop.

Everything is measured in a single run; read the ratios, not the absolute times. An exchange has two turns, one call and
one word, on a model that answers immediately; a thread is flat if the exchange costs on 10,000 messages what it costs
on 10. A scripted model is sent nothing. What a provider's model is sent is measured separately: making the request,
which is ours, and writing it as JSON, which no one can avoid.

    python benchmarks/long_threads.py
    python benchmarks/long_threads.py --before <checkout>   # the same in another checkout, in the same run
    python benchmarks/long_threads.py --peers               # next to openai-agents and LangGraph, where installed

The loop's longest pause includes the pauses of Python's garbage collector, which grow with the number of objects that
are kept: the last column shows the longest of them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentkit.messages import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, user
from agentkit.testing import ScriptedModel
from agentkit.threads import ThreadManager
from agentkit.threads.sql.sqlite import SQLiteStore
from agentkit.tool.registry import ToolRegistry

SIZES = (10, 1_000, 10_000)
LOADED = 100_000
EXCHANGES = 7  # per size; the fastest counts
TARGET, PAUSE = 1.5, 20.0  # times an exchange on the shortest thread; milliseconds

Exchange = Callable[[int], Awaitable[None]]


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def history(count: int) -> list[Message]:
    """Questions, calls, results and answers, a quarter each."""
    messages: list[Message] = []
    for n in range(max(count // 4, 1)):
        call = ToolCall(f"c{n}", "add", {"a": n, "b": 2}, raw=f'{{"a": {n}, "b": 2}}')
        messages += [user(f"Please add {n} " + "x" * 100), AssistantMessage(call)]
        messages += [
            ToolMessage(call.id, "add", (TextPart(str(n + 2)),)),
            AssistantMessage(f"It is {n + 2} " + "y" * 100),
        ]
    return messages


async def best(exchange: Exchange) -> float:
    """Milliseconds of CPU of the fastest exchange, after the first one."""
    await exchange(0)
    least = float("inf")
    for n in range(1, EXCHANGES + 1):
        start = time.process_time()
        await exchange(n)
        least = min(least, time.process_time() - start)
    return least * 1e3


async def ours(folder: Path, count: int) -> float:
    """An exchange of agentkit, on SQLite."""
    store = SQLiteStore(folder / f"{count}.db", durability="process")
    async with ThreadManager(store, ToolRegistry(add)) as threads:
        await threads.create_thread("t", messages=history(count))

        async def exchange(n: int) -> None:
            await threads.add_message("t", "And now?")
            model = ScriptedModel([ToolCall(f"n{n}", "add", {"a": n, "b": 2}), "Done."])
            await threads.run_thread("t", model=model).complete()

        return await best(exchange)


async def loading(folder: Path) -> None:
    """How long the loop is blocked while a long thread is read for the first time, and for the next exchange."""
    store = SQLiteStore(folder / "loaded.db", durability="process")
    pauses, collected = [0.0], [0.0]

    async def watch() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            pauses[0] = max(pauses[0], time.perf_counter() - start)

    def collecting(phase: str, _: Any, since: list[float] = [0.0]) -> None:  # noqa: B006
        if phase == "start":
            since[0] = time.perf_counter()
        else:
            collected[0] = max(collected[0], time.perf_counter() - since[0])

    async with ThreadManager(store, ToolRegistry(add)) as threads:
        await threads.create_thread("t", messages=history(LOADED))
        gc.collect()
        gc.callbacks.append(collecting)
        watching = asyncio.create_task(watch())
        await asyncio.sleep(0.1)
        for what in ("first exchange", "next exchange"):
            pauses[0] = collected[0] = 0.0
            start = time.process_time()
            await threads.add_message("t", "And now?")
            await threads.run_thread("t", model=ScriptedModel(["Done."])).complete()
            spent = (time.process_time() - start) * 1e3
            print(
                f"{LOADED:,} messages, {what:<16}{spent:>10.1f} ms CPU{pauses[0] * 1e3:>10.1f} ms longest pause"
                f"{collected[0] * 1e3:>10.1f} ms garbage collector"
            )
        watching.cancel()
        gc.callbacks.remove(collecting)


def requests() -> None:
    """What it costs to make a request of a long conversation, and to write it as JSON."""
    from agentkit.models import model
    from agentkit.models.base import ModelRequest

    print(f"\n{'request of 10,000 messages':<36}{'first':>10}{'next':>10}{'as JSON':>10}   ms of CPU")
    for name in ("openai:gpt-5", "responses:gpt-5", "anthropic:claude-sonnet-4-5"):
        made: Any = model(name, api_key="k" * 20)
        messages = [*history(10_000), user("And now?")]
        request = ModelRequest(messages)
        first, body = timed(lambda made=made, request=request: made._body(request))
        following = []
        for _ in range(5):
            messages += [AssistantMessage("Done."), user("And now?")]
            following.append(timed(lambda made=made, request=request: made._body(request))[0])
        written = min(timed(lambda body=body: json.dumps(body).encode())[0] for _ in range(3))
        print(f"{name:<36}{first:>10.1f}{min(following):>10.2f}{written:>10.1f}")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of CPU, and the result."""
    start = time.process_time()
    result = work()
    return (time.process_time() - start) * 1e3, result


async def rows(name: str, run: Callable[[Path, int], Awaitable[float]]) -> None:
    """One line of the first table."""
    with tempfile.TemporaryDirectory() as folder:
        found = [await run(Path(folder), count) for count in SIZES]
    ratio = found[-1] / found[0]
    print(f"{name:<36}{''.join(f'{ms:>12.2f}' for ms in found)}{ratio:>10.2f}", flush=True)


def main() -> None:
    """Print the tables."""
    print(f"{'ms of CPU of one exchange on':<36}{''.join(f'{count:>12,}' for count in SIZES)}{'growth':>10}")
    asyncio.run(rows("agentkit", ours))
    if "--peers" in sys.argv:
        from long_threads_peers import installed

        for name, run in installed():
            asyncio.run(rows(name, run))
    if "--only" in sys.argv:
        return
    if "--before" in sys.argv:
        checkout = Path(sys.argv[sys.argv.index("--before") + 1]).resolve()
        paths = os.pathsep.join(map(str, (checkout, checkout / "tools")))
        print("before:", flush=True)
        subprocess.run([sys.executable, __file__, "--only"], env={**os.environ, "PYTHONPATH": paths}, check=True)
    requests()
    with tempfile.TemporaryDirectory() as folder:
        print()
        asyncio.run(loading(Path(folder)))
    print(f"\nwanted: growth up to {TARGET}, no pause over {PAUSE:.0f} ms")


if __name__ == "__main__":
    main()
