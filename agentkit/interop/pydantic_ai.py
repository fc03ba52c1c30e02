"""Pydantic AI (https://github.com/pydantic/pydantic-ai): agentkit tools as its `Tool`s."""

from __future__ import annotations

from typing import Any

from agentkit.interop.peers import PYDANTIC_AI, require
from agentkit.interop.single_call import CallableTool, callable_tools
from agentkit.messages import ImagePart
from agentkit.processor import ProcessorConfig


def to_pydantic_ai(tools: Any, *, config: ProcessorConfig | None = None) -> list[Any]:
    """Tools as `Agent(tools=…)` of Pydantic AI takes them, with their whole schema.

    Wrong arguments ask the model to try again, which counts as one of its retries; an error of the tool does not.

    Args:
        tools: what `ToolRegistry` accepts: one tool, or a list. A class is constructed once, for all runs.
        config: limits of the calls.

    Raises:
        ConfigError: pydantic-ai is not installed, or too old to tell a model of a failed call.
        SchemaError: a definition is wrong.
    """
    module = require(PYDANTIC_AI)
    exceptions = require(PYDANTIC_AI, "pydantic_ai.exceptions")
    return [_tool(module, exceptions, tool) for tool in callable_tools(tools, config)]


def _tool(module: Any, exceptions: Any, tool: CallableTool) -> Any:
    spec = tool.spec

    async def call(**arguments: Any) -> Any:
        answer = await tool.answer(arguments)
        if answer.result.code == "invalid_arguments":
            raise exceptions.ModelRetry(answer.text)
        if not answer.result.ok:
            raise exceptions.ToolFailed(answer.text)
        images = [part for part in answer.parts if isinstance(part, ImagePart)]
        if not images:
            return answer.text
        return module.ToolReturn(return_value=answer.text, content=[_image(module, part) for part in images])

    return module.Tool.from_schema(
        call, name=spec.name, description=spec.description, json_schema=dict(spec.parameters)
    )


def _image(module: Any, part: ImagePart) -> Any:
    if part.data is None:
        return module.ImageUrl(url=part.url)
    return module.BinaryContent(data=part.data, media_type=part.media_type)
