"""A server's answer to a call, made fit for the official SDK, which refuses a whole result for one item of it. Pure.

| the server sends | the SDK gets |
|---|---|
| a content item of an unknown type, or a malformed one | its JSON as text; data with a media type as data |
| content that is not a list | its text, or its JSON as text |
| no content | none |
| structured content that is not an object | its JSON as text |
| other keys, without content and structured content | their JSON as text |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentkit.checks.unicode import clean


def repair_result(result: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return a result of `tools/call` that the SDK accepts, with all of the server's content; unchanged if accepted.

    Args:
        result: as the server sent it.
        version: of the protocol, as it was agreed on.
    """
    if fits({}, result, version) or result.get("resultType", "complete") != "complete":
        return dict(result)
    base = {"content": [], "resultType": "complete"}
    content = result.get("content", [])
    blocks = [
        block if fits(base, {"content": [block]}, version) else _shown(block)
        for block in (content if isinstance(content, list) else [content])
        if block is not None
    ]
    found = {key: result[key] for key in ("structuredContent", "isError", "_meta") if result.get(key) is not None}
    fit = {key: value for key, value in found.items() if fits(base, {key: value}, version)}
    if "structuredContent" in found.keys() - fit.keys():
        blocks.append(_shown(found["structuredContent"]))
    if "isError" in found.keys() - fit.keys():
        fit["isError"] = bool(found["isError"])
    if not result.keys() & {"content", "structuredContent"} and (
        rest := {key: value for key, value in result.items() if key not in ("_meta", "isError", "resultType")}
    ):
        blocks.append(_shown(rest))
    return {**base, "content": blocks, **fit}


def fits(base: Mapping[str, Any], changes: Mapping[str, Any], version: str) -> bool:
    """Return True if the SDK accepts a result: `base` with some of its keys changed."""
    from mcp_types.methods import parse_server_result

    try:
        parse_server_result("tools/call", version, {**base, **changes})
    except KeyError:  # a version that the SDK does not check
        return True
    except (ValueError, RecursionError):
        return False
    return True


def _shown(value: Any) -> dict[str, Any]:
    """Something as a content item that every version has."""
    if isinstance(value, Mapping) and all(isinstance(value.get(key), str) for key in ("data", "mimeType")):
        return {"type": "audio", "data": value["data"], "mimeType": value["mimeType"]}  # which is data of any type
    if isinstance(value, Mapping) and isinstance(value.get("text"), str) and value.get("type") == "text":
        return {"type": "text", "text": value["text"]}  # its annotations are malformed
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"type": "text", "text": clean(said)}
