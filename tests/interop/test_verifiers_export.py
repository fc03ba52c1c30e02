"""Ours in verifiers' own rollout loop (0.3), and as one of its toolsets (0.4)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from peer_tools import Adder, fail
from verifiers_kit import answers, client_of, environment, rollout

from agentkit.errors import SchemaError
from agentkit.interop.verifiers import to_toolset, to_verifiers

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

SUMS = ["1", "3", "6", "10", "15", "21", "28", "36"]


@pytest.fixture(autouse=True)
def fresh() -> None:
    Adder.forget()


@pytest.fixture
def vf() -> Any:
    return pytest.importorskip("verifiers.legacy", reason="verifiers 0.3 is not installed: make peers")


EIGHT = [("add", json.dumps({"n": n})) for n in range(1, 9)]


def test_one_rollout_keeps_its_state_and_is_released(vf: Any) -> None:
    state = asyncio.run(rollout(environment(vf, Adder), client_of(vf, EIGHT)))
    assert answers(state) == SUMS
    assert (state["tool_reward"], state["reward"], Adder.released) == (40.0, 40.0, [36])


def test_64_rollouts_at_once_with_what_each_sample_says(vf: Any) -> None:
    async def main() -> list[Any]:
        env, client = environment(vf, Adder), client_of(vf, EIGHT)
        told = [{"tools_kwargs": {"add": {"create_kwargs": {"start": 100 * i}}}} for i in range(64)]
        return await asyncio.gather(*(rollout(env, client, **each) for each in told))

    states = asyncio.run(main())
    assert [answers(state)[-1] for state in states] == [str(100 * i + 36) for i in range(64)]
    assert len(Adder.released) == 64


def test_the_model_sees_the_whole_schema(vf: Any) -> None:
    client = client_of(vf, [])
    asyncio.run(rollout(environment(vf, Adder), client))
    (add, _) = client.asked[0]
    assert add.parameters["properties"]["unit"]["default"] == "apples"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("add", '{"n": "many"}'), "invalid arguments for add"),
        (("ad", "{}"), "there is no tool 'ad'; there are add, total_of"),
    ],
)
def test_an_error_is_what_the_model_reads(vf: Any, call: tuple[str, str], said: str) -> None:
    state = asyncio.run(rollout(environment(vf, Adder), client_of(vf, [call])))
    assert said in answers(state)[0]


def test_a_tool_that_raises_says_so(vf: Any) -> None:
    state = asyncio.run(rollout(environment(vf, fail), client_of(vf, [("fail", '{"path": "a.txt"}')])))
    assert "no such file: a.txt" in answers(state)[0]


def test_a_reserved_name_is_refused_with_the_name_of_the_peer(vf: Any) -> None:
    def step(n: int) -> int:
        """Step."""
        return n

    with pytest.raises(SchemaError, match="verifiers keeps the name 'step' for itself"):
        to_verifiers(step)


def test_a_toolset_serves_our_tools_with_one_state() -> None:
    toolset = pytest.importorskip("verifiers.v1.mcp.toolset", reason="verifiers 0.4 is not installed: make peers")
    server = pytest.importorskip("mcp.server.mcpserver", reason="the MCP SDK 2 is not installed")

    async def main() -> tuple[list[Any], list[Any]]:
        made = to_toolset(Adder)(toolset.ToolsetConfig())
        mcp = server.MCPServer("tools")
        made.register(mcp)
        listed = await mcp.list_tools()
        called = [await mcp.call_tool("add", {"n": n}) for n in range(1, 9)]
        return listed, called

    listed, called = asyncio.run(main())
    assert [(tool.name, tool.input_schema.get("required")) for tool in listed] == [("add", ["n"]), ("total_of", None)]
    assert [answer.content[0].text for answer in called] == SUMS


PROGRAM = """
import os
from agentkit.interop.verifiers import to_toolset
from peer_tools import Adder
from verifiers.v1.mcp.toolset import ToolsetConfig

class Noted(Adder):
    async def release(self):
        with open(os.environ["RELEASED"], "a") as file:
            file.write(f"{self.total};")

to_toolset(Noted)(ToolsetConfig())._serve()
"""


def test_a_toolset_whose_server_is_told_to_stop_releases_its_instance(tmp_path: Path) -> None:
    pytest.importorskip("verifiers.v1.mcp.toolset", reason="verifiers 0.4 is not installed: make peers")
    port, noted = tmp_path / "port", tmp_path / "released"
    here = {"MCP_PORT_FILE": str(port), "RELEASED": str(noted), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], env={**os.environ, **here}) as server:
        try:
            asyncio.run(_add_eight_times(port))
        finally:
            server.terminate()
    assert noted.read_text() == "36;"


async def _add_eight_times(port: Path) -> None:
    from mcp import Client

    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(Exception):
            number = await asyncio.to_thread(port.read_text)
            async with Client(f"http://127.0.0.1:{number}/mcp") as client:
                for n in range(1, 9):
                    assert not (await client.call_tool("add", {"n": n})).is_error
                return
        await asyncio.sleep(0.1)
    raise TimeoutError("the toolset's server did not answer")
