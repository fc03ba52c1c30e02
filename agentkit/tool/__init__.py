"""Tools: a decorated method of a class becomes a bound tool that any model can call.

`declare` stores the decorators' arguments; `signature`, `hints` and `handwritten` read the function; `arguments`
and `element` define its arguments; `bound_tool` binds one method of one instance; `schema_tools` makes tools that are
not methods; `registry` finds them by name and tag. Each name is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.schemas.words import InvalidArguments, Problem
    from agentkit.tool.bound_tool import BoundTool
    from agentkit.tool.declare import (
        OpenAPISchema,
        SchemaType,
        ToolSchema,
        XMLMapping,
        XMLSchema,
        openapi_schema,
        xml_schema,
    )
    from agentkit.tool.policy import ToolPolicy
    from agentkit.tool.registry import ToolRegistry
    from agentkit.tool.result import Hidden, Tool, ToolContext, ToolResult
    from agentkit.tool.schema_tools import ToolSource, tool_from_schema

__all__ = [
    "BoundTool",
    "Hidden",
    "InvalidArguments",
    "OpenAPISchema",
    "Problem",
    "SchemaType",
    "Tool",
    "ToolContext",
    "ToolPolicy",
    "ToolRegistry",
    "ToolResult",
    "ToolSchema",
    "ToolSource",
    "XMLMapping",
    "XMLSchema",
    "openapi_schema",
    "tool_from_schema",
    "xml_schema",
]

explained_module(
    __name__,
    "write @openapi_schema above a method, or pass a plain function: Agent(model, [function])",
    homes={
        "agentkit.schemas.words": "InvalidArguments Problem",
        "agentkit.tool.bound_tool": "BoundTool",
        "agentkit.tool.declare": "OpenAPISchema SchemaType ToolSchema XMLMapping XMLSchema openapi_schema xml_schema",
        "agentkit.tool.policy": "ToolPolicy",
        "agentkit.tool.registry": "ToolRegistry",
        "agentkit.tool.result": "Hidden Tool ToolContext ToolResult",
        "agentkit.tool.schema_tools": "ToolSource tool_from_schema",
    },
)
