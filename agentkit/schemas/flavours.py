"""One tool, and the schema of a reply, as each provider's API writes it. Pure; knows no provider's SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agentkit.schemas.dialects import ANTHROPIC, OPENAI
from agentkit.schemas.schema_reducer import with_plain_root
from agentkit.schemas.schema_rewriter import constrained_schema, strict_schema
from agentkit.toolspec import OutputSchema, ToolSpec


def openai_chat(spec: ToolSpec, strict: bool = False) -> dict[str, Any]:
    """Return a tool of OpenAI's chat completions, and of every server compatible with them.

    Args:
        spec: the tool.
        strict: ask for guaranteed arguments; `openai_strict` also reports the losses of that mode.
    """
    return {"type": "function", "function": _openai_function(spec, strict)}


def openai_responses(spec: ToolSpec, strict: bool = False) -> dict[str, Any]:
    """Return a tool of OpenAI's Responses API, where strict is the default and is therefore always stated."""
    return {"type": "function", "strict": strict, **_openai_function(spec, strict)}


def openai_strict(spec: ToolSpec) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a tool of chat completions in strict mode, and the losses of that mode.

    Optional parameters become required and nullable there; a null for one of them counts as omitted when the call is
    validated.

    Returns:
        The tool, and one line per loss, such as `/count: default 20 was removed …`; no lines if nothing is lost.
    """
    parameters, report = strict_schema(spec.parameters)
    function = {"name": spec.name, "description": spec.description, "strict": True, "parameters": parameters}
    return {"type": "function", "function": function}, report


def anthropic(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool of Anthropic's Messages API."""
    description, parameters = _plain(spec)
    return {"name": spec.name, "description": description, "input_schema": parameters}


def gemini(spec: ToolSpec) -> dict[str, Any]:
    """Return a function declaration of the Gemini API."""
    description, parameters = _plain(spec)
    return {"name": spec.name, "description": description, "parametersJsonSchema": parameters}


def mcp(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool as an MCP server lists it."""
    return {"name": spec.name, "description": spec.description, "inputSchema": dict(spec.parameters)}


def _openai_function(spec: ToolSpec, strict: bool) -> dict[str, Any]:
    if strict:
        function: dict[str, Any] = openai_strict(spec)[0]["function"]
        return function
    description, parameters = _plain(spec)
    return {"name": spec.name, "description": description, "parameters": parameters}


def _plain(spec: ToolSpec) -> tuple[str, dict[str, Any]]:
    """Description and schema for APIs that refuse alternatives at a schema's root: they are in the description."""
    parameters, lost = with_plain_root(spec.parameters)
    return "\n\n".join(filter(None, (spec.description, lost))), parameters


def _only_strict(spec: ToolSpec) -> dict[str, Any]:
    return openai_strict(spec)[0]


# ---------------------------------------------------------------- the schema of the final reply


def openai_chat_output(output: OutputSchema) -> dict[str, Any]:
    """Return the `response_format` of chat completions: strict if strict mode can express all allowed values."""
    return {"type": "json_schema", "json_schema": _openai_output(output)}


def openai_responses_output(output: OutputSchema) -> dict[str, Any]:
    """Return the `text.format` of the Responses API."""
    return {"type": "json_schema", **_openai_output(output)}


def anthropic_output(output: OutputSchema) -> dict[str, Any] | None:
    """Return the `output_config.format` of the Messages API; None for a schema that it would refuse."""
    schema = constrained_schema(output.schema, ANTHROPIC)
    return None if schema is None else {"type": "json_schema", "schema": schema}


def _openai_output(output: OutputSchema) -> dict[str, Any]:
    strict = constrained_schema(output.schema, OPENAI)
    return {"name": output.name, "strict": strict is not None, "schema": strict or dict(output.schema)}


FLAVOURS: Final[dict[str, Callable[[ToolSpec], dict[str, Any]]]] = {
    "chat": openai_chat,
    "responses": openai_responses,
    "strict": _only_strict,
    "anthropic": anthropic,
    "gemini": gemini,
    "mcp": mcp,
}
"""Each flavour of `ToolRegistry.get_openapi_schemas` by its name."""
