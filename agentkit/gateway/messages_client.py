"""Clients that speak Anthropic's Messages API. Source: Anthropic's API reference, "Create a Message"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import uuid4

from agentkit.errors import show_value
from agentkit.events import SourceEvent
from agentkit.gateway.client_conversation import ClientConversation
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.foreign_thinking import chat_thinking
from agentkit.gateway.messages_reply import MessagesReply, messages_error, whole_message
from agentkit.gateway.request_fields import (
    Fields,
    ForeignParts,
    Part,
    Tools,
    UnsupportedField,
    content_at,
    count,
    flag,
    image_at,
    invalid,
    is_left_out,
    mapping_at,
    number,
    objects_at,
    only_text,
    other_fields,
    output_at,
    refuse_unsupported,
    required_text,
    stops,
    text_at,
    tool_at,
    tools_for_choice,
    unsupported_field,
)
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import AssistantPart, ImagePart, Message, ProviderPart, TextPart, ThinkingPart
from agentkit.models.base import ModelRequest
from agentkit.toolspec import OutputSchema

_PROVIDER: Final = PROVIDERS["messages"]

_UNSUPPORTED: Final[Mapping[str, UnsupportedField]] = {
    "mcp_servers": UnsupportedField("tools that the server calls itself", (), "connect the client to them"),
    "container": UnsupportedField("a container of the server"),
}
_READ: Final = frozenset((
    "model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "temperature", "stop_sequences",
    "output_config", "output_format", "cache_control",
    *_UNSUPPORTED,
))  # fmt: skip

_DIRECT: Final = {"type": "direct"}  # the caller of a call that the model made itself
_PLAIN: Final = frozenset(("type", "id", "name", "input", "cache_control"))


class MessagesClient:
    """The wire of clients that speak the Messages API."""

    name: WireName = "messages"

    def read(self, body: Mapping[str, Any]) -> ClientRequest:
        """Read a request; see `ClientWire`."""
        refuse_unsupported(body, _UNSUPPORTED)
        tools, foreign = _tools(body), ForeignParts()
        output, further = _output(body)
        request = ModelRequest(
            _Messages(foreign).read(body),
            tools=tools.offered,
            tool_choice=tools.choice,
            parallel_tool_calls=tools.parallel,
            stream=bool(flag(body, "stream")),
            max_tokens=count(body, "max_tokens"),
            temperature=number(body, "temperature"),
            stop=stops(body, "stop_sequences"),
            extra=other_fields(body, _READ) | further,
            output_schema=output,
        )
        return ClientRequest(required_text(body, "model"), request, True, foreign.by_url)

    def conversation(self, body: Mapping[str, Any]) -> list[Message]:
        """Read only the conversation; see `ClientWire`."""
        return _Messages(ForeignParts()).read(body)

    def writer(self, asked: ClientRequest) -> MessagesReply:
        """Create the writer of a streamed reply."""
        return MessagesReply(asked, uuid4().hex)

    def whole(self, asked: ClientRequest, events: Iterable[SourceEvent]) -> dict[str, Any]:
        """Return a whole reply.

        Raises:
            RequestRefused: the reply failed.
        """
        return whole_message(asked, events, uuid4().hex)

    def error(self, error: RequestRefused) -> dict[str, Any]:
        """Return the body of an error response."""
        return messages_error(error)


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
        self._conversation.system(only_text(content_at(body.get("system"), "system", self._part), "system"))
        for n, message in enumerate(objects_at(body["messages"], "messages")):
            self._message(message, f"messages[{n}]")
        return self._conversation.close()

    def _message(self, message: Fields, at: str) -> None:
        content = message.get("content")
        match message.get("role"):
            case "user":
                self._user(content, f"{at}.content")
            case "assistant":
                blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
                found = enumerate(objects_at(blocks, f"{at}.content"))
                parts = [part for n, block in found for part in self._block(block, f"{at}.content[{n}]")]
                self._conversation.assistant(parts)
            case "system":  # as some clients send it
                self._conversation.system(only_text(content_at(content, at, self._part), at))
            case role:
                raise invalid(f"{at}.role", f"expected user or assistant, found {show_value(role)}")

    def _user(self, content: Any, at: str) -> None:
        said: list[Part] = []
        for n, block in enumerate(content if isinstance(content, list) else [content]):
            if not isinstance(block, Mapping) or block.get("type") != "tool_result":
                said += content_at(block, f"{at}[{n}]" if isinstance(content, list) else at, self._part)
                continue
            self._conversation.user(said)
            said = []
            answer = content_at(block.get("content"), f"{at}[{n}].content", self._part)
            failed = bool(block.get("is_error"))
            self._conversation.result(block.get("tool_use_id"), answer, error="tool_error" if failed else None)
        self._conversation.user(said)

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
                call = self._conversation.call(block.get("id"), block.get("name"), block.get("input") or {}, at)
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

    def _part(self, part: Fields, at: str) -> Part:
        match part.get("type", "text" if "text" in part else None):
            case "text":
                return TextPart(text_at(part.get("text"), f"{at}.text"))
            case "image":
                return self._image(part, at)
            case str():
                return self._foreign.keep(part)
            case kind:
                raise invalid(
                    f"{at}.type", f"expected the type of a block, such as text or image, found {show_value(kind)}"
                )

    def _image(self, part: Fields, at: str) -> ImagePart:
        source = mapping_at(part.get("source"), f"{at}.source")
        match source.get("type"):
            case "base64":
                url: Any = f"data:{source.get('media_type')};base64,{source.get('data')}"
            case "url":
                url = source.get("url")
            case _:  # a file of the server
                return self._foreign.keep(part)
        return image_at(url, f"{at}.source", part, self._foreign)


# ---------------------------------------------------------------- the settings


def _tools(body: Fields) -> Tools:
    offered = []
    for n, tool in enumerate(objects_at(body.get("tools"), "tools")):
        kind = tool.get("type") or "custom"
        if is_left_out(str(kind)):
            continue
        if kind not in ("custom", "function"):
            raise unsupported_field(
                f"tools[{n}].type", f"a tool of the type {kind!r}", "offer a tool with an input_schema"
            )
        offered.append(tool_at(tool, "input_schema", f"tools[{n}]"))
    choice = body.get("tool_choice")
    choice = mapping_at({"type": choice} if isinstance(choice, str) else choice, "tool_choice")
    disabled = flag(choice, "disable_parallel_tool_use")
    parallel = None if disabled is None else not disabled
    match choice.get("type") or "auto":
        case "auto" | "none" | "required" as kind:
            return tools_for_choice(offered, kind, parallel, None)
        case "any":
            return tools_for_choice(offered, "required", parallel, None)
        case "tool" if isinstance(choice.get("name"), str):
            return tools_for_choice(offered, choice["name"], parallel, None)
        case kind:
            raise invalid("tool_choice", f"expected auto, any, none, or tool with a name, found {show_value(kind)}")


def _output(body: Fields) -> tuple[OutputSchema | None, dict[str, Any]]:
    """Return the schema of the reply, and the further fields of `output_config` that are passed on."""
    config = mapping_at(body.get("output_config"), "output_config")
    further = {name: value for name, value in config.items() if name != "format" and value is not None}
    given = mapping_at(config.get("format") or body.get("output_format"), "output_config.format")
    others: dict[str, Any] = {"output_config": further} if further else {}
    if not given:
        return None, others
    if given.get("type") != "json_schema":
        raise invalid("output_config.format.type", f"expected json_schema, found {show_value(given.get('type'))}")
    return output_at(given.get("name"), given.get("schema"), "output_config.format.schema"), others
