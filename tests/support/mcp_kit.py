"""What the tests of MCP share: a server of any tools, and calls of its tools as a run makes them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agentkit import ToolContext, ToolRegistry, ToolResult
from agentkit.interop.mcp import MCPTools

SUPPORT = Path(__file__).parent
LOCAL = [sys.executable, str(SUPPORT / "mcp_local.py")]
"""A server by the official SDK."""


def declared(name: str, description: str = "Does it.", **schema: Any) -> dict[str, Any]:
    """A tool as a server declares it."""
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": {}, **schema}}


def raw(folder: Path, *tools: dict[str, Any] | str, **options: Any) -> MCPTools:
    """A raw server with these tools, in a folder where it notes what it is told."""
    declarations = [declared(tool) if isinstance(tool, str) else tool for tool in tools]
    (folder / "tools.json").write_text(_deep_json(declarations))
    command = [sys.executable, "-S", str(SUPPORT / "mcp_raw.py"), str(folder / "tools.json"), str(folder / "notes")]
    return MCPTools(command, **{"name": "raw", "approve": lambda command: True, **options})


def _deep_json(value: Any) -> str:
    """As JSON, however deep it is: up to Python 3.11 the recursion limit counts for it."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        return json.dumps(value)
    finally:
        sys.setrecursionlimit(limit)


def notes(folder: Path) -> list[str]:
    """What a raw server has noted."""
    return (folder / "notes").read_text().splitlines() if (folder / "notes").exists() else []


async def acall(tools: ToolRegistry, name: str, /, **arguments: Any) -> ToolResult:
    """Call a tool, as a run does."""
    bound = tools.tools[name]
    result = await bound.invoke(bound.validate(arguments, lenient=False), ToolContext("call_1", name))
    assert isinstance(result, ToolResult)
    return result


def call(tools: ToolRegistry, name: str, /, **arguments: Any) -> ToolResult:
    """The same, in an event loop of its own."""
    return asyncio.run(acall(tools, name, **arguments))
