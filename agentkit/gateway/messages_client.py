"""Clients that speak Anthropic's Messages API. Source: Anthropic's API reference, "Create a Message"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.errors import show_value
from agentkit.gateway.client_conversation import ClientConversation
from agentkit.gateway.foreign_thinking import chat_thinking
from agentkit.gateway.messages_reply import MessagesReply, messages_error, whole_message
from agentkit.gateway.request_fields import (
    Fields,
    Part,
    UnsupportedField,
    invalid,
    mapping_at,
    objects_at,
    output_of,
    text_at,
)
from agentkit.gateway.request_reader import ClientWire
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import AssistantPart, Message, ProviderPart, TextPart, ThinkingPart
from agentkit.toolspec import OutputSchema

_PROVIDER: Final = PROVIDERS["messages"]

_UNSUPPORTED: Final[Mapping[str, UnsupportedField]] = {
    "mcp_servers": UnsupportedField("tools that the server calls itself", (), "connect the client to them"),
    "container": UnsupportedField("a container of the server"),
}
_DIRECT: Final = {"type": "direct"}  # the caller of a call that the model made itself
_PLAIN: Final = frozenset(("type", "id", "name", "input", "cache_control"))


class _Messages(ClientConversation):
    """Reads the messages of one request."""

    def read(self, body: Fields) -> list[Message]:
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise invalid("messages", f"expected a list with messages, found {show_value(body.get('messages'))}")
        self.system(body.get("system"), "system")
        for n, message in enumerate(objects_at(body["messages"], "messages")):
            self._message(message, f"messages[{n}]")
        return self.close()

    def _message(self, message: Fields, at: str) -> None:
        content = message.get("content")
        match message.get("role"):
            case "user":
                self._user(content, f"{at}.content")
            case "assistant":
                blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
                found = enumerate(objects_at(blocks, f"{at}.content"))
                parts = [part for n, block in found for part in self._block(block, f"{at}.content[{n}]")]
                self.assistant(parts)
            case "system":  # as some clients send it
                self.system(content, at)
            case role:
                raise invalid(f"{at}.role", f"expected user or assistant, found {show_value(role)}")

    def _user(self, content: Any, at: str) -> None:
        said: list[Part] = []
        for n, block in enumerate(content if isinstance(content, list) else [content]):
            if not isinstance(block, Mapping) or block.get("type") != "tool_result":
                said += self.content(block, f"{at}[{n}]" if isinstance(content, list) else at)
                continue
            self.user(said)
            said = []
            answer = self.content(block.get("content"), f"{at}[{n}].content")
            failed = bool(block.get("is_error"))
            self.result(block.get("tool_use_id"), answer, error="tool_error" if failed else None)
        self.user(said)

    def _block(self, block: Fields, at: str) -> list[AssistantPart]:
        """A block of an earlier reply."""
        match block.get("type"):
            case "text":
                text = text_at(block.get("text"), f"{at}.text")
                return [TextPart(text)] if text else []
            case "thinking":
                text = text_at(block.get("thinking"), f"{at}.thinking")
                if (thought := chat_thinking(text, block.get("signature"))) is not None:
                    return [thought]
                if block.get("signature"):
                    return [ThinkingPart(text, _PROVIDER, block)]
                return [ThinkingPart(text)] if text else []  # of another upstream's model: without its signature
            case "redacted_thinking":
                return [ThinkingPart("", _PROVIDER, block)]
            case "tool_use":
                call = self.call(block.get("id"), block.get("name"), block.get("input") or {}, at)
                extras = {
                    name: value for name, value in block.items() if name not in _PLAIN and value and value != _DIRECT
                }
                return [call, ProviderPart(_PROVIDER, extras, call.id)] if extras else [call]
            case str():
                return [ProviderPart(_PROVIDER, block)]
            case kind:
                raise invalid(
                    f"{at}.type", f"expected the type of a block, such as text or tool_use, found {show_value(kind)}"
                )


# ---------------------------------------------------------------- the settings


def _output(body: Fields) -> tuple[OutputSchema | None, dict[str, Any]]:
    """Return the schema of the reply, and the further fields of `output_config` that are passed on."""
    config = mapping_at(body.get("output_config"), "output_config")
    further = {name: value for name, value in config.items() if name != "format" and value is not None}
    given = mapping_at(config.get("format") or body.get("output_format"), "output_config.format")
    output, known = output_of(given, "output_config.format")
    if not known:
        raise invalid("output_config.format.type", f"expected json_schema, found {show_value(given.get('type'))}")
    return output, {"output_config": further} if further else {}


MESSAGES: Final = ClientWire(
    name="messages",
    reader=_Messages,
    output=_output,
    unsupported=_UNSUPPORTED,
    read_fields=frozenset(("messages", "system", "output_config", "output_format", "cache_control")),
    max_tokens=("max_tokens",),
    stop="stop_sequences",
    new_writer=lambda asked, id, created: MessagesReply(asked, id),
    write_whole=lambda asked, events, id, created: whole_message(asked, events, id),
    error=messages_error,
)
"""The wire of clients that speak the Messages API."""
