"""The HTTP client of a session: bounded answers, no compression; a fault affects only its own request.

In the official SDK, an exception of the HTTP client ends the whole session with every call in flight. Here it becomes
a JSON-RPC error of its own request.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import httpx2

from agentkit.checks.missing_await import EnteredAsync
from agentkit.interop.mcp.amount import too_many
from agentkit.interop.mcp.endpoints import RemoteServer, safe_words

UNSENT: Final = -32_090
"""agentkit's JSON-RPC error code for a request that has not reached the server."""
LOST: Final = -32_091
"""An error code for a request that may have reached the server, which did not answer."""

REFUSED: Final = -32_092
"""An error code for a request that the server has refused by its status."""

_METHOD_NOT_FOUND: Final = -32_601

NOT_FOUND: Final = {"status": 404}
"""The data of an error that is the server's HTTP 404, and not its word that it has no such method."""
_SAID: Final = 100_000  # bytes that are read of the body of a refusal
_ATTEMPTS: Final = 4  # connections tried for one request, with pauses of 0.1 s, 0.2 s, …: a busy server refuses some
_SECONDS: Final = 10.0  # for one attempt to connect
_BLANK: Final = re.compile(rb"\n\r?\n|\r\r")  # ends an event
_IDLE: Final = 300.0  # seconds without a byte after which an answer is given up


