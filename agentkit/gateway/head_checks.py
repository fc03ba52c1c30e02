"""Who may ask what, before anything is read of a request: names of the host, web pages, keys, sizes, and how many."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from agentkit.checks.callers import LOOPBACK, refusal
from agentkit.checks.missing_await import EnteredAsync
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.gateway_config import GatewayConfig
from agentkit.schemas.typed.values import load

ASGIReceive = Callable[[], Awaitable[MutableMapping[str, Any]]]
ASGISend = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIScope = MutableMapping[str, Any]

_OWN_PAGES: Final = ("", "same-origin", "none")
"""Values of `Sec-Fetch-Site` of requests that are not from another site's page. Source: the Fetch Metadata spec."""


_MAX_DEPTH: Final = 200
"""Nested arrays and objects of a body, as of a provider's response; a schema of 64 nested schemas has 130."""


class ClientLeft(Exception):
    """The client closed its connection."""


class HeadChecks:
    """The checks of a request's head.

    Args:
        config: the allowed hosts and origins, and the limits.
        keys: the clients' keys by the name of the client; empty asks for no key.
    """

    def __init__(self, config: GatewayConfig, keys: Mapping[str, str]) -> None:
        self._names = (*LOOPBACK, *config.allowed_hosts)
        self._origins = frozenset(origin.rstrip("/").lower().encode() for origin in config.allowed_origins)
        self._keys = {name: key.encode() for name, key in keys.items()}
        self._header_bytes = config.limits.header_bytes

    def check(self, scope: ASGIScope, *, public: bool = False) -> str:
        """Check a request's headers.

        Args:
            scope: of ASGI.
            public: whether no key is needed.

        Returns:
            The name of the client whose key it has; empty if no key is needed.

        Raises:
            RequestRefused: it may not ask this.
        """
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if size + sum(len(name) + len(value) for name, value in headers) > self._header_bytes:
            message = f"the headers are longer than {self._header_bytes:,} bytes"
            raise RequestRefused(431, message, "headers_too_large")
        found = dict(headers)
        allowed = self.origin(found) is not None
        page = refusal([pair for pair in headers if not (allowed and pair[0] == b"origin")], self._names)
        if page is not None:
            setting = "allowed_hosts" if page[0] == 421 else "allowed_origins"
            raise RequestRefused(page[0], f"{page[1]}; see {setting}", "forbidden")
        site = found.get(b"sec-fetch-site", b"").decode("latin-1")
        if not allowed and site not in _OWN_PAGES:
            message = f"requests from web pages are refused (Sec-Fetch-Site: {site[:20]}); see allowed_origins"
            raise RequestRefused(403, message, "forbidden")
        return "" if public else self._client(found)

    def origin(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        """Return the origin of a request from an allowed web page; None for any other request."""
        origin = headers.get(b"origin")
        return origin if origin is not None and origin.lower() in self._origins else None

    def _client(self, headers: Mapping[bytes, bytes]) -> str:
        """The client whose key a request has; all keys are compared, so that the time shows nothing."""
        if not self._keys:
            return ""
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        given = (token.strip() if scheme.lower() == b"bearer" else b"") or headers.get(b"x-api-key", b"")
        matches = [name for name, key in self._keys.items() if hmac.compare_digest(given, key)]
        if not matches:
            found = "it is not a key of this gateway" if given else "there is none in Authorization or x-api-key"
            raise RequestRefused(401, f"a key is required: {found}", "invalid_api_key")
        return matches[0]


def check_json(headers: Mapping[bytes, bytes]) -> None:
    """Check that a body is declared as JSON, and not compressed. A page in a browser cannot send it without asking.

    Raises:
        RequestRefused: it is not (status 415).
    """
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        found = repr(kind.decode("latin-1")[:60]) if kind else "none"
        message = f"expected the content type application/json, found {found}"
        raise RequestRefused(415, message, "unsupported_media_type")
    if (coding := headers.get(b"content-encoding", b"identity").strip().lower()) != b"identity":
        message = (
            f"expected a body that is not compressed, found the content encoding {coding[:60].decode('latin-1')!r}"
        )
        raise RequestRefused(415, message, "unsupported_media_type")


async def read_body(receive: ASGIReceive, headers: Mapping[bytes, bytes], most: int, seconds: float) -> bytes:
    """Read a request's body.

    Args:
        receive: of ASGI.
        headers: of the request.
        most: its maximum bytes; no more is kept.
        seconds: within which it must have arrived.

    Raises:
        RequestRefused: it is too long (413) or too slow (408).
        ClientLeft: the client closed its connection.
    """
    too_long = RequestRefused(413, f"the body is longer than {most:,} bytes", "request_too_large")
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > most:
        raise too_long
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientLeft
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > most:
                    raise too_long
                more = message.get("more_body", False)
    except TimeoutError:
        raise RequestRefused(408, f"the body did not arrive within {seconds:g} s", "request_timeout") from None
    return b"".join(pieces)


def json_object(raw: bytes) -> dict[str, Any]:
    """Return the object in a body.

    It is as strict as a call's arguments are, since some bodies have them: what is approved must be what runs.

    Raises:
        RequestRefused: status 400; it is not JSON, or no object.
    """
    try:
        body = load(raw.decode("utf-8-sig"), depth=_MAX_DEPTH)
    except ValueError as e:
        raise RequestRefused(400, f"the body is not JSON: {e}", "invalid_json") from None
    if not isinstance(body, dict):
        found = raw[:60].decode(errors="replace")
        raise RequestRefused(400, f"expected a JSON object, found {found}", "invalid_request")
    return body


class RequestSlots:
    """Limits the requests that are answered at the same time.

    Args:
        most: that are answered.
        queue: that wait.
        seconds: that one waits.
    """

    def __init__(self, most: int, queue: int, seconds: float) -> None:
        self._slots = asyncio.Semaphore(most)
        self._queue = queue
        self._seconds = seconds
        self.waiting = 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A slot, for the time of the block.

        Raises:
            RequestRefused: there is none (status 503).
        """
        if self._slots.locked():
            await self._wait()
        else:
            await self._slots.acquire()
        try:
            yield
        finally:
            self._slots.release()

    async def _wait(self) -> None:
        if self.waiting >= self._queue:
            raise RequestRefused(503, "the gateway is busy: too many requests wait", "overloaded", retry_after=1)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
        except TimeoutError:
            message = f"the gateway is busy: no request ended within {self._seconds:g} s"
            raise RequestRefused(503, message, "overloaded", retry_after=1) from None
        finally:
            self.waiting -= 1


class ClientWatch(EnteredAsync):
    """Cancels the task that runs the block if the client leaves; then the block ends, and `left` is True.

    Args:
        receive: of ASGI, after the body was read.
        ended: whether the response is complete: after that, ASGI reports that the client is gone, and it is not.
    """

    def __init__(self, receive: ASGIReceive, ended: Callable[[], bool]) -> None:
        self._receive = receive
        self._ended = ended
        self._over = False
        self.left = False

    async def __aenter__(self) -> ClientWatch:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._waiting = asyncio.ensure_future(self._departure())
        self._waiting.add_done_callback(self._cancel)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self._over = True
        self._waiting.cancel()
        if not self.left:
            return False
        self._task.uncancel()
        return kind is asyncio.CancelledError

    async def _departure(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _cancel(self, waiting: asyncio.Future[None]) -> None:
        if not (self._over or waiting.cancelled() or self._ended()):
            self.left = True
            self._task.cancel()
