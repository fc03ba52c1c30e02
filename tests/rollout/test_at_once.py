"""A trajectory in which nothing has to wait, and the same one in which everything waits: one record."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_kit import hermes, sample

from agentkit import Tool, ToolResult, openapi_schema
from agentkit.processor.eager_tasks import SLICE
from agentkit.rollout import Generation, GenerationRequest, Rollout, RolloutLimits, Sample, TrajectoryRecord

pytestmark = pytest.mark.anyio

RAISED = {"ValueError": ValueError("no"), "exit": SystemExit(3), "cancelled": asyncio.CancelledError()}
FAULTS = st.sampled_from([None, None, None, *RAISED])


class Account(Tool):
    """Does what it is told, in its calls and its hooks, with or without waiting first."""

    def __init__(self, *, waits: bool, faults: dict[str, str | None]) -> None:
        self.waits, self.faults, self.balance = waits, faults, 0

    async def _step(self, fault: str | None) -> None:
        if self.waits:
            await asyncio.sleep(0)
        if fault is not None:
            raise RAISED[fault]

    async def create(self) -> str:
        await self._step(self.faults["create"])
        return "An account."

    @openapi_schema
    async def pay(self, amount: int, fault: str | None = None) -> Any:
        """Pay.

        Args:
            amount: how much
            fault: what goes wrong
        """
        before = self.balance
        await self._step(fault)
        self.balance = before + amount
        return ToolResult(self.balance, reward=amount / 2) if amount % 2 else self.balance

    async def calc_reward(self) -> float:
        await self._step(self.faults["calc_reward"])
        return float(self.balance)

    async def release(self) -> None:
        await self._step(self.faults["release"])


class Script:
    """A policy that writes these turns, with or without waiting first."""

    def __init__(self, turns: list[str], *, waits: bool) -> None:
        self.turns, self.waits = [*turns, "Done."], waits

    async def generate(self, request: GenerationRequest) -> Generation:
        if self.waits:
            await asyncio.sleep(0)
        return Generation(self.turns[request.turn])


CALLS = st.builds(lambda amount, fault: hermes("pay", amount=amount, fault=fault), st.integers(0, 9), FAULTS)
TURNS = st.lists(st.one_of(CALLS, st.just(hermes("pay", amount="much")), st.just(hermes("sell"))), max_size=4)
HOOKS = st.fixed_dictionaries(dict.fromkeys(("create", "calc_reward", "release"), FAULTS))


def timeless(record: TrajectoryRecord) -> TrajectoryRecord:
    calls = tuple(
        replace(call, queued=0.0, ran=0.0, metrics={k: v for k, v in call.metrics.items() if k != "traceback"})
        for call in record.calls
    )
    return replace(record, calls=calls, seconds=0.0, generating=0.0)


@given(TURNS, HOOKS)
def test_what_waits_and_what_does_not_leave_the_same_record(turns: list[str], faults: dict[str, str | None]) -> None:
    async def record(*, waits: bool) -> TrajectoryRecord:
        rollout = Rollout([_made(waits, faults)], Script(turns, waits=waits))
        return timeless(await rollout.run(sample()))

    async def both() -> tuple[TrajectoryRecord, TrajectoryRecord]:
        return await record(waits=False), await record(waits=True)

    at_once, later = asyncio.run(both())
    assert at_once == later


def _made(waits: bool, faults: dict[str, str | None]) -> type:
    class Made(Account):
        """An account of this trajectory."""

        def __init__(self) -> None:
            super().__init__(waits=waits, faults=faults)

    return Made


class Forever:
    """A policy that never stops calling, and never has to wait."""

    async def generate(self, request: GenerationRequest) -> Generation:
        return Generation(hermes("pay", amount=request.turn))


async def test_a_trajectory_that_never_waits_keeps_to_its_time() -> None:
    limits = RolloutLimits(trajectory_timeout=2 * SLICE)
    rollout = Rollout([_made(False, dict.fromkeys(("create", "calc_reward", "release")))], Forever(), limits=limits)
    assert (await rollout.run(sample())).end == "deadline"


async def test_a_trajectory_that_never_waits_can_be_cancelled() -> None:
    ended: list[TrajectoryRecord] = []
    tool = _made(False, dict.fromkeys(("create", "calc_reward", "release")))
    task = asyncio.create_task(Rollout([tool], Forever(), ended=ended.append).run(Sample("s", sample().prompt)))
    await asyncio.sleep(SLICE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(record.end, dict(record.unreleased)) for record in ended] == [("cancelled", {})]
