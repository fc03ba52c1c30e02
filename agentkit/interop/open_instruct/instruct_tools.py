"""The classes from which tools for open-instruct are written, under its names, for use without it.

A tool class of open-instruct's document runs here after only its import lines are changed. If open-instruct is
installed, use its own. `Tool`, `ToolCall` and `TOOL_REGISTRY` are exported by the package under these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from agentkit.interop.open_instruct.open_instruct_shape import parameters_of


@dataclass
class InstructCall:
    """A call, as open-instruct's parsers return it (`ToolCall`)."""

    name: str
    args: dict[str, Any] = field(default_factory=dict)


@dataclass
class ToolOutput:
    """The answer of a tool.

    Args:
        output: the text for the model.
        called: whether the tool ran.
        error: what went wrong; empty if nothing did.
        timeout: whether it took too long.
        runtime: seconds.
    """

    output: str
    called: bool = True
    error: str = ""
    timeout: bool = False
    runtime: float = 0.0


class InstructTool:
    """The base of a tool in open-instruct's shape (`Tool`): three class attributes and `__call__`."""

    _default_tool_function_name: str = ""
    _default_tool_description: str = ""
    _default_tool_parameters: Mapping[str, Any] | None = None
    """JSON Schema of its arguments; None derives it from the hints of `__call__`."""
    _override_name: str | None = None

    @property
    def tool_function_name(self) -> str:
        """The name by which the model calls it."""
        return self._override_name or self._default_tool_function_name

    @property
    def tool_description(self) -> str:
        """The tool's description, for the model."""
        return self._default_tool_description

    @property
    def tool_parameters(self) -> dict[str, Any]:
        """JSON Schema of its arguments."""
        return parameters_of(self)

    def get_openai_tool_definitions(self) -> list[dict[str, Any]]:
        """The tool as OpenAI's API declares it, in a list."""
        function = {
            "name": self.tool_function_name,
            "description": self.tool_description,
            "parameters": self.tool_parameters,
        }
        return [{"type": "function", "function": function}]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Answer a call, plain or async."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


@dataclass
class BaseToolConfig:
    """The base of a tool's configuration: a dataclass whose fields are the tool's settings.

    Args:
        override_name: the name by which the model calls the tool; None keeps its own.
    """

    tool_class: ClassVar[type[Any]]

    override_name: str | None = field(default=None, kw_only=True)

    def build(self) -> Any:
        """The tool with these settings."""
        return self.tool_class(**{one.name: getattr(self, one.name) for one in fields(self)})
