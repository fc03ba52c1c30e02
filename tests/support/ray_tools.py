"""Tools and a policy for rollouts on Ray: importable, as the workers are other processes."""

from __future__ import annotations

import asyncio
import os
import threading

from agentkit import ToolResult, openapi_schema
from agentkit.messages import AssistantMessage, UserMessage
from agentkit.rollout import Generation, GenerationRequest, Rollout, Sample, TrajectoryRecord


class Counter:
    """Adds up; ends its process when it is told to."""

    def __init__(self) -> None:
        self.total = 0

    @openapi_schema
    async def add(self, n: int) -> ToolResult:
        """Add to the sum.

        Args:
            n: what to add; -1 ends the process, -2 never returns, -3 measures what no other process can have
        """
        if n == -1:
            os._exit(1)
        if n == -2:
            await asyncio.Event().wait()
        self.total += n
        return ToolResult(self.total, reward=0.5, metadata={"lock": threading.Lock()} if n == -3 else {})

    async def calc_reward(self) -> float:
        return float(self.total)

    async def release(self) -> None:
        self.total = -1000


FOURTH = {"bad": -1, "locked": -3}
"""What is added in the fourth turn, by sample."""


class Adds:
    """Writes `turns` turns of one call each: the numbers from 1 on, and in the fourth what `FOURTH` says."""

    def __init__(self, turns: int = 8, parallel: int = 1) -> None:
        self.turns, self.parallel = turns, parallel

    async def generate(self, request: GenerationRequest) -> Generation:
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages) + 1
        if turn > self.turns:
            return Generation(text="Done.")
        n = FOURTH.get(request.trajectory_id.partition("#")[0], turn) if turn == 4 else turn
        call = f'<tool_call>\n{{"name": "add", "arguments": {{"n": {n}}}}}\n</tool_call>'
        return Generation(text="\n".join([call] * self.parallel))


def rollout() -> Rollout:
    """With tools in the worker itself."""
    return Rollout([Counter], Adds(), ended=ended)


def ended(record: TrajectoryRecord) -> None:
    """Raises for one sample."""
    if record.sample_id == "unwelcome":
        raise OSError("the disk is full")


def unbuildable() -> Rollout:
    """Raises."""
    return Rollout([Counter], Adds(), aggregate="mean")  # type: ignore[arg-type]


def samples(count: int, *bad: int) -> list[Sample]:
    """Samples `0`, `1`, …; those at `bad` are called `bad`."""
    return [Sample("bad" if n in bad else str(n), (UserMessage("Count."),)) for n in range(count)]
