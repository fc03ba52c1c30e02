"""A rollout on workers of Ray, each of which rolls out whole trajectories with its own tools."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from agentkit.checks.bounds import Bounds, refuse, whole
from agentkit.checks.keys import words
from agentkit.checks.missing_await import EnteredAsync
from agentkit.errors import ConfigError
from agentkit.rollout.distributed.actors import HostActor, HostWork
from agentkit.rollout.distributed.exchange import HostLost, OrderFailed
from agentkit.rollout.distributed.packing import pack, unpack
from agentkit.rollout.records.record import TrajectoryRecord
from agentkit.rollout.records.record_json import record_from_json, record_to_json
from agentkit.rollout.records.trajectory import TrajectoryEnd
from agentkit.rollout.samples.sample import Sample
from agentkit.rollout.samples.sample_stream import distinct, refuse_stream

if TYPE_CHECKING:
    from agentkit.rollout.rollout import Rollout

_BOUNDS: Final[Bounds] = {
    "workers": whole(1, "workers"),
    "in_flight": whole(1, "trajectories at once"),
    "retries": whole(0, "retries"),
}

MAX_DEATHS: Final = 3
"""Workers that may die one after another without a finished trajectory between them; then something else is wrong."""


LINGER: Final = 0.02
"""Seconds that a finished record waits in its worker for others, so that they share a message."""

CHECKED_AT_ONCE: Final = 1000
"""Samples that a worker checks in one order."""


_Order = tuple[Sample, int, bool]
"""A sample, which of its trajectories, and whether it is known to fit the tools."""


def _work(build: Callable[[], Rollout]) -> HostWork:
    rollout = build()

    def refused(samples: Iterable[Sample]) -> str | None:
        try:
            rollout.check(samples)
        except ConfigError as e:
            return str(e)
        return None

    async def one(order: tuple[Any, ...]) -> bytes | str | None:
        """A record as bytes; for samples that do not fit the tools, why not."""
        sample, repeat, checked = order
        if repeat is None:
            return refused(sample)
        if not checked and (why := refused([sample])) is not None:
            return why
        return _to_bytes(await rollout.run(sample, repeat))

    return one


def _to_bytes(record: TrajectoryRecord) -> bytes:
    """A record as it is or, with a metric that no other process can have, as a `RecordFile` would keep it."""
    try:
        return pack(record)
    except Exception:  # noqa: BLE001 - whatever pickling an object of a tool's own raises
        return pack(record_from_json(record_to_json(record)))


class RayRollout(EnteredAsync):
    """A `Rollout` on several processes or machines.

    Tools live where the trajectory is rolled out, so a call costs what it costs without Ray. A worker that dies costs
    its own trajectories only: each is tried again on another, up to `retries` times, then recorded with the end `lost`.

    Args:
        build: makes the `Rollout`; called in each worker, so the `Rollout` is never pickled.
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

    async def __aexit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()

    async def _fill(self) -> None:
        self._workers = [worker for worker in self._workers if worker.alive]
        missing = self._count - len(self._workers)
        new = [HostActor(partial(_work, self._build), self._options, LINGER) for _ in range(missing)]
        self._workers += new
        await asyncio.gather(*(worker.begin() for worker in new))

    async def check(self, samples: Iterable[Sample]) -> None:
        """Check samples before anything runs; a worker does it, as it has the tools.

        Raises:
            ConfigError: as of `Rollout.check`; or a worker cannot be built.
        """
        await self._fill()
        every = distinct(samples)
        while batch := list(islice(every, CHECKED_AT_ONCE)):
            why = await self._checked(batch)
            if why is not None:
                raise ConfigError(why)

    async def _checked(self, batch: list[Sample]) -> str | None:
        while True:
            worker = await self._free()
            try:
                why: str | None = await worker.client.order((batch, None, False))
            except HostLost:
                continue  # `_free` counts the dead
            except OrderFailed as e:
                return f"the samples from {batch[0].id!r} on could not be checked: {e}"
            return why

    async def stream(
        self, samples: Iterable[Sample], repeats: int = 1, skip: Container[str] = ()
    ) -> AsyncGenerator[TrajectoryRecord, None]:
        """The trajectories of all samples, in the order in which they end. Ending the iteration cancels the others.

        No more samples are read than can be rolled out, and none while finished records wait to be fetched.

        Args:
            samples: a sequence is checked before the first generation, an iterator as it is read.
            repeats: how many trajectories each sample gets.
            skip: the ids of trajectories that are not run, such as the `RecordFile` of a rollout that was interrupted.

        Raises:
            ConfigError: an argument is none of these, a sample does not fit the tools, a worker cannot be built, or
                several died without finishing anything.
        """
        refuse_stream(samples, repeats, skip)
        checked = isinstance(samples, Sequence)
        await (self.check(samples) if checked else self._fill())
        todo = (
            (sample, repeat, checked)
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

    def _take(self, todo: Iterator[_Order], running: set[asyncio.Task[TrajectoryRecord]]) -> bool:
        """Begin trajectories where there is room; returns True if any runs."""
        while len(running) < self._count * self._in_flight and (order := next(todo, None)) is not None:
            running.add(asyncio.create_task(self._one(order)))
        return bool(running)

    async def _one(self, order: _Order) -> TrajectoryRecord:
        end: TrajectoryEnd = "lost"
        why = ""
        for attempt in range(self._retries + 1):
            alone = self._last_attempt if 0 < attempt == self._retries else contextlib.nullcontext()
            try:
                async with alone:
                    worker = await self._free()
                    told: bytes | str = await worker.client.order(order)
                if isinstance(told, str):
                    raise ConfigError(told)
                record: TrajectoryRecord = unpack(told)
            except HostLost as e:
                why = str(e)
                continue
            except ConfigError:
                raise
            except Exception as e:  # noqa: BLE001 - the boundary: a bad rollout is data, even if it cannot be read here
                end, why = "rollout_error", str(e) if isinstance(e, OrderFailed) else words(e)
                break
            self._deaths = 0
            return record
        sample, repeat, _ = order
        return TrajectoryRecord(
            id=sample.trajectory_id(repeat),
            sample_id=sample.id,
            repeat=repeat,
            messages=sample.prompt,
            end=end,
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
