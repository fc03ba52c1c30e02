"""Rollouts on a real, local Ray: as the same rollout in this process, also when workers and actors die."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter as Count
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray_tools
from ray_tools import Adds, samples

from agentkit.errors import ConfigError
from agentkit.rollout import Rollout, TrajectoryRecord

pytest.importorskip("ray", reason="the extra `rollout` is not installed")
from agentkit.rollout.distributed import ActorPool, RayRollout

pytestmark = [pytest.mark.soak, pytest.mark.timeout(240)]

SUMS = ["1", "3", "6", "10", "15", "21", "28", "36"]


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    import ray

    here = {"env_vars": {"PYTHONPATH": str(Path(ray_tools.__file__).parent)}}
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(num_cpus=2, runtime_env=here, **quiet)
    except Exception as e:  # noqa: BLE001 - whatever it is, it is the machine's: no shared memory, no ports
        pytest.skip(f"Ray does not start here: {type(e).__name__}: {e}")
    yield
    ray.shutdown()


async def rolled(rollout: Any, *args: Any) -> list[TrajectoryRecord]:
    return [record async for record in rollout.stream(*args)]


def good(record: TrajectoryRecord) -> bool:
    return record.end == "answered" and [c.result for c in record.calls] == SUMS and record.reward == 4.0 + 36.0


def test_workers_roll_out_as_this_process_does_and_one_that_dies_costs_only_its_own() -> None:
    async def main() -> tuple[list[TrajectoryRecord], list[TrajectoryRecord]]:
        async with RayRollout(ray_tools.rollout, workers=2, in_flight=8) as workers:
            return await rolled(workers, samples(64), 1, {"0#0"}), await rolled(workers, samples(40, 5))

    whole, died = asyncio.run(main())
    assert sorted(r.id for r in whole) == sorted(f"{n}#0" for n in range(1, 64))
    assert all(map(good, whole))
    assert Count(r.end for r in died) == {"answered": 39, "lost": 1}
    assert all(good(r) for r in died if r.sample_id != "bad")


def test_a_rollout_that_cannot_be_built_says_why() -> None:
    with pytest.raises(ConfigError, match="aggregate='mean': expected 'sum', 'last' or a function"):
        asyncio.run(rolled(RayRollout(ray_tools.unbuildable), samples(1)))


def test_a_pool_of_actors_has_an_instance_for_each_trajectory_and_no_place_is_lost() -> None:
    async def main() -> tuple[list[TrajectoryRecord], list[int]]:
        pool = ActorPool(ray_tools.Counter, actors=2, places=3)
        try:
            return await rolled(Rollout([pool], Adds()), samples(30)), pool.taken
        finally:
            pool.close()

    records, taken = asyncio.run(main())
    assert all(map(good, records))
    assert (len(records), taken) == (30, [0, 0])


def test_an_actor_that_dies_costs_its_own_trajectories_and_is_replaced() -> None:
    async def main() -> tuple[list[TrajectoryRecord], list[TrajectoryRecord], list[int]]:
        pool = ActorPool(ray_tools.Counter, actors=2, places=5)
        try:
            rollout = Rollout([pool], Adds())
            return await rolled(rollout, samples(30, 5)), await rolled(rollout, samples(10)), pool.taken
        finally:
            pool.close()

    hurt, after, taken = asyncio.run(main())
    assert len(hurt) == 30
    unhurt = [record for record in hurt if good(record)]
    assert 20 <= len(unhurt) < 30
    for record in hurt:
        assert good(record) or any(call.error for call in record.calls), record
    assert all(map(good, after))
    assert taken == [0, 0]
