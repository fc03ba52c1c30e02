"""A proxy in front of a page's server that cuts its event stream after so many events, or in the middle of one."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class CuttingProxy:
    """A context manager: passes requests on, each over a connection to itself, from a thread.

    Args:
        port: the server's, on 127.0.0.1.
        events: with a position that a connection of the event stream may deliver before it is cut; None never cuts.
        extra: bytes of the next event that are delivered before the cut.
    """

    def __init__(self, port: int, events: int | None = None, extra: int = 0) -> None:
        self.events = events
        self.extra = extra
        self.cuts = 0
        """How often a stream was cut."""
        self._server = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()  # nothing else keeps one that waits for the server
        self.port = 0
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop
        ).result()
        self.port = self._listening.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._listening.close()
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0.01)  # a connection that was just accepted gets its task
        await asyncio.sleep(0.05)  # what was aborted is closed

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._pass(client, to_client)
        to_client.transport.abort()

    async def _pass(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        head = await client.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await client.readexactly(int(fields.get("content-length", 0)))
        kept = [line for line in lines if not line.lower().startswith("connection:")]
        server, to_server = await asyncio.open_connection("127.0.0.1", self._server, limit=2**24)
        try:
            to_server.write("\r\n".join([first, *kept, "connection: close", "", ""]).encode("latin-1") + body)
            follows = first.split("?")[0].split(" ")[1].endswith("/events")
            await (self._cut if follows and self.events is not None else _copy)(server, to_client)
        finally:
            to_server.transport.abort()

    async def _cut(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        assert self.events is not None
        left = self.events
        to_client.write(await server.readuntil(b"\r\n\r\n"))
        while True:
            event = await server.readuntil(b"\n\n")
            if b"\nid:" in b"\n" + event:
                if not left:
                    to_client.write(event[: self.extra])
                    break
                left -= 1
            to_client.write(event)
            await to_client.drain()
        await to_client.drain()
        self.cuts += 1


async def _copy(server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
    while data := await server.read(65536):
        to_client.write(data)
        await to_client.drain()
    to_client.close()
    await to_client.wait_closed()
