"""Tool instances that belong to another system's trajectory: made on its first call, released when it is gone.

The other loops do not report a trajectory's end, but pass to each call an object that lives exactly as long: verl's
`agent_data`, verifiers' `state`. The instances are kept by that object, weakly: when it is collected they are released.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final
from uuid import uuid4

from agentkit.checks.keys import words
from agentkit.interop.background_loop import BackgroundLoop
from agentkit.interop.single_call import SingleAnswer, answer_call
from agentkit.processor import ProcessorConfig
from agentkit.rollout.records.scoring import replace_reward, reward_of
from agentkit.rollout.samples.sample import PHASES, ToolKwargs
from agentkit.rollout.tools.offered_tools import hidden_arguments
from agentkit.rollout.tools.per_trajectory import RolloutTool
from agentkit.tool import ToolRegistry, ToolResult
from agentkit.tool.result import NO_CONTEXT

_LOG: Final = logging.getLogger("agentkit.interop")
_SECONDS: Final = 30.0  # a release that is waited for, because no loop is left to run it

RELEASES: Final = BackgroundLoop("agentkit releases")
"""Runs what the loop of its trajectory can no longer run."""

_UNDER_WAY: Final[set[asyncio.Task[None]]] = set()  # kept, because an event loop keeps its tasks weakly

Kwargs = Mapping[str, ToolKwargs]
"""What a sample tells each tool, by function name."""


class OwnedInstance:
    """One trajectory's instance of a tool source.

    Args:
        tool: the source.
        kwargs: the sample's arguments for each of its functions; those of one phase are joined.
        config: limits of its calls.

    Attributes:
        rewards: what the calls of each function gave, in order.
        first: the result of `create`, for the model; None if it has none.
        failed: what `create` raised, in words; empty if it did not.
        unscored: why the final reward is missing from the last `total`, in words; empty if it is not.
    """

    def __init__(self, tool: RolloutTool, kwargs: Kwargs, config: ProcessorConfig | None = None) -> None:
        self.rewards: dict[str, list[float]] = {name: [] for name in tool.tools}
        self.first: ToolResult | None = None
        self.unscored = ""
        self.failed = ""  # the error itself holds the frames of all who awaited it
        self._tool, self._config = tool, config
        self._kwargs = {name: told for name, told in kwargs.items() if name in tool.tools}
        self._instance = tool.instance(uuid4().hex)
        self._last = 0.0
        self._asking = asyncio.Lock()
        self._begun: asyncio.Task[None] | None = None
        self._released = False

    def tell(self, name: str, phase: str, kwargs: Mapping[str, Any]) -> None:
        """Add to what the sample tells a function of one phase."""
        if kwargs:
            told = self._kwargs.get(name, ToolKwargs())
            self._kwargs[name] = replace(told, **{phase: {**getattr(told, phase), **kwargs}})

    async def begin(self) -> None:
        """Create the instance, once; calls that run at the same time wait for it.

        Raises:
            Exception: whatever `create` raises, for each call that awaits it.
            RuntimeError: `create` has failed before; says how.
        """
        if self.failed:
            raise RuntimeError(self.failed)
        if self._begun is None:
            self._begun = asyncio.get_running_loop().create_task(self._begin())
        task = self._begun
        try:
            await asyncio.shield(task)
        except BaseException as e:
            if task.done() and (task.cancelled() or task.exception() is not None):
                self.failed, self._begun = f"create of {self._tool.name!r} failed: {words(e)}", None
            raise
        finally:
            del task  # nor may this frame, which the error holds, hold the error

    async def _begin(self) -> None:
        self.first = await self._instance.create(**self._told("create"))

    async def call(self, name: str, arguments: Any) -> SingleAnswer:
        """Answer one call; an error is a result."""
        if not isinstance(arguments, Mapping):
            said = f"{name}: the arguments must be an object with the parameters' names, found {arguments!r:.80}"
            result = ToolResult(error=said, code="invalid_arguments")
            return SingleAnswer(result, result.parts)
        if self._released:
            said = f"{name}: its trajectory is over, and its instance has been released"
            result = ToolResult(error=said, code="cancelled")
            return SingleAnswer(result, result.parts)
        await self.begin()
        told = self._kwargs[name].execute if name in self._kwargs else {}
        answer = await answer_call(
            ToolRegistry(self._instance.tools[name]),
            name,
            arguments,
            config=self._config,
            state=told or NO_CONTEXT,
            added=partial(hidden_arguments, execute=told) if told else None,
        )
        if answer.result.reward is not None:
            self.rewards[name].append(answer.result.reward)
        return answer

    async def final(self) -> float | None:
        """The final reward, as of now; None if the source gives none. Without a call before, the instance is created.

        Raises:
            Exception: whatever `create` raises, so there is nothing to score; a RuntimeError if it was before.
            ValueError: it is not a finite number.
        """
        if not self._released:
            await self.begin()
        return None if self._begun is None else reward_of(await self._instance.calc_reward(**self._told("calc_reward")))

    async def step(self, name: str, arguments: Any, *, fold: bool) -> tuple[SingleAnswer, float]:
        """Answer one call, and return its reward in a loop that never asks for the final one.

        Args:
            name: the function name.
            arguments: as the model wrote them.
            fold: whether to add how much the final reward has changed since this was last asked, so that the sum over
                all calls is right. If that fails, the call's metadata say why, under `unscored`: the change is
                then in the reward of a later call.
        """
        answer = await self.call(name, arguments)
        reward = answer.result.reward or 0.0
        if not fold:
            return answer, reward
        try:
            return answer, reward + await self._gained()
        except Exception as e:  # noqa: BLE001 - the boundary: the tool's own code, which may know its reward only later
            _warn_unscored(self._tool.name, words(e))
            result = answer.result
            return answer._replace(result=replace_reward(result, result.reward, {"unscored": words(e)})), reward

    async def _gained(self) -> float:
        """How much the final reward has changed since this was last asked. Asked one at a time: the last is newest."""
        async with self._asking:
            now = await self.final()
            if now is None:
                return 0.0
            gained, self._last = now - self._last, now
            return gained

    async def total(self) -> float:
        """All rewards of the calls, and the final one. If that fails, it is 0 and logged, and `unscored` says why."""
        try:
            last, self.unscored = await self.final() or 0.0, ""
        except Exception as e:  # noqa: BLE001 - the boundary: the tool's own code, which must not end another system's loop
            last, self.unscored = 0.0, words(e)
            phase = "create" if self.failed else "calc_reward"
            _LOG.exception("%s of %r failed, so its final reward counts as 0", phase, self._tool.name)
        return sum(map(sum, self.rewards.values())) + last

    async def release(self) -> None:
        """Release it; a second time does nothing. An error is logged: no caller is left to get it."""
        if self._released:
            return
        self._released = True
        try:
            await self._instance.release(**self._told("release"))
        except Exception:  # noqa: BLE001 - the boundary: the tool's own code
            _LOG.exception("the tool %r could not be released", self._tool.name)

    def _told(self, phase: str) -> dict[str, Any]:
        """Return the sample's arguments for a phase, of all of the source's functions."""
        return {key: value for told in self._kwargs.values() for key, value in getattr(told, phase).items()}


@lru_cache(maxsize=256)  # the words may be others each time
def _warn_unscored(tool: str, why: str) -> None:
    _LOG.warning("calc_reward of %r failed after a call, so the final reward is added later: %s", tool, why)


class Trajectories:
    """The instances of one tool source, one for each owner.

    Args:
        tool: the source.
        config: limits of its calls.
    """

    def __init__(self, tool: RolloutTool, config: ProcessorConfig | None = None) -> None:
        self.tool, self.config = tool, config
        self._owned: dict[int, OwnedInstance] = {}  # by the owner's id while it lives: some owners cannot be hashed
        self._named: dict[str, tuple[OwnedInstance, set[str]]] = {}

    def __len__(self) -> int:
        return len(self._owned) + len(self._named)

    def of(self, owner: Any, kwargs: Callable[[], Kwargs]) -> OwnedInstance:
        """The instance of a trajectory; to be called on its event loop.

        Args:
            owner: an object that lives exactly as long as the trajectory.
            kwargs: tells, once, what the sample says.
        """
        key = id(owner)
        if key not in self._owned:
            owned = self._owned[key] = OwnedInstance(self.tool, kwargs(), self.config)
            weakref.finalize(owner, _end, self._owned, key, asyncio.get_running_loop())
            return owned
        return self._owned[key]

    async def over(self, owner: Any, kwargs: Callable[[], Kwargs]) -> tuple[float, str]:
        """A trajectory whose loop reports its end: score and release the instance; without calls, one made for that.

        Returns all its rewards, and why the final one is missing, see `OwnedInstance.unscored`. Arguments as for `of`.
        """
        owned = self._owned.pop(id(owner), None) or OwnedInstance(self.tool, kwargs(), self.config)
        try:
            return await owned.total(), owned.unscored
        finally:
            await owned.release()

    def open(self, trajectory_id: str, name: str) -> OwnedInstance:
        """The instance of a trajectory that has an id and reports its end: `close` for each `name` opened."""
        if trajectory_id not in self._named:
            self._named[trajectory_id] = (OwnedInstance(self.tool, {}, self.config), set())
        owned, names = self._named[trajectory_id]
        names.add(name)
        return owned

    def find(self, trajectory_id: str) -> OwnedInstance | None:
        """The instance that was opened under this id; None if there is none."""
        return self._named[trajectory_id][0] if trajectory_id in self._named else None

    async def close(self, trajectory_id: str, name: str) -> None:
        """One of a trajectory's functions is over; the instance is released with the last."""
        if trajectory_id not in self._named:
            return
        owned, names = self._named[trajectory_id]
        names.discard(name)
        if not names:
            del self._named[trajectory_id]
            await owned.release()