@asynccontextmanager
async def http_streams(server: RemoteServer, cap: int) -> AsyncIterator[Any]:
    """The two streams of messages of a streamable HTTP server.

    Args:
        server: where it is.
        cap: bytes that one answer may have.
    """
    from mcp.client.streamable_http import streamable_http_client

    address = server.address
    guarded = GuardedTransport(server, cap)
    client = httpx2.AsyncClient(
        transport=guarded,
        headers={**address.headers, **server.headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(_SECONDS, read=_IDLE, write=_IDLE, pool=None),
    )
    async with client, streamable_http_client(address.url, http_client=client, max_sse_event_size=cap) as streams:
        yield streams


class GuardedTransport(EnteredAsync, httpx2.AsyncBaseTransport):
    """An HTTP transport whose faults are answers.

    Args:
        server: for its secrets.
        cap: bytes that one answer may have; of a stream of events, each event is capped by its reader.
    """

    def __init__(self, server: RemoteServer, cap: int) -> None:
        # not limited: a call that waits for its turn would count as one in flight, and the pool would drop it
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        self._inner = httpx2.AsyncHTTPTransport(limits=limits, trust_env=False)
        self._server = server
        self._cap = cap

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it; an answer in any case."""
        refusal = ""
        sent = self._complete(request)
        for attempt in range(_ATTEMPTS):
            await asyncio.sleep(0.05 * 2**attempt if attempt else 0)
            try:
                return await self._judged(request, await self._inner.handle_async_request(sent))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as e:
                refusal = safe_words(e, self._server.secrets)
            except httpx2.TransportError as e:
                said = safe_words(e, self._server.secrets)
                return self._error(request, LOST, f"the connection to {self._server} broke: {said}")
        return self._error(request, UNSENT, f"cannot connect to {self._server}: {refusal}")

    def _complete(self, request: httpx2.Request) -> httpx2.Request:
        """The request with the query of the server's URL, which may hold a key: only here, since URLs are logged."""
        query = self._server.address.query
        if not query:
            return request
        url = request.url.copy_merge_params(dict(query))
        return httpx2.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
        )

    async def _judged(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        status = response.status_code
        if encoding not in ("", "identity"):
            await response.aclose()
            return self._error(request, LOST, f"{self._server} answered in {encoding!r:.40}, which was not asked for")
        forgotten = status == 404 and "mcp-session-id" in request.headers
        if request.method == "POST" and status >= 400 and (forgotten or status != 405):
            return await self._refused(request, response, forgotten)
        if kind == "text/event-stream":
            response.stream = _Events(
                response.stream, self._cap, lambda why: self._error(request, REFUSED, why).content
            )
        else:
            response.stream = _Capped(response.stream, self._cap)
        return response

    async def _refused(self, request: httpx2.Request, response: httpx2.Response, forgotten: bool) -> httpx2.Response:
        """Return the error in a body, or one with the status and the body's text."""
        read, body = _Capped(response.stream, _SAID), b""
        with suppress(httpx2.StreamError):
            async for chunk in read:
                body += chunk
        await response.aclose()
        try:
            said = json.loads(body)
        except ValueError:
            said = None
        told = said.get("error") if isinstance(said, dict) else None
        if isinstance(told, dict) and isinstance(told.get("message"), str):
            number: object = told.get("code")
            if isinstance(number, int) and (not forgotten or number == _METHOD_NOT_FOUND):
                return self._error(request, number, told["message"], told.get("data"))
        if forgotten:  # by the protocol's word, whatever the body says
            return self._error(request, UNSENT, "the MCP server has forgotten this session")
        why = _reason(said)
        status = f"{self._server} answered with HTTP {response.status_code} {response.reason_phrase}"
        code = LOST if response.status_code >= 500 else REFUSED
        if response.status_code == 404:  # with the code by which the SDK tries the older protocol
            code, status = _METHOD_NOT_FOUND, f"{status} (the URL of an MCP server often ends in /mcp)"
        data = NOT_FOUND if response.status_code == 404 else None
        return self._error(request, code, f"{status}: {why:.500}" if why else status, data)

    def _error(self, request: httpx2.Request, code: int, message: str, data: Any = None) -> httpx2.Response:
        """An answer that says what went wrong, in the form of the request."""
        if request.method == "DELETE":  # the end of a session that is gone already
            return httpx2.Response(204, request=request)
        try:
            number = json.loads(request.content).get("id")
        except (ValueError, AttributeError, httpx2.RequestNotRead):
            number = None
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        body = {"jsonrpc": "2.0", "id": number, "error": error}
        return httpx2.Response(502, json=body, request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


def _reason(said: Any) -> str:
    """Why a server refuses, where servers write it; empty if it is not said."""
    for key in ("error", "error_description", "message", "detail") if isinstance(said, dict) else ():
        if isinstance(why := said.get(key), str) and why:
            return why
    return ""


class _Body(httpx2.AsyncByteStream):
    """A body of an answer, cut off at a limit."""

    def __init__(self, stream: Any, cap: int) -> None:
        self._stream = stream
        self._cap = cap

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Events(_Body):
    """A stream of events, passed on event by event; one with too many values is replaced.

    Args:
        stream: the body.
        cap: bytes of an event; the rest of a longer one is passed on at once, and the SDK refuses it.
        refused: makes the JSON-RPC message in place of an event from the reason.
    """

    def __init__(self, stream: Any, cap: int, refused: Callable[[str], bytes]) -> None:
        super().__init__(stream, cap)
        self._refused = refused

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = bytearray()
        async for chunk in self._stream:
            known = max(len(held) - 3, 0)
            held += chunk
            end = max((found.end() for found in _BLANK.finditer(held, known)), default=0)
            end = end or (len(held) if len(held) > self._cap else 0)
            if end:
                yield self._judged(bytes(held[:end]))
                del held[:end]
        yield self._judged(bytes(held))

    def _judged(self, events: bytes) -> bytes:
        why = too_many(events)
        return b"data: %s\n\n" % self._refused(why) if why else events


class _Capped(_Body):
    """A body that raises an error that the SDK takes as damage of this one answer: if it is too large, or cut."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = bytearray()
        try:
            async for chunk in self._stream:
                body += chunk
                if len(body) > self._cap:
                    raise httpx2.StreamError(f"the answer is larger than {self._cap:,} bytes")
        except httpx2.TransportError as e:
            raise httpx2.StreamError(f"the answer was interrupted: {type(e).__name__}") from None
        if why := too_many(body):
            raise httpx2.StreamError(why)
        yield bytes(body)
