"""What a run asks of its model, and why a run may end. Knows no model."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any, Final, Generic, Literal, TypedDict

from agentkit.agent.decisions import Approved, Decision, Denied
from agentkit.checks.bounds import TEXT, YES_OR_NO, Bound, Bounds, each, instance, number, or_none, refuse, whole
from agentkit.checks.spelling import unknown
from agentkit.errors import ConfigError
from agentkit.events import FinishReason
from agentkit.foreign import renamed

if sys.version_info >= (3, 13):
    from typing import TypeVar
else:  # which has no defaults of type variables
    from typing_extensions import TypeVar

_ContextT = TypeVar("_ContextT", default=Any)

RunFinish = (
    FinishReason
    | Literal[
        "approval",
        "agent_terminated",
        "max_turns",
        "token_budget",
        "cost_budget",
        "time_budget",
        "call_budget",
        "loop_detected",
        "invalid_output",
    ]
)
"""Why a run ended: the last response's own reason, or

- `approval`: a call waits for a person;
- `agent_terminated`: a tool that ends the run (`terminates=True`) was called;
- `max_turns`, `token_budget`, `cost_budget`, `time_budget`, `call_budget`: a limit was reached;
- `loop_detected`: the same call had the same answer again and again;
- `invalid_output`: the final reply did not fit `output_type`, also when asked for again;
- `cancelled`: the consumer left, or cancelled the run.
"""


class Settings(TypedDict, total=False):
    """What every request of a run asks of its model; the fields of `ModelRequest` under their own names.

    `tool_choice="required"`, or the name of a tool, holds until the first call is answered, then `auto` takes over: a
    model that must call on every turn would never end.
    """

    tool_choice: str
    parallel_tool_calls: bool | None
    stream: bool
    max_tokens: int | None
    temperature: float | None
    stop: tuple[str, ...]
    extra: Mapping[str, Any]


class RunOptions(Settings, Generic[_ContextT], total=False):
    """What one run may be given: settings that override the agent's, and these.

    `context` is any object of the application's. The run's tools find it in `ToolContext.state`, and a function as
    `system` is called with it; the model never sees it. `cancel` ends the run when it is set. `decisions` answer the
    calls at the end of the prompt that wait for approval, by call id.
    """

    context: _ContextT
    cancel: asyncio.Event | None
    decisions: Mapping[str, Decision]


def _are_decisions(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(decision, Approved | Denied) for decision in value.values())


_BOUNDS: Final[Bounds] = {
    "tool_choice": TEXT,
    "parallel_tool_calls": or_none(YES_OR_NO, "for the provider's default"),
    "stream": YES_OR_NO,
    "max_tokens": or_none(whole(1), "for the model's own"),
    "temperature": or_none(number("a number, 0 or more", above=-1e-9), "for the model's own"),
    "stop": each(TEXT, "several texts: ('END',)"),
    "extra": instance(Mapping, "fields of the request's body by name"),
    "cancel": or_none(instance(asyncio.Event, "an asyncio.Event")),
    "decisions": Bound(_are_decisions, "Approved(…) or Denied(…) by call id"),
}


def checked(settings: Mapping[str, Any], known: type = Settings) -> dict[str, Any]:
    """The settings as they are.

    Raises:
        ConfigError: there is no such setting, or it cannot have this value.
    """
    for name in settings:
        if name not in known.__annotations__:
            raise ConfigError(unknown("setting", name, known.__annotations__, renamed.RUN))
    refuse("run" if known is not Settings else "Agent", settings, _BOUNDS)
    return dict(settings)
