"""A rollout on workers of Ray, each of which rolls out whole trajectories with tools of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from agentkit.checks.awaiting import EnteredAsync
from agentkit.checks.bounds import Bounds, refuse, whole
from agentkit.errors import ConfigError
from agentkit.rollout.distributed.actors import HostActor, HostWork
from agentkit.rollout.distributed.exchange import HostLost, OrderFailed
from agentkit.rollout.records.record import TrajectoryRecord
from agentkit.rollout.samples.sample import Sample
from agentkit.rollout.samples.streamed import distinct, refuse_stream

if TYPE_CHECKING:
    from agentkit.rollout.rollout import Rollout

_BOUNDS: Final[Bounds] = {
    "workers": whole(1, "workers"),
    "in_flight": whole(1, "trajectories at once"),
    "retries": whole(0, "retries"),
}

MAX_DEATHS: Final = 3
"""Workers that may die one after another without a finished trajectory between them; then something else is wrong."""


def _work(build: Callable[[], Rollout]) -> HostWork:
    rollout = build()

    async def one(order: tuple[Sample, int]) -> TrajectoryRecord:
        return await rollout.run(order[0], order[1])

    return one


class RayRollout(EnteredAsync):
    """The same rollout, on several processes or machines.

    Tools live where the trajectory is rolled out, so a call costs what it costs without Ray. A worker that dies costs
    its own trajectories only: each is tried again on another, up to `retries` times, then recorded with the end `lost`.

    Args:
        build: makes the `Rollout`; called in each worker, so what it builds is never pickled.
        workers: how many processes.
        in_flight: trajectories that one worker rolls out at a time.
        retries: how often a trajectory is started again that died with its worker. Last attempts run one at a time, so
            that a trajectory that kills its worker every time does not cost others theirs.
        options: of each worker, as Ray takes them for an actor.

    Raises:
        ConfigError: Ray is not installed, or a number is out of range.
    """

    def __init__(
        self,
        build: Callable[[], Rollout],
        *,
        workers: int = 2,
        in_flight: int = 64,
        retries: int = 2,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        refuse("RayRollout", {"workers": workers, "in_flight": in_flight, "retries": retries}, _BOUNDS)
        self._build = build
        self._count = workers
        self._in_flight = in_flight
        self._retries = retries
        self._options = dict(options)
        self._workers: list[HostActor] = []
        self._deaths = 0
        self._filling = asyncio.Lock()
        self._last_attempt = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._fill()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()

    async def _fill(self) -> None:
        """Start the workers that are missing."""
        self._workers = [worker for worker in self._workers if worker.alive]
        new = [HostActor(partial(_work, self._build), self._options) for _ in range(self._count - len(self._workers))]
        self._workers += new
        await asyncio.gather(*(worker.begin() for worker in new))

    async def stream(
        self, samples: Iterable[Sample], repeats: int = 1, skip: Container[str] = ()
    ) -> AsyncGenerator[TrajectoryRecord, None]:
        """The trajectories of all samples, in the order in which they end. Ending the iteration cancels the others.

        No more samples are read than can be rolled out, and none while finished records wait to be fetched.

        Args:
            samples: not checked here; `Rollout.check` does it.
            repeats: how many trajectories each sample gets.
            skip: the ids of trajectories that are not run, such as the `RecordFile` of a rollout that was interrupted.

        Raises:
            ConfigError: an argument is none of these; a worker cannot be built, or several died without finishing
                anything.
        """
        refuse_stream(samples, repeats, skip)
        await self._fill()
        todo = (
            (sample, repeat)
            for sample in distinct(samples)
            for repeat in range(repeats)
            if sample.trajectory_id(repeat) not in skip
        )
        running: set[asyncio.Task[TrajectoryRecord]] = set()
        try:
            while self._take(todo, running):
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    running.discard(task)
                    yield task.result()
        finally:
            for task in running:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*running, return_exceptions=True)

    def _take(self, todo: Iterator[tuple[Sample, int]], running: set[asyncio.Task[TrajectoryRecord]]) -> bool:
        """Begin what has room; whether anything runs."""
        while len(running) < self._count * self._in_flight and (order := next(todo, None)) is not None:
            running.add(asyncio.create_task(self._one(order)))
        return bool(running)

    async def _one(self, order: tuple[Sample, int]) -> TrajectoryRecord:
        why = ""
        for attempt in range(self._retries + 1):
            alone = self._last_attempt if 0 < attempt == self._retries else contextlib.nullcontext()
            try:
                async with alone:
                    worker = await self._free()
                    record: TrajectoryRecord = await worker.client.order(order)
            except HostLost as e:
                why = str(e)
                continue
            except OrderFailed as e:
                why = str(e)
                break
            self._deaths = 0
            return record
        sample, repeat = order
        return TrajectoryRecord(
            id=sample.trajectory_id(repeat),
            sample_id=sample.id,
            repeat=repeat,
            messages=sample.prompt,
            end="lost",
            error=why,
            extra=sample.extra,
        )

    async def _free(self) -> HostActor:
        """The living worker with the fewest trajectories; dead ones are replaced first."""
        async with self._filling:
            dead = [worker for worker in self._workers if not worker.alive]
            self._deaths += len(dead)
            if self._deaths > MAX_DEATHS:
                last = dead[-1].client.lost if dead else "no worker is left"
                raise ConfigError(f"{self._deaths} workers died without finishing a trajectory; the last: {last}")
            if dead:
                await self._fill()
        return min(self._workers, key=lambda worker: worker.client.in_flight)
