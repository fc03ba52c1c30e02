"""One request on its way through the gateway: what was asked, what answers it, and what is counted of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from agentkit.events import Usage
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.request_reader import ClientWire
from agentkit.models.servers import Constrained

MAX_ERROR: Final = 1024 * 1024
"""Bytes that are read of the body of an error or a redirect."""


class ReplyBody(AsyncIterable[bytes], Protocol):
    """The pieces of a body as it arrives, or as it is made: an iterator that can be closed."""

    def __anext__(self) -> Awaitable[bytes]: ...

    async def aclose(self) -> None:
        """End the request, or the run, that makes it."""
        ...


class MadeBody:
    """A body whose pieces a generator makes.

    Args:
        pieces: the generator.
        close: ends what the pieces are made of; a generator that was not started does not do that.
    """

    def __init__(self, pieces: AsyncGenerator[bytes, None], close: Callable[[], Awaitable[None]]) -> None:
        self._pieces = pieces
        self._close = close

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Close the generator, and end what its pieces are made of."""
        await self._pieces.aclose()
        await self._close()


class ReadBody:
    """The pieces of a body of which the beginning, or all, is known.

    Args:
        start: the beginning.
        rest: the pieces after it; None if there are none.
    """

    def __init__(self, start: bytes, rest: ReplyBody | None = None) -> None:
        self.start = start
        self.rest = rest
        self._next = start

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece, self._next = self._next, b""
        if piece:
            return piece
        if self.rest is None:
            raise StopAsyncIteration
        return await anext(self.rest)

    async def aclose(self) -> None:
        """End the request."""
        if self.rest is not None:
            await self.rest.aclose()


class UpstreamReply(NamedTuple):
    """The response of an upstream whose status and headers have arrived.

    Attributes:
        status: the HTTP status.
        headers: with lower-case names.
        pieces: the body as it arrives; of an error at most `MAX_ERROR` bytes. Closing it ends the request: `aclose()`.
            It raises a `RequestRefused` if the upstream closed the connection too early (status 502), or takes too
            long (504).
    """

    status: int
    headers: Mapping[str, str]
    pieces: ReplyBody


class Upstream(Protocol):
    """One model server.

    Attributes:
        wire: the wire that it speaks.
        server: its kind, such as `vllm` or `llamacpp` (a key of `agentkit.models.servers.SERVERS`); None if unknown.
    """

    wire: WireName
    server: str | None

    async def send(self, body: bytes, headers: Mapping[str, str]) -> UpstreamReply:
        """Send a request to the path of its wire; repeated where that is safe, before the first byte of a reply.

        Raises:
            RequestRefused: it cannot be reached, or did not answer in time (status 502 or 504).
        """
        ...


class ServedModel(Protocol):
    """Answers requests itself, in place of a server: an agent."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def answer(self, exchange: Exchange) -> GatewayReply:
        """Answer a request.

        Raises:
            RequestRefused: it cannot be answered.
        """
        ...

    async def aclose(self) -> None:
        """End what runs, and close what it holds."""
        ...


class NoUpstream:
    """The upstream of a route that an `ServedModel` answers."""

    wire: WireName = "chat"
    server: str | None = None

    async def send(self, body: bytes, headers: Mapping[str, str]) -> UpstreamReply:
        """Refuse the request: there is no server."""
        raise RequestRefused(501, "this model has no server", "not_available")


@dataclass(frozen=True, slots=True)
class Route:
    """How the requests for one model are answered.

    Args:
        model: the upstream's name of the model.
        upstream: the server.
        format: `auto` (native calls, those in text are recovered), `raw` (nothing is read), or a text format, in which
            the model is taught to call.
        constrained: whether calls in text are constrained by a grammar.
        retries: how often the model is asked again after a reply that is not an answer.
        served: answers the requests in place of the upstream; None if that does.
    """

    model: str
    upstream: Upstream
    format: str = "auto"
    constrained: Constrained = False
    retries: int = 2
    served: ServedModel | None = None


@dataclass(slots=True)
class ReplyRecord:
    """The figures of one reply, for metrics and the log."""

    format: str = ""
    repairs: list[str] = field(default_factory=list)
    recovered: int = 0
    asked_again: int = 0
    recovery_failed: int = 0
    usage: Usage | None = None
    finish: str = ""
    error: str = ""
    """The code of the error in which a stream ended."""


@dataclass(slots=True)
class Exchange:
    """One request on its way.

    Args:
        wire: the client's.
        body: the request.
        raw: its bytes, as they came.
        headers: those that go to the upstream.
        route: what answers it.
        record: what is counted of it.
    """

    wire: ClientWire
    body: Mapping[str, Any]
    raw: bytes
    headers: Mapping[str, str]
    route: Route
    record: ReplyRecord = field(default_factory=ReplyRecord)


class GatewayReply(NamedTuple):
    """The response to a client: its status, its headers, and its body as it is made.

    The gateway adds its own headers, and closes `pieces` at the end and if the client leaves. Closing it ends the
    request to the upstream, even if no piece was asked for: an async generator that was not started does not do that.
    Each piece of a stream of events ends where an event ends, since heartbeats are written between pieces. If `pieces`
    raises a `RequestRefused`, the gateway ends the stream with that error in the client's wire.
    """

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    pieces: ReplyBody
