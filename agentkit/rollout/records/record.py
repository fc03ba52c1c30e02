"""The record of a trajectory: frozen values. Their JSON is in `record_json`, their file in `record_file`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.messages import Message
from agentkit.rollout.records.trajectory import ERROR_ENDS, TrajectoryEnd


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a trajectory.

    Args:
        turn: the assistant turn that wrote it, from 0.
        index: its place in that turn, from 0.
        id: the call's id.
        name: the function name; as the model wrote it if there is no such tool.
        arguments: as the model wrote them.
        result: the answer that the model read, as text.
        error: the error's code (`agentkit.errors.ErrorCode`); None if the call succeeded.
        reward: the tool's reward for this call; None if it gave none.
        metrics: the tool's metrics of this call.
        queued: seconds from the end of the generation to the start of the tool.
        ran: seconds that the tool ran; 0 if it did not.
        span: the first token of the response that the call's turn wrote, and the one after its last; None without ids.
    """

    turn: int
    index: int
    id: str
    name: str
    arguments: Mapping[str, Any]
    result: str = ""
    error: str | None = None
    reward: float | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    queued: float = 0.0
    ran: float = 0.0
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A trajectory's tokens. `response_*` have one entry for each token after the prompt.

    Args:
        prompt_ids: the first prompt.
        response_ids: all tokens after it: the model's turns and the answers to them.
        response_mask: 1 for each token that the model wrote, 0 for all others.
        response_logprobs: log-probabilities, 0.0 where the mask is 0; None if the engine tells none.
        exact: False if the engine returned some turn as text only, so that the tokenizer made its ids.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    response_mask: tuple[int, ...]
    response_logprobs: tuple[float, ...] | None = None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class TrajectoryRecord:
    """A finished trajectory, good or bad.

    Args:
        id: `<sample id>#<repeat>`; unique in a rollout.
        sample_id: the sample's id.
        repeat: which of the sample's trajectories it is, from 0.
        messages: the whole conversation, the prompt included.
        end: why its turns ended.
        error: kind and words of what went wrong, for the ends that are errors; None otherwise.
        calls: every call in order, including those that were refused.
        final_rewards: what each tool's `calc_reward` gave, by function name (its first, for a class of several).
        reward: the aggregate of all rewards; 0.0, and no reward, if it has `failed`.
        tokens: token ids; None without a tokenizer.
        assistant_turns: responses of the policy.
        seconds: from the first state to the last.
        generating: seconds of these spent in the policy.
        unscored: the tools whose `calc_reward` failed, with the words of the error; `aggregate` if that did.
        unreleased: the tools whose `release` failed, with the words of the error; empty if all went well.
        extra: the sample's `extra`.
    """

    id: str
    sample_id: str
    repeat: int
    messages: tuple[Message, ...]
    end: TrajectoryEnd
    error: str | None = None
    calls: tuple[CallRecord, ...] = ()
    final_rewards: Mapping[str, float] = field(default_factory=dict)
    reward: float = 0.0
    tokens: TokenRecord | None = None
    assistant_turns: int = 0
    seconds: float = 0.0
    generating: float = 0.0
    unscored: Mapping[str, str] = field(default_factory=dict)
    unreleased: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True if it ended without an outcome: `cancelled`, `policy_error`, `tool_error`, `rollout_error` or `lost`."""
        return self.end in ERROR_ENDS
