"""verl: the names that its tools are written with, and its configuration; and our tools, as verl takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentkit.interop.verl.exporting_functions import to_verl_functions
from agentkit.interop.verl.exporting_parsers import register_formats
from agentkit.interop.verl.exporting_tools import configured_tool, to_verl
from agentkit.interop.verl.summing import compute_score
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

if TYPE_CHECKING:
    AgentkitTool: Any

__all__ = [  # without AgentkitTool, so that `import *` needs no verl
    "BaseTool",
    "OpenAIFunctionSchema",
    "OpenAIFunctionToolSchema",
    "ToolResponse",
    "ToolType",
    "compute_score",
    "get_tool_class",
    "initialize_tools_from_config",
    "mcp_tools",
    "register_formats",
    "rollout_trace_op",
    "to_verl",
    "to_verl_functions",
]


def __getattr__(name: str) -> Any:
    if name == "AgentkitTool":  # made from verl's own base class, which need not be installed for the rest
        return configured_tool()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
