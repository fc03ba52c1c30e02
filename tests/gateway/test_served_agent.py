"""An agent in the gateway, over real HTTP: the official SDKs on all three wires, a client that leaves, the list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from agentkit import Agent, ToolCall, openapi_schema
from agentkit.events import Usage
from agentkit.gateway.agent_model import AgentModel
from agentkit.gateway.gateway_app import Gateway
from agentkit.gateway.gateway_config import config_of
from agentkit.gateway.gateway_server import address_of, listen, server_of
from agentkit.gateway.wires import WIRES
from agentkit.messages import UserMessage
from agentkit.models import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.threads import ThreadManager

pytestmark = pytest.mark.anyio

SAID = "Let me look.\n\nAn apple costs 0.30 EUR."
ASKED: Any = [{"role": "user", "content": "What is an apple?"}]
TOOL: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


class Shop:
    """One tool answers, one never does."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @openapi_schema
    async def price(self, product: str) -> str:
        """Return a price."""
        return "0.30 EUR"

    @openapi_schema
    async def wait(self) -> str:
        """Wait."""
        self.log.append("started")
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("ended")
        return "never"


def turn(request: ModelRequest) -> list[Any]:
    last = request.messages[-1]
    if not isinstance(last, UserMessage):
        return ["An apple costs 0.30 EUR.", Usage(20, 6)]
    if last.text == "Wait.":
        return ["I wait.", ToolCall("", "wait")]
    return ["Let me look.", ToolCall("", "price", {"product": "apple"}), Usage(10, 5)]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def serving(shop: Shop, store: Path) -> AsyncIterator[tuple[str, ThreadManager]]:
    threads = ThreadManager(store)
    agent = Agent(ScriptedModel(turn), [shop], name="shop")
    config = config_of({"port": 0, "log": None}, str, needs_upstream=False)
    server = server_of(Gateway(config, WIRES, {}, [AgentModel(agent, threads=threads)]))
    with listen(config) as listening:
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield address_of(listening), threads
        finally:
            server.should_exit = True
            await running


async def test_the_sdks_read_it_on_all_wires(tmp_path: Path) -> None:
    async with serving(Shop(), tmp_path / "t.db") as (at, _):
        chat = openai.AsyncOpenAI(base_url=f"{at}/v1", api_key="k", max_retries=0)
        other = anthropic.AsyncAnthropic(base_url=at, api_key="k", max_retries=0)
        async with chat, other:
            whole = await chat.chat.completions.create(model="shop", messages=ASKED)
            assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == (SAID, "stop")
            assert whole.usage is not None
            assert whole.usage.total_tokens == 41
            stream = await chat.chat.completions.create(model="shop", messages=ASKED, stream=True)
            chunks = [chunk async for chunk in stream]
            assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == SAID
            assert (await chat.responses.create(model="shop", input="What is an apple?")).output_text == SAID
            async with chat.responses.stream(model="shop", input="What is an apple?") as items:
                assert (await items.get_final_response()).output_text == SAID
            message = await other.messages.create(model="shop", max_tokens=99, messages=ASKED, system="Be brief.")
            assert [block.type for block in message.content] == ["text"]
            assert (message.content[0].text, message.stop_reason) == (SAID, "end_turn")  # type: ignore[union-attr]
            async with other.messages.stream(model="shop", max_tokens=99, messages=ASKED) as blocks:
                assert await blocks.get_final_text() == SAID


async def test_it_is_listed_and_other_names_are_not_found(tmp_path: Path) -> None:
    async with serving(Shop(), tmp_path / "t.db") as (at, _):
        chat = openai.AsyncOpenAI(base_url=f"{at}/v1", api_key="k", max_retries=0)
        async with chat:
            assert [model.id async for model in chat.models.list()] == ["shop"]
            with pytest.raises(openai.NotFoundError, match="did you mean 'shop'"):
                await chat.chat.completions.create(model="shpo", messages=ASKED)
            with pytest.raises(openai.BadRequestError, match="an agent with its own tools"):
                await chat.chat.completions.create(model="shop", messages=ASKED, tools=[TOOL])


async def test_a_thread_over_http(tmp_path: Path) -> None:
    async with serving(Shop(), tmp_path / "t.db") as (at, threads):
        chat = openai.AsyncOpenAI(base_url=f"{at}/v1", api_key="k", max_retries=0)
        async with chat:
            for _ in range(2):
                answer = await chat.chat.completions.with_raw_response.create(
                    model="shop", messages=ASKED, extra_headers={"x-agentkit-thread": "t1"}
                )
                assert answer.headers["x-agentkit-thread"] == "t1"
        said = [one.text for one in await threads.get_llm_messages("t1") if isinstance(one, UserMessage)]
        assert said == ["What is an apple?"] * 2


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_hangs_up_stops_the_run(tmp_path: Path, stream: bool) -> None:
    shop = Shop()
    async with serving(shop, tmp_path / "t.db") as (at, threads), httpx2.AsyncClient() as client:
        body = {"model": "shop", "thread_id": "t1", "stream": stream}
        body |= {"messages": [{"role": "user", "content": "Wait."}]}
        asking = asyncio.create_task(client.post(f"{at}/v1/chat/completions", json=body, timeout=30))
        while not shop.log:  # noqa: ASYNC110 - the tool runs in the gateway
            await asyncio.sleep(0.01)
        busy = await client.post(f"{at}/v1/chat/completions", json=body)
        assert (busy.status_code, busy.json()["error"]["code"]) == (409, "thread_busy")
        asking.cancel()
        while len(shop.log) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        body["messages"] = [{"role": "user", "content": "What is an apple?"}]
        while (
            again := await client.post(f"{at}/v1/chat/completions", json=body | {"stream": False})
        ).status_code == 409:
            pass
        assert again.json()["choices"][0]["message"]["content"] == SAID
        assert [call.status for call in (await threads.get_log("t1")).calls] == ["answered", "answered"]
