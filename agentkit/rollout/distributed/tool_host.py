"""The instances of one tool in an actor: made there, called there, released there. Knows nothing of Ray."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agentkit.processor.author_errors import AuthorErrors
from agentkit.processor.tool_run import run_tool
from agentkit.rollout.tools.per_trajectory import RolloutInstance, RolloutTool
from agentkit.tool.result import ToolContext, ToolResult

_LOG: Final = logging.getLogger("agentkit.rollout")
REMEMBERED: Final = 1_000
"""Instances released for idleness of which it is known that they were, if something asks for one after all."""

PLAIN: Final = (str, int, float, bool, type(None), dict, list)


class ToolOrder(NamedTuple):
    """A trajectory's request to its instance: `create`, `call`, `calc_reward` or `release`.

    Args:
        phase: one of these.
        trajectory: its id.
        kwargs: keyword arguments; of a call the validated arguments.
        name: of a call, the function name.
        context: of a call, id and name, as in `ToolContext`; what its run has as state stays where the run is.
    """

    phase: str
    trajectory: str
    kwargs: Mapping[str, Any]
    name: str = ""
    context: tuple[str, str] = ("", "")


@dataclass(slots=True)
class _Held:
    instance: RolloutInstance
    used: float = field(default_factory=time.monotonic)
    calls: int = 0  # that run now


class ToolHost:
    """Makes and keeps the instances; called with one `ToolOrder` at a time.

    Args:
        build: makes the tool.
        idle: seconds after which an instance that nothing asked for is released: its trajectory's process is gone.
    """

    def __init__(self, build: Callable[[], RolloutTool], idle: float) -> None:
        self._tool = build()
        self._idle = idle
        self._held: dict[str, _Held] = {}
        self._faults = AuthorErrors()
        self._reaped: dict[str, None] = {}  # ordered: the caller that asked for the oldest has its answer
        self._reaper: asyncio.Task[None] | None = None

    async def __call__(self, sent: tuple[Any, ...]) -> Any:
        """Carry out one `ToolOrder`, sent as a plain tuple; its exception goes to the sender."""
        order = ToolOrder(*sent)
        if order.phase == "create":
            return await self._create(order)
        if order.phase == "release":
            held = self._held.pop(order.trajectory, None)
            if held is None:
                self._reaped.pop(order.trajectory, None)
                return None
            return await held.instance.release(**order.kwargs)
        held = self._held.get(order.trajectory)
        if held is None:
            reaped = f"released: nothing asked for it for {self._idle:g} seconds"
            state = reaped if order.trajectory in self._reaped else "not created"
            raise LookupError(f"{self._tool.name} of trajectory {order.trajectory!r} is {state}")
        held.calls += 1
        try:
            if order.phase == "calc_reward":
                return await held.instance.calc_reward(**order.kwargs)
            return await self._call(held.instance, order)
        finally:
            held.calls -= 1
            held.used = time.monotonic()

    async def _create(self, order: ToolOrder) -> ToolResult | None:
        self._reaped.pop(order.trajectory, None)
        if self._reaper is None:
            self._reaper = asyncio.create_task(self._reap())
        held = _Held(self._tool.instance(order.trajectory), calls=1)
        self._held[order.trajectory] = held
        try:
            return await held.instance.create(**order.kwargs)
        finally:
            held.calls -= 1
            held.used = time.monotonic()

    async def _call(self, instance: RolloutInstance, order: ToolOrder) -> ToolResult:
        context = ToolContext(*order.context)
        outcome = await run_tool(instance.tools[order.name], order.kwargs, context, None, faults=self._faults)
        result = outcome.result
        if isinstance(result.output, PLAIN):
            return result
        return ToolResult(  # the class of a tool's object may not be known where the trajectory runs
            error=result.error, code=result.code, content=outcome.parts, metadata=result.metadata, reward=result.reward
        )

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(self._idle / 4)
            long_ago = time.monotonic() - self._idle
            for trajectory, held in list(self._held.items()):
                if held.calls or held.used > long_ago:
                    continue
                del self._held[trajectory]
                self._reaped[trajectory] = None
                if len(self._reaped) > REMEMBERED:
                    del self._reaped[next(iter(self._reaped))]
                name = self._tool.name
                _LOG.warning("%s of trajectory %s was not used for %g s: released", name, trajectory, self._idle)
                try:
                    await held.instance.release()
                except Exception:  # noqa: BLE001 - the boundary: a tool's error must not end the reaper
                    _LOG.exception("%s of trajectory %s could not be released", name, trajectory)
