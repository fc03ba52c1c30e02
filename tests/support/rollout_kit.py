"""What tests of rollouts share: a policy that reads from a list, a tool that adds, and samples."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from agentkit import Tool, openapi_schema
from agentkit.messages import UserMessage
from agentkit.rollout import Generation, GenerationRequest, Rollout, RolloutLimits, Sample, TrajectoryRecord

Line = str | Generation | BaseException


class Lines:
    """A policy that writes these lines in each trajectory; after the last one, `done`."""

    def __init__(self, *lines: Line) -> None:
        self.lines = lines
        self.requests: list[GenerationRequest] = []
        self._turns: Counter[str] = Counter()

    async def generate(self, request: GenerationRequest) -> Generation:
        """The next line, after letting the other trajectories go on."""
        await asyncio.sleep(0)
        self.requests.append(request)
        turn = self._turns[request.trajectory_id]
        self._turns[request.trajectory_id] += 1
        line = self.lines[turn] if turn < len(self.lines) else "done"
        if isinstance(line, BaseException):
            raise line
        return Generation(line) if isinstance(line, str) else line


class Sum(Tool):
    """Adds up; one instance for each trajectory."""

    def __init__(self) -> None:
        self.total = 0

    @openapi_schema
    async def add(self, n: int) -> int:
        """Add n to the total."""
        self.total += n
        return self.total


def hermes(name: str, **arguments: Any) -> str:
    """A call as a Hermes model writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def sample(id: str = "s", prompt: str = "Go.", **more: Any) -> Sample:
    """A sample with a prompt of one message."""
    return Sample(id, (UserMessage(prompt),), **more)


def rolled(
    tools: Sequence[Any], *lines: Line, of: Sample | None = None, limits: RolloutLimits | None = None, **more: Any
) -> TrajectoryRecord:
    """The record of one trajectory whose policy writes these lines."""
    rollout = Rollout(tools, Lines(*lines), limits=limits or RolloutLimits(), **more)
    return asyncio.run(rollout.run(of or sample()))


async def all_of(rollout: Rollout, samples: Sequence[Sample], repeats: int = 1) -> list[TrajectoryRecord]:
    """The records of a whole stream."""
    return [record async for record in rollout.stream(samples, repeats)]


def said(record: TrajectoryRecord) -> list[str]:
    """What the model read of each call."""
    return [call.result for call in record.calls]


def failures(record: TrajectoryRecord) -> list[str | None]:
    """The error of each call."""
    return [call.error for call in record.calls]
