"""Raw responses from an SDK that has none: it sends the request and reads an empty body; the real one is read here.

Knows httpx2 and no provider. A hook of the HTTP client takes each response before the SDK reads it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx2


@dataclass(slots=True)
class RawResponse:
    """A request that is being sent, and then its response, whose body is still to be read.

    Args:
        timeout: for the connection and for each byte.
        query: parameters to add to the URL.
    """

    timeout: httpx2.Timeout
    query: Mapping[str, str]
    http_response: Any = None

    @property
    def headers(self) -> Mapping[str, str]:
        """The response's headers."""
        headers: Mapping[str, str] = self.http_response.headers
        return headers


_SENT: Final[ContextVar[RawResponse | None]] = ContextVar("agentkit sent request", default=None)


class SentRequests:
    """An SDK's client that sends requests, while the responses are read by others.

    Args:
        http_client: sends them; an `httpx2.AsyncClient`.
        make: the SDK's client on top of it.
    """

    def __init__(self, http_client: Any, make: Callable[[Any], Any]) -> None:
        self._http_client = http_client
        for kind, hook in (("request", _prepare), ("response", _take)):
            if hook not in http_client.event_hooks[kind]:
                http_client.event_hooks[kind].append(hook)
        self.sdk = make(http_client)

    async def close(self) -> None:
        """Close the connections."""
        await self._http_client.aclose()

    @asynccontextmanager
    async def send(
        self, ask: Callable[[], Awaitable[None]], timeout: httpx2.Timeout, query: Mapping[str, str]
    ) -> AsyncGenerator[RawResponse, None]:
        """Let the SDK send one request.

        Args:
            ask: calls the SDK; raises its errors.
            timeout: for the connection and for each byte.
            query: parameters to add to the URL.
        """
        request = RawResponse(timeout, query)
        mark = _SENT.set(request)
        try:
            try:
                await ask()
            finally:
                _SENT.reset(mark)
            yield request
        finally:
            if request.http_response is not None:
                await request.http_response.aclose()


async def _prepare(request: httpx2.Request) -> None:
    """A hook: set what the SDK has no setting for; its one timeout would also be the server's."""
    sent = _SENT.get()
    if sent is not None:
        request.extensions["timeout"] = sent.timeout.as_dict()
        request.url = request.url.copy_merge_params(sent.query) if sent.query else request.url


async def _take(response: httpx2.Response) -> None:
    """A hook: take a good response; the SDK gets an empty one in its place, and an error that it can read."""
    import httpx2

    sent = _SENT.get()
    if sent is not None and response.status_code >= 300:
        body: Any = response.stream  # which may be iterated either way
        response.stream = httpx2.ByteStream(_not_deep(b"".join([piece async for piece in body])))
    if sent is None or response.status_code != 200:
        return
    sent.http_response = httpx2.Response(
        response.status_code, headers=response.headers, stream=response.stream, request=response.request
    )
    response.headers.pop("content-encoding", None)
    response.stream = httpx2.ByteStream(b"")


def _not_deep(body: bytes) -> bytes:
    """The body of an error, or words in its place if Python cannot read JSON that is nested so deep."""
    try:
        json.loads(body)
    except RecursionError:
        return b"the error is nested too deep to be read"
    except ValueError:
        pass
    return body
