"""LangChain (https://github.com/langchain-ai/langchain): agentkit tools as its `StructuredTool`s."""

from __future__ import annotations

from typing import Any, Final

from agentkit.interop.background_loop import BackgroundLoop
from agentkit.interop.peers import LANGCHAIN, require
from agentkit.interop.single_call import LONGEST, CallableTool, callable_tools
from agentkit.messages import ImagePart
from agentkit.processor import ProcessorConfig
from agentkit.tool import ToolResult

_LOOP: Final = BackgroundLoop("agentkit tools in LangChain")


def to_langchain(tools: Any, *, config: ProcessorConfig | None = None) -> list[Any]:
    """Tools as LangChain's, with their whole schema; a message's `artifact` is the `ToolResult`.

    The model gets an error in a message with the status `error`.

    Args:
        tools: what `ToolRegistry` accepts: one tool, or a list. A class is constructed once, for all runs.
        config: limits of the calls.

    Raises:
        ConfigError: langchain-core is not installed.
        SchemaError: a definition is wrong.
    """
    module = require(LANGCHAIN)
    return [_structured(module, tool) for tool in callable_tools(tools, config)]


def _structured(module: Any, tool: CallableTool) -> Any:
    async def call(**arguments: Any) -> tuple[Any, ToolResult]:
        answer = await tool.answer(arguments)
        if not answer.result.ok:
            raise module.ToolException(answer.text)
        if not any(isinstance(part, ImagePart) for part in answer.parts):
            return answer.text, answer.result
        return [_block(part) for part in answer.parts], answer.result

    def call_and_wait(**arguments: Any) -> tuple[Any, ToolResult]:
        return _LOOP.run(call(**arguments), LONGEST)

    return module.StructuredTool(
        name=tool.spec.name,
        description=tool.spec.description,
        args_schema=dict(tool.spec.parameters),
        func=call_and_wait,
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _block(part: Any) -> dict[str, Any]:
    if not isinstance(part, ImagePart):
        return {"type": "text", "text": part.text}
    if part.data is None:
        return {"type": "image", "url": part.url}
    return {"type": "image", "base64": part.base64, "mime_type": part.media_type}
