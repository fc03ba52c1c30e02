"""A server that sends given bytes over a real socket, with the pauses between them, whatever is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

Step = bytes | float
"""Bytes to send, or seconds to wait; the connection is closed after the last step."""

SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@asynccontextmanager
async def raw_server(*steps: Step | Sequence[Step], log: list[bytes] | None = None) -> AsyncIterator[str]:
    """The server's address. Further requests get the last answer again, if there are several.

    Args:
        steps: of the one answer; or several answers, each a sequence of steps.
        log: gets the head of each request.
    """
    answers = [steps] if not steps or isinstance(steps[0], bytes | float) else list(steps)
    heads = [] if log is None else log
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            heads.append(head)
            lines = head.lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
            await reader.readexactly(length)
            for step in answers[min(len(heads), len(answers)) - 1]:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                elif await stopped(step):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left, which is what some tests want
        finally:
            writer.close()

    async def stopped(seconds: float) -> bool:
        try:
            await asyncio.wait_for(over.wait(), seconds)
        except TimeoutError:
            return False
        return True

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        over.set()
        listening.close()
        await listening.wait_closed()
