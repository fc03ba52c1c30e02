"""The pieces of a reply, joined while their client is busy: to write one costs more than to make it.

Knows no wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from agentkit.gateway.exchanges import MadeBody

MAX_WAITING: Final = 32 * 1024
"""Bytes that wait for the client at most; then nothing more is read from the upstream."""


class JoinedPieces(MadeBody):
    """The pieces, each with all that have come since the last one.

    Args:
        pieces: read in a separate task, from the first `anext` on.
        close: see `MadeBody`.
    """

    def __init__(self, pieces: AsyncGenerator[bytes, None], close: Callable[[], Awaitable[None]]) -> None:
        super().__init__(pieces, close)
        self._held: list[bytes] = []
        self._size = 0
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._room = asyncio.Event()

    async def __anext__(self) -> bytes:
        if self._task is None:
            self._task = asyncio.create_task(self._read())
            self._task.add_done_callback(lambda _: self._changed.set())
        while not self._held:
            if self._task.done():
                self._task.result()
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        joined = b"".join(self._held)
        self._held, self._size = [], 0
        self._room.set()
        return joined

    async def aclose(self) -> None:
        """Stop reading, and close the pieces."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await super().aclose()

    async def _read(self) -> None:
        async for piece in self._pieces:
            self._held.append(piece)
            self._size += len(piece)
            self._changed.set()
            if self._size > MAX_WAITING:
                self._room.clear()
                await self._room.wait()
