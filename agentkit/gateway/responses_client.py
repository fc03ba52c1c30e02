"""Clients that speak OpenAI's Responses API. Source: OpenAI's API reference, "Create a model response"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.errors import show_value
from agentkit.gateway.chat_reply import chat_error
from agentkit.gateway.client_conversation import ClientConversation
from agentkit.gateway.request_fields import (
    Fields,
    UnsupportedField,
    invalid,
    mapping_at,
    objects_at,
    output_of,
    refuse_unsupported,
    text_at,
    unsupported_field,
)
from agentkit.gateway.request_reader import ClientWire
from agentkit.gateway.responses_reply import ResponsesReply, whole_response
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import AssistantPart, ImagePart, Message, ProviderPart, TextPart, ThinkingPart
from agentkit.models.wire import items_of, text_of
from agentkit.toolspec import OutputSchema

_PROVIDER: Final = PROVIDERS["responses"]

_WHOLE: Final = "send the whole conversation as input, with store=false"
_STORED: Final[Mapping[str, UnsupportedField]] = {
    "previous_response_id": UnsupportedField("a conversation that the server stores", (), _WHOLE),
    "conversation": UnsupportedField("a conversation that the server stores", (), _WHOLE),
    "prompt": UnsupportedField("a prompt that the server stores", (), "send its text as instructions"),
}
_UNSUPPORTED: Final[Mapping[str, UnsupportedField]] = {
    **_STORED,
    "background": UnsupportedField("a reply that is made later"),
    "top_logprobs": UnsupportedField("the log probabilities of tokens"),
}
_CALL_FIELDS: Final = frozenset(("type", "id", "call_id", "name", "arguments", "status"))


class _Items(ClientConversation):
    """Reads the input items of one request. Items of the model that follow each other are one reply."""

    def __init__(self) -> None:
        super().__init__()
        self._reply: list[AssistantPart] = []

    def read(self, body: Fields) -> list[Message]:
        refuse_unsupported(body, _STORED)
        self.system(text_at(body.get("instructions"), "instructions"), "instructions")
        given = body.get("input")
        if isinstance(given, str) and given:
            given = [{"role": "user", "content": given}]
        if not isinstance(given, list | Mapping) or not given:
            raise invalid("input", f"expected a string with content, or a list with items, found {show_value(given)}")
        for n, item in enumerate(objects_at(given, "input")):
            self._item(item, f"input[{n}]")
        self._end_reply()
        return self.close()

    def _end_reply(self) -> None:
        self.assistant(self._reply)
        self._reply = []

    def _item(self, item: Fields, at: str) -> None:
        match item.get("type", "message" if "role" in item else None):
            case "message":
                self._message(item, at)
            case "function_call":
                self._reply += self._call(item, at)
            case "function_call_output":
                self._end_reply()
                self.result(item.get("call_id"), self.content(item.get("output"), f"{at}.output"))
            case "reasoning":
                texts = [text_of(part.get("text")) for part in items_of(item.get("content") or item.get("summary"))]
                self._reply.append(ThinkingPart("\n\n".join(texts), _PROVIDER, item))
            case "item_reference":
                raise unsupported_field(at, "an item that the server stores", _WHOLE)
            case "custom_tool_call" | "custom_tool_call_output" as kind:
                raise unsupported_field(
                    f"{at}.type", f"an item of the type {kind!r}", "offer a function with one string"
                )
            case str():
                self._reply.append(ProviderPart(_PROVIDER, item))
            case kind:
                raise invalid(f"{at}.type", f"expected the type of an item, such as message, found {show_value(kind)}")

    def _message(self, item: Fields, at: str) -> None:
        given, where = item.get("content"), f"{at}.content"
        match item.get("role"):
            case "assistant":
                content = self.content(given, where)
                self._reply += [part for part in content if isinstance(part, TextPart)]
                if any(isinstance(part, ImagePart) for part in content):
                    raise invalid(where, "a reply of the model has text only")
                if item.get("phase"):
                    self._reply.append(ProviderPart(_PROVIDER, {"type": "message", "phase": item["phase"]}))
            case "user":
                self._end_reply()
                self.user(self.content(given, where))
            case "system" | "developer":
                self._end_reply()
                self.system(given, where)
            case role:
                roles = "user, assistant, system or developer"
                raise invalid(f"{at}.role", f"expected {roles}, found {show_value(role)}")

    def _call(self, item: Fields, at: str) -> list[AssistantPart]:
        id = item.get("call_id") or item.get("id")
        call = self.call(id, item.get("name"), item.get("arguments"), at)
        extras = {name: value for name, value in item.items() if name not in _CALL_FIELDS and value}
        return [call, ProviderPart(_PROVIDER, {**extras, "type": "function_call"}, call.id)] if extras else [call]


# ---------------------------------------------------------------- the settings


def _output(body: Fields) -> tuple[OutputSchema | None, dict[str, Any]]:
    """Return the schema of the reply, and the further fields of `text` that are passed on."""
    text = mapping_at(body.get("text"), "text")
    given = mapping_at(text.get("format"), "text.format")
    further = {name: value for name, value in text.items() if name != "format" and value is not None}
    output, known = output_of(given, "text.format")
    further |= {} if known else {"format": given}
    return output, {"text": further} if further else {}


RESPONSES: Final = ClientWire(
    name="responses",
    reader=_Items,
    output=_output,
    unsupported=_UNSUPPORTED,
    read_fields=frozenset(("input", "instructions", "text")),
    max_tokens=("max_output_tokens", "max_tokens"),
    stop="",
    new_writer=ResponsesReply,
    write_whole=whole_response,
    error=chat_error,
)
"""The wire of clients that speak the Responses API."""
