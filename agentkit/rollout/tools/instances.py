"""The tool instances of one trajectory: created, asked for their rewards, released. Each step is bounded in time.

A failure of one is kept as a message, and does not affect the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentkit.checks.keys import words
from agentkit.processor.author_errors import AuthorErrors
from agentkit.rollout.records.scoring import reward_of
from agentkit.rollout.samples.sample import Sample
from agentkit.rollout.tools.foreign_tasks import alone, await_within
from agentkit.rollout.tools.per_trajectory import HOOKS, RolloutInstance, RolloutTool
from agentkit.rollout.tools.sample_kwargs import needed, phase_of
from agentkit.tool.result import ToolResult

_ALL: Final = frozenset(HOOKS)
_RECORDED: Final = "the error is on the trajectory's record"


class Instances:
    """The instances of one trajectory.

    Args:
        sources: the tools of the rollout.
        sample: names the tools that are needed, with their arguments.
        timeout: seconds for each `create`, `calc_reward` and `release`.
        faults: logs errors that the tools' authors must fix.
    """

    def __init__(
        self, sources: Sequence[RolloutTool], sample: Sample, timeout: float | None, faults: AuthorErrors
    ) -> None:
        self.rewards: dict[str, float] = {}
        self.unscored: dict[str, str] = {}
        self.unreleased: dict[str, str] = {}
        self.by_name: dict[str, RolloutInstance] = {}
        self._sources = [source for source in sources if needed(source, sample)]
        self._sample, self._timeout, self._faults = sample, timeout, faults
        self._begun: list[tuple[RolloutTool, RolloutInstance]] = []

    async def create(self, trajectory_id: str) -> tuple[ToolResult, ...]:
        """Create them in order; returns their messages before the first turn.

        Raises:
            ToolNotCreated: one could not be; those after it were not started.
        """
        said = []
        selected = self._sample.tool_selection
        for source in self._sources:
            try:
                instance = source.instance(trajectory_id)
                self._begun.append((source, instance))
                told = await self._step(source, instance, "create")
                self._refuse_blocking(instance)
            except Exception as e:
                self._faults.report_error(f"{source.name}.create", e, _RECORDED)
                raise ToolNotCreated(f"{source.name}: {words(e)}") from e
            if isinstance(told, ToolResult) and told.error is not None:
                raise ToolNotCreated(f"{source.name}: {told.error}")
            if told is not None and (told.output is not None or told.content):
                said.append(told)
            for name in source.tools:
                if selected is None or name in selected:
                    self.by_name[name] = instance
        return tuple(said)

    def _refuse_blocking(self, instance: RolloutInstance) -> None:
        """A constructor cannot be interrupted; what its time would be used for by others is over when it ends."""
        took, most = getattr(instance, "constructing", 0.0), self._timeout
        if most is not None and took > most:
            raise TimeoutError(
                f"its constructor took {took:.2g} s, in which all trajectories waited, and may take {most:g} s "
                "(call_timeout); what takes time belongs in `async def create`"
            )

    async def score(self) -> None:
        """Ask each for its final reward."""
        for source, instance in self._begun:
            try:
                reward = reward_of(await self._step(source, instance, "calc_reward"))
            except Exception as e:  # noqa: BLE001 - the boundary: a tool's error is data
                self.unscored[source.name] = words(e)
                self._faults.report_error(f"{source.name}.calc_reward", e, _RECORDED)
            else:
                if reward is not None:
                    self.rewards[source.name] = reward

    async def release(self) -> None:
        """Release all that were started, the last one first."""
        while self._begun:
            source, instance = self._begun.pop()
            try:
                await self._step(source, instance, "release")
            except Exception as e:  # noqa: BLE001 - the boundary: a tool's error is data
                self.unreleased[source.name] = words(e)
                self._faults.report_error(f"{source.name}.release", e, _RECORDED)

    @property
    def idle(self) -> bool:
        """Say if there is nothing to score or to release."""
        return not any({"calc_reward", "release"} & _hooks(source) for source, _ in self._begun)

    async def _step(self, source: RolloutTool, instance: RolloutInstance, phase: str) -> Any:
        work = getattr(instance, phase)(**phase_of(self._sample, source, phase))
        if phase in _hooks(source):
            return await await_within(work, self._timeout)
        return await alone(work)  # does nothing, or only constructs: a task for it would cost more than all the rest


class ToolNotCreated(Exception):
    """A tool could not begin; its message says which, and why."""


def _hooks(source: RolloutTool) -> frozenset[str]:
    found: frozenset[str] = getattr(source, "hooks", _ALL)
    return found
