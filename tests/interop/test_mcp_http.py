"""MCP over streamable HTTP: many calls in flight, faults that cost one call, servers that die and come back."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the official SDK is not installed: agentkit-calls[mcp]")

from mcp import MCPError
from mcp_http import Faulty, faulty, process, served
from mcp_kit import acall, call
from mcp_types import METHOD_NOT_FOUND

from agentkit import ToolRegistry
from agentkit.errors import ConfigError
from agentkit.interop.mcp import MCPTools
from agentkit.interop.mcp.endpoints import endpoint
from agentkit.interop.mcp.http_transport import NOT_FOUND
from agentkit.interop.mcp.mcp_options import MCPOptions
from agentkit.interop.mcp.session import CallFailed, Session, all_pages

CANARY = "canary-7f3a9b21c4"


@pytest.fixture
def old() -> Iterator[ToolRegistry]:
    """The tools of an older server, with sessions."""
    with faulty() as url, MCPTools(url, name="old", max_message=1_000_000) as tools:
        yield ToolRegistry(tools)


def test_an_address_without_a_server_says_what_to_look_at() -> None:
    def look() -> None:
        """Look."""

    with served([look]) as url, pytest.raises(ConfigError, match=r"404 Not Found .* often ends in /mcp\)"):
        ToolRegistry(MCPTools(url.removesuffix("/mcp"), name="x"))


def test_a_404_is_not_an_empty_list() -> None:
    async def page(cursor: str | None) -> None:
        raise MCPError(METHOD_NOT_FOUND, "not here", NOT_FOUND)

    with pytest.raises(MCPError, match="not here"):
        asyncio.run(all_pages(page, "tools"))


@pytest.mark.soak
def test_512_calls_in_flight_through_one_session_are_all_answered() -> None:
    """Each is held until all have arrived, so all of them are in flight at the same time."""
    calls = 512
    arrived: list[int] = []
    everybody = asyncio.Event()

    async def meet(number: int) -> str:
        """Wait for the others."""
        arrived.append(number)
        if len(arrived) == calls:
            everybody.set()
        await everybody.wait()
        return f"number {number}"

    with served([meet]) as url, MCPTools(url, name="x", timeout=100) as server:
        tools = ToolRegistry(server)

        async def main() -> list[str]:
            return [r.text for r in await asyncio.gather(*(acall(tools, "x_meet", number=n) for n in range(calls)))]

        assert asyncio.run(main()) == [f"number {n}" for n in range(calls)]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("gzip", "answered in 'gzip', which was not asked for"),
        ("page", "answered with HTTP 503 Service Unavailable"),
        ("large", "the answer is larger than 1,000,000 bytes"),
        ("values", "its answer has more than 200,000 values"),
        ("events", "its answer has more than 200,000 values"),
        ("truncated", "the call may have taken effect, but the answer did not arrive: "),
        ("key", "answered with HTTP 401 Unauthorized: invalid_token"),
        ("limit", 'slow down: {"seconds": 5}'),
        ("hang_up", "the call may have taken effect, but the connection to the MCP server was lost: "),
        ("redirect", "Redirect to http://127.0.0.1:9/mcp not followed"),
    ],
)
def test_a_fault_costs_one_call(old: ToolRegistry, tool: str, said: str) -> None:
    async def main() -> tuple[str, list[str]]:
        failing = asyncio.create_task(acall(old, f"old_{tool}"))
        others = await asyncio.gather(*(acall(old, "old_look") for _ in range(5)))
        return (await failing).error or "", [other.text for other in others]

    error, others = asyncio.run(main())
    assert said in error
    assert others == ["seen"] * 5
    assert call(old, "old_look").text == "seen"


@pytest.mark.parametrize("passes", range(6))
def test_a_call_that_begins_while_another_breaks_the_session_is_answered(passes: int) -> None:
    from mcp import Client

    async def main(url: str) -> str:
        session = Session(endpoint(url, None, None, None), MCPOptions(), lambda tools: None, lambda tool, why: None)
        connection = await session.open()

        async def look(client: Client) -> str:
            return str((await client.call_tool("look", {})).content[0].text)

        beginning = asyncio.create_task(connection.use(look))
        for _ in range(passes):
            await asyncio.sleep(0)
        connection.retire()
        try:
            return await beginning
        except CallFailed as e:
            return "to be sent again" if e.why == "unsent" else str(e)
        finally:
            await session.close()

    with faulty() as url:
        assert asyncio.run(main(url)) in ("seen", "to be sent again")


NO_SESSION = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "Session not found"}}'


@pytest.mark.parametrize(
    "body", [(b"no such session", "text/plain"), (NO_SESSION, "application/json"), (b"{}", "application/json")]
)
def test_a_forgotten_session_is_opened_again_and_the_call_sent_once_more(
    old: ToolRegistry, body: tuple[bytes, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Faulty, "forgotten", body)
    assert call(old, "old_look").text == "seen"
    Faulty.sessions.clear()
    assert call(old, "old_look").text == "seen"
    assert (Faulty.calls, len(Faulty.sessions)) == (2, 1)


def test_headers_go_to_the_server_and_appear_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), faulty() as url:
        place = url.replace("http://", f"http://ada:{CANARY}1@") + f"?api_key={CANARY}2"
        with MCPTools(place, name="old", headers={"X-Service": f"Bearer {CANARY}"}) as server:
            tools = ToolRegistry(server)
            results = [call(tools, "old_look"), call(tools, "old_page"), call(tools, "old_hang_up")]
            shown = f"{server!r} {results!r} {server.refused}"
    arrived = [CANARY in seen["x-service"] and f"{CANARY}2" in seen["path"] for seen in Faulty.seen]
    assert arrived == [True] * len(Faulty.seen)
    assert CANARY not in shown
    assert CANARY not in caplog.text


def test_no_server_is_a_clear_error() -> None:
    with faulty() as url:
        pass
    with pytest.raises(ConfigError, match=r"cannot connect to http://127\.0\.0\.1:\d+/mcp"):
        ToolRegistry(MCPTools(url, name="x"))


SLOW = """
import asyncio
async def wait() -> str:
    "Never ends."
    print("waiting", flush=True)
    await asyncio.sleep(1000)
def look() -> str:
    "Looks."
    return "seen"
tools = [wait, look]
"""


def test_a_server_killed_during_a_call_and_started_again(tmp_path: Path) -> None:
    (tmp_path / "slow_tools.py").write_text(SLOW)
    with process("slow_tools:tools", tmp_path) as (url, running), MCPTools(url, name="x") as server:
        tools = ToolRegistry(server)

        async def main() -> str | None:
            waiting = asyncio.create_task(acall(tools, "x_wait"))
            assert (await acall(tools, "x_look")).text == "seen"
            running.kill()
            return (await waiting).error

        assert "the connection to the MCP server was lost: " in str(asyncio.run(main()))
        assert "cannot connect to http://127.0.0.1" in str(call(tools, "x_look").error)
        port = int(url.split(":")[2].split("/")[0])
        with process("slow_tools:tools", tmp_path, port):
            assert call(tools, "x_look").text == "seen"


def test_the_listed_schema_is_the_registered_one() -> None:
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    with served([add]) as url, MCPTools(url, prefix="") as server:
        here, there = ToolRegistry(add).specs(), ToolRegistry(server).specs()
        assert json.dumps(here[0].parameters) == json.dumps(there[0].parameters)
        assert call(ToolRegistry(server), "add", a=1).text == "3"
