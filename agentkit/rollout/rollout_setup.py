"""The settings that all trajectories of a rollout share, and the state of one trajectory. Values; runs nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agentkit.formats import Format
from agentkit.messages import Message
from agentkit.processor.author_errors import AuthorErrors
from agentkit.processor.config import ProcessorConfig
from agentkit.rollout.policy.generation import Policy
from agentkit.rollout.records.record import CallRecord, TrajectoryRecord
from agentkit.rollout.records.trajectory import TrajectoryEnd
from agentkit.rollout.rollout_limits import RolloutLimits
from agentkit.rollout.samples.sample import Sample
from agentkit.rollout.tokens.chat_template import ChatTemplate
from agentkit.rollout.tokens.stop_strings import stop_strings
from agentkit.rollout.tools.per_trajectory import RolloutTool
from agentkit.toolspec import ToolSpec

_LOG: Final = logging.getLogger("agentkit.rollout")


@dataclass(frozen=True, slots=True)
class RolloutSetup:
    """The settings that all trajectories of a rollout share.

    Args:
        sources: the tools.
        specs: the tools as the model sees them, by function name.
        policy: the model.
        format: how it writes calls; None for native ones.
        config: which calls run, and how.
        limits: of a trajectory.
        sampling: passed on to the policy.
        stop: the user's stop strings, in place of those of the format; None if there are none.
        score: adds up a trajectory's rewards.
        template: how the conversation becomes token ids; None without a tokenizer.
        faults: logs errors that the tools' authors must fix.
    """

    sources: tuple[RolloutTool, ...]
    specs: Mapping[str, ToolSpec]
    policy: Policy
    format: Format | None
    config: ProcessorConfig
    limits: RolloutLimits
    sampling: Mapping[str, Any]
    stop: tuple[str, ...] | None
    score: Callable[[TrajectoryRecord], float]
    template: ChatTemplate | None = None
    faults: AuthorErrors = field(default_factory=AuthorErrors)
    _warned: set[str] = field(default_factory=set)

    def stops(self, tools: Sequence[ToolSpec]) -> tuple[str, ...]:
        """Where the policy ends a turn, if it may call these tools."""
        return self.stop if self.stop is not None else () if self.format is None else stop_strings(self.format, tools)

    def unread(self, other: str) -> None:
        """Log a call that cannot be read, once; and the other format that reads it, if any does."""
        if self.format is not None and other not in self._warned:
            self._warned.add(other)
            hint = f"; it can be in {other}: Rollout(format={other!r})" if other else ""
            _LOG.warning("the policy wrote a call that cannot be read in the format %s%s", self.format.name, hint)

    def tools_for(self, sample: Sample) -> tuple[ToolSpec, ...]:
        """Return the tools that the model may call."""
        names = sample.tool_selection
        return tuple(spec for name, spec in self.specs.items() if names is None or name in names)


@dataclass(slots=True)
class SoFar:
    """The state of a trajectory.

    Args:
        messages: the conversation.
        calls: every call, with its answer.
        turns: how many responses there were.
        answered: how many of them were answered.
        generating: seconds spent in the policy.
        lacks: how the trajectory ends with the last response, if that has no calls.
    """

    messages: list[Message]
    calls: list[CallRecord] = field(default_factory=list)
    turns: int = 0
    answered: int = 0
    generating: float = 0.0
    lacks: TrajectoryEnd = "answered"
