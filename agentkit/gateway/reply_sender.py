"""Writes one response over ASGI: its head, its pieces, and heartbeats while nothing arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from agentkit.gateway.head_checks import ASGISend

Headers = Sequence[tuple[bytes, bytes]]


class ReplySender:
    """One response.

    Args:
        send: of ASGI.
    """

    def __init__(self, send: ASGISend) -> None:
        self._send = send
        self._beat: asyncio.Task[None] | None = None
        self._writing: float | None = None
        self._last = 0.0
        self.status = 0
        self.ended = False
        """Whether the last piece was sent."""
        self.stalled = False
        """Whether the response was cancelled because the client does not read."""
        self.first: float | None = None
        """The time when the first piece of a stream was sent."""

    @property
    def streaming(self) -> bool:
        """Return whether an event can still be written."""
        return self._beat is not None

    async def start(self, status: int, headers: Headers) -> None:
        """Send the head."""
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def beat(self, comment: bytes, every: float, patience: float) -> None:
        """Send heartbeats from now on.

        Args:
            comment: an event that clients ignore.
            every: after this many seconds of silence.
            patience: seconds that the client may take for one piece; then the response is cancelled.
        """
        task = asyncio.current_task()
        self._last = perf_counter()
        self._beat = asyncio.ensure_future(self._beats(comment, every, patience, task))

    async def write(self, piece: bytes) -> None:
        """Send a piece; waits while the client does not read."""
        if self.first is None and self._beat is not None:
            self.first = perf_counter()
        self._writing = self._last = perf_counter()
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        self._writing = None

    async def end(self, piece: bytes = b"") -> None:
        """Send the last piece."""
        self._writing = perf_counter()
        await self._send({"type": "http.response.body", "body": piece, "more_body": False})
        self.ended = True
        self.stop()

    def stop(self) -> None:
        """Stop the heartbeats."""
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    async def _beats(self, comment: bytes, every: float, patience: float, task: asyncio.Task[Any] | None) -> None:
        while True:
            await asyncio.sleep(max(every - (perf_counter() - self._last), 0.001))
            now = perf_counter()
            if self._writing is not None:
                if now - self._writing > patience and task is not None:
                    self.stalled = True
                    task.cancel()
                self._last = now
            elif now - self._last >= every:
                self._last = now
                await self._send({"type": "http.response.body", "body": comment, "more_body": True})
