"""Models in one event loop after another, dropped, left and failing: no complaint, and no connection stays open."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from keep_alive import KEEP, chunked, keep_alive

from agentkit import model
from agentkit.messages import user
from agentkit.models import ClosableModel, ModelRequest

TESTS = Path(__file__).parents[1] / "support"

SCRIPT = '''
import asyncio, gc, logging, sys
from agentkit import Agent, ProviderError, model
from keep_alive import ANSWERS, keep_alive

logging.getLogger("asyncio").addFilter(lambda record: not record.getMessage().startswith("Executing"))  # a slow machine


def new():
    return Agent(model(f"{prefix}:m", base_url=server.url, api_key="k", max_retries=0, timeout=0.3))


async def ask(agent):
    try:
        await agent.run("hi")
    except ProviderError:
        pass


async def ask_another():
    """With the one before dropped in this event loop, which is not its own."""
    global agent
    agent = new()
    gc.collect()
    await ask(agent)


async def drop():
    """Within one event loop, with an exception that knows all of it."""
    await ask(new())
    gc.collect()


async def leave():
    async for _ in new().stream("hi"):
        break


for prefix, name, answer in ANSWERS:
    if name not in sys.argv[1:]:
        continue
    with keep_alive(answer) as server:
        agent = new()
        asyncio.run(ask(agent))
        asyncio.run(drop() if name != "good" else ask(agent))
        asyncio.run(ask_another())
        if name == "good":
            asyncio.run(drop())
            asyncio.run(leave())
        assert server.all_closed(), f"{prefix}, {name}: connections are left open"
        del agent
'''


@pytest.mark.soak
@pytest.mark.parametrize(
    "answers",
    [
        ("good", "no key"),
        pytest.param(("broken off", "a page", "a redirect", "no UTF-8"), marks=pytest.mark.soak),
    ],
    ids=["good and refused", "damaged"],
)
def test_models_end_without_noise(answers: tuple[str, ...]) -> None:
    """Under `-X dev`, which shows every socket that nobody closed."""
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    command = [sys.executable, "-X", "dev", "-c", SCRIPT, *answers]
    done = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert (done.stderr, done.stdout, done.returncode) == ("", "", 0)


async def asked(made: ClosableModel) -> None:
    async for _ in made.stream(ModelRequest([user("Hi")])):
        pass


@pytest.mark.parametrize("format", [None, "xml"], ids=["native", "text"])
def test_async_with_closes_the_connections_of_a_model(format: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    body = b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}'
    with keep_alive(KEEP.replace(b"text/event-stream", b"application/json") + chunked(body)) as server:

        async def run() -> list[bool]:
            seen = []
            async with model("openai:m", base_url=server.url, format=format) as made:
                await asked(made)
                seen.append(server.open > 0)
            seen.append(await asyncio.to_thread(server.all_closed))
            await asked(made)  # it can be used again
            seen.append(server.open > 0)
            await made.aclose()
            return [*seen, await asyncio.to_thread(server.all_closed)]

        assert asyncio.run(run()) == [True, True, True, True]
