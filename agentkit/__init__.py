"""agentkit: write a tool method once, and any model can call it.

The public names. Those that need a provider's SDK, or anything else heavy, load on first use.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers know the name; `typing` itself would be most of what this import costs
if TYPE_CHECKING:
    from agentkit.agent import Agent, RunResult
    from agentkit.errors import AgentkitError, ConfigError, FormatError, ProviderError, SchemaError
    from agentkit.messages import ImagePart, TextPart, ToolCall
    from agentkit.models import Model, ModelRequest, model
    from agentkit.processor import ProcessorConfig, ResponseProcessor
    from agentkit.registry import ToolRegistry
    from agentkit.schema import openapi_schema, xml_schema
    from agentkit.tool import Tool, ToolContext, ToolResult

_HOMES = {
    "Agent": "agentkit.agent",
    "AgentkitError": "agentkit.errors",
    "ConfigError": "agentkit.errors",
    "FormatError": "agentkit.errors",
    "ImagePart": "agentkit.messages",
    "Model": "agentkit.models",
    "ModelRequest": "agentkit.models",
    "ProcessorConfig": "agentkit.processor",
    "ProviderError": "agentkit.errors",
    "ResponseProcessor": "agentkit.processor",
    "RunResult": "agentkit.agent",
    "SchemaError": "agentkit.errors",
    "TextPart": "agentkit.messages",
    "Tool": "agentkit.tool",
    "ToolCall": "agentkit.messages",
    "ToolContext": "agentkit.tool",
    "ToolRegistry": "agentkit.registry",
    "ToolResult": "agentkit.tool",
    "model": "agentkit.models",
    "openapi_schema": "agentkit.schema",
    "xml_schema": "agentkit.schema",
}
"""Each public name, and the module that defines it."""

__all__ = [
    "Agent",
    "AgentkitError",
    "ConfigError",
    "FormatError",
    "ImagePart",
    "Model",
    "ModelRequest",
    "ProcessorConfig",
    "ProviderError",
    "ResponseProcessor",
    "RunResult",
    "SchemaError",
    "TextPart",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolRegistry",
    "ToolResult",
    "model",
    "openapi_schema",
    "xml_schema",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'agentkit' has no attribute {name!r}; it has {', '.join(__all__)}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
