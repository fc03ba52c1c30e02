"""Runs as whole replies to pages: it drives a run, and writes what an encoder makes of its events."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Any, Final

from agentkit.agent import RunStream
from agentkit.errors import AgentkitError
from agentkit.gateway.events.ag_ui import AgUiRun, sse
from agentkit.gateway.events.ai_sdk import DONE, AiSdkRun
from agentkit.gateway.events.run_encoder import PageEvent, RunEncoder
from agentkit.toolspec import ToolSpec

_LOG: Final = logging.getLogger("agentkit.gateway")


async def ag_ui_stream(run: RunStream[Any], thread_id: str = "", run_id: str = "") -> AsyncGenerator[bytes, None]:
    """Run an agent, and yield the reply for a page that speaks AG-UI; its type is `text/event-stream`.

    An error that ends the run becomes `RUN_ERROR`; the log has the rest of it. Closing the generator ends the run.

    Args:
        run: a run that nothing iterates over: `agent.stream(…)`, `threads.say_stream(…)`.
        thread_id: the page's id of the conversation; empty for that of the run's thread.
        run_id: the page's id of the run; empty for the run's own.
    """
    encoder = AgUiRun(thread_id or run.thread_id or run.id, run_id or run.id, tools=tools_of(run))
    async for event in page_events(encoder, run):
        yield sse(event)


async def ai_sdk_stream(run: RunStream[Any], *, continues: bool = False) -> AsyncGenerator[bytes, None]:
    """Run an agent, and yield the reply for a page that uses the AI SDK; its headers are `HEADERS`.

    An error that ends the run becomes its last chunk; the log has the rest of it. Closing the generator ends the run.

    Args:
        run: a run that nothing iterates over: `agent.stream(…)`, `threads.say_stream(…)`.
        continues: whether the run acts on decisions, so that it continues the page's last message.
    """
    encoder = AiSdkRun(run.id, tools=tools_of(run), continues=continues)
    async for event in page_events(encoder, run):
        yield sse(event)
    yield DONE


async def page_events(encoder: RunEncoder, run: RunStream[Any]) -> AsyncGenerator[PageEvent, None]:
    """Run an agent, and yield all events for a page. An error that ends the run becomes the last of them."""
    for event in encoder.start():
        yield event
    try:
        async with run:
            async for happened in run:
                for event in encoder.feed(happened):
                    yield event
        last = encoder.finish(run.result)
    except Exception as error:  # noqa: BLE001 - the page must learn that the run is over
        _LOG.warning("the run %s failed: %r", run.id, error, exc_info=not isinstance(error, AgentkitError))
        last = encoder.fail(error)
    for event in last:
        yield event


def tools_of(run: RunStream[Any]) -> dict[str, ToolSpec]:
    """Return the tools of a run's agent by name."""
    return {tool.name: tool for tool in run.agent.registry.specs()}
