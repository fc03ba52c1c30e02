"""Clients that speak OpenAI's chat completions. Source: OpenAI's API reference, "Create chat completion"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.errors import show_value
from agentkit.gateway.chat_reply import ChatReply, chat_error, whole_completion
from agentkit.gateway.client_conversation import ClientConversation
from agentkit.gateway.request_fields import (
    Fields,
    Part,
    UnsupportedField,
    invalid,
    mapping_at,
    objects_at,
    output_of,
    text_at,
    unsupported_field,
)
from agentkit.gateway.request_reader import ClientWire
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import AssistantPart, ImagePart, Message, ProviderPart, TextPart, ThinkingPart
from agentkit.models.chat_thinking import DETAILS, FIELDS
from agentkit.models.openai import PLAIN, function_of
from agentkit.models.wire import items_of, text_of
from agentkit.toolspec import OutputSchema

_PROVIDER: Final = PROVIDERS["chat"]

_ONE_REPLY: Final = "send one request for each reply"
_UNSUPPORTED: Final[Mapping[str, UnsupportedField]] = {
    "n": UnsupportedField("more than one reply", (1,), _ONE_REPLY),
    "logprobs": UnsupportedField("the log probabilities of tokens"),
    "top_logprobs": UnsupportedField("the log probabilities of tokens"),
    "audio": UnsupportedField("spoken audio"),
    "modalities": UnsupportedField("a reply other than text", (["text"],), 'omit it, or send ["text"]'),
    "web_search_options": UnsupportedField("the server's own web search", (), "offer a search tool of your own"),
}


class _Messages(ClientConversation):
    """Reads the messages of one request."""

    def read(self, body: Fields) -> list[Message]:
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise invalid("messages", f"expected a list with messages, found {show_value(body.get('messages'))}")
        for n, message in enumerate(objects_at(body["messages"], "messages")):
            self._message(message, f"messages[{n}]")
        return self.close()

    def _message(self, message: Fields, at: str) -> None:
        content, where = _spoken(message), f"{at}.content"
        match message.get("role"):
            case "system" | "developer":
                self.system(content, where)
            case "user":
                self.user(self.content(content, where))
            case "assistant":
                self.assistant(self._assistant(message, self.content(content, where), at))
            case "tool" | "function":
                self.result(message.get("tool_call_id"), self.content(content, where), name=message.get("name"))
            case role:
                roles = "system, developer, user, assistant or tool"
                raise invalid(f"{at}.role", f"expected {roles}, found {show_value(role)}")

    def _assistant(self, message: Fields, content: list[Part], at: str) -> list[AssistantPart]:
        if message.get("audio"):
            raise unsupported_field(f"{at}.audio", "an earlier spoken reply", "send its transcript as content")
        parts: list[AssistantPart] = [*_thinking(message), *_thinking_in_content(message.get("content"))]
        parts += [TextPart(part.text) for part in content if isinstance(part, TextPart)]
        if any(isinstance(part, ImagePart) for part in content):
            raise invalid(f"{at}.content", "a reply of the model has text and calls only")
        if refusal := text_at(message.get("refusal"), f"{at}.refusal"):
            parts.append(TextPart(refusal))
        for n, call in enumerate(objects_at(message.get("tool_calls"), f"{at}.tool_calls")):
            parts += self._call(call, f"{at}.tool_calls[{n}]")
        if message.get("function_call"):
            parts += self._call({"function": message["function_call"]}, f"{at}.function_call")
        return parts

    def _call(self, call: Fields, at: str) -> list[AssistantPart]:
        if call.get("type") == "custom":
            raise unsupported_field(f"{at}.type", "a call of a custom tool", "offer it as a function with one string")
        function = function_of(call)
        read = self.call(call.get("id"), function.get("name"), function.get("arguments"), at)
        extras = {name: value for name, value in call.items() if name not in PLAIN and value}
        return [read, ProviderPart(_PROVIDER, extras, read.id)] if extras else [read]


def _thinking(message: Fields) -> list[ThinkingPart]:
    """The thinking of an earlier reply, in the fields in which its server takes it back."""
    details = items_of(message.get(DETAILS))
    fields = {name: message[name] for name in FIELDS if text_of(message.get(name))}
    text = next(iter(fields.values()), "") or "".join(
        text_of(d.get("text")) or text_of(d.get("summary")) for d in details
    )
    if details:
        fields[DETAILS] = details
    return [ThinkingPart(text, _PROVIDER, fields)] if fields else []


def _spoken(message: Fields) -> Any:
    """The content of a message without thinking."""
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return content
    return [part for part in content if not (isinstance(part, Mapping) and part.get("type") == "thinking")]


def _thinking_in_content(content: Any) -> list[ThinkingPart]:
    """The thinking among the content parts of an earlier reply, as Mistral's models have it."""
    thoughts = [part.get("thinking") for part in items_of(content) if part.get("type") == "thinking"]
    texts = [text_of(thought) or "".join(text_of(p.get("text")) for p in items_of(thought)) for thought in thoughts]
    return [ThinkingPart(text) for text in texts if text]


# ---------------------------------------------------------------- the settings


def _output(body: Fields) -> tuple[OutputSchema | None, dict[str, Any]]:
    """Return the schema of the reply, and the `response_format` to pass on if it is of another kind."""
    wanted = mapping_at(body.get("response_format"), "response_format")
    output, known = output_of(wanted, "response_format")
    return output, {} if known else {"response_format": wanted}


CHAT: Final = ClientWire(
    name="chat",
    reader=_Messages,
    output=_output,
    unsupported=_UNSUPPORTED,
    read_fields=frozenset(("messages", "stream_options", "response_format")),
    max_tokens=("max_completion_tokens", "max_tokens"),
    stop="stop",
    new_writer=ChatReply,
    write_whole=whole_completion,
    error=chat_error,
)
"""The wire of clients that speak chat completions."""
