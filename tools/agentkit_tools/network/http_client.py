"""The HTTP client of the tools: retries, a rate, a deadline for everything together, a limit on the bytes read.

Knows HTTP, and addresses by `agentkit_tools.network.addresses`; knows no service. httpx2 is loaded with the first
request. Each request opens its own connection: there is nothing to close, and nothing that belongs to an event loop.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from agentkit.errors import ConfigError
from agentkit.models import decompress, redact, secrets_in, watch_logs
from agentkit_tools.network.addresses import Guard, RequestFailed, brief, checked_url, denial, display_url

if TYPE_CHECKING:
    import ssl

    from httpx2 import URL, AsyncClient
    from httpx2 import Response as Answer

MAX_BYTES: Final = 10_000_000  # of a body, decompressed: far above the median page's 30 kB of HTML
CONNECT_TIMEOUT: Final = 10.0  # seconds for one connection; a host that does not answer is not a slow answer
AGAIN: Final = frozenset((429, 500, 502, 503, 504))
"""The statuses after which the same request may succeed."""
REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_MESSAGES: Final = re.compile("json|text/plain")
"""The types of a body that says what failed; a page does not."""
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Response:
    """A server's answer with a status below 400.

    Args:
        url: where it came from, after redirects.
        shown_url: the same, with the letters of an international host.
        headers: by their names in lower case.
        body: decompressed, at most the client's `max_bytes`.
        cut: whether the body was longer.
    """

    url: str
    shown_url: str
    headers: Mapping[str, str]
    body: bytes = b""
    cut: bool = False

    @property
    def media_type(self) -> str:
        """The declared type, without parameters: `text/html`."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            RequestFailed: it is not JSON, or it is longer than the client reads.
        """
        host = self.url.split("/")[2]
        if self.cut:
            raise RequestFailed(f"{host} sent more than the {len(self.body)} bytes that are read; ask for less")
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as e:
            start = self.body[:80].decode("utf-8", "replace")
            raise RequestFailed(f"{host} did not answer in JSON: {e}; its answer starts with {start!r}") from e


class Key:
    """An API key. Shown nowhere: not in its `repr`, nor in logs of the HTTP libraries, nor in answers that repeat it.

    Args:
        variable: the environment variable that contains it, read at each call.
        header: in which it is sent.
        value: the key itself, in place of the variable's.
        before: precedes it in the header.
        needed: whether the service answers nobody without a key.
    """

    def __init__(
        self, variable: str, header: str, value: str | None = None, *, before: str = "", needed: bool = False
    ) -> None:
        self.variable, self.header, self.before = variable, header, before
        self._value = value
        self._needed = needed
        self._watched: set[str] = set()

    def __repr__(self) -> str:
        return f"Key({self.variable!r})"

    def read(self) -> str | None:
        """The key; None if there is none.

        Raises:
            RequestFailed: it contains a character that no header can carry, or is missing although it is needed.
        """
        value = (self._value if self._value is not None else os.environ.get(self.variable, "")).strip()
        if not (value.isascii() and value.isprintable()):  # the HTTP library's complaint would quote it
            raise RequestFailed(
                f"the key in {self.variable} contains a character that HTTP cannot carry; the operator must correct it"
            )
        if not value and self._needed:
            raise RequestFailed(f"this service needs a key: the operator must set {self.variable}")
        if value and value not in self._watched:
            self._watched.add(value)
            watch_logs(self, [value])
        return value or None


class HttpClient:
    """Sends requests, each within one deadline.

    Args:
        guard: which addresses may be reached; None for any, if the operator alone chooses the URL.
        service: the URL that the operator chose, if there is one. A key in its query is shown nowhere.
        timeout: seconds for a request with all its redirects, retries and waiting.
        max_bytes: of a body, after decompression; a longer one is cut.
        retries: further attempts after connection errors and the statuses of `AGAIN`. The server's `Retry-After` is
            followed if the deadline allows it.
        backoff: seconds before the first retry, at most; doubled for each next one.
        rate: requests per second, from all users of this client together; None for any number.
        redirects: how many are followed; each is checked like the first URL.
        ssl_context: verifies certificates, such as those of an intranet; by default the operating system's.

    Raises:
        ConfigError: a number is out of range.
    """

    def __init__(
        self,
        *,
        guard: Guard | None = None,
        service: str = "",
        timeout: float = 30.0,
        max_bytes: int = MAX_BYTES,
        retries: int = 2,
        backoff: float = 0.5,
        rate: float | None = None,
        redirects: int = 0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        for name, number, least in (("timeout", timeout, 0.001), ("max_bytes", max_bytes, 1), ("retries", retries, 0)):
            if not number >= least:
                raise ConfigError(f"{name}={number!r}: expected a number, {least} or more")
        if rate is not None and not rate > 0:
            raise ConfigError(f"rate={rate!r}: expected requests per second, more than 0, or None")
        self._guard = guard
        self._secrets = secrets_in(service)
        watch_logs(self, self._secrets)
        self.timeout = timeout
        self.max_bytes = max_bytes
        self._retries = retries
        self._backoff = backoff
        self._redirects = redirects
        self._ssl_context = ssl_context
        self._pace = Pace(rate)

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        key: Key | None = None,
        check: Callable[[Response], None] | None = None,
    ) -> Response:
        """Send a request.

        Args:
            method: such as GET.
            url: absolute.
            params: of the query, added to the URL's own.
            headers: in addition to the client's.
            body: sent as JSON.
            key: sent in its header, if there is one; replaced by `[key]` if the answer repeats it.
            check: sees the response before its body is read, and refuses it by raising `RequestFailed`.

        Raises:
            RequestFailed: refused, not answered in time, or answered with a status of 400 or above.
        """
        import anyio
        import httpx2

        from agentkit_tools.network.pinned_transport import PinnedTransport, trusting

        target = checked_url(url).copy_merge_params(params) if params else checked_url(url)
        transport = PinnedTransport(self._guard, self._ssl_context or trusting())
        sent, secrets = IDENTITY | dict(headers or {}), self._secrets
        if key is not None and (value := key.read()) is not None:
            sent[key.header] = f"{key.before}{value}"
            secrets = (value, *secrets)
        client = httpx2.AsyncClient(
            transport=transport,
            trust_env=False,
            headers=sent,
            timeout=httpx2.Timeout(self.timeout, connect=min(CONNECT_TIMEOUT, self.timeout)),
        )
        with anyio.move_on_after(self.timeout):
            async with client:
                return await self._attempts(_Exchange(client, method, target, body, secrets, key, check))
        raise RequestFailed(f"{target.host} did not answer within {self.timeout:g} seconds", code="timeout")

    async def _attempts(self, exchange: _Exchange) -> Response:
        import anyio

        for failures in range(self._retries + 1):
            await anyio.sleep(self._pace.reserve(time.monotonic()))
            try:
                return await exchange.send(self._redirects, self.max_bytes)
            except RequestFailed as e:
                wait = e.wait if e.wait is not None else self._backoff * 2.0**failures * (1 + random.random()) / 2
                left = anyio.current_effective_deadline() - anyio.current_time()
                if not e.retry or failures == self._retries:
                    raise
                if wait >= left:
                    raise RequestFailed(
                        f"{e}; the next attempt is possible in {wait:.0f} seconds, later than this call may take",
                        status=e.status,
                        wait=wait,
                    ) from e
                await anyio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


IDENTITY: Final = {"User-Agent": "agentkit", "Accept-Encoding": "gzip, deflate"}


class Pace:
    """Distributes requests evenly over time, from any number of threads and event loops.

    Args:
        rate: requests per second; None for any number.
    """

    def __init__(self, rate: float | None) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def reserve(self, now: float) -> float:
        """Reserve the next free moment, and return the seconds to wait for it.

        >>> pace = Pace(2)
        >>> [pace.reserve(100.0), pace.reserve(100.0), pace.reserve(103.0)]
        [0.0, 0.5, 0.0]
        """
        with self._lock:
            moment = max(now, self._next)
            self._next = moment + self._gap
            return moment - now


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request, and how its answer is read."""

    client: AsyncClient
    method: str
    target: URL
    body: Any
    secrets: tuple[str, ...]
    key: Key | None
    check: Callable[[Response], None] | None

    async def send(self, redirects: int, max_bytes: int) -> Response:
        """One attempt: the request and its redirects."""
        import httpx2

        method, url = self.method, self.target
        try:
            for _ in range(redirects + 1):
                body = self.body if method != "GET" else None
                async with self.client.stream(method, url, json=body, follow_redirects=False) as answer:
                    if answer.status_code not in REDIRECTS or "location" not in answer.headers:
                        return await self._read(url, answer, max_bytes)
                    url = self._next(url, answer, redirects)
                    method = method if answer.status_code in (307, 308) else "GET"
        except httpx2.TimeoutException as e:
            raise RequestFailed(f"{url.host} did not answer in time", code="timeout", retry=True) from e
        except httpx2.TransportError as e:
            raise RequestFailed(f"no answer from {url.host}: {str(e) or type(e).__name__}", retry=True) from e
        raise RequestFailed(f"more than {redirects} redirects; the last one leads to {brief(display_url(url))}")

    def _next(self, url: URL, answer: Answer, redirects: int) -> URL:
        import httpx2

        location = self._redact(answer.headers["location"])
        if not redirects:
            raise RequestFailed(f"{url.host} redirects to {brief(location)}, which is not followed")
        try:
            return checked_url(str(url.join(location)) if "\\" not in location else location)
        except httpx2.InvalidURL as e:
            raise denial(f"{url.host} redirects to {brief(location)}, which is not a URL") from e
        except RequestFailed as e:
            raise denial(f"{url.host} redirects to {brief(location)}: {e}") from e

    async def _read(self, url: URL, answer: Answer, max_bytes: int) -> Response:
        headers = {name.lower(): self._redact(value) for name, value in answer.headers.items()}
        response = Response(str(url), display_url(url), headers)
        if answer.status_code >= 400:
            raise await self._failure(url, answer, headers)
        if self.check is not None:
            self.check(response)
        body, cut = await self._read_bounded(url, answer, max_bytes)
        if self.secrets:
            text = body.decode("utf-8", "surrogateescape")  # other bytes stay as they are
            body = self._redact(text).encode("utf-8", "surrogateescape")
        return Response(response.url, response.shown_url, headers, body, cut)

    async def _failure(self, url: URL, answer: Answer, headers: Mapping[str, str]) -> RequestFailed:
        status = answer.status_code
        said = ""
        if _MESSAGES.search(headers.get("content-type", "text/plain")):
            with suppress(RequestFailed):  # without its words, the status still says what happened
                body, _ = await self._read_bounded(url, answer, 2000)
                said = self._redact(" ".join(body.decode("utf-8", "replace").split()))[:300]
        name = _PHRASES.get(status, "an unknown status")
        hint = f"; the operator must check {self.key.variable}" if self.key and status in (401, 403) else ""
        return RequestFailed(
            f"{url.host} answered {status} ({name}){': ' if said else ''}{said}{hint}",
            status=status,
            retry=status in AGAIN,
            wait=retry_after(headers.get("retry-after", ""), time.time()),
        )

    async def _read_bounded(self, url: URL, answer: Answer, max_bytes: int) -> tuple[bytes, bool]:
        """The first bytes of a body, decompressed, and whether there were more."""
        import httpx2

        body = bytearray()
        try:
            async with aclosing(decompress(answer)) as pieces:
                async for piece in pieces:
                    body += piece
                    if len(body) > max_bytes:
                        return bytes(body[:max_bytes]), True
        except httpx2.DecodingError as e:
            raise RequestFailed(f"{url.host} sent a body that cannot be decompressed: {e}") from e
        return bytes(body), False

    def _redact(self, text: str) -> str:
        return redact(text, self.secrets)


def retry_after(header: str, now: float) -> float | None:
    """The seconds that a `Retry-After` header asks to wait; None if it does not.

    >>> retry_after("7", now=0), retry_after("Thu, 01 Jan 1970 00:00:09 GMT", now=4), retry_after("soon", now=0)
    (7.0, 5.0, None)
    """
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", header.strip()):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
