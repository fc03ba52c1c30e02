"""Ours as an MCP server: driven by the official client, over stdio and streamable HTTP, and from the command line."""

from __future__ import annotations

import asyncio
import base64
import math
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest

pytest.importorskip("mcp", reason="the official SDK is not installed: agentkit-calls[mcp]")

from command_line import FILES, Say
from mcp import Client, StdioServerParameters
from mcp_http import served
from pydantic import BaseModel, Field

from agentkit import ImagePart, Tool, ToolRegistry, ToolResult, openapi_schema, xml_schema
from agentkit.errors import ConfigError
from agentkit.interop.mcp import mcp_app, mcp_server
from agentkit.interop.mcp.returned_type import returned_type

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass
class Spot:
    x: float
    y: float


class Desk(Tool):
    """What a tool can return."""

    @openapi_schema
    @xml_schema(tag_name="add", mappings=[{"param_name": "a"}, {"param_name": "b"}])
    def add(self, a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: the first.
            b: the second.
        """
        return a + b

    @openapi_schema
    def rows(self) -> dict[str, Any]:
        """List the rows."""
        return {"rows": [1, 2]}

    @openapi_schema
    def spot(self) -> Spot:
        """Where the desk is."""
        return Spot(1.5, 2.0)

    @openapi_schema
    def picture(self) -> ToolResult:
        """Draw a dot."""
        return ToolResult("a dot", content=[ImagePart(PNG), ImagePart(url="https://example.org/dot.png")])

    @openapi_schema
    def fail(self) -> ToolResult:
        """Fail."""
        return self.fail_response("no such row")

    @openapi_schema(requires_approval=True)
    def delete(self) -> str:
        """Delete everything."""
        return "deleted"

    @openapi_schema(timeout=0.1)
    async def wait(self) -> str:
        """Take too long."""
        await asyncio.sleep(60)
        return "late"


async def shown(client: Client, name: str, **arguments: Any) -> tuple[bool, list[str], Any]:
    """A result in short: whether it is an error, its blocks, its structured content."""
    result = await client.call_tool(name, arguments)
    blocks = [
        getattr(block, "text", None) or f"{block.type} {getattr(block, 'mime_type', '')}" for block in result.content
    ]
    return result.is_error, blocks, result.structured_content


def test_every_kind_of_result_reaches_the_official_client() -> None:
    async def main() -> None:
        async with Client(mcp_server([Desk()])) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == ["add", "rows", "spot", "picture", "fail", "delete", "wait"]
            assert listed[0].description == "Add two numbers."
            assert listed[0].input_schema["properties"]["a"] == {"type": "integer", "description": "the first."}
            assert listed[0].output_schema == {
                "type": "object",
                "properties": {"result": {"type": "integer"}},
                "required": ["result"],
            }
            assert listed[2].output_schema["required"] == ["x", "y"]
            assert [tool.name for tool in listed if tool.output_schema is None] == ["picture", "fail", "delete", "wait"]
            assert await shown(client, "add", a=1, b=2) == (False, ["3"], {"result": 3})
            assert await shown(client, "rows") == (False, ['{"rows": [1, 2]}'], {"rows": [1, 2]})
            assert await shown(client, "spot") == (False, ['{"x": 1.5, "y": 2.0}'], {"x": 1.5, "y": 2.0})
            picture = (False, ["a dot", "image image/png", "resource_link None"], None)
            assert await shown(client, "picture") == picture
            assert await shown(client, "fail") == (True, ["no such row"], None)
            error, [said], _ = await shown(client, "wait")
            assert (error, said) == (True, "no result after 0.1 s: the tool was stopped")

    asyncio.run(main())


class Leg(BaseModel):
    length: Annotated[float, Field(gt=0)]
    joined: list[Leg] = []


def tree() -> Leg:
    """A tree."""
    return Leg(length=1, joined=[Leg(length=2)])


def names() -> list[str]:
    """The names."""
    return ["a", "b"]


class Row(BaseModel):
    row_id: int = Field(alias="rowId")


def rows() -> list[Row]:
    """The rows."""
    return [Row(rowId=1)]


def wrong() -> dict[str, int]:
    """A value of another type."""
    return {"a": "one"}  # type: ignore[dict-item]


def no_number() -> Spot:
    """A value that JSON does not have."""
    return Spot(1.5, math.nan)


def raw() -> dict[str, bytes]:
    """Bytes that are no text."""
    return {"a": b"\xff"}


def many() -> Iterator[int]:
    """Several values."""
    return iter([1])


OTHER = "the tool has run, but this result does not have the type that the tool declares"


@pytest.mark.parametrize(
    ("tool", "structured"),
    [
        (tree, {"result": {"length": 1.0, "joined": [{"length": 2.0, "joined": []}]}}),
        (names, {"result": ["a", "b"]}),
        (rows, {"result": [{"rowId": 1}]}),
        (raw, {"a": "/w=="}),
        (wrong, OTHER),
        (no_number, OTHER),
    ],
)
def test_the_official_client_checks_results_against_the_return_type(tool: Any, structured: object) -> None:
    async def main() -> tuple[bool, list[str], Any]:
        async with Client(mcp_server([tool])) as client:
            await client.list_tools()
            return await shown(client, tool.__name__)

    error, blocks, found = asyncio.run(main())
    assert (blocks[-1] if error else found) == structured


def test_an_iterator_has_no_output_schema() -> None:
    assert returned_type(ToolRegistry(many).tools["many"]) is None


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("add", {"a": "x", "b": 1}, "invalid arguments for add:\n- /a: expected integer"),
        ("ad", {}, "there is no tool 'ad'; did you mean 'add'?"),
        ("delete", {}, "not run: delete needs a person's approval, and nobody is here to give it"),
    ],
)
def test_a_call_that_does_not_run_says_why(name: str, arguments: dict[str, Any], said: str) -> None:
    async def main() -> tuple[bool, list[str], Any]:
        async with Client(mcp_server([Desk()])) as client:
            return await shown(client, name, **arguments)

    error, [text], _ = asyncio.run(main())
    assert (error, said in text) == (True, True), text


def test_approval_can_be_given_in_advance() -> None:
    async def main() -> tuple[bool, list[str], Any]:
        async with Client(mcp_server([Desk()], approve_all=True)) as client:
            return await shown(client, "delete")

    assert asyncio.run(main()) == (False, ["deleted"], None)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_over_http(mode: str) -> None:
    async def main(url: str) -> tuple[bool, list[str], Any]:
        async with Client(url, mode=mode) as client:
            return await shown(client, "add", a=40, b=2)

    with served([Desk()]) as url:
        assert asyncio.run(main(url)) == (False, ["42"], {"result": 42})


# ---------------------------------------------------------------- who may reach it


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost:80@evil.example"}, 421),
        ({"Host": "127.0.0.1:x"}, 421),
        ({"Origin": "http://localhost:80@evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_row_40_a_page_of_another_origin_is_refused(headers: dict[str, str], status: int) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    with served([Desk()]) as url:
        accepts = {"Accept": "application/json, text/event-stream"}
        assert httpx2.post(url, json=message, headers={**accepts, **headers}).status_code == status


def test_row_40_a_token_is_asked_for() -> None:
    with served([Desk()], token="canary-123456") as url:
        statuses = [
            httpx2.post(url, json={}, headers={"Authorization": given}).status_code
            for given in ("", "Bearer wrong", "Bearer canary-123456")
        ]
    assert (statuses[:2], statuses[2] != 401) == ([401, 401], True)


@pytest.mark.parametrize("options", [{}, {"token": "x"}, {"allowed_hosts": ["a.example"]}])
def test_row_40_other_machines_need_a_token_and_a_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        mcp_app(mcp_server([Desk()]), host="0.0.0.0", **options)
    mcp_app(mcp_server([Desk()]), host="0.0.0.0", token="x", allowed_hosts=["a.example"])


# ---------------------------------------------------------------- the command line


@pytest.mark.soak  # the page and the example of MCP use the command in each run
def test_the_command_serves_over_stdio_and_prints_do_not_disturb_it(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(
        'def shout(text: str) -> str:\n    "Shout."\n    print("hi")\n    return text.upper()\n'
    )
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "agentkit", "mcp", "--tools", "noisy:shout"], cwd=tmp_path
    )

    async def main() -> tuple[bool, list[str], Any]:
        async with Client(command) as client:
            return await shown(client, "shout", text="a\nb")

    assert asyncio.run(main()) == (False, ["A\nB"], None)


def test_clients_that_break_off_print_nothing() -> None:
    words = ["mcp", "--tools", FILES, "--http", "--port", "0"]
    with subprocess.Popen([sys.executable, "-m", "agentkit", *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        port = int(line.removesuffix("/mcp\n").rpartition(":")[2])
        head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(f"{head}Accept: application/json, text/event-stream\r\n\r\n{{".encode())
                time.sleep(0.1)
        assert httpx2.get(f"http://127.0.0.1:{port}/nothing").status_code == 404
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[1] == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tools", "no_such_module:X"], "cannot be imported"),
        (["--tools", FILES, "--http", "--host", "0.0.0.0"], "can be reached from other machines"),
        (["--tools", FILES, "--http", "--token-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
    ],
)
def test_wrong_options_are_refused(say: Say, words: list[str], said: str) -> None:
    status, _, err = say("mcp", *words)
    assert (status, said in err) == (2, True), err


def test_an_application_is_made_of_a_server() -> None:
    with pytest.raises(ConfigError, match=r"expected a server: mcp_app\(mcp_server\(tools\)\)"):
        mcp_app([list])  # type: ignore[arg-type]


def test_options_of_http_are_refused_without_it(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        say("mcp", "--tools", FILES, "--token-env", "NOPE")
    assert "--token-env is for a server over HTTP: add --http" in capsys.readouterr().err


def test_a_client_that_asks_for_earlier_events_gets_the_stream_from_now_on() -> None:
    """A server that keeps no events has none to send again; that is no fault of the server's."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    both = {"accept": "application/json, text/event-stream"}
    with served([Desk()]) as url, httpx2.Client(trust_env=False) as client:
        first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        session = client.post(url, json=first, headers=both).headers["mcp-session-id"]
        headers = {"accept": "text/event-stream", "mcp-session-id": session, "last-event-id": "5"}
        with client.stream("GET", url, headers=headers) as answer:
            assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
