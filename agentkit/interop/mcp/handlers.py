"""A server's own requests: the user's input (elicitation), a model's text (sampling). Refused by default."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agentkit.processor.tool_run import in_a_thread

Elicit = Callable[[str, Mapping[str, Any]], Any | Awaitable[Any]]
"""Receives the server's message and the JSON Schema of the answer; returns the answer as a dict, or None to decline."""

SamplingHandler = Callable[[Any], str | Awaitable[str]]
"""Receives the SDK's `CreateMessageRequestParams`; returns the text of a model."""


def elicitation_callback(elicit: Elicit | None) -> Any:
    """The SDK's callback; None, which makes the SDK refuse, without a handler."""
    if elicit is None:
        return None

    async def callback(context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult

        if params.mode != "form":  # a page to open in a browser: only a person could judge its address
            return ElicitResult(action="decline")
        answer = await in_a_thread(elicit, params.message, params.requested_schema)
        return ElicitResult(action="decline") if answer is None else ElicitResult(action="accept", content=dict(answer))

    return callback


def sampling_callback(sample: SamplingHandler | None) -> Any:
    """Return the SDK's callback for a server's request for a model's text; None without a handler."""
    if sample is None:
        return None

    async def callback(context: Any, params: Any) -> Any:
        from mcp_types import CreateMessageResult, TextContent

        text = await in_a_thread(sample, params)
        return CreateMessageResult(role="assistant", model="agentkit", content=TextContent(type="text", text=text))

    return callback
