"""Stateful tools: one instance for each trajectory, created once, called, asked for its reward, released.

Two protocols join the shapes in which such tools are written to the one loop that runs them: classes with decorated
methods, verl's classes, open-instruct's classes, actors of Ray.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol, Self

from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.result import ToolResult

HOOKS: Final = ("create", "calc_reward", "release")
"""The methods that are called once for each trajectory."""


class RolloutInstance(Protocol):
    """The tools of one source in one trajectory."""

    tools: Mapping[str, BoundTool]
    """By function name; bound to this instance alone."""

    async def create(self, **kwargs: Any) -> ToolResult | None:
        """Begin, with the sample's arguments. A result with content is shown to the model before its first turn."""
        ...

    async def calc_reward(self, **kwargs: Any) -> float | None:
        """The final reward; None if this tool gives none. Called once, after the last call."""
        ...

    async def release(self, **kwargs: Any) -> None:
        """Release its resources. Called exactly once, whatever happened."""
        ...


class RolloutTool(Protocol):
    """Makes an instance for each trajectory."""

    name: str
    """Its name in messages, and the key of its final reward: its first function name."""

    tools: Mapping[str, BoundTool]
    """The tools of its instances by function name, for schemas and checks. These are never invoked."""

    def instance(self, trajectory_id: str) -> RolloutInstance:
        """A new instance, not created yet."""
        ...

    def check(self, kwargs: Mapping[str, Any]) -> None:
        """Refuse keyword arguments by phase (`create`, `execute`, `calc_reward`, `release`) that it cannot take.

        Raises:
            ConfigError: says which, and what it takes.
        """
        ...


class SharedByAll:
    """The base of a tool that all trajectories share: nothing begins or ends."""

    hooks: ClassVar[frozenset[str]] = frozenset()

    def instance(self, trajectory_id: str) -> Self:
        """Return this tool, the only instance."""
        return self

    async def create(self, **kwargs: Any) -> None:
        """Nothing to begin."""

    async def calc_reward(self, **kwargs: Any) -> None:
        """It gives none."""

    async def release(self, **kwargs: Any) -> None:
        """Nothing to give back."""
