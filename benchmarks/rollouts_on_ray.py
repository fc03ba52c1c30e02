"""Rollouts on a local Ray: what a call costs where tools live in the workers, and where actors own them.

    python benchmarks/rollouts_on_ray.py [trajectories]

Prints microseconds per call and trajectories per second of the same rollout in one process, on two workers, and with
its tool in two actors, at one and at eight calls a turn; and the memory of a worker and of a bare actor of Ray.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from agentkit import ToolResult, openapi_schema
from agentkit.messages import AssistantMessage, UserMessage
from agentkit.rollout import Generation, GenerationRequest, Rollout, Sample, TrajectoryRecord
from agentkit.rollout.distributed import ActorPool, RayRollout

TURNS = 8
PAIRS = [f'<tool_call>\n{{"name": "add", "arguments": {{"n": {n}}}}}\n</tool_call>' for n in range(TURNS + 1)]


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


async def measured(name: str, calls: int, records: AsyncIterator[TrajectoryRecord]) -> None:
    """Time a rollout and print its row."""
    began, done = time.perf_counter(), 0
    async for record in records:
        assert len(record.calls) == TURNS * calls, record
        assert all(call.error is None for call in record.calls), record
        done += 1
    took = time.perf_counter() - began
    print(f"{name:<42}{calls:>8}{took / (done * TURNS * calls) * 1e6:>12.1f}{done / took:>16.0f}")


def resident(pid: int | str) -> float:
    """MiB of a process."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS")) / 1024


class Bare:
    """An actor that imports nothing of ours."""

    def pid(self) -> int:
        """Its process."""
        return os.getpid()


async def main(count: int) -> None:
    """Measure and print."""
    import ray

    here = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, runtime_env=here)
    samples = [Sample(str(n), (UserMessage("Count."),)) for n in range(count)]
    print(f"{count} trajectories of {TURNS} turns\n{'':<42}{'calls':>8}{'µs/call':>12}{'trajectories/s':>16}")
    for calls in (1, 8):
        await measured("one process, no Ray", calls, local(calls).stream(samples))
        async with RayRollout(partial(local, calls), workers=2, in_flight=256) as workers:
            await measured("(two workers, warming up)", calls, workers.stream(samples[:32]))
            await measured("two workers, tools in them", calls, workers.stream(samples))
        pool = ActorPool(Counter, actors=2, places=count)
        rollout = Rollout([pool], Adds(calls), concurrency=256)
        await measured("(two actors, warming up)", calls, rollout.stream(samples[:32]))
        await measured("two actors that own the tool", calls, rollout.stream(samples))
        pool.close()
    bare = ray.remote(Bare).options(num_cpus=0).remote()
    pid = await bare.pid.remote()
    await bare.pid.remote()
    print(f"memory of a bare actor: {resident(pid):.0f} MiB (Ray itself imports pyarrow where it is installed)")


if __name__ == "__main__":
    import rollouts_on_ray  # the workers import it by this name

    asyncio.run(rollouts_on_ray.main(int(sys.argv[1]) if len(sys.argv) > 1 else 256))
