"""open-instruct: its tool classes and configuration here, under its names; and our tools, as it takes them."""

from __future__ import annotations

from typing import Any

from agentkit.interop.open_instruct.exporting_early import to_early_open_instruct
from agentkit.interop.open_instruct.exporting_environment import to_open_instruct
from agentkit.interop.open_instruct.instruct_tools import BaseToolConfig, ToolOutput
from agentkit.interop.open_instruct.instruct_tools import InstructCall as ToolCall
from agentkit.interop.open_instruct.instruct_tools import InstructTool as Tool
from agentkit.interop.open_instruct.open_instruct_config import ready_made

__all__ = [
    "TOOL_REGISTRY",
    "BaseToolConfig",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "to_early_open_instruct",
    "to_open_instruct",
]


def __getattr__(name: str) -> Any:
    if name == "TOOL_REGISTRY":  # the ready-made tools import this package
        return ready_made()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
