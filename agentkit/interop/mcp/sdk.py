"""Check that the official SDK is installed, in a version that this adapter knows."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from agentkit.errors import ConfigError, install_command


def require_sdk() -> None:
    """Refuse to start without the SDK.

    Raises:
        ConfigError: it is missing, or older than 2, whose interface is a different one.
    """
    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise ConfigError(f"MCP requires the official SDK: {install_command('mcp')}") from None
    if int(found.partition(".")[0]) < 2:
        raise ConfigError(f"the MCP SDK {found} is installed, 2.3 or newer is required: {install_command('mcp')}")
