"""Actors of Ray that host work: started, found dead, replaced. The only file here that speaks to Ray."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from agentkit.errors import ConfigError
from agentkit.rollout.distributed.exchange import POLL, Client, Host, OrderAnswer

SILENCE: Final = POLL + 25.0
"""Seconds without any answer after which an actor counts as dead. Whatever it runs, it answers every `POLL` seconds."""

HostWork = Callable[[Any], Awaitable[Any]]


def ray_module() -> Any:
    """Ray, started if it is not.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import ray
    except ImportError as e:
        raise ConfigError("rollouts on Ray need the extra `rollout`: pip install 'agentkit[rollout]'") from e
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    return ray


class _Hosting:
    """What runs in the actor: builds the work there, so that nothing but its recipe is pickled."""

    def __init__(self, build: Callable[[], HostWork]) -> None:
        self._build = build
        self._host: Host | None = None

    async def begin(self) -> None:
        """Build; an exception tells the driver what is wrong."""
        self._host = Host(self._build())

    async def exchange(self, orders: list[tuple[int, Any]], dropped: list[int]) -> list[OrderAnswer]:
        assert self._host is not None
        return await self._host.exchange(orders, dropped)


class HostActor:
    """One actor of Ray and the client that speaks to it.

    Args:
        build: called in the actor; returns the work that it does.
        options: of the actor, as Ray takes them (`num_cpus`, `resources`, `runtime_env`, …).
    """

    def __init__(self, build: Callable[[], HostWork], options: Mapping[str, Any]) -> None:
        self._ray = ray_module()
        chosen = {"num_cpus": 0, "max_concurrency": 1000, **options}
        self._actor = self._ray.remote(_Hosting).options(**chosen).remote(build)
        self.client = Client(self._send)

    async def begin(self) -> None:
        """Wait until it is built.

        Raises:
            ConfigError: it could not be; says why.
        """
        try:
            await self._actor.begin.remote()
        except Exception as e:
            self.stop("it could not be built")
            cause = getattr(e, "cause", None) or e
            raise ConfigError(f"an actor could not be built: {type(cause).__name__}: {cause}") from e

    @property
    def alive(self) -> bool:
        """Whether it is not known to be dead."""
        return self.client.lost is None

    async def _send(self, orders: list[tuple[int, Any]], dropped: list[int]) -> list[OrderAnswer]:
        try:
            async with asyncio.timeout(SILENCE):
                answers: list[OrderAnswer] = await self._actor.exchange.remote(orders, dropped)
                return answers
        except TimeoutError as e:
            self._ray.kill(self._actor)
            raise TimeoutError(f"the actor did not answer for {SILENCE:g} seconds and was killed") from e

    def stop(self, why: str = "stopped") -> None:
        """End it, with whatever it still does."""
        self.client.close(why)
        self._ray.kill(self._actor)
