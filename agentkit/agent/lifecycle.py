"""What the hooks of a run get beside its events: where the run and its turns begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentkit.events import Usage, event
from agentkit.messages import AssistantMessage, ToolMessage
from agentkit.models.base import ModelRequest

if TYPE_CHECKING:
    from agentkit.agent.options import RunFinish
    from agentkit.agent.outcome import RunResult


@event
class RunStarted(NamedTuple):
    """A run begins; nothing was sent yet."""


@event
class TurnStarted(NamedTuple):
    """The model is about to be asked. `number` counts from 1."""

    number: int
    request: ModelRequest


@event
class TurnEnded(NamedTuple):
    """A response is over and its calls are answered, or wait; both are in the journal.

    Attributes:
        number: of the turn; 0 for one that only answered the calls of an earlier run.
        message: the response.
        answers: to its calls, in their order.
        usage: tokens of the response.
        finish: why the model stopped.
        seconds: wall clock.
    """

    number: int
    message: AssistantMessage
    answers: tuple[ToolMessage, ...]
    usage: Usage
    finish: RunFinish
    seconds: float


@event
class RunEnded(NamedTuple):
    """A run is over. `error` is what it raised; None without an error."""

    result: RunResult[Any]
    error: BaseException | None


Lifecycle = RunStarted | TurnStarted | TurnEnded | RunEnded
