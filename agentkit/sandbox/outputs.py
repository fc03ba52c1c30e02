"""The two output pipes of a running command, read as it writes. Knows no process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import IO, Final

from agentkit.sandbox.output_buffer import OutputBuffer
from agentkit.sandbox.quota import StreamOutput

PIECE: Final = 1 << 16  # the capacity of a pipe


class Outputs:
    """Both output streams of a command; the pipes that are given are closed, and read by duplicates.

    Args:
        stdout: the pipe of its stdout.
        stderr: that of its stderr.
        most: bytes kept of each between two reads.
    """

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes], most: int) -> None:
        self._changed = asyncio.Event()
        self._out = OutputPipe(stdout.fileno(), most, self._changed.set)
        self._err = OutputPipe(stderr.fileno(), most, self._changed.set)
        stdout.close()
        stderr.close()

    async def until(self, found: bytes | None, ended: Callable[[], bool]) -> None:
        """Wait until stdout contains these bytes, or, for None, until there is any output; or until it has `ended`."""
        while not (ended() or (self._out.buffer.has(found) if found else self._some())):
            self._changed.clear()
            await self._changed.wait()

    def _some(self) -> bool:
        return bool(self._out.buffer or self._err.buffer)

    def wake(self) -> None:
        """Let those that wait look again."""
        self._changed.set()

    async def drain(self, grace: float) -> None:
        """Wait until all is read that was written; a pipe that somebody keeps open is closed after `grace` seconds."""
        loop = asyncio.get_running_loop()
        for pipe in (self._out, self._err):
            closing = loop.call_later(grace, pipe.close)
            await pipe.closed.wait()
            closing.cancel()

    def take(self, *, more: bool) -> tuple[StreamOutput, StreamOutput]:
        """Return the output of both pipes since the last call; `more` says if there may be more to come."""
        return self._out.buffer.take(more=more), self._err.buffer.take(more=more)


class OutputPipe:
    """One of the command's output pipes."""

    def __init__(self, fd: int, most: int, changed: Callable[[], None]) -> None:
        self.buffer = OutputBuffer(most)
        self.closed = asyncio.Event()
        self._changed = changed
        self._fd = os.dup(fd)
        os.set_blocking(self._fd, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            piece = os.read(self._fd, PIECE)
        except BlockingIOError:
            return
        if piece:
            self.buffer.add(piece)
            self._changed()
        else:
            self.close()

    def close(self) -> None:
        """Read no more."""
        if not self.closed.is_set():
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self.closed.set()


async def readable(fd: int) -> None:
    """Wait until a descriptor can be read."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
