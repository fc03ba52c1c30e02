"""open-instruct: its tool classes and configuration, under its names; and exports of agentkit tools for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from agentkit.interop.open_instruct.instruct_tools import BaseToolConfig, ToolOutput
from agentkit.interop.open_instruct.instruct_tools import InstructCall as ToolCall
from agentkit.interop.open_instruct.instruct_tools import InstructTool as Tool

if TYPE_CHECKING:
    from agentkit.interop.open_instruct.exporting_early import to_early_open_instruct
    from agentkit.interop.open_instruct.exporting_environment import to_open_instruct

    TOOL_REGISTRY: dict[str, type[BaseToolConfig]]

__all__ = [
    "TOOL_REGISTRY",
    "BaseToolConfig",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "to_early_open_instruct",
    "to_open_instruct",
]

_HOMES: Final = {
    "TOOL_REGISTRY": "agentkit_tools.instruct_configs",  # the ready-made tools import this package
    "to_early_open_instruct": f"{__name__}.exporting_early",  # a rollout that reads tools of this shape exports none
    "to_open_instruct": f"{__name__}.exporting_environment",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
