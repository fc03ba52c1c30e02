"""The interface of a policy: the model that is trained, on any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, Literal, Protocol, get_args

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError
from agentkit.events import TAKEN_BACK, Finish, FinishReason, SourceEvent
from agentkit.messages import Message
from agentkit.toolspec import ToolSpec


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A request to a policy for one turn.

    Args:
        trajectory_id: the same for all requests of one trajectory, so that an engine can keep its prefix cached.
        messages: the conversation so far.
        tools: the tools that the model may call.
        token_ids: the conversation as token ids, exactly as earlier turns wrote them; None without a tokenizer.
        max_tokens: how many tokens it may write; None for no bound.
        sampling: the engine's sampling parameters, passed on unchanged.
        stop: strings that end the generation, as the format's calls need them, or those of `sampling["stop"]`.
        turn: which of the trajectory's turns this is, from 0.
    """

    trajectory_id: str
    messages: tuple[Message, ...]
    tools: Sequence[ToolSpec] = ()
    token_ids: Sequence[int] | None = None
    max_tokens: int | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    stop: Sequence[str] = ()
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Generation:
    """A policy's answer to a request.

    Args:
        text: as text; None if the engine returns token ids only, which the rollout's tokenizer then decodes.
        token_ids: as token ids; None if the engine returns text only.
        logprobs: the natural logarithm of each token's probability, one for each of `token_ids`; None if unknown.
        finish: why it ended.
        stopped_by: the stop string at which it ended, which is appended to a text that lacks it; empty if the engine
            says that there was none; None if it does not say. Token ids are kept as they are: they have the string.
        events: the response of a model that calls natively, for `Rollout(format=None)`: its texts, its thinking, and
            `CallEnd(0, ToolCall("c1", "add", {"n": 1}))` for each call; a `Finish` among them counts only if it says
            that the engine failed, gave the response up or took it back. None if it wrote its calls as text.
    """

    text: str | None = None
    token_ids: Sequence[int] | None = None
    logprobs: Sequence[float] | None = None
    finish: FinishReason = "stop"
    stopped_by: str | None = None
    events: Sequence[SourceEvent] | None = None


Ending = Literal["answered", "cancelled", "policy_error"]

_BY_ENGINE: Final[Mapping[FinishReason, Ending]] = {
    "error": "policy_error",
    "cancelled": "cancelled",
    **dict.fromkeys(TAKEN_BACK, "answered"),
}


def ended_by(generation: Generation) -> Ending | None:
    """How the trajectory ends with this response because it is not the policy's own; None if it is.

    The engine failed (`error`), gave it up (`cancelled`), or took it back: its filter ended it, or the model refused.
    No call of it may run.
    """
    told = {generation.finish, *(event.reason for event in generation.events or () if isinstance(event, Finish))}
    return next((end for reason, end in _BY_ENGINE.items() if reason in told), None)


_FINISHES: Final = frozenset(get_args(FinishReason))


def check_generation(generation: Generation) -> None:
    """Refuse an invalid generation.

    Raises:
        ConfigError: it is not a `Generation`, or ended for an unknown reason; or its log-probabilities are not
            one finite number for each of its token ids.
    """
    given: object = generation
    if not isinstance(given, Generation):
        raise ConfigError(f"the policy returned {type(given).__name__} {given!r:.60}; expected a Generation")
    if generation.finish not in _FINISHES:
        known = ", ".join(get_args(FinishReason))
        hint = did_you_mean(str(generation.finish), _FINISHES)
        raise ConfigError(f"the policy returned finish={generation.finish!r:.60}; expected one of {known}{hint}")
    ids, logprobs = generation.token_ids, generation.logprobs
    if logprobs is None:
        return
    if len(logprobs) != (count := 0 if ids is None else len(ids)):
        raise ConfigError(f"the policy returned {len(logprobs)} log-probabilities for {count} token ids")
    try:
        finite = [isfinite(one) for one in logprobs]
    except TypeError as e:
        raise ConfigError(f"the policy returned log-probabilities that are not numbers ({e}): {logprobs!r:.60}") from e
    if not all(finite):
        at = finite.index(False)
        raise ConfigError(f"the policy returned the log-probability {logprobs[at]!r:.40} for token {at} of {count}")


class Policy(Protocol):
    """The model that is rolled out: an engine in this process, a server, a script."""

    async def generate(self, request: GenerationRequest) -> Generation:
        """Write the next turn.

        Raises:
            Exception: any; it ends this trajectory, which is recorded with the error's kind and words.
        """
        ...
