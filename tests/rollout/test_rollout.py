from __future__ import annotations

import asyncio

from rollout_kit import Lines, hermes, sample

from agentkit import Tool, openapi_schema
from agentkit.rollout import Rollout


class Sum(Tool):
    def __init__(self) -> None:
        self.total = 0

    @openapi_schema
    async def add(self, n: int) -> int:
        """Add n to the total."""
        self.total += n
        return self.total


def test_eight_calls_of_one_trajectory_share_its_instance() -> None:
    rollout = Rollout([Sum], Lines(*(hermes("add", n=n) for n in range(1, 9))))
    record = asyncio.run(rollout.run(sample()))
    assert [call.result for call in record.calls] == ["1", "3", "6", "10", "15", "21", "28", "36"]
    assert record.end == "answered"
