"""A thousand threads at once in one process, on SQLite: turns per second, memory, and the loop's own time per turn.

Each thread is created, gets a message and is run: four turns that call a tool once, and a fifth that says a word. The
model and the tool answer immediately, so that only agentkit and the store are left. There are three measures:

- turns per second: everything, wall clock; the store's thread runs in parallel with the event loop, and both share one
  interpreter. CPU: per turn, in all threads. The collector's part grows with the number of live objects: a thousand
  runs;
- own time: the CPU time that the event loop's thread spent on one turn of one run, excluding other runs; the first turn
  includes opening the thread, the last one closing it. Measured in a second pass, since measuring costs time;
- wait: the wall-clock time of one turn while a thousand others share the same processor.

    python benchmarks/many_threads.py [--threads 1000] [--folder DIR] [--profile]

Each pass runs in a separate process, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Generator
from contextvars import Context, ContextVar
from pathlib import Path
from typing import Any, Literal

from agentkit.events import ArgumentDelta, CallEnd, CallStart, Finish, SourceEvent, Text
from agentkit.messages import ToolCall
from agentkit.models.base import ModelRequest
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.tool.registry import ToolRegistry

TURNS = 5
ARGUMENTS = '{"a": 1, "b": 2}'

Durability = Literal["power", "process"]


async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Times:
    """The times of one run's turns: CPU of the event loop's thread, and wall clock; both in seconds."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.own: list[float] = []
        self.wall: list[float] = []
        self._mark = (0.0, time.perf_counter())

    def turn(self) -> None:
        """A turn is over."""
        now = (self.cpu, time.perf_counter())
        self.own.append(now[0] - self._mark[0])
        self.wall.append(now[1] - self._mark[1])
        self._mark = now


TIMES: ContextVar[Times | None] = ContextVar("times", default=None)


class Instant:
    """A model that answers immediately: a call in all turns except the last, then a word."""

    name = "instant"
    format = None

    def __init__(self, times: Times) -> None:
        self.asked = 0
        self._times = times

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        """The next prepared response."""
        if self.asked:
            self._times.turn()
        self.asked += 1
        if self.asked == TURNS:
            yield Text("3")
            yield Finish("stop")
            return
        id = f"call_{self.asked}"
        yield CallStart(0, "add", None)
        yield ArgumentDelta(0, ARGUMENTS)
        yield CallEnd(0, ToolCall(id, "add", {"a": 1, "b": 2}, raw=ARGUMENTS))
        yield Finish("tool_calls")


