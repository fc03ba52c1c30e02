"""Rollouts on a local Ray: what a call costs where tools live in the workers, and where actors own them.

    python benchmarks/rollouts_on_ray.py [trajectories]

The same rollout in one process, on two workers, and with its tool in two actors, at one and at eight calls a turn, each
after a rollout that warms it up. By row: microseconds per call by the clock and of CPU (this process and the actors;
what Ray's own processes use is in `Ray`), and trajectories per second. Then Ray's floor: the same bytes, in as many
messages, to an actor that does nothing with them; and the memory of an actor. On a machine that does other work, the
CPU columns are those to compare.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from agentkit import ToolResult, openapi_schema
from agentkit.messages import AssistantMessage, UserMessage
from agentkit.rollout import Generation, GenerationRequest, Rollout, Sample, TrajectoryRecord
from agentkit.rollout.distributed import ActorPool, RayRollout

TURNS = 8
PAIRS = [f'<tool_call>\n{{"name": "add", "arguments": {{"n": {n}}}}}\n</tool_call>' for n in range(TURNS + 1)]
LIGHT = f"{sys.executable} -m agentkit.rollout.distributed.light_worker"


class Counter:
    """Adds up."""

    def __init__(self) -> None:
        self.total = 0

    @openapi_schema
    async def add(self, n: int) -> ToolResult:
        """Add to the sum.

        Args:
            n: what to add
        """
        self.total += n
        return ToolResult(self.total, reward=0.5)


class Adds:
    """Answers at once: eight turns of `calls` calls each."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    async def generate(self, request: GenerationRequest) -> Generation:
        """Write the next number."""
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages) + 1
        return Generation(text="Done." if turn > TURNS else "\n".join([PAIRS[turn]] * self.calls))


def local(calls: int) -> Rollout:
    """With the tool in its own process."""
    return Rollout([Counter], Adds(calls), concurrency=256)


class Bare:
    """An actor that imports nothing of agentkit, and does nothing."""

    def pid(self) -> int:
        """Its process."""
        return os.getpid()

    async def exchange(self, package: bytes, answer: int) -> bytes:
        """As many bytes as are asked for."""
        return bytes(answer)


def cpu() -> tuple[float, float]:
    """Seconds of CPU so far: of this process and the actors, and of Ray's own processes that this one started."""
    rows = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state = (process / "stat").read_text().rpartition(")")[2].split()
            used = (int(state[11]) + int(state[12])) / os.sysconf("SC_CLK_TCK")
            rows[int(process.name)] = (int(state[1]), used, _command(process).startswith(b"ray::"))
    own, of_ray = time.process_time(), 0.0
    for pid, (parent, used, is_actor) in rows.items():
        while parent in rows and parent != os.getpid():
            parent = rows[parent][0]
        if parent == os.getpid() and pid != parent:
            own, of_ray = (own + used, of_ray) if is_actor else (own, of_ray + used)
    return own, of_ray


