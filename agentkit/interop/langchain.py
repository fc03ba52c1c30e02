"""LangChain (https://github.com/langchain-ai/langchain): ours as its `StructuredTool`s."""

from __future__ import annotations

from typing import Any, Final

from agentkit.interop.answering import LONGEST, answered
from agentkit.interop.background_loop import BackgroundLoop
from agentkit.interop.peers import LANGCHAIN, require
from agentkit.messages import ImagePart
from agentkit.processor import ProcessorConfig
from agentkit.tool import ToolRegistry, ToolResult
from agentkit.toolspec import ToolSpec

_LOOP: Final = BackgroundLoop("agentkit tools in LangChain")


def to_langchain(tools: Any, *, config: ProcessorConfig | None = None) -> list[Any]:
    """Tools as LangChain's, with their whole schema; a message's `artifact` is the `ToolResult`.

    An error is told to the model in a message with the status `error`.

    Args:
        tools: what `ToolRegistry` accepts: one tool, or a list. A class is constructed once, for all runs.
        config: limits of the calls.

    Raises:
        ConfigError: langchain-core is not installed.
        SchemaError: a definition is wrong.
    """
    module = require(LANGCHAIN)
    registry = ToolRegistry(tools)
    return [_structured(module, registry, spec, config) for spec in registry.offered(None)]


def _structured(module: Any, registry: ToolRegistry, spec: ToolSpec, config: ProcessorConfig | None) -> Any:
    async def call(**arguments: Any) -> tuple[Any, ToolResult]:
        answer = await answered(registry, spec.name, arguments, config=config)
        if not answer.result.ok:
            raise module.ToolException(answer.text)
        if not any(isinstance(part, ImagePart) for part in answer.parts):
            return answer.text, answer.result
        return [_block(part) for part in answer.parts], answer.result

    def call_and_wait(**arguments: Any) -> tuple[Any, ToolResult]:
        return _LOOP.run(call(**arguments), LONGEST)

    return module.StructuredTool(
        name=spec.name,
        description=spec.description,
        args_schema=dict(spec.parameters),
        func=call_and_wait,
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _block(part: Any) -> dict[str, Any]:
    """A part as a content block of LangChain's."""
    if not isinstance(part, ImagePart):
        return {"type": "text", "text": part.text}
    if part.data is None:
        return {"type": "image", "url": part.url}
    return {"type": "image", "base64": part.base64, "mime_type": part.media_type}
