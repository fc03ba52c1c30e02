"""Rollouts on a real, local Ray: as the same rollout in this process, also when workers and actors die."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter as Count
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray_tools
from ray_tools import Adds, samples

from agentkit import ToolContext, openapi_schema
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


UNFIT = [*samples(3), replace(samples(1)[0], id="unfit", tool_selection=("ad",))]
UNFIT_BECAUSE = "sample 'unfit': tool_selection names 'ad', but the tools are add; did you mean 'add'?"
AN_OBJECT = "(an object of class lock, without a readable value)"


async def refused(workers: RayRollout, unfit: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        await rolled(workers, unfit)
    return str(caught.value)


def good(record: TrajectoryRecord) -> bool:
    return record.end == "answered" and [c.result for c in record.calls] == SUMS and record.reward == 4.0 + 36.0


def test_workers_roll_out_as_this_process_does_and_one_that_dies_costs_only_its_own() -> None:
    async def main() -> tuple[list[TrajectoryRecord], list[TrajectoryRecord], dict[str, TrajectoryRecord], list[str]]:
        async with RayRollout(ray_tools.rollout, workers=2, in_flight=8) as workers:
            odd = [replace(samples(1)[0], id=id) for id in ("unwelcome", "locked")]
            return (
                await rolled(workers, samples(64), 1, {"0#0"}),
                await rolled(workers, samples(40, 5)),
                {one.sample_id: one for one in await rolled(workers, odd)},
                [await refused(workers, iter_of(UNFIT)) for iter_of in (list, iter)],
            )

    whole, died, odd, why = asyncio.run(main())
    assert [(one.end, one.error) for one in (odd["unwelcome"],)] == [("rollout_error", "OSError: the disk is full")]
    assert [one.metrics for one in odd["locked"].calls if one.metrics] == [{"lock": AN_OBJECT}]
    assert why == [UNFIT_BECAUSE] * 2
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
            return await rolled(Rollout([pool], Adds()), samples(30)), pool.loads
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
            return await rolled(rollout, samples(30, 5)), await rolled(rollout, samples(10)), pool.loads
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


def test_an_actor_of_a_pool_does_not_import_what_only_ray_wants_and_costs_65_mib_at_most() -> None:
    class Host(ray_tools.Counter):
        @openapi_schema
        def heavy(self) -> list[str]:
            """The memory of this process in MiB, its share of what is shared, and what it has imported."""
            rows = Path("/proc/self/smaps_rollup").read_text().splitlines()
            memory = next(int(row.split()[1]) for row in rows if row.startswith("Pss:")) // 1024
            return [str(memory), *sorted({"pyarrow", "numpy", "pandas", "starlette"} & sys.modules.keys())]

    async def main() -> list[str]:
        pool = ActorPool(Host, actors=2)
        instances = [pool.instance(id) for id in ("a#0", "b#0")]
        try:
            for instance in instances:
                await instance.create()
            told = await instances[0].tools["heavy"].method(context__=ToolContext("c", "heavy"))
            return list(told.output)
        finally:
            for instance in instances:
                await instance.release()
            pool.close()

    memory, *heavy = asyncio.run(main())
    assert heavy == []
    assert int(memory) <= 65


def test_an_environment_that_says_how_workers_start_is_left_alone() -> None:
    import ray

    from agentkit.rollout.distributed.actors import light_environment

    light = light_environment(ray, {"env_vars": {"A": "1"}})
    assert light is not None
    assert light["env_vars"] == {"A": "1"}
    assert light_environment(ray, {"pip": ["httpx"]}) is None
    assert light_environment(ray, {"py_executable": "python -X dev"}) is None
