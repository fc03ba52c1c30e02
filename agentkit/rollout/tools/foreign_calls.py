"""Tools of other systems' shapes: the model's arguments stay apart from those that the sample adds to every call.

Knows bound tools; knows no such system and no loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from agentkit.errors import ConfigError, SchemaError
from agentkit.tool.arguments import arguments_of_schema
from agentkit.tool.result import ToolContext, ToolResult
from agentkit.tool.schema_tools import ReadyMadeTool, tool_from_schema

ARGUMENTS: Final = "<arguments>"
"""The key of the model's arguments among the keyword arguments of a call. No parameter can have this name."""


class ForeignTool(ReadyMadeTool):
    """A tool whose function receives the model's arguments as one dict, and the sample's as keyword arguments.

    A model that invents an argument therefore never sets one of the sample's.
    """

    __slots__ = ()

    def validate(self, arguments: Mapping[str, Any], *, lenient: bool) -> dict[str, Any]:
        """The arguments as one dict, under `ARGUMENTS`."""
        return {ARGUMENTS: ReadyMadeTool.validate(self, arguments, lenient=lenient)}

    def invoke(self, kwargs: Mapping[str, Any], context: ToolContext | None) -> Any:
        """Call the function; returns its value, or an awaitable if `is_async`."""
        hidden = dict(kwargs)
        return self.method(hidden.pop(ARGUMENTS, {}), context, **hidden)


def foreign_tool(function: Callable[..., Any], declared: Mapping[str, Any], where: str) -> ForeignTool:
    """A tool from a function `(arguments, context, **execute)` and OpenAI's declaration of it.

    Its systems do not check a model's arguments: a number for a string is passed on as it is. So it is here; only that
    the required arguments are there, and no others where the declaration allows none.

    Args:
        function: sync or async.
        declared: `{"name": …, "description": …, "parameters": …}`.
        where: for messages.

    Raises:
        ConfigError: the declaration is wrong.
    """
    name, parameters = declared.get("name"), declared.get("parameters")
    if not isinstance(name, str):
        raise ConfigError(f"{where}: expected a function name, found {name!r:.60}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ConfigError(f"{where}: parameters: expected a JSON Schema, found {parameters!r:.60}")
    try:
        made = tool_from_schema(function, name, str(declared.get("description") or ""), parameters)
        shown = made.spec.parameters
        if lost := [one for one in shown.get("required", ()) if one not in shown["properties"]]:
            raise ConfigError(f"{where}: parameters: required names {lost[0]!r}, which is not among the properties")
        checked = {key: shown[key] for key in ("type", "required", "additionalProperties") if key in shown}
        checked["properties"] = dict.fromkeys(shown["properties"], True)
        made = replace(made, arguments=arguments_of_schema(shown, checked, where))
    except SchemaError as e:
        raise ConfigError(f"{where}: {e}") from e
    return ForeignTool(**{one.name: getattr(made, one.name) for one in fields(made)})


def read_result(value: Any, read: Callable[[Any], ToolResult]) -> ToolResult | Awaitable[ToolResult]:
    """Read what another system's function has returned; where that is to be awaited, what is read then.

    Args:
        value: the result, or an awaitable of it.
        read: makes a result of it.
    """

    async def later() -> ToolResult:
        return read(await value)

    return later() if inspect.isawaitable(value) else read(value)


def refuse_config(tool: Any, config: Mapping[str, Any] | None) -> None:
    """Refuse settings for an object that is constructed already.

    Raises:
        ConfigError: there are some.
    """
    if config and not isinstance(tool, type):
        raise ConfigError(
            f"{type(tool).__name__} is constructed already, so config={list(config)} would have no effect; pass the "
            "class, or remove config"
        )
