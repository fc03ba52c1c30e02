"""A tool that owns a resource, in actors of Ray: each trajectory leases a place in one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from agentkit.checks.bounds import SECONDS, Bounds, refuse, whole
from agentkit.rollout.distributed.actors import HostActor, HostWork
from agentkit.rollout.distributed.exchange import HostLost
from agentkit.rollout.distributed.tool_host import ToolHost
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.rollout.tools.per_trajectory import RolloutTool
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.result import ToolContext, ToolResult

_BOUNDS: Final[Bounds] = {
    "actors": whole(1, "actors"),
    "places": whole(1, "places"),
    "wait": SECONDS,
    "idle": SECONDS,
}
_CONTEXT = "context__"


def _host(build: Callable[[], RolloutTool], idle: float) -> HostWork:
    return ToolHost(build, idle)


class ActorPool:
    """A `RolloutTool` whose instances live in actors, made there and never pickled.

    A call costs a message only where no other goes the same way at the same time: what all trajectories of this process
    ask of an actor in one pass of the event loop is one message. An actor that dies costs the trajectories that had a
    place in it, whose calls are answered with an error; it is replaced.

    Args:
        tool: what `Rollout` takes as a tool; built in the actors, and once here for its schemas.
        config: the constructor's keyword arguments, as for `as_rollout_tool`.
        actors: how many processes.
        places: trajectories that have an instance in one actor at a time; others wait.
        wait: seconds that a trajectory waits for a place.
        idle: seconds without a call after which an instance is released: its trajectory's process is gone.
        options: of each actor, as Ray takes them.

    Raises:
        ConfigError: Ray is not installed, or a number is out of range.
    """

    def __init__(
        self,
        tool: Any,
        config: Mapping[str, Any] = MappingProxyType({}),
        *,
        actors: int = 2,
        places: int = 64,
        wait: float = 600.0,
        idle: float = 900.0,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        refuse("ActorPool", {"actors": actors, "places": places, "wait": wait, "idle": idle}, _BOUNDS)
        self._build = partial(as_rollout_tool, tool, dict(config))
        self._prototype = self._build()
        self.name = self._prototype.name
        self.tools: Mapping[str, BoundTool] = self._prototype.tools
        self._count, self._places, self._wait, self._idle = actors, places, wait, idle
        self._options = dict(options)
        self._actors: list[_Actor] = []
        self._changed = asyncio.Condition()

    def check(self, kwargs: Mapping[str, Any]) -> None:
        """As the tool itself would: see `RolloutTool.check`."""
        self._prototype.check(kwargs)

    def instance(self, trajectory_id: str) -> PooledInstance:
        """A new instance; it gets its place when it is created."""
        return PooledInstance(self, trajectory_id)

    @property
    def loads(self) -> list[int]:
        """The number of occupied places of each living actor."""
        return [actor.load for actor in self._actors if actor.host.alive]

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors:
            actor.host.stop()
        self._actors.clear()

    async def lease(self) -> _Actor:
        """A place in the emptiest living actor.

        Raises:
            TimeoutError: none became free in time.
        """
        async with self._changed:
            try:
                async with asyncio.timeout(self._wait):
                    while (actor := await self._with_room()) is None:
                        await self._changed.wait()
            except TimeoutError:
                raise TimeoutError(
                    f"{self.name}: no place became free in {self._wait:g} seconds; {self._count} actors have "
                    f"{self._places} places each"
                ) from None
            actor.load += 1
            return actor

    async def _with_room(self) -> _Actor | None:
        self._actors = [actor for actor in self._actors if actor.host.alive]
        missing = self._count - len(self._actors)
        if missing:
            new = [_Actor(HostActor(partial(_host, self._build, self._idle), self._options)) for _ in range(missing)]
            self._actors += new
            await asyncio.gather(*(actor.host.begin() for actor in new))
        emptiest = min(self._actors, key=lambda actor: actor.load)
        return emptiest if emptiest.load < self._places else None

    async def give_back(self, actor: _Actor) -> None:
        """A place is free again."""
        async with self._changed:
            actor.load -= 1
            self._changed.notify()


class _Actor:
    def __init__(self, host: HostActor) -> None:
        self.host = host
        self.load = 0


class PooledInstance:
    """One trajectory's instance, in an actor."""

    def __init__(self, pool: ActorPool, trajectory: str) -> None:
        self._pool = pool
        self._trajectory = trajectory
        self._actor: _Actor | None = None
        self.tools: Mapping[str, BoundTool] = {
            name: replace(bound, method=partial(self._call, name), is_async=True, instance=self, context=(_CONTEXT,))
            for name, bound in pool.tools.items()
        }

    async def create(self, **kwargs: Any) -> ToolResult | None:
        """Take a place, and create the instance there."""
        self._actor = await self._pool.lease()
        result: ToolResult | None = await self._order("create", kwargs)
        return result

    async def calc_reward(self, **kwargs: Any) -> float | None:
        """The instance's reward."""
        reward: float | None = await self._order("calc_reward", kwargs)
        return reward

    async def release(self, **kwargs: Any) -> None:
        """Release the instance and give its place back; an actor that is gone has nothing left to release."""
        actor, self._actor = self._actor, None
        if actor is None:
            return
        try:
            await actor.host.client.order(("release", self._trajectory, kwargs))
        except HostLost:
            pass
        finally:
            await asyncio.shield(self._pool.give_back(actor))

    async def _call(self, name: str, **kwargs: Any) -> ToolResult:
        context: ToolContext = kwargs.pop(_CONTEXT)
        told: ToolResult = await self._order("call", kwargs, name, (context.call_id, context.name))
        return told

    async def _order(
        self, phase: str, kwargs: Mapping[str, Any], name: str = "", context: tuple[str, str] = ("", "")
    ) -> Any:
        if self._actor is None:
            raise LookupError(f"{self._pool.name} of trajectory {self._trajectory!r} has no place in an actor")
        return await self._actor.host.client.order((phase, self._trajectory, kwargs, name, context))
