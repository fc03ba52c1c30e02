"""Tool instances in the trajectories of other systems, without any of these systems."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentkit import ToolResult, openapi_schema
from agentkit.interop.owned import Owned
from agentkit.rollout import as_rollout_tool


class Judge:
    def __init__(self, final: Any = 2) -> None:
        self.final = final

    @openapi_schema
    async def judge(self) -> ToolResult:
        """Judge."""
        return ToolResult("fine", reward="much")  # type: ignore[arg-type]  # the author's mistake

    def calc_reward(self) -> Any:
        return self.final


def test_a_reward_that_is_no_number_costs_no_answer_and_counts_for_nothing() -> None:
    async def main() -> None:
        owned = Owned(as_rollout_tool(Judge), {})
        answer = await owned.call("judge", {})
        assert (answer.text, answer.result.reward) == ("fine", None)
        assert answer.result.metadata["refused_reward"] == "a reward is a finite number, found str 'much'"
        assert await owned.total() == 2.0

    asyncio.run(main())


def test_a_final_reward_that_is_no_number_is_an_error() -> None:
    async def main() -> None:
        owned = Owned(as_rollout_tool(Judge, {"final": "all"}), {})
        await owned.call("judge", {})
        with pytest.raises(ValueError, match="a reward is a finite number, found str 'all'"):
            await owned.total()

    asyncio.run(main())
