"""Whole replies to pages, from agents that run."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from page_reading import AgUiReader, AiSdkReader, PageView

from agentkit import Agent, ThreadManager, openapi_schema
from agentkit.agent import RunStream
from agentkit.errors import ProviderError
from agentkit.gateway.events import AgUiRun, ag_ui_stream, ai_sdk_stream, sse
from agentkit.messages import ToolCall
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel

PAY: Final = ToolCall("c1", "pay", {"sum": 5})


class Shop:
    @openapi_schema(requires_approval=True)
    def pay(self, sum: int) -> str:
        """Pay."""
        return f"paid {sum}"


def agent(*script: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(script), tools=[Shop()], config=ProcessorConfig(attended=True))


async def events(pieces: AsyncIterator[bytes]) -> list[dict[str, Any]]:
    data = b"".join([piece async for piece in pieces]).decode().split("\n\n")
    return [json.loads(one.removeprefix("data: ")) for one in data if one not in ("", "data: [DONE]")]


async def ag_ui(run: RunStream[Any]) -> PageView:
    return AgUiReader().read(await events(ag_ui_stream(run, "t")))


async def ai_sdk(run: RunStream[Any], *, continues: bool = False) -> PageView:
    return AiSdkReader().read(await events(ai_sdk_stream(run, continues=continues)))


def test_a_user_drives_the_run() -> None:
    """As in the guide."""

    async def pieces() -> list[bytes]:
        run = agent("Hello.").stream("Hi")
        encoder = AgUiRun("thread", run.id)
        found = [sse(event) for event in encoder.start()]
        async for happened in run:
            found += [sse(event) for event in encoder.feed(happened)]
        return found + [sse(event) for event in encoder.finish(run.result)]

    found = asyncio.run(pieces())
    view = AgUiReader().read([json.loads(piece.removeprefix(b"data: ")) for piece in found])
    assert (view.text, view.end) == ("Hello.", "success")


@pytest.mark.parametrize("protocol", [ag_ui, ai_sdk])
def test_a_run_is_one_reply(protocol: Any) -> None:
    view = asyncio.run(protocol(agent("Hello.").stream("Hi")))
    assert (view.text, view.end) == ("Hello.", {ag_ui: "success", ai_sdk: "stop"}[protocol])


@pytest.mark.parametrize("protocol", [ag_ui, ai_sdk])
@pytest.mark.parametrize(
    ("error", "traceback"),
    [(ProviderError("no", kind="server", provider="openai"), False), (ValueError("secret"), True)],
)
def test_an_error_is_the_end_and_in_the_log(
    protocol: Any, error: Exception, traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "agentkit.gateway"):
        view = asyncio.run(protocol(agent(["Half", error]).stream("Hi")))
    assert (view.text, view.end) == ("Half", "error")
    (record,) = [record for record in caplog.records if record.name == "agentkit.gateway"]
    assert repr(error) in record.getMessage()
    assert bool(record.exc_info) == traceback


@pytest.mark.parametrize("stream", [ag_ui_stream, ai_sdk_stream])
def test_a_page_that_leaves_ends_the_run(stream: Any) -> None:
    async def leave() -> RunStream[Any]:
        run = agent("A long story.").stream("Hi")
        pieces = stream(run)
        async for piece in pieces:
            if b"story" in piece:
                await pieces.aclose()
        return run

    assert asyncio.run(leave()).result.finish == "cancelled"


@pytest.mark.parametrize("denied", [False, True])
@pytest.mark.parametrize("protocol", [ag_ui, ai_sdk])
def test_a_run_that_acts_on_a_decision_continues(protocol: Any, denied: bool) -> None:
    async def decided() -> tuple[PageView, PageView]:
        shop = agent(["I pay.", PAY], "Done.")
        async with ThreadManager(":memory:") as threads:
            thread = await threads.create_thread()
            asked = await protocol(threads.say_stream(thread, "Pay!", agent=shop))
            await (threads.deny(thread, "c1", "no") if denied else threads.approve(thread, "c1"))
            more = {"continues": True} if protocol is ai_sdk else {}
            return asked, await protocol(threads.run_agent(thread, shop), **more)

    asked, answered = asyncio.run(decided())
    assert (asked.waiting, asked.calls, asked.results) == (["c1"], [("c1", "pay", {"sum": 5})], {})
    words = {ag_ui: "not run: the user denied this call: no", ai_sdk: None}[protocol] if denied else "paid 5"
    assert (answered.results, answered.text, answered.waiting) == ({"c1": words}, "Done.", [])


@pytest.mark.parametrize("protocol", [ag_ui, ai_sdk])
def test_a_stopped_run(protocol: Any) -> None:
    class Slow:
        @openapi_schema()
        async def wait(self) -> str:
            """Wait."""
            run.cancel()
            await asyncio.sleep(10)
            return "late"

    run: RunStream[Any]

    async def stopped() -> PageView:
        nonlocal run
        run = Agent(ScriptedModel([ToolCall("c1", "wait")]), tools=[Slow()]).stream("Hi")
        view: PageView = await protocol(run)
        return view

    view = asyncio.run(stopped())
    assert view.end == {ag_ui: "cancelled", ai_sdk: "abort"}[protocol]
    assert "cancelled while it ran" in (view.results["c1"] or "")
