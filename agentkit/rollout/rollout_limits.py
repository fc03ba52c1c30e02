"""The limits of a trajectory: turns, calls, time and length. A frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from agentkit.checks.bounds import SECONDS, Bounds, one_of, or_none, refuse, whole
from agentkit.checks.spelling import takes
from agentkit.tool.policy import MIN_OUTPUT, Keep

_BOUNDS: Final[Bounds] = {
    **dict.fromkeys(("max_assistant_turns", "max_user_turns"), or_none(whole(1), "for no limit")),
    "max_parallel_calls": or_none(whole(1, "calls"), "for no limit"),
    **dict.fromkeys(("call_timeout", "turn_timeout", "trajectory_timeout"), or_none(SECONDS, "for no limit")),
    **dict.fromkeys(
        ("max_response_tokens", "max_context_tokens", "max_tokens"), or_none(whole(1, "tokens"), "for no limit")
    ),
    "max_tool_response": whole(MIN_OUTPUT, "characters"),
    "keep": one_of(get_args(Keep)),
}


@takes(others={"max_turns": "max_assistant_turns"})
@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """How far a trajectory may go.

    Args:
        max_assistant_turns: how many responses the policy writes. The calls of the last one are answered, not run.
        max_user_turns: how many times it is answered. Calls after that are answered with an error, not run.
        max_parallel_calls: how many calls of one response run; each further one is answered with the error `limit`.
        call_timeout: seconds that one call may take, unless the tool sets its own; also `create`, `calc_reward` and
            `release`, each.
        turn_timeout: seconds for all calls of one response together.
        trajectory_timeout: seconds from the first generation to the end of the last turn. Rewards and `release` come
            after that.
        max_response_tokens: how many tokens follow the prompt: the policy's turns and the answers to them.
        max_context_tokens: how many tokens the prompt and all that follows have together: the engine's context. A
            trajectory whose prompt leaves no room ends before its first generation.
        max_tool_response: characters of one result that the model reads; a tool's own smaller limit counts.
        keep: which part of a longer result is kept, unless the tool says it: `head`, `tail`, or `both` without the
            middle.
        max_tokens: how many tokens one response may have.

    Raises:
        ConfigError: a value is out of its range.
    """

    max_assistant_turns: int | None = None
    max_user_turns: int | None = None
    max_parallel_calls: int | None = None
    call_timeout: float | None = 60.0
    turn_timeout: float | None = None
    trajectory_timeout: float | None = None
    max_response_tokens: int | None = None
    max_context_tokens: int | None = None
    max_tool_response: int = 16_384
    keep: Keep = "both"
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        refuse("RolloutLimits", {name: getattr(self, name) for name in _BOUNDS}, _BOUNDS)
