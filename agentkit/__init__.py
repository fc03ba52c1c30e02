"""agentkit: write a tool method once, and any model can call it.

The public names. Those that need a provider's SDK, or anything else heavy, load on first use.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # type checkers know the name; `typing` itself would be most of what this import costs
if TYPE_CHECKING:
    from agentkit.agent import Agent, Approved, Budget, Denied, Price, RunResult
    from agentkit.errors import (
        AgentkitError,
        ConfigError,
        FormatError,
        OutputError,
        ProviderError,
        SchemaError,
        StoreError,
        ThreadBusy,
    )
    from agentkit.messages import ImagePart, TextPart, ToolCall
    from agentkit.models import Model, ModelRequest, model
    from agentkit.processor import ProcessorConfig, ResponseProcessor
    from agentkit.threads import ThreadManager
    from agentkit.tool.declare import SchemaType, ToolSchema, openapi_schema, xml_schema
    from agentkit.tool.registry import ToolRegistry
    from agentkit.tool.result import Hidden, Tool, ToolContext, ToolResult

_HOMES = {
    "Agent": "agentkit.agent",
    "AgentkitError": "agentkit.errors",
    "Approved": "agentkit.agent",
    "Budget": "agentkit.agent",
    "ConfigError": "agentkit.errors",
    "Denied": "agentkit.agent",
    "FormatError": "agentkit.errors",
    "Hidden": "agentkit.tool",
    "ImagePart": "agentkit.messages",
    "Model": "agentkit.models",
    "ModelRequest": "agentkit.models",
    "OutputError": "agentkit.errors",
    "Price": "agentkit.agent",
    "ProcessorConfig": "agentkit.processor",
    "ProviderError": "agentkit.errors",
    "ResponseProcessor": "agentkit.processor",
    "RunResult": "agentkit.agent",
    "SchemaError": "agentkit.errors",
    "SchemaType": "agentkit.tool.declare",
    "StoreError": "agentkit.errors",
    "TextPart": "agentkit.messages",
    "ThreadBusy": "agentkit.errors",
    "ThreadManager": "agentkit.threads",
    "Tool": "agentkit.tool",
    "ToolCall": "agentkit.messages",
    "ToolContext": "agentkit.tool",
    "ToolRegistry": "agentkit.tool.registry",
    "ToolResult": "agentkit.tool",
    "ToolSchema": "agentkit.tool.declare",
    "model": "agentkit.models",
    "openapi_schema": "agentkit.tool.declare",
    "xml_schema": "agentkit.tool.declare",
}
"""Each public name, and the module that defines it."""

__all__ = [
    "Agent",
    "AgentkitError",
    "Approved",
    "Budget",
    "ConfigError",
    "Denied",
    "FormatError",
    "Hidden",
    "ImagePart",
    "Model",
    "ModelRequest",
    "OutputError",
    "Price",
    "ProcessorConfig",
    "ProviderError",
    "ResponseProcessor",
    "RunResult",
    "SchemaError",
    "SchemaType",
    "StoreError",
    "TextPart",
    "ThreadBusy",
    "ThreadManager",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolRegistry",
    "ToolResult",
    "ToolSchema",
    "model",
    "openapi_schema",
    "xml_schema",
]

__version__ = "0.1.0"


if not TYPE_CHECKING:  # or checkers would take any name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            from agentkit.foreign.absent_imports import absent

            raise absent(sys.modules[__name__], name, sys._getframe(1))
        value: object = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
