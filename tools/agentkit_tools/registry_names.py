"""The ready-made tools by the names that training configurations use. A class is loaded when it is requested."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

from agentkit.errors import ConfigError

KNOWN: Final[Mapping[str, str]] = {
    "python": "agentkit_tools.python:Python",
    "serper_search": "agentkit_tools.search:SerperSearch",
    "massive_ds_search": "agentkit_tools.search:MassiveDS",
    "s2_search": "agentkit_tools.search:SemanticScholar",
    "mcp": "agentkit.interop.mcp:MCPTools",
    "search": "agentkit_tools.search:RetrievalSearch",
    "browse": "agentkit_tools.web:Web",
    "calc_geo3k_reward": "agentkit_tools.rewards:Geo3k",
    "calc_gsm8k_reward": "agentkit_tools.rewards:Gsm8k",
}
"""Where each tool's class is. The first five names are those of open-instruct."""


def tool_class(name: str) -> type:
    """The class of a tool.

    Args:
        name: one of `KNOWN`.

    Raises:
        ConfigError: there is no tool of this name, or it cannot be loaded.

    >>> tool_class("serper_search").__name__
    'SerperSearch'
    """
    if name not in KNOWN:
        raise ConfigError(f"there is no tool named {name!r:.60}; there are {', '.join(KNOWN)}")
    module, _, cls = KNOWN[name].partition(":")
    try:
        found = getattr(importlib.import_module(module), cls)
    except (ImportError, AttributeError) as e:
        raise ConfigError(f"the tool {name!r}, {KNOWN[name]}, cannot be loaded: {e}") from e
    assert isinstance(found, type)
    return found
