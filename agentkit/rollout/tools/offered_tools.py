"""The tools that one trajectory may call, as the processor's admission looks them up. Runs nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from agentkit.messages import ToolCall
from agentkit.rollout.samples.sample import ToolKwargs
from agentkit.rollout.tools.per_trajectory import RolloutInstance
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.result import ToolContext
from agentkit.toolspec import ToolSpec


class OfferedTools:
    """A trajectory's tools, on its own instances.

    Args:
        instances: by function name; those that the sample selects.
        specs: the tools as the model sees them.
        kwargs: the sample's arguments of each tool, by function name.
    """

    __slots__ = ("_instances", "_kwargs", "_specs")

    def __init__(
        self, instances: Mapping[str, RolloutInstance], specs: tuple[ToolSpec, ...], kwargs: Mapping[str, ToolKwargs]
    ) -> None:
        self._instances, self._specs, self._kwargs = instances, specs, kwargs

    @property
    def tools(self) -> Mapping[str, BoundTool]:
        """By function name."""
        return {name: instance.tools[name] for name, instance in self._instances.items()}

    def get_tool(self, name: str) -> BoundTool | None:
        """The tool with this function name; None if there is none, or it was not selected."""
        instance = self._instances.get(name)
        return None if instance is None else instance.tools[name]

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the declarations that the model is shown."""
        return self._specs

    def hidden_arguments(self, tool: BoundTool) -> Mapping[str, Any]:
        """The sample's arguments for every call of a tool, as far as its method takes them."""
        kwargs = self._kwargs.get(tool.name)
        return hidden_arguments(tool, kwargs.execute) if kwargs is not None and kwargs.execute else {}

    def context(self, call: ToolCall) -> ToolContext:
        """Make the tool's view of its call: `state` has the sample's `execute` arguments."""
        kwargs = self._kwargs.get(call.name)
        if kwargs is None or not kwargs.execute:
            return ToolContext(call.id, call.name)
        return ToolContext(call.id, call.name, kwargs.execute)


def hidden_arguments(tool: BoundTool, execute: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample's arguments for every call of a tool, as far as the tool's method takes them."""
    takes = hidden_parameters(tool)
    return {name: value for name, value in execute.items() if takes is None or name in takes}


def hidden_parameters(tool: BoundTool) -> frozenset[str] | None:
    """The parameters of a tool's method that the model does not see; None if it takes any keyword."""
    names = _keywords(getattr(tool.method, "__func__", tool.method))
    return None if names is None else names - {"self", *tool.context, *tool.spec.parameters.get("properties", ())}


@lru_cache(maxsize=512)
def _keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # in C, without a signature
        return frozenset()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
