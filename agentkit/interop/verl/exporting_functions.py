"""Agentkit tools as verl's function tools: stateless, without a sample's arguments; verl calls them directly."""

from __future__ import annotations

from typing import Any

from agentkit.interop.peers import VERL_PEER, refuse_reserved, require
from agentkit.interop.single_call import answer_call
from agentkit.interop.verl.exporting_tools import shown_by, verl_schema
from agentkit.processor import ProcessorConfig
from agentkit.tool import ToolRegistry
from agentkit.toolspec import ToolSpec


def to_verl_functions(tools: Any, *, config: ProcessorConfig | None = None) -> list[Any]:
    """Register tools in verl, from the file that its `function_tool_path` names.

    verl's function tools have no trajectory: an instance, or a class, is shared by all of them. For a tool with state
    use `to_verl`.

    Args:
        tools: what `ToolRegistry` accepts: one tool, or a list.
        config: limits of the calls.

    Returns:
        The registered functions.

    Raises:
        ConfigError: verl is not installed, or older than 0.9, which has no function tools.
        SchemaError: a definition is wrong, or a function has a name that verl reserves.
    """
    registry = ToolRegistry(tools)
    refuse_reserved(VERL_PEER, registry.tools.values())
    register = require(VERL_PEER, "verl.tools.function_tool").function_tool
    respond = require(VERL_PEER, "verl.tools.schemas").ToolResponse
    return [
        register(spec.name, schema=verl_schema(spec))(_function(registry, spec, respond, config))
        for spec in registry.offered_specs(None)
    ]


def _function(registry: ToolRegistry, spec: ToolSpec, respond: Any, config: ProcessorConfig | None) -> Any:
    async def call(**arguments: Any) -> tuple[Any, float, dict[str, Any]]:
        answer = await answer_call(registry, spec.name, arguments, config=config)
        return shown_by(respond, answer), answer.result.reward or 0.0, dict(answer.result.metadata)

    call.__name__ = call.__qualname__ = spec.name
    return call
