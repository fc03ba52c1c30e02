"""An HTTP transport that connects to the addresses that a guard has judged, and to no others.

The address is judged where the connection is opened, as the resolver has just returned it, so that a name cannot have
one address when it is checked and another when it is used. The `Host` header, the server name of TLS and the check of
its certificate keep the host's name. Loads httpx2: import it on first use.
"""

from __future__ import annotations

import ssl
from functools import cache

import httpx2

from agentkit_tools.network.addresses import Guard


class PinnedTransport(httpx2.AsyncHTTPTransport):
    """httpx2's transport to judged addresses. It reads no environment variables and uses no proxy.

    No connection is used again: it is made to an address, and its certificate was checked for one of the hosts there.

    Args:
        guard: judges addresses; None connects to any.
        ssl_context: verifies the servers' certificates.
    """

    def __init__(self, guard: Guard | None, ssl_context: ssl.SSLContext) -> None:
        super().__init__(verify=ssl_context, trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0))
        self._guard = guard

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request to the first of its host's addresses that answers.

        Raises:
            RequestFailed: the host has an address that must not be reached.
        """
        if self._guard is None:
            return await super().handle_async_request(request)
        url, host = request.url, request.url.raw_host.decode("ascii")
        *others, last = await self._guard.addresses(host, url.port or (443 if url.scheme == "https" else 80))
        for address in others:
            try:
                return await super().handle_async_request(_sent_to(address, host, request))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await super().handle_async_request(_sent_to(last, host, request))


def _sent_to(address: str, host: str, request: httpx2.Request) -> httpx2.Request:
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


@cache
def trusting() -> ssl.SSLContext:
    """Return a context with the operating system's certificates, regardless of the environment."""
    return httpx2.create_ssl_context(trust_env=False)
