"""What a part of a declaration needs to know to write itself. Knows declarations and calls."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.formats.format import Format
from agentkit.messages import ToolCall
from agentkit.schemas import walk
from agentkit.toolspec import ToolSpec


@dataclass(frozen=True, slots=True)
class Writing:
    """What a part needs to know to write itself: format, called tool, call, and the call's number among the calls."""

    format: Format
    tool: ToolSpec
    call: ToolCall
    number: int

    def schema(self, parameter: str) -> tuple[walk.Schema, walk.Schema]:
        """The schema of a parameter, and the one in which its references are looked up."""
        return self.tool.schema_of(parameter), self.tool.parameters
