"""Servers and clients that nobody here wrote. Marked `soak`: they are installed, or found, first.

`AGENTKIT_MCP_NPM` and `AGENTKIT_MCP_PYTHON` name folders to install into, and to find the programs in afterwards: an
npm project, and a virtual environment (some servers need an older SDK than ours).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the official SDK is not installed: agentkit-calls[mcp]")

from mcp_http import served
from mcp_kit import call

from agentkit import ImagePart, ToolRegistry
from agentkit.interop.mcp import MCPProgress, MCPTools

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

CANARY = "canary-7f3a9b21c4"


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of npm packages."""
    folder = Path(os.environ.get("AGENTKIT_MCP_NPM") or tmp_path_factory.mktemp("npm"))
    programs = folder / "node_modules" / ".bin"
    if programs.exists():
        return programs
    if shutil.which("npm") is None:
        pytest.skip("npm is missing")
    names = ("everything", "filesystem", "memory", "sequential-thinking")
    packages = [f"@modelcontextprotocol/server-{name}" for name in names]
    done = subprocess.run(
        ["npm", "install", "--prefix", folder, *packages], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"npm cannot install the servers: {done.stderr[-300:]}")
    return programs


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a virtual environment."""
    folder = Path(os.environ.get("AGENTKIT_MCP_PYTHON") or tmp_path_factory.mktemp("python"))
    programs = folder / "bin"
    if (programs / "mcp-server-time").exists():
        return programs
    venv.create(folder, with_pip=True)
    install = [programs / "python", "-m", "pip", "install", "-q", "mcp-server-time", "mcp-server-git", "fastmcp"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install the servers: {done.stderr[-300:]}")
    return programs


def started(program: Path, *words: str, **options: Any) -> MCPTools:
    return MCPTools([str(program), *words], approve=lambda _: True, connect_timeout=120, **options)


def test_the_reference_server_for_everything(npm: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[MCPProgress] = []
    handlers: dict[str, Any] = {"elicit": lambda message, schema: {"name": "Ada"}, "sample": lambda asked: "a sample"}
    with started(npm / "mcp-server-everything", env={"API_KEY": CANARY}, on_progress=seen.append, **handlers) as server:
        tools = ToolRegistry(server)
        assert (server.refused, server.changed) == ({}, {})
        assert call(tools, "everything_echo", message="hi").text == "Echo: hi"
        assert call(tools, "everything_get-sum", a=1, b=2).text == "The sum of 1 and 2 is 3."
        environment = call(tools, "everything_get-env").text
        assert '"API_KEY": "[key]"' in environment
        assert CANARY not in environment + caplog.text
        assert any(isinstance(part, ImagePart) for part in call(tools, "everything_get-tiny-image").content)
        weather = call(tools, "everything_get-structured-content", location="New York")
        assert weather.metadata["mcp"]["structured"]["conditions"]
        call(tools, "everything_trigger-long-running-operation", duration=1, steps=3)
        assert [p.progress for p in seen] == [1, 2, 3]
        assert "a sample" in call(tools, "everything_trigger-sampling-request", prompt="x").text
        assert "Ada" in call(tools, "everything_trigger-elicitation-request").text


def test_the_reference_server_for_files(npm: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with started(npm / "mcp-server-filesystem", str(tmp_path)) as server:
        tools = ToolRegistry(server)
        assert call(tools, "filesystem_read_text_file", path=str(tmp_path / "a.txt")).text == "hello"
        refused = call(tools, "filesystem_read_text_file", path="/etc/passwd")
        assert "Access denied" in (refused.error or "")


def test_the_reference_server_for_memory(npm: Path, tmp_path: Path) -> None:
    with started(npm / "mcp-server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "m.json")}) as server:
        tools = ToolRegistry(server)
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote a program"]}
        call(tools, "memory_create_entities", entities=[entity])
        assert json.loads(call(tools, "memory_read_graph").text)["entities"] == [entity]


def test_the_reference_server_for_thinking(npm: Path) -> None:
    with started(npm / "mcp-server-sequential-thinking") as server:
        tools = ToolRegistry(server)
        thought = {"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
        result = call(tools, "sequential_thinking_sequentialthinking", **thought)
        assert result.metadata["mcp"]["structured"]["thoughtHistoryLength"] == 1


def test_a_server_from_the_python_registry(python: Path) -> None:
    with started(python / "mcp-server-time") as server:
        tools = ToolRegistry(server)
        now = call(tools, "time_get_current_time", timezone="Europe/Berlin")
        assert json.loads(now.text)["timezone"] == "Europe/Berlin"
        assert "Invalid timezone" in (call(tools, "time_get_current_time", timezone="Mars/X").error or "")


FASTMCP = """
import asyncio, json, sys
from fastmcp import Client

async def main():
    async with Client(json.loads(sys.argv[1])) as client:
        names = [tool.name for tool in await client.list_tools()]
        added = await client.call_tool("add", {"a": 40, "b": 2})
        picture = await client.call_tool("dot", {})
        failed = await client.call_tool("fail", {}, raise_on_error=False)
        print(json.dumps([names, added.content[0].text, picture.content[0].mimeType, failed.is_error]))

asyncio.run(main())
"""


def fastmcp(python: Path, where: Any) -> Any:
    """What FastMCP's client says of our server."""
    done = subprocess.run(
        [python / "python", "-c", FASTMCP, json.dumps(where)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


TOOLS = """
from agentkit import ImagePart, ToolResult
import base64

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

def dot() -> ImagePart:
    "Draw a dot."
    return ImagePart(base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))

def fail() -> ToolResult:
    "Fail."
    return ToolResult(error="no")

tools = [add, dot, fail]
"""
EXPECTED = [["add", "dot", "fail"], "42", "image/png", True]


def test_the_client_of_fastmcp_over_stdio(python: Path, tmp_path: Path) -> None:
    (tmp_path / "three.py").write_text(TOOLS)
    command = {"command": sys.executable, "args": ["-m", "agentkit", "mcp", "--tools", "three:tools"]}
    servers = {"mcpServers": {"ours": {**command, "cwd": str(tmp_path)}}}
    assert fastmcp(python, servers) == EXPECTED


def test_the_client_of_fastmcp_over_http(python: Path) -> None:
    made: dict[str, Any] = {}
    exec(TOOLS, made)
    with served(made["tools"]) as url:
        assert fastmcp(python, url) == EXPECTED
