"""verl: the names that its tools are written with, and its configuration; and our tools, as verl takes them."""

from __future__ import annotations

from agentkit.interop.verl.verl_registry import (
    ToolType,
    get_tool_class,
    initialize_tools_from_config,
    mcp_tools,
)
from agentkit.interop.verl.verl_tools import (
    BaseTool,
    OpenAIFunctionSchema,
    OpenAIFunctionToolSchema,
    ToolResponse,
    rollout_trace_op,
)

__all__ = [
    "BaseTool",
    "OpenAIFunctionSchema",
    "OpenAIFunctionToolSchema",
    "ToolResponse",
    "ToolType",
    "get_tool_class",
    "initialize_tools_from_config",
    "mcp_tools",
    "rollout_trace_op",
]
