"""Clients that speak OpenAI's Responses API. Source: OpenAI's API reference, "Create a model response"."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import uuid4

from agentkit.errors import show_value
from agentkit.events import SourceEvent
from agentkit.gateway.chat_reply import chat_error
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
    text_at,
    unsupported_field,
)
from agentkit.gateway.responses_reply import ResponsesReply, whole_response
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import AssistantPart, ImagePart, Message, ProviderPart, TextPart, ThinkingPart
from agentkit.models.base import ModelRequest
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
_READ: Final = frozenset((
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "functions",
    "function_call", "stream", "text", "max_output_tokens", "max_tokens", "temperature",
    *_UNSUPPORTED,
))  # fmt: skip

_CALL_FIELDS: Final = frozenset(("type", "id", "call_id", "name", "arguments", "status"))


class ResponsesClient:
    """The wire of clients that speak the Responses API."""

    name: WireName = "responses"

    def read(self, body: Mapping[str, Any]) -> ClientRequest:
        """Read a request; see `ClientWire`."""
        refuse_unsupported(body, _UNSUPPORTED)
        tools, foreign = openai_tools(body), ForeignParts()
        output, further = _output(body)
        request = ModelRequest(
            _Items(foreign).read(body),
            tools=tools.offered,
            tool_choice=tools.choice,
            parallel_tool_calls=tools.parallel,
            stream=bool(flag(body, "stream")),
            max_tokens=count(body, "max_output_tokens", "max_tokens"),
            temperature=number(body, "temperature"),
            extra=other_fields(body, _READ) | further,
            output_schema=output,
        )
        return ClientRequest(required_text(body, "model"), request, True, foreign.by_url)

    def conversation(self, body: Mapping[str, Any]) -> list[Message]:
        """Read only the conversation; see `ClientWire`."""
        refuse_unsupported(body, _STORED)
        return _Items(ForeignParts()).read(body)

    def writer(self, asked: ClientRequest) -> ResponsesReply:
        """Create the writer of a streamed reply."""
        return ResponsesReply(asked, uuid4().hex, int(time.time()))

    def whole(self, asked: ClientRequest, events: Iterable[SourceEvent]) -> dict[str, Any]:
        """Return a whole reply.

        Raises:
            RequestRefused: the reply failed.
        """
        return whole_response(asked, events, uuid4().hex, int(time.time()))

    def error(self, error: RequestRefused) -> dict[str, Any]:
        """Return the body of an error response."""
        return chat_error(error)


# ---------------------------------------------------------------- the conversation


class _Items:
    """Reads the input items of one request. Items of the model that follow each other are one reply.

    Args:
        foreign: receives the parts that only this wire has.
    """

    def __init__(self, foreign: ForeignParts) -> None:
        self._foreign = foreign
        self._conversation = ClientConversation()
        self._reply: list[AssistantPart] = []

    def read(self, body: Fields) -> list[Message]:
        self._conversation.system(text_at(body.get("instructions"), "instructions"))
        given = body.get("input")
        if isinstance(given, str) and given:
            given = [{"role": "user", "content": given}]
        if not isinstance(given, list | Mapping) or not given:
            raise invalid("input", f"expected a string with content, or a list with items, found {show_value(given)}")
        for n, item in enumerate(objects_at(given, "input")):
            self._item(item, f"input[{n}]")
        self._end_reply()
        return self._conversation.close()

    def _end_reply(self) -> None:
        self._conversation.assistant(self._reply)
        self._reply = []

    def _item(self, item: Fields, at: str) -> None:
        match item.get("type", "message" if "role" in item else None):
            case "message":
                self._message(item, at)
            case "function_call":
                self._reply += self._call(item, at)
            case "function_call_output":
                self._end_reply()
                answer = content_at(item.get("output"), f"{at}.output", self._part)
                self._conversation.result(item.get("call_id"), answer)
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
        content = content_at(item.get("content"), f"{at}.content", self._part)
        match item.get("role"):
            case "assistant":
                self._reply += [part for part in content if isinstance(part, TextPart)]
                if any(isinstance(part, ImagePart) for part in content):
                    raise invalid(f"{at}.content", "a reply of the model has text only")
                if item.get("phase"):
                    self._reply.append(ProviderPart(_PROVIDER, {"type": "message", "phase": item["phase"]}))
            case "user":
                self._end_reply()
                self._conversation.user(content)
            case "system" | "developer":
                self._end_reply()
                self._conversation.system(only_text(content, f"{at}.content"))
            case role:
                roles = "user, assistant, system or developer"
                raise invalid(f"{at}.role", f"expected {roles}, found {show_value(role)}")

    def _call(self, item: Fields, at: str) -> list[AssistantPart]:
        id = item.get("call_id") or item.get("id")
        call = self._conversation.call(id, item.get("name"), item.get("arguments"), at)
        extras = {name: value for name, value in item.items() if name not in _CALL_FIELDS and value}
        return [call, ProviderPart(_PROVIDER, {**extras, "type": "function_call"}, call.id)] if extras else [call]

    def _part(self, part: Fields, at: str) -> Part:
        match part.get("type", "text" if "text" in part else None):
            case "input_text" | "output_text" | "text" | "summary_text":
                return TextPart(text_at(part.get("text"), f"{at}.text"))
            case "refusal":
                return TextPart(text_at(part.get("refusal"), f"{at}.refusal"))
            case "input_image" | "image_url" if part.get("image_url"):
                image = part["image_url"]
                url = image.get("url") if isinstance(image, Mapping) else image
                return image_at(url, f"{at}.image_url", part, self._foreign)
            case str():  # a file, or the server's id of an image
                return self._foreign.keep(part)
            case kind:
                raise invalid(
                    f"{at}.type", f"expected the type of a part, such as input_text, found {show_value(kind)}"
                )


# ---------------------------------------------------------------- the settings


def _output(body: Fields) -> tuple[OutputSchema | None, dict[str, Any]]:
    """Return the schema of the reply, and the further fields of `text` that are passed on."""
    text = mapping_at(body.get("text"), "text")
    given = mapping_at(text.get("format"), "text.format")
    further = {name: value for name, value in text.items() if name != "format" and value is not None}
    match given.get("type"):
        case None | "text":
            output = None
        case "json_object":
            output = OutputSchema("reply", {"type": "object"})
        case "json_schema":
            output = output_at(given.get("name"), given.get("schema"), "text.format.schema")
        case _:
            output, further = None, {**further, "format": given}
    return output, {"text": further} if further else {}
