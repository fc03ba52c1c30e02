"""Content parts that are neither text nor an image: files and audio, from a client's wire into an upstream's. Pure.

In a conversation of agentkit's, an `ImagePart` with the URL `agentkit:part/0` stands for each. Source of the shapes:
the API references of OpenAI (chat completions, responses) and Anthropic (messages), November 2026.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from agentkit.gateway.client_request import RequestRefused
from agentkit.messages import FilePart, ImagePart, Message, UserMessage, UserPart

ForeignPart = Mapping[str, Any]


def put_back(value: Any, parts: Mapping[str, ForeignPart]) -> Any:
    """A request's body in the client's own wire, with each part in place of the image that stands for it.

    Args:
        value: the body, or anything in it.
        parts: as `ClientRequest.parts`.
    """
    if isinstance(value, list):
        return [put_back(one, parts) for one in value]
    if not isinstance(value, Mapping):
        return value
    if (url := _url(value)) is not None and url in parts:
        return parts[url]
    return {key: put_back(one, parts) for key, one in value.items()}


def with_files(messages: Iterable[Message], parts: Mapping[str, ForeignPart], reader: str) -> list[Message]:
    """A conversation with a `FilePart` in place of each image that stands for a file in a user's message.

    Args:
        messages: the conversation.
        parts: as `ClientRequest.parts`.
        reader: who reads it, for errors.

    Raises:
        RequestRefused: status 400; see `file_of`.
    """

    def whole(part: UserPart) -> UserPart:
        known = parts.get(part.url or "") if isinstance(part, ImagePart) else None
        return part if known is None else file_of(known, reader)

    return [UserMessage(map(whole, m.content)) if isinstance(m, UserMessage) and parts else m for m in messages]


def _url(part: Mapping[str, Any]) -> str | None:
    """The URL of an image in any of the three wires; None for any other part."""
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return url
        case {"type": "input_image", "image_url": str(url)}:
            return url
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return url
    return None


def file_of(part: ForeignPart, reader: str) -> FilePart:
    """A client's file.

    Args:
        part: the part, as the client sent it.
        reader: who reads it, for errors.

    Raises:
        RequestRefused: status 400; it is not a file, or only its own server has it.
    """
    name, url, kind = _named(part)
    try:
        if kind == "text/plain":
            return FilePart(url.encode(), kind, name=name)
        if url.startswith("data:"):
            head, _, data = url.partition(";base64,")
            return FilePart(base64.b64decode(data, validate=True), head.removeprefix("data:"), name=name)
        if url:
            return FilePart(url=url, name=name)
    except (binascii.Error, ValueError) as e:
        raise RequestRefused(400, f"a part of type {part.get('type')!r}: {e}", "unsupported_part") from None
    raise RequestRefused(
        400,
        f"a content part of type {part.get('type')!r} has no form in {reader}: send it to an upstream that speaks your "
        "API, or omit it",
        "unsupported_part",
    )


def _named(part: ForeignPart) -> tuple[str, str, str]:
    """The name of a file; its URL, data URL or text; and the type of a text. Empty for any other part."""
    match part:
        case {"type": "file", "file": {"file_data": str(data), **rest}}:
            return str(rest.get("filename") or ""), data, ""
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": "wav" | "mp3" as kind}}:
            return "", f"data:audio/{'mpeg' if kind == 'mp3' else kind};base64,{data}", ""
        case {"type": "input_file", **rest}:
            return str(rest.get("filename") or ""), str(rest.get("file_data") or rest.get("file_url") or ""), ""
        case {"type": "document", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}, **rest}:
            return str(rest.get("title") or ""), f"data:{kind};base64,{data}", ""
        case {"type": "document", "source": {"type": "url", "url": str(url)}, **rest}:
            return str(rest.get("title") or ""), url, ""
        case {"type": "document", "source": {"type": "text", "data": str(text)}, **rest}:
            return str(rest.get("title") or ""), text, "text/plain"
    return "", "", ""
