"""Tools: a decorated method of a class becomes a bound tool that any model can call.

`declare` stores what the decorators receive; `signature`, `hints` and `handwritten` read the function; `arguments`
and `element` define what it accepts; `binding` binds one method of one instance; `schema_tools` makes tools that are
not methods; `registry` finds them by name and tag. Each name is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module

from agentkit.foreign.absent_imports import explained_module

TYPE_CHECKING = False  # as in `agentkit`: importing `typing` would be most of the cost of this import
if TYPE_CHECKING:
    from agentkit.schemas.words import InvalidArguments, Problem
    from agentkit.tool.binding import BoundTool
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

_HOMES = {
    "BoundTool": "agentkit.tool.binding",
    "Hidden": "agentkit.tool.result",
    "InvalidArguments": "agentkit.schemas.words",
    "OpenAPISchema": "agentkit.tool.declare",
    "Problem": "agentkit.schemas.words",
    "SchemaType": "agentkit.tool.declare",
    "Tool": "agentkit.tool.result",
    "ToolContext": "agentkit.tool.result",
    "ToolPolicy": "agentkit.tool.policy",
    "ToolRegistry": "agentkit.tool.registry",
    "ToolResult": "agentkit.tool.result",
    "ToolSchema": "agentkit.tool.declare",
    "ToolSource": "agentkit.tool.schema_tools",
    "XMLMapping": "agentkit.tool.declare",
    "XMLSchema": "agentkit.tool.declare",
    "openapi_schema": "agentkit.tool.declare",
    "tool_from_schema": "agentkit.tool.schema_tools",
    "xml_schema": "agentkit.tool.declare",
}

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


if not TYPE_CHECKING:  # otherwise type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(name)  # `explained_module` suggests what was meant
        value: object = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


explained_module(__name__, "write @openapi_schema above a method, or pass a plain function: Agent(model, [function])")
