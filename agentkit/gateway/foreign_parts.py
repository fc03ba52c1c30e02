"""Content parts that are neither text nor an image: files and audio, from a client's wire into an upstream's. Pure.

In a conversation of agentkit's, an `ImagePart` with the URL `agentkit:part/0` stands for each. Source of the shapes:
the API references of OpenAI (chat completions, responses) and Anthropic (messages), November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName

_INLINE: Final = re.compile(r"data:([\w.+/-]+);base64,(.+)", re.DOTALL)


def put_back(value: Any, parts: Mapping[str, Mapping[str, Any]], client: WireName, upstream: WireName) -> Any:
    """A request's body, with each part in place of the image that stands for it.

    Args:
        value: the body, or anything in it.
        parts: as `ClientRequest.parts`.
        client: the wire in which the parts came.
        upstream: the wire of the body.

    Raises:
        RequestRefused: a part has no form in the upstream's wire.
    """
    if isinstance(value, list):
        return [put_back(one, parts, client, upstream) for one in value]
    if not isinstance(value, Mapping):
        return value
    if (url := _url(value)) is not None and url in parts:
        part = parts[url]
        return part if client == upstream else _converted(part, client, upstream)
    return {key: put_back(one, parts, client, upstream) for key, one in value.items()}


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


def _converted(part: Mapping[str, Any], client: WireName, upstream: WireName) -> dict[str, Any]:
    """A file in another wire.

    Raises:
        RequestRefused: it is not a file, or only its own server has the file.
    """
    name, data = _file(part)
    inline = _INLINE.fullmatch(data)
    if upstream == "chat" and inline:
        return {"type": "file", "file": {"filename": name, "file_data": data}}
    if upstream == "responses" and data:
        where = {"filename": name, "file_data": data} if inline else {"file_url": data}
        return {"type": "input_file", **where}
    if upstream == "messages" and data:
        source = {"type": "url", "url": data}
        if inline:
            source = {"type": "base64", "media_type": inline[1], "data": inline[2]}
        return {"type": "document", "source": source, **({"title": name} if name else {})}
    raise RequestRefused(
        400,
        f"a content part of type {part.get('type')!r} has no form in the {upstream} API, which the upstream speaks: "
        f"send it to an upstream that speaks the {client} API, or omit it",
        "unsupported_part",
    )


def _file(part: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a file and where it is, as a data URL or another one; empty for any other part."""
    match part:
        case {"type": "file", "file": {"file_data": str(data), **rest}}:
            return str(rest.get("filename") or "file"), data
        case {"type": "input_file", **rest}:
            return str(rest.get("filename") or "file"), str(rest.get("file_data") or rest.get("file_url") or "")
        case {"type": "document", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}, **rest}:
            return str(rest.get("title") or "file"), f"data:{kind};base64,{data}"
        case {"type": "document", "source": {"type": "url", "url": str(url)}, **rest}:
            return str(rest.get("title") or "file"), url
    return "", ""
