"""open-instruct: the names that its tools are written with; and our tools, as open-instruct takes them."""

from __future__ import annotations

from typing import Any

from agentkit.interop.open_instruct.instruct_tools import BaseToolConfig, ToolOutput, ready_made_registry
from agentkit.interop.open_instruct.instruct_tools import InstructCall as ToolCall
from agentkit.interop.open_instruct.instruct_tools import InstructTool as Tool

__all__ = ["TOOL_REGISTRY", "BaseToolConfig", "Tool", "ToolCall", "ToolOutput"]


def __getattr__(name: str) -> Any:
    if name == "TOOL_REGISTRY":  # the ready-made tools import this package
        return ready_made_registry()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
