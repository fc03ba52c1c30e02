"""Messages as JSON objects and back, without loss. The shape is agentkit's own and has a version: `VERSION`.

A call's arguments travel as JSON text inside the object, so that what JSON itself cannot say (`NaN`, a lone surrogate)
is not the store's business.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentkit.errors import StoreError
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    MarkupPart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.output import plain

VERSION: Final = 1
"""Grows when an older agentkit could not read what a newer one writes."""

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)

Part = TextPart | ImagePart | ThinkingPart | ToolCall | MarkupPart | ProviderPart


def to_json(message: Message) -> dict[str, Any]:
    """A message as a JSON object.

    >>> to_json(UserMessage((TextPart("Hi"),)))
    {'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}
    """
    match message:
        case SystemMessage(content):
            return {"role": "system", "content": content}
        case UserMessage(content):
            return {"role": "user", "content": [_part(p) for p in content]}
        case AssistantMessage(content):
            return {"role": "assistant", "content": [_part(p) for p in content]}
        case ToolMessage(call_id, name, content, error):
            said = {"role": "tool", "call_id": call_id, "name": name, "content": [_part(p) for p in content]}
            return said if error is None else {**said, "error": error}


def from_json(body: Mapping[str, Any]) -> Message:
    """A message from its JSON object.

    Raises:
        StoreError: it is none that this version of agentkit can read.
    """
    try:
        content = body["content"]
        match body["role"]:
            case "system":
                return SystemMessage(content)
            case "user":
                return UserMessage(tuple(map(_read, content)))
            case "assistant":
                return AssistantMessage(tuple(map(_read, content)))
            case "tool":
                return ToolMessage(body["call_id"], body["name"], tuple(map(_read, content)), body.get("error"))
            case role:
                raise ValueError(f"unknown role {role!r}")
    except (KeyError, TypeError, ValueError) as e:
        raise StoreError(f"a stored message cannot be read ({type(e).__name__}: {e}): {str(body)[:200]}") from e


def call_to_json(call: ToolCall) -> dict[str, Any]:
    """A call as a JSON object."""
    return _part(call)


def planned_call(call: ToolCall) -> dict[str, Any]:
    """A call that is to be run, as a JSON object: with a `key` of its own, under which its effect happens once."""
    return {**call_to_json(call), "key": secrets.token_hex(16)}


def call_from_json(body: Mapping[str, Any]) -> ToolCall:
    """A call from its JSON object."""
    call: ToolCall = _READ["call"](body)
    return call


def _part(part: Part) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart(None, _, url):
            return {"type": "image", "url": url}
        case ImagePart(_, media_type):
            return {"type": "image", "media_type": media_type, "data": part.base64}
        case ThinkingPart(text, None):
            return {"type": "thinking", "text": text}
        case ThinkingPart(text, provider, data):
            return {"type": "thinking", "text": text, "provider": provider, "data": data}
        case MarkupPart(text):
            return {"type": "markup", "text": text}
        case ProviderPart(provider, data, call_id):
            said = {"type": "provider", "provider": provider, "data": data}
            return said if call_id is None else {**said, "call_id": call_id}
        case ToolCall(id, name, arguments, format, raw):
            said = {"type": "call", "id": id, "name": name, "arguments": _arguments(arguments), "raw": raw}
            return said if format is None else {**said, "format": format}
        case _:  # from code without types; kept, nobody could read the thread again
            raise TypeError(f"a message's content is a tuple of parts, found {part!r:.100}")


def _arguments(arguments: Mapping[str, Any]) -> str:
    try:
        return _ENCODER.encode(dict(arguments))
    except (TypeError, ValueError):  # a value that no provider sent; what it is in JSON `agentkit.output` says
        return _ENCODER.encode(plain(arguments))


def _read(part: Mapping[str, Any]) -> Any:
    return _READ[part["type"]](part)


_READ: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "text": lambda p: TextPart(p["text"]),
    "image": lambda p: (
        ImagePart(url=p["url"]) if "url" in p else ImagePart(base64.b64decode(p["data"]), p["media_type"])
    ),
    "thinking": lambda p: ThinkingPart(p["text"], p.get("provider"), p.get("data")),
    "markup": lambda p: MarkupPart(p["text"]),
    "provider": lambda p: ProviderPart(p["provider"], p["data"], p.get("call_id")),
    "call": lambda p: ToolCall(p["id"], p["name"], json.loads(p["arguments"]), p.get("format"), p["raw"]),
}
