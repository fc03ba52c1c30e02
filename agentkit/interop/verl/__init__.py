"""verl: its tool classes and configuration, under its names; and exports of agentkit tools for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.interop.verl.class_names import get_tool_class
    from agentkit.interop.verl.exporting_functions import to_verl_functions
    from agentkit.interop.verl.exporting_parsers import register_formats
    from agentkit.interop.verl.exporting_tools import to_verl
    from agentkit.interop.verl.reward_sum import compute_score
    from agentkit.interop.verl.verl_config import ToolType
    from agentkit.interop.verl.verl_registry import initialize_tools_from_config, mcp_tools
    from agentkit.interop.verl.verl_tools import (
        BaseTool,
        OpenAIFunctionSchema,
        OpenAIFunctionToolSchema,
        ToolResponse,
        rollout_trace_op,
    )

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

explained_module(
    __name__,
    homes={
        "agentkit.interop.verl.class_names": "get_tool_class",
        "agentkit.interop.verl.exporting_functions": "to_verl_functions",
        "agentkit.interop.verl.exporting_parsers": "register_formats",
        "agentkit.interop.verl.exporting_tools": "to_verl",
        "agentkit.interop.verl.reward_sum": "compute_score",
        "agentkit.interop.verl.verl_config": "ToolType",
        "agentkit.interop.verl.verl_registry": "initialize_tools_from_config mcp_tools",
        "agentkit.interop.verl.verl_tools": (
            "BaseTool OpenAIFunctionSchema OpenAIFunctionToolSchema ToolResponse rollout_trace_op"
        ),
    },
)


def __getattr__(name: str) -> Any:
    if name == "AgentkitTool":  # made from verl's own base class, which need not be installed for the rest
        from agentkit.interop.verl.exporting_tools import configured_tool

        return configured_tool()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
