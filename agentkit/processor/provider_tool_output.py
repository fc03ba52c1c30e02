"""The output of a provider's own tools: the texts in a provider's block that the model did not write itself.

Pure: JSON in, texts out. A block that nobody knows counts as a tool's result, without what the model writes in all of
them: names, ids and arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_LABELS: Final = re.compile(
    "type|id|name|status|caller|namespace|phase|fingerprint|created_by|toolset_name"
    "|(?:call|tool_use|container|file|approval_request)_id|server_label|(?:mcp_)?server_name"
)
"""The fields by which programs tell a block from others."""

_WRITTEN: Final = re.compile(
    "input|arguments|actions?|operation|code|queries|revised_prompt|signature|encrypted_content"
)
"""The fields that the model wrote; also those that nobody but the provider can read."""

_OFFERED: Final = "tools"
"""Tools that the model has found or been given: instructions, such as the descriptions of other tools."""

_ENCODED: Final = re.compile(r"[A-Za-z0-9+/=_-]{256,}")  # a picture, a PDF file, something encrypted: no tool's name


def texts_of(block: Mapping[str, Any]) -> list[str]:
    """Return the texts of a server-side tool in a block, in order; none for a block without its output.

    >>> texts_of({"type": "mcp_call", "name": "fetch", "arguments": '{"url": "a"}', "output": "Hello!"})
    ['Hello!']
    """
    if block.get("type") == "compaction":  # the model's summary of the conversation, all of which is still compared
        return []
    others = [key for key in block if key == _OFFERED or _LABELS.fullmatch(key) or _WRITTEN.fullmatch(key)]
    outputs = [value for key, value in block.items() if key not in others]
    action = block.get("action")
    return list(_texts([*outputs, action.get("sources") if isinstance(action, Mapping) else None]))


def offered_in(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tools that a block lists, under their key; empty if it lists none."""
    return {_OFFERED: block[_OFFERED]} if _OFFERED in block else {}


def _texts(value: Any) -> Iterator[str]:
    """Return the strings in a JSON value, as deep as it may be; neither its keys nor the types of its objects."""
    left = [value]
    while left:
        match left.pop():
            case str() as text if text and not _ENCODED.fullmatch(text):
                yield text
            case Mapping() as found:
                left += [each for key, each in found.items() if key != "type"][::-1]
            case list() | tuple() as found:
                left += reversed(found)
