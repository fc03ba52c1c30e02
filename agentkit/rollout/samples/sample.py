"""One sample of a data set: the prompt of a trajectory, and the arguments of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, get_args

from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError
from agentkit.messages import Message


@takes()
@dataclass(frozen=True, slots=True)
class ToolKwargs:
    """A sample's arguments for one tool, by phase: the keys of verl's `tools_kwargs` entries, without `_kwargs`.

    Args:
        create: keyword arguments of its `create`; of its constructor if it has no `create`.
        execute: keyword arguments of every call, besides those that the model writes.
        calc_reward: keyword arguments of its `calc_reward`.
        release: keyword arguments of its `release`.

    Raises:
        ConfigError: one of them is not a mapping.
    """

    create: Mapping[str, Any] = field(default_factory=dict)
    execute: Mapping[str, Any] = field(default_factory=dict)
    calc_reward: Mapping[str, Any] = field(default_factory=dict)
    release: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for phase in ("create", "execute", "calc_reward", "release"):
            _wanted(f"ToolKwargs({phase}=…)", getattr(self, phase), Mapping, "a mapping of keyword arguments")


PHASES: Final = tuple(one.name for one in fields(ToolKwargs))
"""The phases with arguments for a tool: `create`, `execute`, `calc_reward`, `release`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample.

    Args:
        id: unique in the data set; by it a resumed rollout skips finished samples.
        prompt: the messages that the trajectory begins with.
        tools_kwargs: each tool's arguments, by function name.
        tool_selection: the function names that the model may call; None allows all.
        ground_truth: the right answer, for rewards outside the tools; None if there is none.
        extra: all else that the data set says of it, as JSON.

    Raises:
        ConfigError: an argument is of the wrong type.
    """

    id: str
    prompt: tuple[Message, ...]
    tools_kwargs: Mapping[str, ToolKwargs] = field(default_factory=dict)
    tool_selection: tuple[str, ...] | None = None
    ground_truth: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _wanted("Sample(id=…)", self.id, str, "a string")
        _wanted(f"sample {self.id!r}: prompt", self.prompt, (tuple, list), "a tuple of messages")
        for message in self.prompt:
            _wanted(f"sample {self.id!r}: prompt", message, get_args(Message), "messages, such as UserMessage(…)")
        _wanted(f"sample {self.id!r}: tools_kwargs", self.tools_kwargs, Mapping, "a mapping")
        for name, told in self.tools_kwargs.items():
            _wanted(f"sample {self.id!r}: tools_kwargs[{name!r}]", told, ToolKwargs, "ToolKwargs(…)")
        selection = () if self.tool_selection is None else self.tool_selection
        _wanted(f"sample {self.id!r}: tool_selection", selection, (tuple, list), "a tuple of function names")
        _wanted(f"sample {self.id!r}: extra", self.extra, Mapping, "a mapping")

    def trajectory_id(self, repeat: int = 0) -> str:
        """The id of one of its trajectories: `<id>#<repeat>`."""
        return f"{self.id}#{repeat}"


def _wanted(where: str, value: Any, kind: Any, expected: str) -> None:
    """Refuse a value now: later it would be a record that cannot be read back, or an error in every trajectory."""
    if not isinstance(value, kind):
        raise ConfigError(f"{where}: expected {expected}, found {type(value).__name__} {value!r:.60}")
