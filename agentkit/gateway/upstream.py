"""Model servers over HTTP: one pooled client for all of them, deadlines, and retries before the first byte of a reply.

Needs aiohttp, which is loaded with the first request. Knows nothing of what is in a request.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from agentkit.errors import ProviderError
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import PATHS, WireName
from agentkit.gateway.error_replies import json_of
from agentkit.gateway.exchanges import MAX_ERROR, ReadBody, UpstreamReply
from agentkit.gateway.gateway_config import GatewayTimeouts, UpstreamSettings
from agentkit.models.retry import Retry
from agentkit.models.secrets import redact
from agentkit.models.wire import mapping_of, text_of

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

ERROR_SECONDS: Final = 10.0
"""Seconds within which an error's body must have arrived."""

REPEATED: Final = frozenset((429, 503, 529))
"""Statuses of a server that has not started on the request."""

STATUSES: Final = range(200, 600)
"""The statuses that a client can be given. Source: RFC 9110, 15."""

RETRY: Final = Retry(times=2, first=0.5, longest=4.0, patience=2.0)
"""How a request is repeated. A client repeats it as well, so longer waits are left to it."""

READ_BYTES: Final = 16 * 1024
"""Bytes of a reply after which its connection waits to be read; aiohttp keeps at most twice as many."""

KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept: less than uvicorn, vLLM and Node.js keep it, which is 5 s."""

LOST: Final = 1.0
"""Seconds between two looks at the connection of a reply that is waited for: aiohttp does not report an end inside
chunks that it cannot read. Source: its `ResponseHandler.data_received`, which fails the connection, not the body."""

LIST_SECONDS: Final = 5.0
"""Seconds that an upstream has to list its models."""

ANTHROPIC_VERSION: Final = "2023-06-01"

_OAUTH: Final = "sk-ant-oat"  # Anthropic's tokens for `Authorization`; it refuses them in `x-api-key`


class ConnectionPool:
    """The one HTTP client of a process, opened with the first request."""

    def __init__(self, timeouts: GatewayTimeouts) -> None:
        self.timeouts = timeouts
        self._session: ClientSession | None = None

    def session(self) -> ClientSession:
        """Return the client."""
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.timeouts.connect),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("user-agent",),
                read_bufsize=READ_BYTES,
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


class HttpUpstream:
    """One model server.

    Args:
        settings: its address, its wire and its kind.
        key: its key; None passes the client's key on.
        pool: the process's connections.
    """

    def __init__(self, settings: UpstreamSettings, key: str | None, pool: ConnectionPool) -> None:
        self.settings = settings
        self.wire: WireName = settings.wire
        self.server = settings.server
        self.reachable: bool | None = None
        self._key = key
        self._pool = pool
        self._retry = replace(RETRY, times=settings.repeats)
        self._base = base_url(settings.url, settings.wire)
        self._host = urlsplit(self._base).netloc

    async def send(self, body: bytes, headers: Mapping[str, str]) -> UpstreamReply:
        """Send a request to the path of its wire.

        It is repeated after 429, 503 and 529, and if the connection was refused or closed before a byte arrived.

        Raises:
            RequestRefused: it cannot be reached (status 502), or did not answer in time (504).
        """
        path = PATHS[self.wire].removeprefix("/v1")
        sent = {"content-type": "application/json", "accept": "*/*", **self._headers(headers)}
        failures = 1
        outcome = await self._attempt("POST", path, body, sent)
        while (seconds := self._wait(outcome, failures)) is not None:
            await asyncio.sleep(seconds)
            failures += 1
            outcome = await self._attempt("POST", path, body, sent)
        if isinstance(outcome, RequestRefused):
            raise outcome
        return outcome

    async def models(self, headers: Mapping[str, str]) -> list[str]:
        """Return the names of its models.

        Args:
            headers: of the client, for its key.

        Raises:
            RequestRefused: it cannot be reached, or its answer is not a list of models.
        """
        try:
            async with asyncio.timeout(LIST_SECONDS):
                reply = await self._attempt("GET", "/models", None, self._headers(headers))
                if isinstance(reply, RequestRefused):
                    raise reply
                async with aclosing(reply.pieces) as pieces:
                    text = b"".join([piece async for piece in pieces])
        except TimeoutError:
            raise RequestRefused(504, f"no list of models within {LIST_SECONDS:g} s", "upstream_timeout") from None
        try:
            found = json.loads(text)
            return [str(one["id"]) for one in found["data"]]
        except (ValueError, LookupError, TypeError):
            raise RequestRefused(502, f"status {reply.status}, and no list of models", "upstream_invalid") from None

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a request, with the key as the server's wire has it."""
        sent = {**headers, "accept-encoding": "identity"}
        messages = self.wire == "messages"
        if messages:
            sent.setdefault("anthropic-version", ANTHROPIC_VERSION)
        bearer = sent.get("authorization", "").partition(" ")[2]
        key = self._key or sent.get("x-api-key") or bearer
        if self._key is not None:
            sent.pop("authorization", None)
        if not key:
            return sent
        if messages and not key.startswith(_OAUTH):
            sent["x-api-key"] = key
        else:
            sent.pop("x-api-key", None)
        if not messages or key.startswith(_OAUTH) or (self.server is not None and self._key is not None):
            sent["authorization"] = f"Bearer {key}"  # servers of open models expect it on every path
        return sent

    async def _attempt(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> UpstreamReply | RequestRefused:
        """One attempt; an error that may be repeated is returned."""
        import aiohttp

        session, timeouts = self._pool.session(), self._pool.timeouts
        try:
            async with asyncio.timeout(timeouts.first_byte):
                response = await session.request(
                    method, self._base + path, data=body, headers=headers, allow_redirects=False
                )
        except aiohttp.ConnectionTimeoutError:
            return self._refusal(504, f"no connection within {timeouts.connect:g} s", "upstream_timeout")
        except TimeoutError:
            return self._refusal(504, f"no answer within {timeouts.first_byte:g} s", "upstream_timeout")
        except (aiohttp.ClientConnectionError, ConnectionError) as e:
            return self._refusal(502, _reason(e), "upstream_unreachable")
        except (aiohttp.ClientError, ValueError) as e:
            return self._refusal(502, f"its answer is not HTTP ({type(e).__name__})", "upstream_invalid")
        if response.status not in STATUSES:
            response.close()
            return self._refusal(502, f"its answer has the status {response.status}", "upstream_invalid")
        self.reachable = response.status < 500
        named = {name.lower(): value for name, value in response.headers.items()}
        if response.status >= 300:
            return UpstreamReply(response.status, named, ReadBody(self._redacted(await _error_body(response))))
        return UpstreamReply(response.status, named, ReplyPieces(response, timeouts, self._host))

    def _redacted(self, body: bytes) -> bytes:
        """An error's body, which may repeat the key, without the gateway's own key: it is not the client's."""
        if self._key is None:
            return body
        text = redact(body.decode("utf-8", "surrogateescape"), [self._key])
        return text.encode("utf-8", "surrogateescape")

    def _refusal(self, status: int, reason: str, code: str) -> RequestRefused:
        self.reachable = False
        return RequestRefused(status, f"the upstream at {self._host}: {reason}", code)

    def _wait(self, outcome: UpstreamReply | RequestRefused, failures: int) -> float | None:
        """Seconds before the next attempt; None if there is none."""
        from agentkit.models.provider_errors import kind_of_status, retry_after

        if isinstance(outcome, RequestRefused):
            if outcome.code != "upstream_unreachable":
                return None
            error = ProviderError("", kind="connection", provider="")
        elif outcome.status in REPEATED:
            after = retry_after(outcome.headers, time.time())
            body = json_of(outcome.pieces.start) if isinstance(outcome.pieces, ReadBody) else None
            code = text_of(mapping_of(mapping_of(body).get("error")).get("code"))
            advice = {"true": True, "false": False}.get(outcome.headers.get("x-should-retry", ""))
            kind = kind_of_status(outcome.status, code)
            error = ProviderError("", kind=kind, provider="", retry_after=after, advice=advice)
        else:
            return None
        return self._retry.wait(failures, error, random.random())


class ReplyPieces:
    """The body of a reply as it arrives. It is read only as fast as it is asked for.

    Args:
        response: its status and headers have arrived.
        timeouts: `idle` between two pieces, `total` for all of it.
        host: the upstream's, for messages.

    Raises:
        RequestRefused: when it is iterated; the connection was closed before the body ended (502), or it took too
            long (504).
    """

    def __init__(self, response: ClientResponse, timeouts: GatewayTimeouts, host: str) -> None:
        self._response = response
        self._timeouts = timeouts
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + timeouts.total
        self._asked: float | None = None
        self._timer = self._loop.call_later(min(timeouts.idle, timeouts.total, LOST), self._check)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        import aiohttp

        self._asked = self._loop.time()
        try:
            piece = await self._response.content.readany()
        except TimeoutError as e:
            raise RequestRefused(504, f"the upstream at {self._host}: {e}", "upstream_timeout") from None
        except (aiohttp.ClientError, ConnectionError, ValueError) as e:
            reason = f"its reply was cut off ({type(e).__name__})"
            raise RequestRefused(502, f"the upstream at {self._host}: {reason}", "upstream_interrupted") from None
        self._asked = None  # from here on, it is the client that takes its time
        if not piece:
            self._timer.cancel()
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """End the request: unless its reply is complete, the connection is closed."""
        self._timer.cancel()
        self._response.close()

    def _check(self) -> None:
        """Runs when the reply may be late: one timer for all of its pieces."""
        now = self._loop.time()
        asked = now if self._asked is None else self._asked
        due = min(asked + self._timeouts.idle, self._end)
        if self._asked is not None and self._is_lost():
            self._response.content.set_exception(ConnectionResetError())
            return
        if now < due:
            self._timer = self._loop.call_later(min(due - now, LOST), self._check)
            return
        late = now >= self._end
        seconds = self._timeouts.total if late else self._timeouts.idle
        reason = f"its reply took longer than {seconds:g} s" if late else f"nothing arrived for {seconds:g} s"
        self._response.content.set_exception(TimeoutError(reason))

    def _is_lost(self) -> bool:
        connection = self._response.connection
        return connection is not None and connection.protocol is not None and not connection.protocol.connected


async def _error_body(response: ClientResponse) -> bytes:
    """The body of an error, as far as it arrives."""
    import aiohttp

    kept = bytearray()
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            while len(kept) < MAX_ERROR and (piece := await response.content.readany()):
                kept += piece
    except (TimeoutError, aiohttp.ClientError, ConnectionError, ValueError):
        pass  # the status says more than the lack of a body
    finally:
        response.close()
    return bytes(kept[:MAX_ERROR])


def _reason(error: Exception) -> str:
    """Why there is no connection, without an address that may hold a key."""
    inner = getattr(error, "os_error", error)
    if isinstance(inner, ConnectionRefusedError):
        return "the connection was refused: no server listens at its address"
    if "DNS" in type(error).__name__:
        return "its name cannot be resolved"
    return f"the connection was closed before an answer ({type(error).__name__})"


def base_url(url: str, wire: WireName) -> str:
    """Return the URL before `/chat/completions`, `/responses`, `/messages` and `/models`.

    >>> base_url("http://127.0.0.1:8000", "chat"), base_url("https://openrouter.ai/api/v1/", "chat")
    ('http://127.0.0.1:8000/v1', 'https://openrouter.ai/api/v1')
    >>> base_url("https://api.deepseek.com/anthropic", "messages")
    'https://api.deepseek.com/anthropic/v1'
    """
    bare = url.rstrip("/")
    path = urlsplit(bare).path
    return bare if path and (wire != "messages" or path.endswith("/v1")) else f"{bare}/v1"
