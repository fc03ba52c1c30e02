"""Messages as JSON objects and back, without loss, for threads and for records of rollouts.

The format is agentkit's own.

A call's arguments are stored as a JSON string inside the object, so that a store need not handle values that JSON
itself cannot represent (`NaN`, a lone surrogate).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentkit.errors import StoreError
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    MarkupPart,
    MaterialPart,
    Message,
    MessagePart,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.tool.output import plain

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


def to_json(message: Message) -> dict[str, Any]:
    """A message as a JSON object.

    >>> to_json(UserMessage((TextPart("Hi"),)))
    {'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}
    """
    match message:
        case SystemMessage(content):
            return {"role": "system", "content": content}
        case UserMessage(content):
            return {"role": "user", "content": [part_to_json(p) for p in content]}
        case AssistantMessage(content):
            return {"role": "assistant", "content": [part_to_json(p) for p in content]}
        case ToolMessage(call_id, name, content, error):
            said = {"role": "tool", "call_id": call_id, "name": name, "content": [part_to_json(p) for p in content]}
            return said if error is None else {**said, "error": error}


def from_json(body: Mapping[str, Any]) -> Message:
    """A message from its JSON object.

    Raises:
        StoreError: this version of agentkit cannot read it.
    """
    try:
        content = body["content"]
        match body["role"]:
            case "system":
                return SystemMessage(_text(content, "content"))
            case "user":
                return UserMessage(_parts(content, _SAID))
            case "assistant":
                return AssistantMessage(_parts(content, _WRITTEN))
            case "tool":
                id, name = _text(body["call_id"], "call_id"), _text(body["name"], "name")
                error: Any = _text_or_none(body.get("error"), "error")
                return ToolMessage(id, name, _parts(content, _RETURNED), error)
            case role:
                raise ValueError(f"unknown role {role!r:.60}")
    except UNREADABLE as e:
        raise StoreError(f"a stored message cannot be read ({_why(e)}): {str(body)[:200]}") from e


def call_to_json(call: ToolCall) -> dict[str, Any]:
    """A call as a JSON object."""
    return part_to_json(call)


def call_from_json(body: Mapping[str, Any]) -> ToolCall:
    """A call from its JSON object.

    Raises:
        StoreError: this version of agentkit cannot read it.
    """
    try:
        (call,) = _parts([body], ("call",))
    except UNREADABLE as e:
        raise StoreError(f"a stored call cannot be read ({_why(e)}): {str(body)[:200]}") from e
    assert isinstance(call, ToolCall)
    return call


def part_to_json(part: MessagePart) -> dict[str, Any]:
    """A part of a message as a JSON object."""
    match part:
        case MaterialPart(text):
            return {"type": "text", "text": text, "material": True}
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart(_, media_type, url):
            source = {"media_type": media_type, "data": part.base64} if url is None else {"url": url}
            return {"type": "image", **source}
        case FilePart(_, media_type, url, name):
            source = {"data": part.base64} if url is None else {"url": url}
            return {"type": "file", "media_type": media_type, "name": name, **source}
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
        case _:  # from untyped code; if it were stored, the thread would be unreadable
            raise TypeError(f"expected a message's content as a tuple of parts, found {part!r:.100}")


def content_from_json(content: Any) -> tuple[Any, ...]:
    """The content of a result from its JSON array.

    Raises:
        KeyError, TypeError, ValueError: it is another value.
    """
    return _parts(content, _RETURNED)


def _arguments(arguments: Mapping[str, Any]) -> str:
    try:
        return _ENCODER.encode(dict(arguments))
    except (TypeError, ValueError):  # a value that no provider sent; `agentkit.tool.output` defines its JSON
        return _ENCODER.encode(plain(arguments))


UNREADABLE: Final = (KeyError, TypeError, ValueError, RecursionError)
"""What reading a body raises if it differs from what was written."""

_SAID: Final = ("text", "image", "file")
_RETURNED: Final = ("text", "image")
_WRITTEN: Final = ("text", "thinking", "call", "markup", "provider")


def _why(e: BaseException) -> str:
    return f"{type(e).__name__}: {e}"


def _parts(content: Any, kinds: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(content, (list, tuple)):
        raise TypeError(f"content is {content!r:.60}")
    for part in content:
        if part["type"] not in kinds:
            raise ValueError(f"unknown part {part['type']!r:.60}, expected one of {', '.join(kinds)}")
    return tuple(_READ[part["type"]](part) for part in content)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r:.60}, expected a string")
    return value


def _text_or_none(value: Any, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {value!r:.60}, expected an object")
    return value


def _text_part(p: Mapping[str, Any]) -> TextPart:
    return (MaterialPart if p.get("material") is True else TextPart)(_text(p["text"], "text"))


def _image(p: Mapping[str, Any]) -> ImagePart:
    if "url" in p:
        return ImagePart(url=_text(p["url"], "url"))
    data = base64.b64decode(_text(p["data"], "data"), validate=True)
    return ImagePart(data, _text(p["media_type"], "media_type"))


def _file(p: Mapping[str, Any]) -> FilePart:
    media_type, name = _text(p["media_type"], "media_type"), _text(p["name"], "name")
    if "url" in p:
        return FilePart(None, media_type, _text(p["url"], "url"), name)
    return FilePart(base64.b64decode(_text(p["data"], "data"), validate=True), media_type, None, name)


def _thinking(p: Mapping[str, Any]) -> ThinkingPart:
    data = p.get("data")
    provider = _text_or_none(p.get("provider"), "provider")
    return ThinkingPart(_text(p["text"], "text"), provider, None if data is None else _object(data, "data"))


def _provider(p: Mapping[str, Any]) -> ProviderPart:
    return ProviderPart(
        _text(p["provider"], "provider"), _object(p["data"], "data"), _text_or_none(p.get("call_id"), "call_id")
    )


def _call(p: Mapping[str, Any]) -> ToolCall:
    arguments = _object(json.loads(_text(p["arguments"], "arguments")), "arguments")
    format = _text_or_none(p.get("format"), "format")
    return ToolCall(_text(p["id"], "id"), _text(p["name"], "name"), arguments, format, _text(p["raw"], "raw"))


_READ: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "text": _text_part,
    "image": _image,
    "file": _file,
    "thinking": _thinking,
    "markup": lambda p: MarkupPart(_text(p["text"], "text")),
    "provider": _provider,
    "call": _call,
}
