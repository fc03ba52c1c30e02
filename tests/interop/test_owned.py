"""Tool instances in the trajectories of other systems, without any of these systems."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from itertools import permutations
from typing import Any, ClassVar

import pytest

from agentkit import ToolResult, openapi_schema
from agentkit.interop.owned_instance import OwnedInstance, Trajectories
from agentkit.rollout import as_rollout_tool

pytestmark = pytest.mark.filterwarnings("error")


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
        owned = OwnedInstance(as_rollout_tool(Judge), {})
        answer = await owned.call("judge", {})
        assert (answer.text, answer.result.reward) == ("fine", None)
        assert answer.result.metadata["refused_reward"] == "a reward is a finite number, found str 'much'"
        assert await owned.total() == 2.0

    asyncio.run(main())


def test_a_final_reward_that_is_no_number_counts_as_none_and_the_trajectory_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As in our own rollouts: it must not end another system's loop."""

    async def main() -> None:
        trajectories, state = Trajectories(as_rollout_tool(Paid, {"final": "all"})), type("State", (), {})()
        owned = trajectories.of(state, dict)
        await owned.call("pay", {})
        assert (await owned.total(), owned.unscored) == (0.5, why)
        assert await trajectories.over(state, dict) == (0.5, why)

    why = "ValueError: a reward is a finite number, found str 'all'"
    asyncio.run(main())
    assert "calc_reward of 'judge' failed, so its final reward counts as 0" in caplog.text


def test_a_trajectory_without_calls_is_scored_as_any_other() -> None:
    """A model that answers at once is right or wrong, too: the instance is made for it, and released."""

    async def main() -> None:
        trajectories, state = Trajectories(as_rollout_tool(Closing, {"final": 2})), type("State", (), {})()
        assert await trajectories.over(state, dict) == (2.0, "")
        assert (Closing.steps, len(trajectories)) == (["create", "calc_reward", "release"], 0)
        owned = OwnedInstance(as_rollout_tool(Closing), {})
        await owned.release()
        assert (await owned.total(), len(Closing.steps)) == (0.0, 3)

    Closing.steps = []
    asyncio.run(main())


def test_what_is_scored_says_nothing() -> None:
    async def main() -> None:
        owned = OwnedInstance(as_rollout_tool(Paid, {"final": 2}), {})
        await owned.call("pay", {})
        assert (await owned.total(), owned.unscored) == (2.5, "")

    asyncio.run(main())


class Paid(Judge):
    @openapi_schema
    async def pay(self) -> ToolResult:
        """Pay."""
        return ToolResult("paid", reward=0.5)


class Closed(Paid):
    released: ClassVar[list[str]] = []

    async def create(self) -> None:
        raise OSError("no page")

    def release(self) -> None:
        self.released.append("once")


class Closing(Judge):
    steps: ClassVar[list[str]] = []

    async def create(self) -> None:
        self.steps.append("create")

    def calc_reward(self) -> Any:
        self.steps.append("calc_reward")
        return self.final

    def release(self) -> None:
        self.steps.append("release")


def test_an_instance_that_was_not_created_is_not_scored() -> None:
    """As in our own rollouts: its trajectory broke, which says nothing about the answer."""

    async def main() -> None:
        owned = OwnedInstance(as_rollout_tool(Closed), {})
        both = await asyncio.gather(*(owned.call("pay", {}) for _ in range(2)), return_exceptions=True)
        assert [repr(e) for e in both] == ["OSError('no page')"] * 2
        with pytest.raises(RuntimeError, match="create of 'judge' failed: OSError: no page"):
            await owned.call("pay", {})
        assert (await owned.total(), owned.unscored) == (
            0.0,
            "RuntimeError: create of 'judge' failed: OSError: no page",
        )

    asyncio.run(main())


