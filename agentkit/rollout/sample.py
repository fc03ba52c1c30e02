"""One sample of a data set: what a trajectory begins with, and what its tools are told about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from agentkit.messages import Message


@dataclass(frozen=True, slots=True)
class ToolKwargs:
    """What one tool is told about a sample, by phase: the keys of verl's `tools_kwargs` entries, without `_kwargs`.

    Args:
        create: keyword arguments of its `create`; of its constructor if it has no `create`.
        execute: keyword arguments of every call, besides those that the model writes.
        calc_reward: keyword arguments of its `calc_reward`.
        release: keyword arguments of its `release`.
    """

    create: Mapping[str, Any] = field(default_factory=dict)
    execute: Mapping[str, Any] = field(default_factory=dict)
    calc_reward: Mapping[str, Any] = field(default_factory=dict)
    release: Mapping[str, Any] = field(default_factory=dict)


PHASES: Final = tuple(one.name for one in fields(ToolKwargs))
"""In which a tool is told something: `create`, `execute`, `calc_reward`, `release`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample.

    Args:
        id: unique in the data set; a resumed rollout knows by it what it has done.
        prompt: the messages that the trajectory begins with.
        tools_kwargs: what each tool is told, by function name.
        tool_selection: the function names that the model may call; None allows all.
        ground_truth: the right answer, for rewards outside the tools; None if there is none.
        extra: all else that the data set says of it, as JSON.
    """

    id: str
    prompt: tuple[Message, ...]
    tools_kwargs: Mapping[str, ToolKwargs] = field(default_factory=dict)
    tool_selection: tuple[str, ...] | None = None
    ground_truth: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def trajectory_id(self, repeat: int = 0) -> str:
        """The id of one of its trajectories: `<id>#<repeat>`."""
        return f"{self.id}#{repeat}"
