"""A trajectory's rewards, checked and added up. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Literal

from agentkit.errors import ConfigError
from agentkit.rollout.records.record import TrajectoryRecord
from agentkit.tool.result import ToolResult

Aggregate = Literal["sum", "last"] | Callable[[TrajectoryRecord], float]
"""How a trajectory's rewards become one: `sum` adds the rewards of all calls and all final rewards; `last` is the last
one given, a final reward before those of calls; or a function of the record."""


def aggregator(how: Aggregate) -> Callable[[TrajectoryRecord], float]:
    """The function with this name.

    Raises:
        ConfigError: it is neither a function nor one of the names.
    """
    if inspect.iscoroutinefunction(how):
        raise ConfigError(f"aggregate={how!r:.60}: an async function is not supported; write it with def")
    if callable(how):
        return how
    if how == "sum":
        return total
    if how == "last":
        return last
    raise ConfigError(f"aggregate={how!r}: expected 'sum', 'last' or a function of the record")


def total(record: TrajectoryRecord) -> float:
    """The rewards of all calls and all final rewards, added up."""
    return sum(_given(record), 0.0)


def last(record: TrajectoryRecord) -> float:
    """The reward that was given last; 0 if none was."""
    return [0.0, *_given(record)][-1]


def _given(record: TrajectoryRecord) -> list[float]:
    return [*(call.reward for call in record.calls if call.reward is not None), *record.final_rewards.values()]


def reward_of(value: Any) -> float | None:
    """A tool's reward as a number; None if it gave none.

    Raises:
        ValueError: it is not a finite number.
    """
    if value is None:
        return None
    try:
        number = float(value)  # also of numpy and torch; a string is none of those
    except Exception:  # noqa: BLE001 - the value's own code, such as that of a tensor with several elements
        number = None
    if number is None or isinstance(value, (str, bytes)) or not isfinite(number):
        if inspect.iscoroutine(value):
            value.close()  # or Python warns that nobody awaited it
        raise ValueError(f"a reward is a finite number, found {type(value).__name__}{_as_text(value)}")
    return number


def _as_text(value: Any) -> str:
    try:
        return f" {value!r:.100}"
    except Exception:  # noqa: BLE001 - as above; and Python prints no integer of more than 4,300 digits
        return ", which cannot be printed"


def replace_reward(result: ToolResult, reward: Any, more: Mapping[str, Any] | None = None) -> ToolResult:
    """Return a result with another reward.

    Args:
        result: the result.
        reward: as the tool gave it, or checked.
        more: metadata to add.
    """
    return ToolResult(
        result.output,
        result.error,
        code=result.code,
        content=result.content,
        metadata={**result.metadata, **(more or {})},
        reward=reward,
    )
