"""The exception of a tool that cannot continue until a person has decided on calls inside it."""

from __future__ import annotations

from typing import Any

from agentkit.messages import ToolCall


class SuspendedCall(Exception):
    """A tool has run an agent with unanswered calls; so its own call has no answer yet.

    They wait for a person's approval, or are approved and have not started. A later run calls the tool again with the
    same call id, and the tool must continue where it was.

    Args:
        calls: those that wait for a person; their ids are unique in the conversation that contains the tool's own call.
        result: the result that the tool continues from.
        error: why the agent failed, if that is for the program and not for a model.
    """

    def __init__(self, calls: tuple[ToolCall, ...], result: Any = None, error: Exception | None = None) -> None:
        super().__init__(", ".join(call.name for call in calls))
        self.calls = calls
        self.result = result
        self.error = error
