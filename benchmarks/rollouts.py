"""What the rollout loop costs: trajectories with an instant policy and a trivial tool, in one process.

python benchmarks/rollouts.py            256 trajectories x 8 turns of one call, and one turn of 8 calls; the best of 5
python benchmarks/rollouts.py --long     also 10,000 trajectories: memory, unreleased instances
python benchmarks/rollouts.py --profile  where the time goes
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import resource
import time
from collections.abc import Callable

from agentkit import Tool, ToolResult, openapi_schema
from agentkit.messages import UserMessage
from agentkit.rollout import Generation, GenerationRequest, Rollout, Sample, TrajectoryRecord


class Sum(Tool):
    """A trivial tool with state, and all three hooks."""

    live = 0

    async def create(self) -> None:
        """Begin."""
        self.total = 0
        Sum.live += 1

    @openapi_schema
    async def add(self, n: int) -> ToolResult:
        """Add n to the total.

        Args:
            n: the number
        """
        self.total += n
        return ToolResult(self.total, reward=0.5)

    async def calc_reward(self) -> float:
        """1 for the right total."""
        return float(self.total == 36)

    async def release(self) -> None:
        """End."""
        Sum.live -= 1


class Stateless(Tool):
    """A trivial tool without hooks."""

    def __init__(self) -> None:
        self.total = 0

    @openapi_schema
    async def add(self, n: int) -> int:
        """Add n to the total.

        Args:
            n: the number
        """
        self.total += n
        return self.total


def call(n: int) -> str:
    """One call, as a Hermes model writes it."""
    return f"<tool_call>\n{json.dumps({'name': 'add', 'arguments': {'n': n}})}\n</tool_call>"


class Scripted:
    """An instant policy: it writes the responses one after another."""

    def __init__(self, turns: list[str]) -> None:
        self.turns = [Generation(turn) for turn in turns]

    async def generate(self, request: GenerationRequest) -> Generation:
        """The next response."""
        return self.turns[request.turn]


async def roll(tool: type, turns: list[str], trajectories: int, seen: Callable[[TrajectoryRecord], None]) -> None:
    """All trajectories, at most 256 at once."""
    rollout = Rollout([tool], Scripted([*turns, "The total is 36."]), aggregate="sum")
    samples = (Sample(str(n), (UserMessage("Add 1 to 8."),)) for n in range(trajectories))
    async for record in rollout.stream(samples):
        seen(record)


def right(record: TrajectoryRecord) -> None:
    """Refuse a wrong record: a fast wrong answer is worth nothing."""
    assert [call.result for call in record.calls][-1] == "36", record
    assert (len(record.calls), record.end, dict(record.unreleased)) == (8, "answered", {}), record


def measured(name: str, tool: type, turns: list[str], trajectories: int = 256, rounds: int = 5) -> None:
    """Print the best round."""
    best = (float("inf"), 0.0)
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(roll(tool, turns, trajectories, right))
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
    cpu, wall = best
    print(
        f"{name:42} {trajectories / wall:7,.0f} trajectories/s  {wall / trajectories / 8 * 1e6:6.1f} µs/call"
        f"  CPU {cpu / trajectories / 8 * 1e6:6.1f} µs/call, {trajectories / cpu:7,.0f} trajectories/s"
    )


def flat() -> None:
    """10,000 trajectories: memory, and instances that were not released."""
    turns = [call(n) for n in range(1, 9)]
    asyncio.run(roll(Sum, turns, 500, right))
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asyncio.run(roll(Sum, turns, 10_000, right))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"10,000 trajectories: peak memory {before / 1024:.1f} -> {after / 1024:.1f} MiB, {Sum.live} unreleased")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    turns = [call(n) for n in range(1, 9)]
    if asked.profile:
        profile = cProfile.Profile()
        profile.runcall(asyncio.run, roll(Sum, turns, 256, right))
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        return
    measured("8 turns of 1 call, all hooks", Sum, turns)
    measured("8 turns of 1 call, no hooks", Stateless, turns)
    measured("1 turn of 8 calls, all hooks", Sum, ["\n".join(turns)])
    if asked.long:
        flat()


if __name__ == "__main__":
    main()
