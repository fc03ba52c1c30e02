"""How a run ended, and its output. A value only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from agentkit.agent.options import RunFinish
from agentkit.checks.spelling import ByAttribute
from agentkit.checks.type_variables import TypeVar
from agentkit.errors import OutputError
from agentkit.events import Usage
from agentkit.foreign.absent import suggest_attributes
from agentkit.messages import Message, ToolCall

OutputT = TypeVar("OutputT", covariant=True, default=str)
"""The type of a run's output: `str` by default, otherwise its `output_type`."""


class AskedFor(NamedTuple):
    """A call that waits for a person.

    Attributes:
        tool: the digest of its tool: an approval is valid for this tool alone.
        call: the `call_hash` of the call that she sees, which guards may have changed.
        reason: why she is asked, as she reads it; empty if her approval is required anyway.
    """

    tool: str
    call: str
    reason: str = ""


@suggest_attributes
@dataclass(frozen=True)  # no slots: with them, `RunResult[City](…)` fails up to Python 3.12.1
class RunResult(ByAttribute, Generic[OutputT]):
    """A finished run.

    Args:
        text: the visible text of the last response; of an output that is a call, its arguments as JSON.
        messages: the whole conversation, the prompt first; `agent.run([*result.messages, user("…")])` continues it.
        usage: tokens of all responses together, including those of sub-agents and of summaries.
        turns: how many responses the model wrote.
        finish: why the run ended: `stop` when the model had no more to say, `max_turns` at the limit, …
        start: how many of `messages` were there before the run.
        pending: the calls that wait for a person; `finish` is then `approval`, or says why the run ended before it
            could act on them. The id of one that waits in a sub-agent is that of the caller's call, a `/`, and its own.
        output_error: why the last response does not fit the run's `output_type`; None if it does.
        guard_reason: why a guard did not accept the last request or the last reply; None if it did. With guards of
            replies, `text` and `output` are only what they accepted.
        delegated: what the sub-agents continue from that have such calls, by the ids of the caller's calls.
        estimated: whether part of `usage` is an estimate: a budget counts tokens or cost, and a model did not report
            its usage, or the run ended before it could.
        cost: what `usage` cost, in the currency of the prices of the run's budget; None without prices. A model
            without a price costs nothing.
    """

    text: str
    messages: tuple[Message, ...]
    usage: Usage
    turns: int
    finish: RunFinish
    start: int = 0
    pending: tuple[ToolCall, ...] = ()
    output_error: str | None = None
    guard_reason: str | None = None
    estimated: bool = False
    cost: float | None = None
    delegated: Mapping[str, RunResult[Any]] = field(default_factory=dict, repr=False)
    _output: tuple[OutputT, ...] | None = field(default=None, repr=False)  # None: the text; empty: no output
    _asked_for: Mapping[str, AskedFor] = field(default_factory=dict, repr=False)  # of `pending`

    if not TYPE_CHECKING:

        def __aiter__(self) -> Any:
            raise TypeError(
                "this is already the result; for the events write `async for event in agent.stream(…)`, without `await`"
            )

    @property
    def output(self) -> OutputT:
        """The run's output: the last response as the run's `output_type`; its text if that is `str`.

        Raises:
            OutputError: no response matched the type, or the run ended before one could; the error's `result` is this
                one. Text output always exists, although it may be empty.
        """
        if self._output is None:
            return self.text  # type: ignore[return-value]
        if self._output:
            return self._output[0]
        because = "".join(f": {why}" for why in (self.output_error, self.guard_reason) if why)
        error = OutputError(f"there is no output: the run ended with finish={self.finish!r}{because}")
        error.result = self
        raise error

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """The messages that the run added."""
        return self.messages[self.start :]
