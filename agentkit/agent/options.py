"""The options of an agent and of a run, each defined once, and the reasons why a run ends. Knows no model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypedDict

from agentkit.agent.limits import UNBOUNDED, Budget
from agentkit.checks.bounds import TEXT, YES_OR_NO, Bound, Bounds, each, instance, number, or_none, refuse, whole
from agentkit.checks.spelling import unknown
from agentkit.checks.type_variables import TypeVar
from agentkit.errors import ConfigError
from agentkit.events import FinishReason
from agentkit.foreign import argument_names

if TYPE_CHECKING:
    import asyncio

    from agentkit.agent.decisions import Decision
    from agentkit.agent.guards import Guards

_ContextT = TypeVar("_ContextT", default=Any)
_Function = TypeVar("_Function", bound=Callable[..., Any])

Lacking = Literal["invented_result", "unread_call", "no_call", "empty"]
"""The reasons why a reply is not an answer; the model is asked again."""

RunFinish = (
    FinishReason
    | Lacking
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
        "refused_by_guard",
    ]
)
"""Why a run ended: the last response's own reason, or

- `approval`: a call waits for a person;
- `agent_terminated`: a tool that ends the run (`terminates=True`) was called;
- `max_turns`, `token_budget`, `cost_budget`, `time_budget`, `call_budget`: a limit was reached;
- `loop_detected`: the same call got the same answer again and again;
- `invalid_output`: the final reply did not fit `output_type`, nor did the retries;
- `refused_by_guard`: a guard refused a request or the final reply, or still does not accept the reply;
- `invented_result`: the model wrote a tool's result, or another role's turn, itself, even when asked again;
- `unread_call`: the reply plainly calls a tool in a way that cannot be read, even when asked again;
- `no_call`: the reply has no call although `tool_choice` requires one, even when asked again;
- `empty`: the reply is empty, even when asked again;
- `cancelled`: the consumer left the run, or cancelled it.
"""


class Settings(TypedDict, total=False):
    """Settings for every request of a run; the fields of `ModelRequest` under their own names.

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
    """The options of one run: settings that override the agent's, and these.

    `context` is any object of the application. The run's tools find it in `ToolContext.state`, and a function passed as
    `system` is called with it; the model never sees it. `cancel` ends the run when it is set. `decisions` answer the
    calls at the end of the prompt that wait for approval, by call id.
    """

    context: _ContextT
    cancel: asyncio.Event | None
    decisions: Mapping[str, Decision]


class LimitKeywords(TypedDict, total=False):
    """`AgentLimits` as keywords of `Agent` and of `run_thread`."""

    max_turns: int
    max_repeats: int | None
    auto_continue: int
    output_retries: int
    reply_retries: int
    budget: Budget | None
    max_depth: int
    guards: Guards | None


_A_BUDGET: Final = or_none(instance(Budget, "a Budget, such as Budget(tokens=100_000)"))
_GUARDS: Final = or_none(Bound(lambda value: _is_guards(value), "Guards, such as Guards(call=[function])"))


