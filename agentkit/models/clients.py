"""The SDK's clients of one model: one for each event loop, closed when that ends, the model is dropped, or on request.

Knows asyncio and how an async generator ends; knows no provider. The SDKs' own connections do not end cleanly: dropped
in a different event loop than their own, they start a task there that fails.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Callable
from typing import Any


class Clients:
    """One client for each event loop: a connection cannot outlive the loop in which it was created.

    Args:
        owned: whether the connections must be closed; not those of an HTTP client that the caller passed.
    """

    def __init__(self, *, owned: bool) -> None:
        self._owned = owned
        self._clients: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None, None]]] = {}
        # called while what this holds is intact: were it also garbage, its sockets would be gone before they are closed
        weakref.finalize(self, self._clients.clear).atexit = False

    async def get(self, make: Callable[[], Any]) -> Any:
        """The running event loop's client; created if there is none yet."""
        loop = asyncio.get_running_loop()
        known = self._clients.get(loop)
        if known is not None:
            return known[0]
        for other in [one for one in self._clients if one.is_closed()]:
            del self._clients[other]
        client = make()
        held = _held(client, owned=self._owned)
        self._clients[loop] = client, held
        await anext(held)
        return client

    async def aclose(self) -> None:
        """Close the running event loop's client; the next request creates another."""
        _, held = self._clients.pop(asyncio.get_running_loop(), (None, None))
        if held is not None:
            await held.aclose()


async def _held(client: Any, *, owned: bool) -> AsyncGenerator[None, None]:
    """Holds a client until it is closed.

    An event loop closes the async generators that started in it: all of them before it ends (`asyncio.run` requests
    that), and earlier any that nothing references. So connections are closed where they can be: in their own loop.
    """
    try:
        yield
    finally:
        if owned:
            await client.close()
