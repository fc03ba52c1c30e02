"""MCP both ways, by the official SDK (extra `mcp`): a server's tools for agentkit, and agentkit's as a server."""

from __future__ import annotations

from agentkit.foreign.absent_imports import explained_module
from agentkit.interop.mcp.endpoints import LocalServer, RemoteServer
from agentkit.interop.mcp.mcp_options import MCPProgress
from agentkit.interop.mcp.mcp_tools import MCPTools
from agentkit.interop.mcp.resources import MCPPrompt, MCPResource
from agentkit.interop.mcp.server_app import mcp_app, mcp_server

__all__ = ["LocalServer", "MCPProgress", "MCPPrompt", "MCPResource", "MCPTools", "RemoteServer"]
__all__ += ["mcp_app", "mcp_server"]

explained_module(__name__)
