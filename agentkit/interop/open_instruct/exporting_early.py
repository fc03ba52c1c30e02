"""Agentkit tools as open-instruct's tools until February 2026: one object for all rollouts, and `ToolOutput`."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from agentkit.interop.peers import OPEN_INSTRUCT, refuse_reserved, require
from agentkit.interop.single_call import answer_call
from agentkit.processor import ProcessorConfig
from agentkit.tool import ToolRegistry
from agentkit.toolspec import ToolSpec


def to_early_open_instruct(tools: Any, *, config: ProcessorConfig | None = None) -> dict[str, type[Any]]:
    """Tools as subclasses of open-instruct's `Tool` of that time, by function name.

    open-instruct's own reading of the arguments is passed over: it takes `'["a"]'` for a list of characters.

    Args:
        tools: what `ToolRegistry` accepts. An instance, or a class, is shared by all rollouts.
        config: limits of the calls.

    Raises:
        ConfigError: open-instruct cannot be imported, or is a later one.
        SchemaError: a definition is wrong, or a function has a name that open-instruct reserves.
    """
    utils = require(OPEN_INSTRUCT, "open_instruct.tools.utils")
    registry = ToolRegistry(tools)
    refuse_reserved(OPEN_INSTRUCT, registry.tools.values())
    return {spec.name: _tool(utils, registry, spec, config) for spec in registry.offered_specs(None)}


def _tool(utils: Any, registry: ToolRegistry, spec: ToolSpec, config: ProcessorConfig | None) -> type[Any]:
    parameters = dict(spec.parameters)

    async def call(self: Any, **arguments: Any) -> Any:
        begun = perf_counter()
        answer = await answer_call(registry, spec.name, arguments, config=config)
        result = answer.result
        return utils.ToolOutput(
            output=answer.text,
            called=result.code != "invalid_arguments",
            error=result.error or "",
            timeout=result.code == "timeout",
            runtime=perf_counter() - begun,
        )

    def construct(self: Any, call_name: str = spec.name, **own: Any) -> None:
        self.config_name, self.call_name = spec.name, call_name
        self.description, self.parameters = spec.description, parameters

    members = {
        "__init__": construct,
        "__doc__": spec.description,
        "__call__": call,
        "safe_execute": call,
        "_execute": call,
        "_default_tool_function_name": spec.name,
        "_default_tool_description": spec.description,
        "_default_tool_parameters": parameters,
    }
    return type(f"{spec.name.title().replace('_', '')}Tool", (utils.Tool,), members)
