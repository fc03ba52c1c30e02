"""An HTTP transport that connects to the addresses that a guard has judged, and to no others.

The address is judged where the connection is opened, as the resolver has just returned it, so that a name cannot have
one address when it is checked and another when it is used. The `Host` header, the server name of TLS and the check of
its certificate keep the host's name. Loads httpx2: import it on first use.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpcore2
import httpx2

from agentkit_tools.network.addresses import Guard


class PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections to judged addresses.

    Args:
        guard: judges them; None connects to any address.
    """

    def __init__(self, guard: Guard | None) -> None:
        self._guard = guard
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first of the host's addresses that answers.

        Raises:
            RequestFailed: the host has an address that must not be reached.
        """
        addresses = [host] if self._guard is None else await self._guard.addresses(host, port)
        for number, address in enumerate(addresses, 1):
            try:
                return await self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise httpcore2.ConnectError(f"{host} has no address")

    async def sleep(self, seconds: float) -> None:
        """Wait between attempts to connect."""
        await self._backend.sleep(seconds)


class PinnedTransport(httpx2.AsyncBaseTransport):
    """httpx2's transport over such connections. It reads no environment variables and uses no proxy.

    Args:
        guard: judges addresses; None connects to any.
        ssl_context: verifies the servers' certificates.
    """

    def __init__(self, guard: Guard | None, ssl_context: ssl.SSLContext) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context, network_backend=PinnedBackend(guard), http1=True, http2=False, retries=0
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        url = request.url
        sent = httpcore2.Request(
            request.method,
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx2():
            answer = await self._pool.handle_async_request(sent)
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    """A response's body, with httpx2's exceptions."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2():
            async for chunk in self._answer.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _as_httpx2() -> Iterator[None]:
    """Raise httpx2's exceptions: httpcore2's have the same names."""
    try:
        yield
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as e:
        same = getattr(httpx2, type(e).__name__, httpx2.TransportError)
        raise same(str(e)) from e


@cache
def trusting() -> ssl.SSLContext:
    """Return a context with the operating system's certificates, regardless of the environment."""
    return httpx2.create_ssl_context(trust_env=False)
