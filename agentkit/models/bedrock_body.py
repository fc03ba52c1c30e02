"""A request to Amazon Bedrock's Converse API: the body for the Messages API, in the words of Converse. Pure.

The two agree in what they require of a conversation. Text, images and files are written for Converse from the start.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from agentkit.messages import FilePart, ImagePart
from agentkit.models import valid_history
from agentkit.models.files_taken import TEXTS, FilesTaken, image_type
from agentkit.models.wire import items_of, mapping_of

_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
FORMATS: Final[Mapping[str, str]] = {
    **{f"image/{name}": name for name in ("png", "jpeg", "gif", "webp")},
    **{f"video/{name}": name for name in ("mp4", "webm", "mpeg")},
    **{f"audio/{name}": name for name in ("wav", "flac", "aac", "ogg", "opus", "mp4", "webm")},
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "video/3gpp": "three_gp",
    "audio/mpeg": "mp3",
    "audio/x-wav": "wav",
}
"""The API's names of media types; any other text is `txt`. Source: its types `ImageFormat`, `DocumentFormat`, …"""

_FILES: Final = (*(one for one in FORMATS if not one.startswith("image/")), *TEXTS)
FILES: Final = FilesTaken(_FILES, _FILES, [one for one in FORMATS if one.startswith("image/")], "s3://")

_POINT: Final[Mapping[str, Any]] = {"cachePoint": {"type": "default"}}
_NOT_IN_NAME: Final = re.compile(r"[^a-zA-Z0-9()\[\]-]+")
_NO_OUTPUT: Final = {"text": "(no output)"}  # an empty list and a blank text are refused
_WITH_DOCUMENT: Final = {"text": "(the document)"}  # "A text block must be included when using documents."


def _media(part: ImagePart | FilePart) -> dict[str, Any]:
    """An image or a file, with a type as in the Messages API."""
    kind, media_type = ("image", image_type(part)) if isinstance(part, ImagePart) else (part.kind, part.media_type)
    block = {"format": FORMATS.get(media_type, "txt"), "source": _source(part)}
    if isinstance(part, FilePart) and kind == "document":
        block["name"] = _NOT_IN_NAME.sub(" ", part.name)[:150].strip() or kind
    return {"type": kind, kind: block}


content_of: Final = partial(valid_history.filled_parts, media=_media, type="text")
"""Blocks of text, images and files, with a type as in the Messages API."""


def _source(part: ImagePart | FilePart) -> dict[str, Any]:
    if part.url is None:
        return {"bytes": part.data}
    if part.url.startswith("data:"):
        return {"bytes": base64.b64decode(part.url.partition(",")[2])}
    return {"s3Location": {"uri": part.url}}


# ---------------------------------------------------------------- the whole body


def converse_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of boto3's `converse`, and the key `stream`.

    Args:
        body: of a request to the Messages API, whose content is that of `content_of`.
    """
    limits = {"maxTokens": "max_tokens", "temperature": "temperature", "stopSequences": "stop_sequences"}
    return {
        "modelId": body["model"],
        "messages": converse_messages(body["messages"]),
        "stream": body["stream"],
        "system": _system(body.get("system")) or None,
        "inferenceConfig": {key: body[name] for key, name in limits.items() if body.get(name) is not None} or None,
        "toolConfig": _tools(items_of(body.get("tools")), mapping_of(body.get("tool_choice"))),
        "outputConfig": _output(mapping_of(mapping_of(body.get("output_config")).get("format"))),
    }


def converse_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages; those with a document also have text, and the names of documents are unique."""
    names: set[str] = set()
    made = []
    for message in messages:
        content = [block for one in message["content"] for block in _blocks(one, names)]
        if any("document" in block for block in content) and not any("text" in block for block in content):
            at = next(at for at, block in enumerate(content) if "document" in block)
            content.insert(at, dict(_WITH_DOCUMENT))
        made.append({"role": message["role"], "content": content})
    return made


def _blocks(block: Mapping[str, Any], names: set[str]) -> list[dict[str, Any]]:
    """A block, and the cache point if it is marked: before a document or a video, which it must not follow."""
    made = _block(block, names)
    if "cache_control" not in block:
        return [made]
    return [dict(_POINT), made] if block["type"] in ("document", "video") else [made, dict(_POINT)]


def _block(block: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    kind = block["type"]
    match kind:
        case "tool_use" | "server_tool_use":
            server = {"type": kind} if kind == "server_tool_use" else {}
            return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"], **server}}
        case "tool_result":
            content = [_block(one, names) for one in block.get("content", ())] or [dict(_NO_OUTPUT)]
            status = "error" if block["is_error"] else "success"
            return {"toolResult": {"toolUseId": block["tool_use_id"], "content": content, "status": status}}
        case "server_tool_result":
            given = {"toolUseId": block["tool_use_id"], "content": block["content"], "status": block["status"]}
            return {"toolResult": {**given, **({"type": block["kind"]} if "kind" in block else {})}}
        case "thinking":
            return {"reasoningContent": {"reasoningText": {"text": block["thinking"], "signature": block["signature"]}}}
        case "redacted_thinking":
            return {"reasoningContent": {"redactedContent": base64.b64decode(block["data"])}}
        case "document":
            return {kind: {**block[kind], "name": _unique(block[kind]["name"], names)}}
    return {kind: block[kind]}


def _unique(name: str, names: set[str]) -> str:
    """A name that is not taken; two documents of one name are refused."""
    unique, number = name, 1
    while unique in names:
        number += 1
        unique = f"{name} ({number})"
    names.add(unique)
    return unique


def _system(system: str | Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system or []
    return [made for block in blocks if block["text"].strip() for made in _blocks(block, set())]


def _tools(tools: Iterable[Mapping[str, Any]], choice: Mapping[str, Any]) -> dict[str, Any] | None:
    made: list[dict[str, Any]] = []
    for tool in tools:
        described = {"description": tool["description"]} if tool.get("description") else {}  # an empty one is refused
        schema = {"json": tool["input_schema"]}
        made.append({"toolSpec": {"name": tool["name"], **described, "inputSchema": schema}})
        made += [dict(_POINT)] if "cache_control" in tool else []
    if not made:
        return None
    if (kind := choice.get("type")) not in ("any", "tool"):  # `auto` is the default, and all that some models know
        return {"tools": made}
    return {"tools": made, "toolChoice": {kind: {"name": choice["name"]} if kind == "tool" else {}}}


def _output(format: Mapping[str, Any]) -> dict[str, Any] | None:
    schema = {"jsonSchema": {"schema": json.dumps(format.get("schema"))}}
    return {"textFormat": {"type": "json_schema", "structure": schema}} if format else None
