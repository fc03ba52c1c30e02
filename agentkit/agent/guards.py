"""Guards decide what a run may do: functions of the application, and the decisions that they return. Values only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from agentkit.agent.decisions import Approved, Denied, Objection
from agentkit.checks.bounds import CALLABLE, Bounds, each, number, refuse, refuse_callback
from agentkit.checks.spelling import takes
from agentkit.foreign import argument_names
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models.base import ModelRequest

if TYPE_CHECKING:
    from agentkit.agent.run import RunStream
    from agentkit.tool.result import ToolContext


@dataclass(frozen=True, slots=True)
class AskPerson(Objection):
    """A person must approve the call, whatever was allowed before. She reads the reason.

    Her approval covers the reason that she has read: one that differs when the call is judged again asks again.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True)
class AskAgain(Objection):
    """The reply is not accepted. The model reads the reason and replies again, at most `reply_retries` times in all."""


@dataclass(frozen=True, slots=True)
class Refused(Objection):
    """The request is not sent, or the reply not accepted: the run ends. `RunResult.guard_reason` has the reason."""


RequestGuard = Callable[
    [ModelRequest, "RunStream[Any]"], ModelRequest | Refused | Awaitable[ModelRequest | Refused | None] | None
]
CallGuard = Callable[
    [ToolCall, "ToolContext[Any]"],
    Approved | Denied | AskPerson | Awaitable[Approved | Denied | AskPerson | None] | None,
]
ReplyGuard = Callable[
    [AssistantMessage, "RunStream[Any]"], AskAgain | Refused | Awaitable[AskAgain | Refused | None] | None
]

_GUARDS: Final = each(CALLABLE, "a list of functions, such as call=[guard]")
_BOUNDS: Final[Bounds] = {
    **dict.fromkeys(("request", "call", "reply"), _GUARDS),
    "timeout": number("seconds, more than 0", above=0),
}


@takes(others=argument_names.GUARDS)
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guards:
    """Functions that decide about a run, in their order; each returns None if it has no objection.

    Plain or async. A plain one is called on the event loop; a method of a tool with `one_thread=True`, in that tool's
    thread. They are also called in all sub-agents, before theirs; `run.agent` is the agent that acts. A
    guard gets copies: what it changes in them has no effect.

    A guard that raises an exception, returns anything else, or is not done in time denies the call, or refuses the
    request or the reply; the error is logged under `agentkit.agent`.

    Args:
        request: called with each `ModelRequest` before it is sent, requests for summaries included, and with the run.
            Returns the request to send in its place, or `Refused(reason)`.
        call: called with each `ToolCall`, whatever its source, once its arguments are validated, and with its
            `ToolContext`, whose `run` is the run; not for the run's own tools (`final_result`, `find_tools`). The
            arguments are JSON values as the tool reads them. Returns `Denied(reason)`; `AskPerson(reason)`; or
            `Approved(arguments=…)`, which runs the call with other arguments, JSON values; unchanged ones stay as the
            model wrote them.
        reply: called with the `AssistantMessage` with which the run would end, and with the run. Returns
            `AskAgain(reason)` or `Refused(reason)`.
        timeout: seconds, wall clock, that all guards of one kind have together for one decision; more than 0. Code that
            blocks the event loop cannot be stopped, but its late answer does not count.

    Raises:
        ConfigError: a guard cannot be called with two arguments, or a value is out of range.
    """

    request: Sequence[RequestGuard] = ()
    call: Sequence[CallGuard] = ()
    reply: Sequence[ReplyGuard] = ()
    timeout: float = 10.0

    def __post_init__(self) -> None:
        refuse("Guards", {field.name: getattr(self, field.name) for field in fields(self)}, _BOUNDS)
        for kind in ("request", "call", "reply"):
            guards = tuple(getattr(self, kind))
            object.__setattr__(self, kind, guards)  # later changes of a list that was passed have no effect
            second = "context" if kind == "call" else "run"
            for guard in guards:
                refuse_callback(f"Guards({kind}=…)", guard, f"`def guard({kind}, {second}): …`, plain or async")
