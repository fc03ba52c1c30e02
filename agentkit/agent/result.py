"""How a run ended, and what it brought. A value only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentkit.agent.settings import RunFinish
from agentkit.events import Usage
from agentkit.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run.

    Args:
        text: the visible text of the last response.
        messages: the whole conversation, the prompt first; `agent.run([*result.messages, user("…")])` goes on from it.
        usage: tokens of all responses together, those of sub-agents and of summaries included.
        turns: how many responses the model gave.
        finish: why the run ended: `stop` when the model had no more to say, `max_turns` at the limit, …
        start: how many of `messages` were there before the run.
        pending: the calls that wait for a person; `finish` is then `approval`.
        output: what the last response holds, as the run's `output_type`; None without one, and when the run ended
            before a response fitted.
        output_error: what is wrong with the last response as that type; None when nothing is, or none was wanted.
        estimated: whether `usage` is an estimate in part: a budget counts tokens or cost, and a model did not tell its
            own, or was left before it could.
    """

    text: str
    messages: tuple[Message, ...]
    usage: Usage
    turns: int
    finish: RunFinish
    start: int = 0
    pending: tuple[ToolCall, ...] = ()
    output: Any = None
    output_error: str | None = None
    estimated: bool = False

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """The messages that the run added."""
        return self.messages[self.start :]
