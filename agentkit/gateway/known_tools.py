"""Tools as clients declare them, one object for each declaration: what is made of a tool is then made once.

Clients send the same tools with each request, and formats, parsers and prompts are cached by the identity of a tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from agentkit.toolspec import ToolSpec

MANY: Final = 4_096  # declarations that are kept


def known_tool(name: str, description: str, parameters: Mapping[str, Any]) -> ToolSpec:
    """Return the tool with this declaration: the same object each time.

    >>> known_tool("add", "Add.", {"type": "object"}) is known_tool("add", "Add.", {"type": "object"})
    True
    """
    return _known(name, description, json.dumps(parameters, ensure_ascii=False))


@lru_cache(MANY)
def _known(name: str, description: str, parameters: str) -> ToolSpec:
    return ToolSpec(name, description, json.loads(parameters))
