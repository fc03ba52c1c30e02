"""A thread as files for other programs: its messages in a provider's form. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agentkit import formats
from agentkit.agent import dicts_from
from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError
from agentkit.messages import Message
from agentkit.models.anthropic import FILES
from agentkit.models.files_taken import check_files
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.text import text_messages
from agentkit.threads.store import Log
from agentkit.tool.codec import to_json
from agentkit.tool.registry import ToolRegistry

SHAPES: Final = ("json", "openai", "anthropic")
"""Besides the text formats: agentkit's own form, which loses nothing, and two providers'."""


def whole(log: Log) -> Log:
    """The log without its compactions: with all messages that they replaced."""
    return replace(log, entries=tuple(entry for entry in log.entries if entry.kind != "compaction"))


def export_messages(messages: Sequence[Message], shape: str, tools: Sequence[str] = ()) -> Sequence[Mapping[str, Any]]:
    """Return a conversation in a provider's form, or with its calls as text.

    Args:
        messages: the conversation.
        shape: `json`, `openai`, `anthropic`, or the name of a text format.
        tools: for a text format, the tools as `module:Class`, for their tags.

    Raises:
        ConfigError: neither a form nor a format has this name, or a file has no form there.
        FormatError: the format cannot represent a call.
    """
    match shape:
        case "json":
            return [to_json(message) for message in messages]
        case "openai":
            return dicts_from(messages)
        case "anthropic":
            check_files("Anthropic's messages", messages, FILES)
            return anthropic_messages(messages, "anthropic")
        case name if name in formats.names():
            return dicts_from(text_messages(messages, formats.get(name), ToolRegistry(*tools).specs()))
    hint = did_you_mean(shape, [*SHAPES, *formats.names()])
    wanted = f"expected {', '.join(SHAPES)}, or a text format of `agentkit formats`"
    raise ConfigError(f"a conversation cannot be exported as {shape!r}: {wanted}{hint}")