class Messages:
    """Counts the messages to actors, and their bytes."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """While this is open."""
        from agentkit.rollout.distributed import actors

        pack, unpack = actors.packed_each, actors.unpacked_each
        sent: list[int] = []

        def packed_each(items: Any) -> Any:
            blob, refused = pack(items)
            sent.append(len(blob))
            return blob, refused

        def unpacked_each(blob: bytes) -> Any:
            self.sizes.append((sent.pop(0) if sent else 0, len(blob)))
            return unpack(blob)

        actors.packed_each, actors.unpacked_each = packed_each, unpacked_each
        try:
            yield
        finally:
            actors.packed_each, actors.unpacked_each = pack, unpack


def row(name: str, calls: int, took: float, before: tuple[float, float], trajectories: int, messages: int) -> None:
    """Print a row of the table."""
    own, ray = (now - then for now, then in zip(cpu(), before, strict=True))
    per = 1e6 / (trajectories * TURNS * calls)
    shown = f"{own * per:>10.1f}{ray * per:>8.1f}{messages:>10}{trajectories / took:>16.0f}"
    print(f"{name:<38}{calls:>6}{took * per:>10.1f}{shown}")


async def measured(name: str, calls: int, records: AsyncIterator[TrajectoryRecord]) -> Messages:
    """Time a rollout and print its row."""
    messages, done = Messages(), 0
    before, began = cpu(), time.perf_counter()
    with messages.counted():
        async for record in records:
            assert len(record.calls) == TURNS * calls, record
            assert all(call.error is None for call in record.calls), record
            done += 1
    took = time.perf_counter() - began
    row(name, calls, took, before, done, len(messages.sizes))
    return messages


async def floor(calls: int, trajectories: int, messages: Messages) -> None:
    """The same messages to two actors that do nothing, as many at a time as the rollout has in flight."""
    import ray

    bare = [ray.remote(Bare).options(num_cpus=0, max_concurrency=1000).remote() for _ in range(2)]
    await asyncio.gather(*(actor.exchange.remote(b"", 0) for actor in bare))
    before, began = cpu(), time.perf_counter()
    for at in range(0, len(messages.sizes), 2):
        pair = zip(bare, messages.sizes[at : at + 2], strict=False)
        await asyncio.gather(*(actor.exchange.remote(bytes(sent), got) for actor, (sent, got) in pair))
    took = time.perf_counter() - began
    row("  Ray's floor: these messages alone", calls, took, before, trajectories, len(messages.sizes))
    for actor in bare:
        ray.kill(actor)


def memory(pid: int | str) -> str:
    """What a process has in memory, and its share if what several have is divided among them."""
    rows = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    of = {name.rstrip(":"): int(value) / 1024 for name, value, *_ in rows if value.isdigit()}
    return (
        f"{of['Rss']:6.0f} MiB resident, {of['Pss']:4.0f} MiB with shared pages divided, {of['Private_Dirty']:4.0f} own"
    )


async def memories() -> None:
    """Of an actor of a pool, and of bare ones."""
    import ray

    print("\nmemory")
    bare = [ray.remote(Bare).options(num_cpus=0).remote() for _ in range(2)]
    light = [ray.remote(Bare).options(num_cpus=0, runtime_env={"py_executable": LIGHT}).remote() for _ in range(2)]
    pids = {"a bare actor of Ray": bare, "the same, started as agentkit's": light}
    for name, actors in pids.items():
        found = [await actor.pid.remote() for actor in actors]
        print(f"{name:<38}{memory(found[0])}")
        for actor in actors:
            ray.kill(actor)
    pool = ActorPool(Counter, actors=2, places=1)
    instances = [pool.instance(id) for id in "ab"]
    for instance in instances:
        await instance.create()
    print(f"{'an actor of a pool, with its tool':<38}{memory(_processes(b'ray::_Hosting')[0])}")
    pool.close()


def _processes(name: bytes) -> list[str]:
    return [path.name for path in Path("/proc").glob("[0-9]*") if _command(path).startswith(name)]


def _command(process: Path) -> bytes:
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_bytes()
    return b""


async def main(count: int) -> None:
    """Measure and print."""
    import ray

    here = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, runtime_env=here)
    samples = [Sample(str(n), (UserMessage("Count."),)) for n in range(count)]
    print(f"{count} trajectories of {TURNS} turns, Ray {ray.__version__}, Python {sys.version.split()[0]}")
    print(f"{'':<38}{'calls':>6}{'µs/call':>10}{'CPU':>10}{'Ray':>8}{'messages':>10}{'trajectories/s':>16}")
    for calls in (1, 8):
        rollout = local(calls)
        async for _ in rollout.stream(samples[:32]):
            pass
        await measured("one process, no Ray", calls, rollout.stream(samples))
        async with RayRollout(partial(local, calls), workers=2, in_flight=256) as workers:
            async for _ in workers.stream(samples):
                pass
            sent = await measured("two workers, tools in them", calls, workers.stream(samples))
        await floor(calls, count, sent)
        pool = ActorPool(Counter, actors=2, places=count)
        rollout = Rollout([pool], Adds(calls), concurrency=256)
        async for _ in rollout.stream(samples):
            pass
        sent = await measured("two actors that own the tool", calls, rollout.stream(samples))
        await floor(calls, count, sent)
        pool.close()
    await memories()


if __name__ == "__main__":
    import rollouts_on_ray  # the workers import it by this name

    asyncio.run(rollouts_on_ray.main(int(sys.argv[1]) if len(sys.argv) > 1 else 256))
