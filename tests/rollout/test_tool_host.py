"""Instances in another process; here the other process is this one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentkit import ToolResult, openapi_schema
from agentkit.rollout import as_rollout_tool
from agentkit.rollout.distributed.tool_host import ToolHost

RELEASED: list[str] = []


class Counter:
    """Counts from where it was told to begin."""

    async def create(self, start: int = 0) -> None:
        self.total = start

    @openapi_schema
    async def add(self, n: int) -> ToolResult:
        """Add to the sum.

        Args:
            n: what to add
        """
        self.total += n
        return ToolResult(self.total, reward=0.5)

    async def calc_reward(self, weight: float = 1.0) -> float:
        return self.total * weight

    async def release(self, why: str = "over") -> None:
        RELEASED.append(why)


def host(idle: float = 60.0) -> ToolHost:
    RELEASED.clear()
    return ToolHost(lambda: as_rollout_tool(Counter), idle)


def run(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, 10))


def test_two_trajectories_have_an_instance_each_and_all_four_kwargs_arrive() -> None:
    async def main() -> list[Any]:
        ask = host()
        await asyncio.gather(ask(("create", "a", {"start": 10})), ask(("create", "b", {})))
        told = [await ask(("call", trajectory, {"n": 5}, "add", ("call_0", "add"))) for trajectory in "aab"]
        scores = [await ask(("calc_reward", "a", {"weight": 2.0})), await ask(("calc_reward", "b", {}))]
        await ask(("release", "a", {"why": "done"}))
        await ask(("release", "b", {}))
        return [[one.output for one in told], [one.reward for one in told], scores, list(RELEASED)]

    assert run(main()) == [[15, 20, 5], [0.5, 0.5, 0.5], [40.0, 5.0], ["done", "over"]]


def test_an_instance_that_nothing_asks_for_is_released_and_says_so() -> None:
    async def main() -> list[str]:
        ask = host(idle=0.05)
        await ask(("create", "a", {}))
        await asyncio.sleep(0.2)
        with pytest.raises(LookupError, match=r"add of trajectory 'a' is released: nothing asked for it for 0\.05 s"):
            await ask(("call", "a", {"n": 5}, "add", ("call_0", "add")))
        await ask(("release", "a", {}))
        return list(RELEASED)

    assert run(main()) == ["over"]


def test_what_was_never_created_is_not_called() -> None:
    with pytest.raises(LookupError, match="add of trajectory 'x' is not created"):
        run(host()(("call", "x", {"n": 5}, "add", ("call_0", "add"))))
