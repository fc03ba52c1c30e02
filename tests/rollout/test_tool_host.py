"""Instances in another process; here the other process is this one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentkit import ToolResult, openapi_schema
from agentkit.messages import ImagePart, TextPart
from agentkit.rollout import as_rollout_tool
from agentkit.rollout.distributed import tool_host
from agentkit.rollout.distributed.tool_host import ToolHost

RELEASED: list[str] = []
PICTURE = ImagePart(url="https://example.org/square.png")


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
    return asyncio.run(asyncio.wait_for(main, 60))


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


def test_instances_that_were_released_for_idleness_are_not_remembered_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_host, "REMEMBERED", 5)

    async def main() -> tuple[int, list[str]]:
        ask, why = host(idle=0.05), []
        for trajectory in range(20):
            await ask(("create", str(trajectory), {}))
        await asyncio.sleep(0.2)
        for trajectory in ("0", "19"):
            with pytest.raises(LookupError) as caught:
                await ask(("call", trajectory, {"n": 5}, "add", ("call_0", "add")))
            why.append(str(caught.value))
        return len(ask._reaped), why

    forgotten, remembered = "add of trajectory '0' is not created", "add of trajectory '19' is released"
    count, why = run(main())
    assert count == 5
    assert why == [forgotten, f"{remembered}: nothing asked for it for 0.05 seconds"]


def test_a_plain_result_is_not_rendered_and_an_object_is_what_a_model_would_read_of_it() -> None:
    class Rows:
        @openapi_schema
        def rows(self, how: str) -> Any:
            """Some rows.

            Args:
                how: of what type
            """
            return {"number": 3, "object": Path("a/b"), "picture": ["a square", PICTURE]}[how]

    async def main() -> list[ToolResult]:
        ask = ToolHost(lambda: as_rollout_tool(Rows), 60.0)
        await ask(("create", "a", {}))
        every = ("number", "object", "picture")
        return [await ask(("call", "a", {"how": how}, "rows", ("call_0", "rows"))) for how in every]

    assert run(main()) == [
        ToolResult(3),
        ToolResult(content=(TextPart("a/b"),)),
        ToolResult(content=(TextPart("a square"), PICTURE)),
    ]


def test_what_was_never_created_is_not_called() -> None:
    with pytest.raises(LookupError, match="add of trajectory 'x' is not created"):
        run(host()(("call", "x", {"n": 5}, "add", ("call_0", "add"))))
