"""agentkit: write a tool method once, and any model can call it.

The public names. Each is loaded on first use.
"""

from __future__ import annotations

from agentkit.foreign.absent_imports import explained_module

TYPE_CHECKING = False  # type checkers know the name; `typing` itself would be most of what this import costs
if TYPE_CHECKING:
    from agentkit.agent.agent import Agent
    from agentkit.agent.decisions import Approved, Denied
    from agentkit.agent.guards import AskAgain, AskPerson, Guards, Refused
    from agentkit.agent.limits import Budget, Price
    from agentkit.agent.outcome import RunResult
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
    from agentkit.messages import FilePart, ImagePart, TextPart, ToolCall
    from agentkit.models.base import Model, ModelRequest
    from agentkit.models.model_strings import model
    from agentkit.processor.config import ProcessorConfig
    from agentkit.processor.processor import ResponseProcessor
    from agentkit.threads.manager import ThreadManager
    from agentkit.tool.declare import SchemaType, ToolSchema, openapi_schema, xml_schema
    from agentkit.tool.registry import ToolRegistry
    from agentkit.tool.result import Hidden, Tool, ToolContext, ToolResult

__all__ = [
    "Agent",
    "AgentkitError",
    "Approved",
    "AskAgain",
    "AskPerson",
    "Budget",
    "ConfigError",
    "Denied",
    "FilePart",
    "FormatError",
    "Guards",
    "Hidden",
    "ImagePart",
    "Model",
    "ModelRequest",
    "OutputError",
    "Price",
    "ProcessorConfig",
    "ProviderError",
    "Refused",
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

explained_module(
    __name__,
    homes={
        "agentkit.agent.agent": "Agent",
        "agentkit.agent.decisions": "Approved Denied",
        "agentkit.agent.guards": "AskAgain AskPerson Guards Refused",
        "agentkit.agent.limits": "Budget Price",
        "agentkit.agent.outcome": "RunResult",
        "agentkit.errors": (
            "AgentkitError ConfigError FormatError OutputError ProviderError SchemaError StoreError ThreadBusy"
        ),
        "agentkit.messages": "FilePart ImagePart TextPart ToolCall",
        "agentkit.models.base": "Model ModelRequest",
        "agentkit.models.model_strings": "model",
        "agentkit.processor.config": "ProcessorConfig",
        "agentkit.processor.processor": "ResponseProcessor",
        "agentkit.threads.manager": "ThreadManager",
        "agentkit.tool.declare": "SchemaType ToolSchema openapi_schema xml_schema",
        "agentkit.tool.registry": "ToolRegistry",
        "agentkit.tool.result": "Hidden Tool ToolContext ToolResult",
    },
)
