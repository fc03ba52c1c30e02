"""Results, from a server's form to agentkit's and back; nothing that a server sent is dropped. Pure.

| MCP | agentkit |
|---|---|
| text | text |
| image | image |
| audio, other binary data | a note with its type and size for the model; the data in `metadata["mcp"]["data"]` |
| embedded text resource | its text, preceded by its URI |
| link to a resource | its name and URI as text |
| structured content | `metadata["mcp"]["structured"]`; and the output, if there is no other text or only the same JSON;
otherwise its JSON after the text, unless the text says all of it |
| `isError` | an error with the text as its message |
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentkit.messages import ImagePart, ResultContent, TextPart
from agentkit.schemas.walk import map_strings
from agentkit.tool.output import plain
from agentkit.tool.result import ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

    from agentkit.interop.mcp.returned_type import ReturnedType

_OTHER_TYPE: Final = "the tool has run, but this result does not have the type that the tool declares"
_BINARY: Final = "application/octet-stream"

Shown = Callable[[str], str]
"""Removes secrets from a text."""


def result_of(answer: CallToolResult, shown: Shown = str) -> ToolResult:
    """A server's result as a `ToolResult`."""
    kept: list[dict[str, Any]] = []
    parts = blocks_of(answer.content, shown, kept)
    about: dict[str, Any] = {}
    structured = map_strings(answer.structured_content, shown, keys=True)
    if structured is not None:
        about["structured"] = structured
    if kept:
        about["data"] = kept
    metadata = {"mcp": about} if about else {}
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    blank = not "".join(texts).strip()  # some servers send an empty text next to the structure
    if answer.is_error:
        shows = structured is not None and not _repeats(texts, structured)  # it may say what to correct
        said = "\n".join([*([] if blank else texts), *([json.dumps(structured, ensure_ascii=False)] if shows else [])])
        return ToolResult(error=said, content=tuple(p for p in parts if isinstance(p, ImagePart)), metadata=metadata)
    if structured is not None and (blank or _is_json_of(texts, structured)):
        return ToolResult(structured, content=tuple(p for p in parts if isinstance(p, ImagePart)), metadata=metadata)
    if structured is not None and not _repeats(texts, structured):
        parts.append(TextPart(f"\n{json.dumps(structured, ensure_ascii=False)}"))
    return ToolResult(content=tuple(parts), metadata=metadata)


def blocks_of(
    blocks: Iterable[ContentBlock], shown: Shown, kept: list[dict[str, Any]] | None = None
) -> list[TextPart | ImagePart]:
    """Content blocks as the parts that a model reads; other data goes to `kept`."""
    data = [] if kept is None else kept
    return [_clean(part, shown) for block in blocks for part in _parts(block, data)]


def resource_result(contents: Iterable[Any], shown: Shown) -> ToolResult:
    """The contents of a resource as a `ToolResult`."""
    kept: list[dict[str, Any]] = []
    parts = [
        TextPart(one.text) if hasattr(one, "text") else _binary(one.blob, one.mime_type or _BINARY, kept, one.uri)
        for one in contents
    ]
    metadata = {"mcp": {"data": kept}} if kept else {}
    return ToolResult(content=tuple(_clean(part, shown) for part in parts), metadata=metadata)


def _clean(part: TextPart | ImagePart, shown: Shown) -> TextPart | ImagePart:
    return TextPart(shown(part.text)) if isinstance(part, TextPart) else part


def _is_json_of(texts: list[str], structured: Any) -> bool:
    """Say if the text is the structured content once more, as older clients need it."""
    try:
        return len(texts) == 1 and bool(json.loads(texts[0]) == structured)
    except (ValueError, RecursionError):
        return False


def _repeats(texts: list[str], structured: Any) -> bool:
    """Say if the text says all of the structured content, maybe without the object that servers put around a value.

    The official SDKs' key is `result`, that of the reference server for files `content`.
    """
    if _is_json_of(texts, structured):
        return True
    if not (isinstance(structured, Mapping) and len(structured) == 1):
        return False
    (value,) = structured.values()
    each = value if isinstance(value, list) and len(value) == len(texts) != 1 else [value]
    return len(each) == len(texts) and all(
        text == one or _is_json_of([text], one) for text, one in zip(texts, each, strict=True)
    )


def _parts(block: ContentBlock, kept: list[dict[str, Any]]) -> Iterable[TextPart | ImagePart]:
    """Yield the parts of one block that the model reads; data that it cannot read goes to `kept`."""
    match block.type:
        case "text":
            yield TextPart(block.text)
        case "image" | "audio":
            yield _binary(block.data, block.mime_type, kept)
        case "resource_link":
            about = f" ({block.mime_type})" if block.mime_type else ""
            more = f": {block.description}" if block.description else ""
            yield TextPart(f"resource {block.title or block.name!r}{about} at {block.uri}{more}")
        case "resource":
            resource = block.resource
            if hasattr(resource, "text"):
                yield TextPart(f"{resource.uri}:\n{resource.text}")
            else:
                yield _binary(resource.blob, resource.mime_type or _BINARY, kept, resource.uri)


def _binary(data: str, kind: str, kept: list[dict[str, Any]], uri: str | None = None) -> TextPart | ImagePart:
    """An image, if a model can read it; otherwise a note."""
    try:
        decoded = base64.b64decode(data, validate=True)
        size = f"{len(decoded):,} bytes"
        if kind.startswith("image/") and decoded:
            image = ImagePart(decoded, kind).repaired_image
            if image.fault is None:
                return image
            size += f", {image.fault}"
    except (binascii.Error, ValueError) as e:
        size = f"damaged: {e}"
    kept.append({"media_type": kind, "base64": data, **({"uri": uri} if uri else {})})
    return TextPart(f"[{kind}, {size}{f', {uri}' if uri else ''}: not shown]")


def answer_of(result: ToolResult, parts: ResultContent, returned: ReturnedType | None = None) -> CallToolResult:
    """A `ToolResult` as a server's.

    Args:
        result: the result.
        parts: the parts that a model may read.
        returned: the type that the tool declares; a result of another type is an error, since clients refuse it.
    """
    from mcp_types import CallToolResult, TextContent

    content = [_block(part) for part in parts]
    if not result.ok:
        return CallToolResult(content=content, is_error=True)
    if returned is not None:
        structured = returned.structure(result.output)
    else:
        value = None if isinstance(result.output, str) else plain(result.output)
        structured = value if isinstance(value, dict) else None  # a list or a number has no place there
    if structured is None and returned is not None:
        content.append(TextContent(type="text", text=_OTHER_TYPE))
        return CallToolResult(content=content, is_error=True)
    return CallToolResult(content=content, structured_content=structured)


def _block(part: TextPart | ImagePart) -> ContentBlock:
    from mcp_types import ImageContent, ResourceLink, TextContent

    if isinstance(part, TextPart):
        return TextContent(type="text", text=part.text)
    if part.data is None:
        return ResourceLink(type="resource_link", name="image", uri=part.url or "")
    return ImageContent(type="image", data=part.base64, mime_type=part.media_type)
