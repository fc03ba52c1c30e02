"""Reads the JSON file in which applications list MCP servers, `{"mcpServers": {name: {"command": …}}}`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agentkit.errors import ConfigError
from agentkit.interop.mcp.endpoints import Endpoint, LocalServer, endpoint
from agentkit.schemas.typed import values
from agentkit.schemas.walk import map_strings

_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")


def read_server_file(path: Path) -> dict[str, Endpoint]:
    """The servers by name, without the disabled ones.

    Raises:
        ConfigError: the file cannot be read, has another form, or uses an environment variable that is not set.
    """
    try:
        found = values.load(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ConfigError(f"{path}: cannot be read: {e.strerror}") from e
    except values.DuplicateKey as e:  # without the values, which may be secrets
        raise ConfigError(f"{path}: {e.key!r} is given twice, with different values; give it once") from None
    except ValueError as e:
        raise ConfigError(f"{path}: cannot be read as JSON: {e}") from e
    servers = found.get("mcpServers", found.get("servers")) if isinstance(found, dict) else None
    if not isinstance(servers, dict) or not all(isinstance(entry, dict) for entry in servers.values()):
        raise ConfigError(f'{path}: expected {{"mcpServers": {{"name": {{"command": "…", "args": ["…"]}}}}}}')
    return {
        name: _server(entry, f"{path}: {name}") for name, entry in servers.items() if entry.get("disabled") is not True
    }


def _server(entry: Mapping[str, Any], where: str) -> Endpoint:
    try:
        made = endpoint(map_strings(entry, lambda text: _VARIABLE.sub(_variable, text)), None, None, None)
    except ConfigError as e:
        raise ConfigError(f"{where}: {e}") from None
    if isinstance(made, LocalServer):
        words = entry.get("args") or ()
        return replace(made, shown=(made.argv[0], *words))  # with ${NAME} as written, since the values may be secrets
    return made


def _variable(found: re.Match[str]) -> str:
    name, default = found[1], found[2]
    if (value := os.environ.get(name, default)) is None:
        raise ConfigError(f"the environment variable {name} is not set")
    return str(value)