def test_an_owner_whose_instance_was_not_created_is_let_go() -> None:
    """Whoever calls for it holds it, and an error holds the frames of all whom it went through."""

    async def calling(trajectories: Trajectories) -> None:
        owner = type("State", (), {})()
        with suppress(OSError):
            await trajectories.of(owner, dict).call("pay", {})

    async def main() -> None:
        trajectories = Trajectories(as_rollout_tool(Closed))
        Closed.released.clear()
        for _ in range(3):
            await calling(trajectories)
        gc.collect()
        for _ in range(10_000):
            if len(Closed.released) >= 3:
                break
            await asyncio.sleep(0.001)
        assert (len(trajectories), Closed.released) == (0, ["once"] * 3)

    asyncio.run(main())


class Counter:
    """Its final reward is its total, which it takes longer to tell the earlier it is asked."""

    waits: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.total = 0

    @openapi_schema
    async def add(self, n: int) -> ToolResult:
        """Add."""
        self.total += n
        return ToolResult(self.total, reward=0.5)

    async def calc_reward(self) -> float:
        told = self.total
        for _ in range(self.waits.pop()):
            await asyncio.sleep(0)
        return float(told)


@pytest.mark.parametrize("waits", list(permutations((1, 5, 9))))
def test_the_steps_of_calls_at_once_add_up_to_the_final_reward(waits: tuple[int, ...]) -> None:
    """As verl runs the calls of a turn at once, by `asyncio.gather`."""
    Counter.waits = [0, *waits]

    async def main() -> None:
        owned = OwnedInstance(as_rollout_tool(Counter), {})
        steps = await asyncio.gather(*(owned.step("add", {"n": n}, fold=True) for n in (1, 2, 3)))
        assert sum(reward for _, reward in steps) == 3 * 0.5 + 6 == await owned.total()

    asyncio.run(main())


class Exam:
    """What its final reward is, it can say only after `submit`."""

    def __init__(self, final: Any = 1) -> None:
        self.final = final

    @openapi_schema
    async def look(self) -> ToolResult:
        """Look."""
        return ToolResult("seen", reward=0.25)

    @openapi_schema
    async def submit(self, x: int) -> ToolResult:
        """Submit."""
        self.x = x
        return ToolResult("got", reward=0.5, metadata={"tries": 1})

    async def calc_reward(self) -> Any:
        return self.final if self.x == 3 else 0


def test_a_final_reward_that_fails_before_the_end_costs_no_answer_and_no_reward(caplog: Any) -> None:
    async def main() -> None:
        owned = OwnedInstance(as_rollout_tool(Exam), {})
        looked, first = await owned.step("look", {}, fold=True)
        assert (looked.text, first) == ("seen", 0.25)
        assert looked.result.metadata["unscored"] == "AttributeError: 'Exam' object has no attribute 'x'"
        submitted, second = await owned.step("submit", {"x": 3}, fold=True)
        assert (submitted.text, second, dict(submitted.result.metadata)) == ("got", 1.5, {"tries": 1})
        assert first + second == await owned.total()

    asyncio.run(main())
    assert "calc_reward of 'look' failed after a call" in caplog.text


@pytest.mark.parametrize("final", [float("nan"), "all", [1]])
def test_nor_does_one_that_is_no_number(final: Any) -> None:
    async def main() -> None:
        owned = OwnedInstance(as_rollout_tool(Exam, {"final": final}), {})
        answer, reward = await owned.step("submit", {"x": 3}, fold=True)
        assert (answer.text, reward, answer.result.metadata["tries"]) == ("got", 0.5, 1)
        assert answer.result.metadata["unscored"].startswith("ValueError: a reward is a finite number, found ")

    asyncio.run(main())


def test_without_folding_it_is_not_asked() -> None:
    async def main() -> None:
        owned = OwnedInstance(as_rollout_tool(Exam), {})
        answer, reward = await owned.step("look", {}, fold=False)
        assert (answer.text, reward, dict(answer.result.metadata)) == ("seen", 0.25, {})

    asyncio.run(main())


def test_a_call_after_the_end_is_an_answer_that_says_so() -> None:
    async def main() -> None:
        owned = OwnedInstance(as_rollout_tool(Counter), {})
        await owned.call("add", {"n": 1})
        await owned.release()
        answer = await owned.call("add", {"n": 1})
        assert answer.result.error == "add: its trajectory is over, and its instance has been released"

    asyncio.run(main())
