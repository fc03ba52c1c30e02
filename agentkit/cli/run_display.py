"""A run shown on a screen as its events arrive, until it ends or a key stops it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from agentkit.cli.model_choice import load_sdks, model_log
from agentkit.cli.screen import Screen

if TYPE_CHECKING:
    from agentkit.agent import RunStream
    from agentkit.cli.last_response import ChatRecord

TICK: Final = 0.08  # seconds between two drawings


async def show_run(stream: RunStream, screen: Screen, record: ChatRecord, model: Any, *, keys: bool) -> bool:
    """Show a run's events as they arrive; returns whether a key stopped it.

    The first Ctrl-C cancels the run, whose last events are still shown; the second one ends the program.

    Args:
        stream: the run.
        screen: where it is shown.
        record: also takes the events.
        model: the model that answers.
        keys: whether Esc also cancels the run.
    """
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        stream.cancel()

    work = asyncio.ensure_future(_follow(stream, screen, record, model))
    ticking = asyncio.ensure_future(_tick(screen))
    try:
        with model_log(logging.INFO, lambda line: _show_retry(screen, line)), _escape(stop) if keys else nullcontext():
            await asyncio.shield(work)
    except asyncio.CancelledError:
        stop()
        await work
    finally:
        ticking.cancel()
    return stopped


async def _follow(stream: RunStream, screen: Screen, record: ChatRecord, model: Any) -> None:
    await asyncio.to_thread(load_sdks, model)
    async with stream:
        async for event in stream:
            screen.show(event)
            record.add(event)


async def _tick(screen: Screen) -> None:
    while True:
        screen.tick()
        await asyncio.sleep(TICK)


def _show_retry(screen: Screen, line: logging.LogRecord) -> bool:
    if (wait := getattr(line, "retry_in", None)) is not None:
        screen.show_retry(line.getMessage(), wait)
    return True


def _escape(stop: Callable[[], None]) -> AbstractContextManager[None]:
    from agentkit.cli.single_keys import escape_stops

    return escape_stops(stop)
