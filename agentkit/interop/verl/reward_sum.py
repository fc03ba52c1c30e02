"""A trajectory's rewards for verl's reward managers: verl records the rewards of tools, but does not train on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def compute_score(
    data_source: Any = None,
    solution_str: str = "",
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> float:
    """The sum of all rewards that tools gave in a trajectory: a `custom_reward_function` for verl.

    It uses only `extra_info`, as verl's agent loop hands it on, with `tool_rewards`.
    """
    rewards = (extra_info or {}).get("tool_rewards")
    return float(sum(reward for reward in (() if rewards is None else rewards) if reward is not None))
