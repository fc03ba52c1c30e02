"""A task that is cancelled while it waits for a thread ends as cancelled, whatever the waiting comes to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agentkit import ThreadManager
from agentkit.errors import ThreadBusy, ThreadNotFound
from agentkit.events import Event, Finish, Text
from agentkit.testing import ScriptedModel


class Slow:
    """Answers when it is cancelled at the latest."""

    name, format = "slow", None

    async def stream(self, request: Any) -> AsyncIterator[Event]:
        await asyncio.sleep(60)
        yield Text("late")
        yield Finish("stop")


@pytest.mark.parametrize(("thread", "error"), [("held", ThreadBusy), ("gone", ThreadNotFound)])
def test_no_cancellation_is_lost_while_a_thread_cannot_be_had(tmp_path: Path, thread: str, error: Any) -> None:
    async def waits(threads: ThreadManager) -> None:
        while True:
            try:
                await threads.run_thread(thread, model=ScriptedModel(["Hi."])).complete()
            except error:
                await asyncio.sleep(0.001)

    async def main() -> None:
        async with ThreadManager(tmp_path / "db") as one, ThreadManager(tmp_path / "db") as other:
            await one.create_thread("held", messages="Hi.")
            holding = asyncio.create_task(one.run_thread("held", model=Slow()).complete())
            await asyncio.sleep(0.1)
            for n in range(60):
                waiting = asyncio.create_task(waits(other))
                await asyncio.sleep(0.005 + n * 0.0005)
                waiting.cancel()
                await asyncio.wait([waiting], timeout=30)
                assert waiting.cancelled(), n
            holding.cancel()
            await asyncio.wait([holding])

    asyncio.run(main())
