"""verl's function that loads tools from a YAML file, under verl's name, and its MCP entries by `MCPTools`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from agentkit.checks.spelling import unknown
from agentkit.errors import ConfigError
from agentkit.interop.mcp import MCPTools
from agentkit.interop.verl.verl_config import McpEntry, verl_tools
from agentkit.interop.verl.verl_shape import VerlShaped


def initialize_tools_from_config(tools_config_file: str | os.PathLike[str], allow: Iterable[str] = ()) -> list[Any]:
    """The tools of a YAML file: for verl's tool classes an object of each, as in verl.

    Args:
        tools_config_file: the file.
        allow: the modules, packages or classes that it may load.

    Raises:
        ConfigError: it is wrong; the message names the file, the key and the reason.
    """
    made = verl_tools(tools_config_file, allow=allow, mcp=mcp_tools)
    return [one.tool if isinstance(one, VerlShaped) else one for one in made]


def mcp_tools(
    entry: McpEntry,
    *,
    pins: str | os.PathLike[str] | None = None,
    approve: Callable[[str], bool] | None = None,
) -> Sequence[Any]:
    """The tools of an MCP entry: the selected ones of all servers in its file, under their own names.

    Args:
        entry: the YAML's entry.
        pins: a file that keeps the tools' declarations and the approved commands, as for `MCPTools`.
        approve: called with the exact command before a local server first starts; by default the command is logged as a
            warning.

    Raises:
        ConfigError: the file is wrong, a server cannot be used, or a selected tool does not exist.
    """
    selected, found = entry.selected, dict[str, None]()

    def named(tool: str) -> str | None:
        found[tool] = None
        return tool if selected is None or tool in selected else None

    servers = MCPTools.from_file(Path(entry.servers), rename=named, timeout=entry.timeout, pins=pins, approve=approve)
    try:
        for server in servers:
            server.bound_tools()
        for name in selected or ():
            if name not in found:
                raise ConfigError(f"{entry.where}.mcp.tool_selected_list: {unknown('tool', name, found)}")
    except BaseException:
        for server in servers:
            server.close()
        raise
    return servers
