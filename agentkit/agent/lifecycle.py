"""Events for the hooks of a run in addition to its own: the start and end of the run and of each turn."""

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
    """A run has started; nothing has been sent yet."""


@event
class TurnStarted(NamedTuple):
    """The model is about to be asked. `number` counts from 1."""

    number: int
    request: ModelRequest


@event
class TurnEnded(NamedTuple):
    """A response is over, and its calls are answered or waiting; all of this is in the journal.

    Attributes:
        number: the number of the turn; 0 for one that only answered the calls of an earlier run.
        message: the response.
        answers: to its calls, in their order.
        usage: the tokens of the response.
        finish: why the model stopped.
        seconds: wall clock time.
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
