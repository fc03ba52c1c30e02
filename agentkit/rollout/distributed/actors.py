"""Actors of Ray that host work: started, found dead, replaced. The only file here that uses Ray."""

from __future__ import annotations

import asyncio
import logging
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from agentkit.errors import ConfigError, install_command
from agentkit.rollout.distributed.exchange import POLL, Client, Host, OrderAnswer
from agentkit.rollout.distributed.packing import pack_each, unpack_each

SILENCE: Final = POLL + 25.0
"""Seconds without any answer after which an actor counts as dead. Whatever it runs, it answers every `POLL` seconds."""

_HARMLESS: Final = frozenset(("env_vars", "working_dir", "py_modules", "excludes", "config", "_ray_commit"))
"""The settings of a `runtime_env` that leave it to us with which program a worker starts."""

HostWork = Callable[[Any], Awaitable[Any]]


def ray_module() -> Any:
    """Ray, started if it is not.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import ray
    except ImportError as e:
        raise ConfigError(f"rollouts on Ray need the extra `rollout`: {install_command('rollout')}") from e
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    return ray


def light_environment(ray: Any, own: Mapping[str, Any]) -> dict[str, Any] | None:
    """A `runtime_env` whose worker begins as `light_worker`; None where that may be unwanted.

    Only on this machine, where the worker has the driver's Python; and not if the environment, or that of
    the driver's job, says itself how a worker starts.
    """
    here = {node["NodeManagerHostname"] for node in ray.nodes()} == {socket.gethostname()}
    inherited = ray.get_runtime_context().runtime_env
    if not here or not _HARMLESS.issuperset({*own, *inherited}):
        return None
    return {**own, "py_executable": f"{shlex.quote(sys.executable)} -m agentkit.rollout.distributed.light_worker"}


class _Hosting:
    """The code in the actor: it builds the work there, so that nothing but its recipe is pickled."""

    def __init__(self, build: Callable[[], HostWork], linger: float) -> None:
        self._build, self._linger = build, linger
        self._host: Host | None = None

    async def begin(self) -> None:
        """Build the work; an exception goes to the driver."""
        self._host = Host(self._build(), self._linger)

    async def exchange(self, package: bytes, dropped: Sequence[int] = ()) -> bytes:
        """One message, as bytes: lists and tuples would be looked at one by one by Ray."""
        assert self._host is not None
        orders, unread = unpack_each(package)
        for number, why in unread:
            self._host.refuse(number, why)
        answered, unsent = pack_each(await self._host.exchange(orders, dropped))
        for number, why in unsent:
            self._host.refuse(number, why)
        return answered


class HostActor:
    """One actor of Ray and the client that speaks to it.

    Args:
        build: called in the actor; returns the work that it does.
        options: of the actor, as Ray takes them (`num_cpus`, `resources`, `runtime_env`, …).
        linger: seconds that an answer waits there for others, while there are more to come.
    """

    def __init__(self, build: Callable[[], HostWork], options: Mapping[str, Any], linger: float = 0.0) -> None:
        self._ray = ray_module()
        chosen = {"num_cpus": 0, "max_concurrency": 1000, **options}
        if (light := light_environment(self._ray, chosen.get("runtime_env") or {})) is not None:
            chosen["runtime_env"] = light
        self._actor = self._ray.remote(_Hosting).options(**chosen).remote(build, linger)
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
        """True unless the actor is known to be dead."""
        return self.client.lost is None

    async def _send(self, orders: list[tuple[int, Any]], dropped: list[int]) -> list[OrderAnswer]:
        package, unsent = pack_each(orders)
        for number, why in unsent:
            self.client.refuse(number, why)
        sent = self._actor.exchange.remote(package, dropped) if dropped else self._actor.exchange.remote(package)
        try:
            async with asyncio.timeout(SILENCE):
                answered: bytes = await sent
        except TimeoutError as e:
            self._ray.kill(self._actor)
            raise TimeoutError(f"the actor did not answer for {SILENCE:g} seconds and was killed") from e
        answers, unread = unpack_each(answered)
        for number, why in unread:
            self.client.refuse(number, why)
        return answers

    def stop(self, why: str = "stopped") -> None:
        """End it, with its running work."""
        self.client.close(why)
        self._ray.kill(self._actor)
