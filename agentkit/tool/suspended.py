"""What a tool raises that cannot continue until a person has decided on calls inside it."""

from __future__ import annotations

from typing import Any

from agentkit.messages import ToolCall


class Suspended(Exception):
    """A tool has run an agent, of which calls wait for a person's approval; so its own call waits, too.

    When these are decided, the tool is called again with the same call id, and must continue where it was.

    Args:
        calls: the waiting calls; their ids are unique in the conversation that contains the tool's own call.
        result: what the tool continues from.
    """

    def __init__(self, calls: tuple[ToolCall, ...], result: Any = None) -> None:
        super().__init__(", ".join(call.name for call in calls))
        self.calls = calls
        self.result = result
