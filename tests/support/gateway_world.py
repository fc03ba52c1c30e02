"""A gateway and a model server in one event loop: a test can send a thousand requests, and count what is left open."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any, NamedTuple

from agentkit.gateway.client_wire import PATHS
from agentkit.gateway.gateway_app import Gateway
from agentkit.gateway.gateway_config import config_of
from agentkit.gateway.gateway_server import address_of, listen, server_of
from agentkit.gateway.wires import WIRES

CASE = "x-case"
"""The header of a request that chooses the answer of the model server."""


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that runs in an event loop of its own."""

    @wraps(test)
    def run(*values: Any, **named: Any) -> None:
        asyncio.run(test(*values, **named))

    return run


class Got(NamedTuple):
    """A response: its status (0 if there is none), its headers, its body, and whether that is complete."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    complete: bool


class World:
    """A gateway and its upstream.

    Attributes:
        answers: pieces that the upstream sends before it closes the connection, by the header `x-case`.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Sequence[bytes]] = {}
        self.open = 0
        self.port = 0
        self.connections: Callable[[], int] = lambda: 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            headers = _headers(head)
            await reader.readexactly(int(headers.get("content-length", 0)))
            for piece in self.answers[headers.get(CASE, "")]:
                writer.write(piece)
                await writer.drain()
        self.open -= 1
        writer.close()

    async def talk(self, *pieces: bytes) -> bytes:
        """What the gateway answers to bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"".join(pieces))
            async with asyncio.timeout(60):
                return await reader.read(-1)
        finally:
            writer.close()

    async def post(self, wire: str, body: Any, case: str = "") -> Got:
        """A request."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [
            f"POST {PATHS[wire]} HTTP/1.1",  # type: ignore[index]  # it is a wire's name
            "host: localhost",
            "connection: close",
            "content-type: application/json",
            f"content-length: {len(data)}",
            f"{CASE}: {case}",
        ]
        return _got(await self.talk("\r\n".join(lines).encode() + b"\r\n\r\n", data))

    async def left(self) -> tuple[int, int, int]:
        """The open files, the tasks and the upstream's connections, once no request is answered any more."""
        end = asyncio.get_running_loop().time() + 60
        while (self.open or self.connections()) and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 - it belongs to uvicorn
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), self.open

    async def beyond(self, before: tuple[int, int, int]) -> list[int]:
        """How much more is left than before, once all that ends has ended."""
        end = asyncio.get_running_loop().time() + 60
        while any(more := [max(now - then, 0) for now, then in zip(await self.left(), before, strict=True)]):
            if asyncio.get_running_loop().time() > end:
                break
        return more


@asynccontextmanager
async def gateway_world(wire: str, format: str, **settings: Any) -> AsyncIterator[World]:
    """A gateway in front of an upstream of this wire, with this format for each model."""
    world = World()
    upstream = await asyncio.start_server(world.serve, "127.0.0.1", 0, backlog=1_000)
    url = f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}"
    routes = {
        "upstreams": {"fake": {"url": url, "wire": wire}},
        "models": {"*": {"format": format, "retries": 0}},
    }
    config = config_of({"port": 0, "log": None, **routes, **settings}, str)
    server = server_of(Gateway(config, WIRES, {}))
    with listen(config) as listening:
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        while not server.started:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.001)
        world.port = int(address_of(listening).rpartition(":")[2])
        world.connections = lambda: len(server.server_state.connections)
        try:
            yield world
        finally:
            server.should_exit = True
            await serving
            upstream.close()


def _headers(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines) if name}


def _got(found: bytes) -> Got:
    head, _, rest = found.partition(b"\r\n\r\n")
    if not head:
        return Got(0, {}, b"", complete=False)
    headers = _headers(head)
    complete = True
    if headers.get("transfer-encoding") == "chunked":
        rest, complete = _joined(rest)
    elif "content-length" in headers:
        complete = len(rest) == int(headers["content-length"])
    return Got(int(head.split()[1]), headers, rest, complete)


def _joined(chunks: bytes) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    at = 0
    while at < len(chunks):
        end = chunks.index(b"\r\n", at)
        size = int(chunks[at:end], 16)
        if not size:
            return b"".join(pieces), True
        pieces.append(chunks[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(pieces), False
