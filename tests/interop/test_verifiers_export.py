"""Ours in verifiers' own rollout loop (0.3), and as one of its toolsets (0.4)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from peer_tools import Adder, fail

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


def client_of(vf: Any, calls: list[tuple[str, str]]) -> Any:
    """A client of verifiers' that makes one call a turn, then answers."""
    from verifiers.legacy.clients import Client
    from verifiers.legacy.types import Response, ResponseMessage, ToolCall

    class Scripted(Client):
        def __init__(self) -> None:
            self.asked: list[Any] = []

        async def get_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **_: Any) -> Any:
            self.asked.append(tools)
            turn = sum(message.role == "assistant" for message in prompt)
            made = (
                [ToolCall(id=f"c{turn}", name=calls[turn][0], arguments=calls[turn][1])] if turn < len(calls) else None
            )
            message = ResponseMessage(
                content="" if made else "done",
                tool_calls=made,
                finish_reason="tool_calls" if made else "stop",
                is_truncated=False,
            )
            return Response(id="r", created=0, model=model, message=message, usage=None)

        def setup_client(self, config: Any) -> Any: ...
        async def to_native_tool(self, tool: Any) -> Any: ...
        async def to_native_prompt(self, messages: Any) -> Any: ...
        async def get_native_response(self, *args: Any, **kwargs: Any) -> Any: ...
        async def raise_from_native_response(self, response: Any) -> None: ...
        async def from_native_response(self, response: Any) -> Any: ...
        async def close(self) -> None: ...

    return Scripted()


def environment(vf: Any, *tools: Any) -> Any:
    from datasets import Dataset

    data = Dataset.from_list([{"question": "Add.", "answer": "36"}])
    return to_verifiers(*tools)(dataset=data, max_turns=20)


async def rollout(env: Any, client: Any, **info: Any) -> Any:
    sample = {"prompt": [{"role": "user", "content": "Add."}], "example_id": 0, "info": info}
    state = await env._run_rollout_state(sample, client, "m", {})
    return state


def answers(state: Any) -> list[str]:
    return [message.content for message in state["completion"] if message.role == "tool"]


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
