"""The states of a trajectory, as a table. Source: verl's agent loop (`AgentState`), with the end divided in two."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal


class TrajectoryState(StrEnum):
    """The state of a trajectory."""

    PENDING = "pending"
    """Not begun: no tool instance exists yet."""
    GENERATING = "generating"
    """The policy writes. (`RUNNING` in verl's documents.)"""
    PROCESSING_TOOLS = "processing_tools"
    """Its calls run. (`TOOL_CALLING` in verl's documents.)"""
    SCORING = "scoring"
    """The turns are over: `calc_reward`, then `release`, of every tool instance."""
    TERMINATED = "terminated"
    """Every tool instance is released, and the record is complete."""


_S: Final = TrajectoryState
NEXT: Final = {
    _S.PENDING: frozenset({_S.GENERATING, _S.SCORING}),  # SCORING: a tool could not be created
    _S.GENERATING: frozenset({_S.PROCESSING_TOOLS, _S.SCORING}),
    _S.PROCESSING_TOOLS: frozenset({_S.GENERATING, _S.SCORING}),
    _S.SCORING: frozenset({_S.TERMINATED}),
    _S.TERMINATED: frozenset[TrajectoryState](),
}
"""The states that may follow each state."""

TrajectoryEnd = Literal[
    "answered",
    "invented_result",
    "unread_call",
    "terminated_by_tool",
    "max_assistant_turns",
    "max_user_turns",
    "response_length",
    "deadline",
    "cancelled",
    "policy_error",
    "tool_error",
    "rollout_error",
    "lost",
]
"""Why a trajectory's turns ended.

`answered`: a response without calls. `invented_result`: in the response the model wrote a tool's result, or another
role's turn. `unread_call`: the response plainly calls a tool in a way that cannot be read. `terminated_by_tool`: a tool
that ends the run, such as `complete`. `response_length`: no room for more tokens. `deadline`: its own time was up.
`cancelled`: the rollout was, or the engine gave a response up. `policy_error`: `generate` raised or returned an error.
`tool_error`: an instance could not be created. `rollout_error`: the rollout's `ended` raised, or on Ray its own code,
or the record could not be sent. `lost`: its worker died each time that it was tried.
"""

ERROR_ENDS: Final[frozenset[TrajectoryEnd]] = frozenset(
    ("cancelled", "policy_error", "tool_error", "rollout_error", "lost")
)
"""Those that are not outcomes: such a trajectory has failed, has no reward, and can be run again."""
