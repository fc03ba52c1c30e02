"""OpenAI's Agents SDK (https://github.com/openai/openai-agents-python): agentkit tools as its `FunctionTool`s."""

from __future__ import annotations

from typing import Any

from agentkit.interop.peers import OPENAI_AGENTS, require
from agentkit.interop.single_call import CallableTool, callable_tools
from agentkit.messages import ImagePart
from agentkit.models.native_arguments import ArgumentsError, read_arguments
from agentkit.processor import ProcessorConfig


def to_openai_agents(tools: Any, *, config: ProcessorConfig | None = None) -> list[Any]:
    """Tools as `Agent(tools=…)` of OpenAI's Agents SDK takes them, with their whole schema.

    Args:
        tools: what `ToolRegistry` accepts: one tool, or a list. A class is constructed once, for all runs.
        config: limits of the calls.

    Raises:
        ConfigError: openai-agents is not installed.
        SchemaError: a definition is wrong.
    """
    agents = require(OPENAI_AGENTS)
    return [_function_tool(agents, tool) for tool in callable_tools(tools, config)]


def _function_tool(agents: Any, tool: CallableTool) -> Any:
    spec = tool.spec

    async def on_invoke_tool(context: Any, arguments: str) -> Any:
        try:
            given = read_arguments(arguments)
        except ArgumentsError as e:
            return f"{spec.name}: {e}"
        answer = await tool.answer(given.values)
        if not any(isinstance(part, ImagePart) for part in answer.parts):
            return answer.text
        return [
            agents.ToolOutputImage(image_url=part.data_url)
            if isinstance(part, ImagePart)
            else agents.ToolOutputText(text=part.text)
            for part in answer.parts
        ]

    return agents.FunctionTool(
        name=spec.name,
        description=spec.description,
        params_json_schema=dict(spec.parameters),
        on_invoke_tool=on_invoke_tool,
        strict_json_schema=False,  # a strict schema would lose defaults and optional parameters
    )