class Timed(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are counted for the run that it belongs to."""

    def __init__(self, inner: Coroutine[Any, Any, Any], times: Times) -> None:
        self._inner = inner
        self._times = times

    def send(self, value: Any) -> Any:
        """One step."""
        start = time.thread_time()
        try:
            return self._inner.send(value)
        finally:
            self._times.cpu += time.thread_time() - start

    def throw(self, *error: Any) -> Any:
        """One step."""
        start = time.thread_time()
        try:
            return self._inner.throw(*error)
        finally:
            self._times.cpu += time.thread_time() - start

    def close(self) -> None:
        """The last step."""
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()


def timed_task(
    loop: asyncio.AbstractEventLoop, work: Any, *, context: Context | None = None, **options: Any
) -> asyncio.Task[Any]:
    """A task factory that counts the steps of a run's tasks."""
    times = (context or {}).get(TIMES) if context is not None else TIMES.get()
    return asyncio.Task(work if times is None else Timed(work, times), loop=loop, context=context, **options)


async def one(threads: ThreadManager, name: str, times: Times) -> None:
    """Everything that one thread does."""
    await threads.create_thread(name)
    await threads.add_message(name, "go")
    times.__init__()  # type: ignore[misc] # the clock starts here
    result = await threads.run_thread(name, model=Instant(times)).complete()
    times.turn()
    assert (result.turns, result.text) == (TURNS, "3")


async def all_of_them(path: Path, number: int, durability: Durability, timed: bool) -> tuple[float, float, list[Times]]:
    """Seconds for everything, wall clock and CPU in all threads; and each run's times."""
    runs: list[Times] = []
    loop = asyncio.get_running_loop()
    threads = ThreadManager(SQLiteStore(path, durability=durability), ToolRegistry(add))
    await one(threads, "warm", Times())  # the file exists, the modules are loaded
    if timed:
        loop.set_task_factory(timed_task)
    start, cpu = time.perf_counter(), time.process_time()
    tasks = []
    for i in range(number):
        runs.append(Times())
        TIMES.set(runs[-1])
        tasks.append(asyncio.create_task(one(threads, f"t{i}", runs[-1])))
    await asyncio.gather(*tasks)
    seconds, spent = time.perf_counter() - start, time.process_time() - cpu
    await threads.aclose()
    return seconds, spent, runs


def memory() -> float:
    """The peak memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(folder: str, number: int, durability: Durability, timed: bool) -> dict[str, float]:
    """One pass, in this process."""
    before = memory()
    collected = Collected()
    gc.callbacks.append(collected)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        seconds, spent, runs = asyncio.run(all_of_them(Path(place) / "chat.db", number, durability, timed))
    own = sorted(t * 1e6 for run in runs for t in run.own)
    wall = sorted(t * 1e3 for run in runs for t in run.wall)
    return {
        "turns/s": number * TURNS / seconds,
        "CPU µs/turn": spent / (number * TURNS) * 1e6,
        "collector %": collected.seconds / spent * 100,
        "peak MiB": memory(),
        "grown MiB": memory() - before,
        "own p50 µs": at(own, 0.5),
        "own p99 µs": at(own, 0.99),
        "wait p50 ms": at(wall, 0.5),
        "wait p99 ms": at(wall, 0.99),
    }


class Collected:
    """A callback of Python's garbage collector that adds up its seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since = 0.0

    def __call__(self, phase: str, info: object) -> None:
        """Called when it starts and when it stops."""
        if phase == "start":
            self._since = time.thread_time()
        else:
            self.seconds += time.thread_time() - self._since


def at(values: list[float], share: float) -> float:
    """The value below which this fraction of the sorted values is."""
    return values[min(int(len(values) * share), len(values) - 1)]


def profile(folder: str, number: int, durability: Durability) -> None:
    """Print where the time of the event loop's thread goes."""
    with tempfile.TemporaryDirectory(dir=folder) as place, cProfile.Profile(time.thread_time) as profiler:
        asyncio.run(all_of_them(Path(place) / "chat.db", number, durability, timed=False))
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(45)


def apart(given: argparse.Namespace, durability: Durability, timed: bool) -> dict[str, float]:
    """One pass in its own process."""
    command = [sys.executable, __file__, "--one", durability, "--threads", str(given.threads), "--folder", given.folder]
    done = subprocess.run([*command, *(["--timed"] if timed else [])], check=True, stdout=subprocess.PIPE)
    counted: dict[str, float] = json.loads(done.stdout)
    return counted


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1000)
    arguments.add_argument("--folder", default=tempfile.gettempdir(), help="where the file is kept")
    arguments.add_argument("--repeat", type=int, default=5, help="number of passes; the median counts")
    arguments.add_argument("--profile", action="store_true", help="print a profile instead")
    arguments.add_argument("--one", choices=["power", "process"], help=argparse.SUPPRESS)
    arguments.add_argument("--timed", action="store_true", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.profile:
        profile(given.folder, given.threads, "process")
    elif given.one:
        print(json.dumps(measured(given.folder, given.threads, given.one, given.timed)))
    else:
        table(given)


def table(given: argparse.Namespace) -> None:
    """Measure, and print the medians of several passes."""
    print(f"{given.threads} threads x {TURNS} turns, median of {given.repeat} passes")
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the beginning")
    durabilities: tuple[Durability, ...] = ("power", "process")
    passes: dict[Durability, list[dict[str, float]]] = {durability: [] for durability in durabilities}
    for _ in range(given.repeat):
        for durability in durabilities:
            timed = apart(given, durability, timed=True)
            own = {name: value for name, value in timed.items() if name.startswith("own")}
            passes[durability].append(apart(given, durability, timed=False) | own)
    print(f"{'durability':<18}", *(f"{durability:>10}" for durability in durabilities))
    for name in passes["power"][0]:
        row = (statistics.median(one[name] for one in passes[durability]) for durability in durabilities)
        print(f"{name:<18}", *(f"{value:>10,.0f}" for value in row))


if __name__ == "__main__":
    main()
