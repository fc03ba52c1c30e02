"""Clients that speak OpenAI's chat completions. Source: OpenAI's API reference, "Create chat completion"."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import uuid4

from agentkit.errors import show_value
from agentkit.events import SourceEvent
from agentkit.gateway.chat_reply import ChatReply, chat_error, whole_completion
from agentkit.gateway.client_conversation import ClientConversation
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.request_fields import (
    Fields,
    ForeignParts,
    Part,
    UnsupportedField,
    content_at,
    count,
    flag,
    image_at,
    invalid,
    mapping_at,
    number,
    objects_at,
    only_text,
    openai_tools,
    other_fields,
    output_at,
    refuse_unsupported,
    required_text,
    stops,
    text_at,
    unsupported_field,
)
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import AssistantPart, ImagePart, Message, ProviderPart, TextPart, ThinkingPart
from agentkit.models.base import ModelRequest
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
_READ: Final = frozenset((
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "stream",
    "stream_options", "response_format", "max_tokens", "max_completion_tokens", "temperature", "stop",
    *_UNSUPPORTED,
))  # fmt: skip


class ChatClient:
    """The wire of clients that speak chat completions."""

    name: WireName = "chat"

    def read(self, body: Mapping[str, Any]) -> ClientRequest:
        """Read a request; see `ClientWire`."""
        refuse_unsupported(body, _UNSUPPORTED)
        tools, foreign = openai_tools(body), ForeignParts()
        output, formats = _output(body)
        request = ModelRequest(
            _Messages(foreign).read(body),
            tools=tools.offered,
            tool_choice=tools.choice,
            parallel_tool_calls=tools.parallel,
            stream=bool(flag(body, "stream")),
            max_tokens=count(body, "max_completion_tokens", "max_tokens"),
            temperature=number(body, "temperature"),
            stop=stops(body, "stop"),
            extra=other_fields(body, _READ) | formats,
            output_schema=output,
        )
        usage = bool(flag(mapping_at(body.get("stream_options"), "stream_options"), "include_usage"))
        return ClientRequest(required_text(body, "model"), request, usage, foreign.by_url)

    def conversation(self, body: Mapping[str, Any]) -> list[Message]:
        """Read only the conversation; see `ClientWire`."""
        return _Messages(ForeignParts()).read(body)

    def writer(self, asked: ClientRequest) -> ChatReply:
        """Create the writer of a streamed reply."""
        return ChatReply(asked, uuid4().hex, int(time.time()))

    def whole(self, asked: ClientRequest, events: Iterable[SourceEvent]) -> dict[str, Any]:
        """Return a whole reply.

        Raises:
            RequestRefused: the reply failed.
        """
        return whole_completion(asked, events, uuid4().hex, int(time.time()))

    def error(self, error: RequestRefused) -> dict[str, Any]:
        """Return the body of an error response."""
        return chat_error(error)


# ---------------------------------------------------------------- the conversation


class _Messages:
    """Reads the messages of one request.

    Args:
        foreign: receives the parts that only this wire has.
    """

    def __init__(self, foreign: ForeignParts) -> None:
        self._foreign = foreign
        self._conversation = ClientConversation()

    def read(self, body: Fields) -> list[Message]:
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise invalid("messages", f"expected a list with messages, found {show_value(body.get('messages'))}")
        for n, message in enumerate(objects_at(body["messages"], "messages")):
            self._message(message, f"messages[{n}]")
        return self._conversation.close()

    def _message(self, message: Fields, at: str) -> None:
        role, content = message.get("role"), content_at(_spoken(message), f"{at}.content", self._part)
        match role:
            case "system" | "developer":
                self._conversation.system(only_text(content, f"{at}.content"))
            case "user":
                self._conversation.user(content)
            case "assistant":
                self._conversation.assistant(self._assistant(message, content, at))
            case "tool" | "function":
                id = message.get("tool_call_id")
                self._conversation.result(id, content, name=message.get("name"))
            case _:
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
        read = self._conversation.call(call.get("id"), function.get("name"), function.get("arguments"), at)
        extras = {name: value for name, value in call.items() if name not in PLAIN and value}
        return [read, ProviderPart(_PROVIDER, extras, read.id)] if extras else [read]

    def _part(self, part: Fields, at: str) -> Part:
        kind = part.get("type", "text" if "text" in part else "image_url" if "image_url" in part else None)
        match kind:
            case "text" | "refusal" | "input_text" | "output_text":
                return TextPart(text_at(part.get("refusal" if kind == "refusal" else "text"), f"{at}.text"))
            case "image_url":
                image = part.get("image_url")
                url = image.get("url") if isinstance(image, Mapping) else image
                return image_at(url, f"{at}.image_url.url", part, self._foreign)
            case str():
                return self._foreign.keep(part)
        raise invalid(f"{at}.type", f"expected a content part, such as text or image_url, found {show_value(kind)}")


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
    match wanted.get("type"):
        case None | "text":
            return None, {}
        case "json_object":
            return OutputSchema("reply", {"type": "object"}), {}
        case "json_schema":
            given = mapping_at(wanted.get("json_schema"), "response_format.json_schema")
            return output_at(given.get("name"), given.get("schema"), "response_format.json_schema.schema"), {}
    return None, {"response_format": wanted}
