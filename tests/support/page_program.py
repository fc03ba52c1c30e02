"""A page's server as a program that a test can kill: `python page_program.py FOLDER PORT`.

Its tools write their effects to `FOLDER/effects`, one line each; a tool waits while there is `FOLDER/hold`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from page_shop import turn
from ui_kit import HeldModel

from agentkit import Agent, ToolContext, openapi_schema
from agentkit.events import SourceEvent
from agentkit.gateway.gateway_app import Gateway
from agentkit.gateway.gateway_config import config_of
from agentkit.gateway.gateway_server import listen, server_of
from agentkit.gateway.ui.ui_app import Page
from agentkit.gateway.wires import WIRES
from agentkit.models.base import ModelRequest
from agentkit.threads import ThreadManager


class FileShop:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def _effect(self, name: str, context: ToolContext) -> None:
        with (self._folder / "effects").open("ab", buffering=0) as log:
            log.write(f"{name} {context.idempotency_key}\n".encode())
        while (self._folder / "hold").exists():  # noqa: ASYNC110 - the test is another process
            await asyncio.sleep(0.005)

    @openapi_schema(requires_approval=True)
    async def order(self, item: str, amount: int, context: ToolContext) -> str:
        """Order an item."""
        await self._effect("order", context)
        return f"ordered {amount} {item}"

    @openapi_schema
    async def slow(self, text: str, context: ToolContext) -> str:
        """Take a while."""
        await self._effect("slow", context)
        return f"slow {text}"


class SlowModel(HeldModel):
    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        async for event in super().stream(request):
            yield event
            await asyncio.sleep(0.002)


def main(folder: Path, port: int) -> None:
    shop = FileShop(folder)
    agent = Agent(SlowModel(turn), [shop])
    config = config_of({"port": port, "log": None}, str, needs_upstream=False)
    threads = ThreadManager(folder / "page.db", agent.registry)
    server = server_of(Gateway(config, WIRES, {}, page=Page(threads, agent)))
    with listen(config) as listening:
        print("ready", flush=True)
        asyncio.run(server.serve(sockets=[listening]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
