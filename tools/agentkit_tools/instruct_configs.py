"""The ready-made tools by open-instruct's names, each with its configuration class: `TOOL_REGISTRY`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from agentkit.errors import ConfigError
from agentkit.interop.mcp import MCPTools
from agentkit.interop.open_instruct import BaseToolConfig
from agentkit_tools.python import Python
from agentkit_tools.remote_python import RemotePython
from agentkit_tools.search import MassiveDS, SemanticScholar, SerperSearch


@dataclass
class PythonConfig(BaseToolConfig):
    """Python code.

    Args:
        api_endpoint: a code server's address; None runs the code on this machine, in a sandbox.
        timeout: seconds for one call.
    """

    tool_class: ClassVar[type[Any]] = Python
    api_endpoint: str | None = None
    timeout: float = 5.0

    def build(self) -> Python | RemotePython:
        """The tool with these settings."""
        if self.api_endpoint is not None:
            return RemotePython(self.api_endpoint, timeout=self.timeout)
        return Python(timeout=self.timeout)


@dataclass
class SerperSearchConfig(BaseToolConfig):
    """Google, by serper.dev; the key is in `SERPER_API_KEY`."""

    tool_class: ClassVar[type[Any]] = SerperSearch
    num_results: int = 5

    def build(self) -> SerperSearch:
        """The tool with these settings.

        Raises:
            ConfigError: there is no key.
        """
        if not os.environ.get("SERPER_API_KEY"):
            raise ConfigError("expected the key of serper.dev in SERPER_API_KEY, found none")
        return SerperSearch(num_results=self.num_results)


@dataclass
class MassiveDSSearchConfig(BaseToolConfig):
    """Passages of a massive-serve server.

    Args:
        api_endpoint: the server's search; None reads `MASSIVE_DS_API_URL`.
        num_results: how many passages to request.
    """

    tool_class: ClassVar[type[Any]] = MassiveDS
    api_endpoint: str | None = None
    num_results: int = 3

    def build(self) -> MassiveDS:
        """The tool with these settings.

        Raises:
            ConfigError: there is no address.
        """
        url = self.api_endpoint or os.environ.get("MASSIVE_DS_API_URL")
        if not url:
            raise ConfigError("api_endpoint: expected the server's address, here or in MASSIVE_DS_API_URL")
        return MassiveDS(url, num_results=self.num_results)


@dataclass
class S2SearchConfig(BaseToolConfig):
    """Papers, by Semantic Scholar; the key is in `S2_API_KEY`, if there is one."""

    tool_class: ClassVar[type[Any]] = SemanticScholar
    num_results: int = 5

    def build(self) -> SemanticScholar:
        """The tool with these settings."""
        return SemanticScholar(num_results=self.num_results)


@dataclass
class MCPConfig(BaseToolConfig):
    """The tools of an MCP server.

    Args:
        tool_names: which of its tools, separated by commas; empty for all.
        url: the server's address; None takes `MCP_TRANSPORT_HOST` and `MCP_TRANSPORT_PORT`, as open-instruct does.
        command: starts a local server, in place of an address.
        timeout: seconds for one call.
    """

    tool_class: ClassVar[type[Any]] = MCPTools
    tool_names: str = ""
    url: str | None = None
    command: list[str] | None = None
    timeout: float = 180.0

    def build(self) -> MCPTools:
        """The tools with these settings, under the server's names."""
        host, port = os.environ.get("MCP_TRANSPORT_HOST", "127.0.0.1"), os.environ.get("MCP_TRANSPORT_PORT", "8000")
        only = [name.strip() for name in self.tool_names.split(",") if name.strip()]
        server: Any = self.command or self.url or f"http://{host}:{port}/mcp"
        return MCPTools(server, prefix="", only=only or None, timeout=self.timeout)


TOOL_REGISTRY: Final[dict[str, type[BaseToolConfig]]] = {
    "python": PythonConfig,
    "serper_search": SerperSearchConfig,
    "massive_ds_search": MassiveDSSearchConfig,
    "s2_search": S2SearchConfig,
    "mcp": MCPConfig,
}