@dataclass(kw_only=True, eq=False, repr=False)
class AgentLimits:
    """The limits of an agent.

    A limit's name, default, allowed values and meaning are defined only here. Only its type is repeated in
    `LimitKeywords`, because no type checker can derive that.

    Args:
        max_turns: the maximum number of responses per run; the run then ends with `finish="max_turns"`.
        max_repeats: how often in a row the same call may get the same answer; the run then ends with
            `finish="loop_detected"`. 2 or more, None for no limit.
        auto_continue: how often a model that `continues` is asked to continue a response that its token limit cut off
            inside a text call; the parts are joined, and the call is run once. With 0, and with any other model, such a
            call is answered `truncated_call`, and the model is asked again.
        output_retries: how often the model is asked again, with an error message, for a final reply that fits the run's
            `output_type`; the run then ends with `finish="invalid_output"`. 0 or more.
        reply_retries: how often in a run the model is asked again after a reply that is not an answer: an invented
            result, a call that cannot be read, no call where `tool_choice` requires one; or, once, an empty reply. The
            run then ends with that `finish`: see `RunFinish`. 0 or more.
        budget: what a run may spend; None sets no limit.
        max_depth: levels of sub-agents below a run, if an agent uses another agent, or itself, as a tool. A call that
            would go deeper is answered with an error. 0 allows no sub-agents.
        guards: functions that decide about requests, calls and replies, here and in all sub-agents; None for none.
    """

    max_turns: int = field(default=50, metadata={"bound": whole(1)})
    max_repeats: int | None = field(default=10, metadata={"bound": or_none(whole(2), "for no limit")})
    auto_continue: int = field(default=5, metadata={"bound": whole(0)})
    output_retries: int = field(default=2, metadata={"bound": whole(0)})
    reply_retries: int = field(default=2, metadata={"bound": whole(0)})
    budget: Budget = field(default=None, metadata={"bound": _A_BUDGET})  # type: ignore[assignment]  # see below
    max_depth: int = field(default=3, metadata={"bound": whole(0)})
    guards: Guards | None = field(default=None, metadata={"bound": _GUARDS})

    def __post_init__(self) -> None:
        self.budget = vars(self)["budget"] or UNBOUNDED

    def _limits(self) -> AgentLimits:
        """The current limits."""
        return AgentLimits(**{limit.name: getattr(self, limit.name) for limit in fields(AgentLimits)})


LIMITS: Final[Bounds] = {limit.name: limit.metadata["bound"] for limit in fields(AgentLimits)}
"""The allowed values of each limit."""


class AgentOptions(LimitKeywords, Settings, total=False):
    """The options of an agent in addition to its model and its tools: see `AgentLimits` and `Settings`."""


class ThreadRunOptions(LimitKeywords, RunOptions[_ContextT], Generic[_ContextT], total=False):
    """The options of a run on a thread without an agent: see `AgentLimits` and `RunOptions`."""


def limits_in(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The limits among some options, and the other options."""
    limits, others = dict[str, Any](), dict[str, Any]()
    for name, value in options.items():
        (limits if name in LIMITS else others)[name] = value
    return limits, others


def spelt_out(function: _Function) -> _Function:
    """Show the limits one by one in a function's signature, for `help`; checkers see them in its types."""
    signature = inspect.signature(function)
    *named, rest = signature.parameters.values()
    limits = [
        inspect.Parameter(
            limit.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=limit.default,
            annotation=LimitKeywords.__annotations__[limit.name].__forward_arg__,
        )
        for limit in fields(AgentLimits)
    ]
    function.__signature__ = signature.replace(parameters=[*named, *limits, rest])  # type: ignore[attr-defined]
    return function


def _is_event(value: object) -> bool:
    from asyncio import Event

    return isinstance(value, Event)


def _is_guards(value: object) -> bool:
    from agentkit.agent.guards import Guards

    return isinstance(value, Guards)


def _are_decisions(value: object) -> bool:
    from agentkit.agent.decisions import Approved, Denied

    return isinstance(value, Mapping) and all(isinstance(decision, Approved | Denied) for decision in value.values())


_BOUNDS: Final[Bounds] = {
    "tool_choice": TEXT,
    "parallel_tool_calls": or_none(YES_OR_NO, "for the provider's default"),
    "stream": YES_OR_NO,
    "max_tokens": or_none(whole(1), "for the model's default"),
    "temperature": or_none(number("a number, 0 or more", above=-1e-9), "for the model's default"),
    "stop": each(TEXT, "a sequence of strings, such as ('END',)"),
    "extra": instance(Mapping, "fields of the request body by name"),
    "cancel": or_none(Bound(_is_event, "an asyncio.Event")),
    "decisions": Bound(_are_decisions, "Approved(…) or Denied(…) by call id"),
}


def check_settings(settings: Mapping[str, Any], known: type = Settings) -> dict[str, Any]:
    """Check settings, and return them unchanged.

    Raises:
        ConfigError: a setting is unknown, or its value is not allowed.
    """
    for name in settings:
        if name not in known.__annotations__:
            raise ConfigError(unknown("setting", name, known.__annotations__, argument_names.RUN))
    refuse("run" if known is not Settings else "Agent", settings, _BOUNDS)
    return dict(settings)