def _end(all_owned: dict[int, OwnedInstance], key: int, loop: asyncio.AbstractEventLoop) -> None:
    """Release on the trajectory's own loop; in a thread if that is closed. Called by the garbage collector."""
    owned = all_owned.pop(key, None)
    if owned is None:  # its loop said that it was over
        return
    try:
        loop.call_soon_threadsafe(_start, owned)
    except RuntimeError:  # the loop is closed
        RELEASES.run(owned.release(), _SECONDS)


def _start(owned: OwnedInstance) -> None:
    task = asyncio.get_running_loop().create_task(owned.release())
    _UNDER_WAY.add(task)
    task.add_done_callback(partial(_over, owned))


def _over(owned: OwnedInstance, task: asyncio.Task[None]) -> None:
    _UNDER_WAY.discard(task)
    if task.cancelled():  # the loop ended before it could begin
        RELEASES.run(owned.release(), _SECONDS)


def kwargs_by_tool(tools_kwargs: Any) -> Kwargs:
    """Verl's `tools_kwargs` as values: `{"add": {"create_kwargs": {…}, …}}`; None is nothing."""
    return {
        name: ToolKwargs(**{phase: dict((told or {}).get(f"{phase}_kwargs") or {}) for phase in PHASES})
        for name, told in (tools_kwargs or {}).items()
    }
