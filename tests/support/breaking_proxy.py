"""A proxy in front of a PostgreSQL server that breaks a connection at one statement."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

Way = Literal["before", "after", "told"]
"""Before the statement reaches the server; after it was carried out and before its reply; the same, and instead of the
reply the client is told that an administrator ended the session."""

_SHUTDOWN = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"


class Proxy:
    """Passes bytes on until it is told to break.

    Args:
        server: the path of the server's socket.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self.way: Way | None = None
        """How the connection that sends next is broken; None passes on."""

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """One connection."""
        server, to_server = await asyncio.open_unix_connection(self._server)
        replies = asyncio.create_task(self._pass(server, to_client))
        with suppress(OSError, asyncio.CancelledError):  # the latter: the test has ended
            while data := await client.read(65536):
                way, self.way = self.way, None
                if way is None:
                    to_server.write(data)
                    continue
                replies.cancel()
                await asyncio.wait([replies])
                if way != "before":
                    to_server.write(data)
                    await server.read(65536)
                if way == "told":
                    to_client.write(b"E" + (len(_SHUTDOWN) + 4).to_bytes(4, "big") + _SHUTDOWN)
                break
        replies.cancel()
        for writer in (to_client, to_server):
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _pass(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await server.read(65536):
                to_client.write(data)
            to_client.close()


@asynccontextmanager
async def proxy(dsn: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy for the server of this DSN, and the DSN that goes through it."""
    (host,) = parse_qs(urlsplit(dsn).query)["host"]
    breaking = Proxy(f"{host}/.s.PGSQL.5432")
    with tempfile.TemporaryDirectory(prefix="px-") as folder:
        serving = await asyncio.start_unix_server(breaking.serve, Path(folder) / ".s.PGSQL.5432")
        yield breaking, dsn.replace(host, folder)
        serving.close()
