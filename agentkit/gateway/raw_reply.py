"""Forwards a reply without reading it: the bytes of the upstream, and its errors."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import PATHS, WireName
from agentkit.gateway.error_replies import is_error_body, json_of, upstream_error
from agentkit.gateway.event_blocks import event_of
from agentkit.gateway.exchanges import Exchange, GatewayReply, MadeBody, ReadBody, UpstreamReply
from agentkit.gateway.http_headers import reply_headers
from agentkit.gateway.reply_ends import has_end
from agentkit.gateway.upstream_body import upstream_body

MAX_WHOLE: Final = 8 * 1024 * 1024
"""Bytes of a whole reply that are collected before its status is sent, so that an error can still be reported."""

MAX_EVENT: Final = 1024 * 1024
"""Bytes of one event of a stream that are collected; a longer one is forwarded in parts."""

_LAST: Final = 8
"""Pieces of a stream's end in which its last event is looked for: after it come the usage and comments."""


async def answer_raw(exchange: Exchange) -> GatewayReply:
    """Forward a request and its reply, with nothing changed but the name of the model.

    Raises:
        RequestRefused: the upstream speaks another wire, cannot be reached, or fails with something that the client's
            wire has no place for.
    """
    route = exchange.route
    if exchange.wire.name != route.upstream.wire:
        path = PATHS[route.upstream.wire]
        message = f"the model {exchange.body['model']!r:.100} is forwarded as it is: send its requests to {path}"
        raise RequestRefused(400, message, "invalid_request", param="model")
    exchange.record.format = "raw"
    reply = await route.upstream.send(raw_body(exchange), exchange.headers)
    return await forward(reply, exchange)


def raw_body(exchange: Exchange) -> bytes:
    """Return a request's bytes, in which only the name of the model may differ."""
    return upstream_body(exchange.raw, exchange.body, exchange.route.model)


async def forward(reply: UpstreamReply, exchange: Exchange) -> GatewayReply:
    """Return an upstream's reply in the client's wire unchanged.

    Raises:
        RequestRefused: it is an error in no wire, a redirect, or no reply, or was cut off before anything of it was
            sent.
    """
    kind = reply.headers.get("content-type", "")
    headers = reply_headers(reply.headers)
    if kind:
        headers.append((b"content-type", kind.encode("latin-1", "replace")))
    if reply.status >= 300:
        body = b"".join([piece async for piece in reply.pieces])
        if reply.status < 400 or not is_error_body(exchange.wire.name, json_of(body)):
            raise upstream_error(reply.status, reply.headers, body)
        return GatewayReply(reply.status, headers, ReadBody(body))
    if kind.startswith("text/event-stream"):
        events = whole_events(reply.pieces, exchange.wire.name)
        return GatewayReply(reply.status, headers, MadeBody(events, reply.pieces.aclose))
    return GatewayReply(reply.status, headers, await _whole(reply, exchange))


async def whole_events(pieces: AsyncIterator[bytes], wire: WireName) -> AsyncGenerator[bytes, None]:
    """A stream in pieces that end where an event ends; a part of an event that is cut off is not among them.

    Args:
        pieces: of the upstream.
        wire: the upstream's.

    Raises:
        RequestRefused: the stream ended, and the reply did not.
    """
    held: list[bytes] = []
    size, ended = 0, False
    cut = b""  # the last bytes that are held, which may begin the end of an event
    last: deque[bytes] = deque(maxlen=_LAST)
    async for piece in pieces:
        seen = cut + piece
        end, cut = _end_of_events(seen) - len(cut), seen[-3:]
        held.append(piece)
        size += len(piece)
        if size > MAX_EVENT and end <= 0:
            end = len(piece)
            ended = ended or has_end(wire, b"".join(held))  # its start says what it is
        if end > 0:
            size = len(piece) - end
            whole, rest = b"".join(held), piece[end:]
            held, cut = [rest] if rest else [], rest[-3:]
            last.append(whole[: len(whole) - size])
            yield last[-1]
    rest = b"".join(held)
    if event_of(rest) is None:
        rest = b""  # a part of an event, or nothing; an event may lack the empty line after it
    if not ended and not has_end(wire, b"".join([*last, rest])):
        message = "the upstream's reply was cut off: the connection was closed before its last event"
        raise RequestRefused(502, message, "upstream_interrupted")
    if rest:
        yield rest


def _end_of_events(text: bytes) -> int:
    """Where the last complete event of a text ends; 0 if there is none."""
    line_feeds, both = text.rfind(b"\n\n"), text.rfind(b"\r\n\r\n")
    return max(line_feeds + 2 if line_feeds >= 0 else 0, both + 4 if both >= 0 else 0)


async def _whole(reply: UpstreamReply, exchange: Exchange) -> ReadBody:
    """A reply of which all that fits has been read, so that it is complete or its failure can be reported."""
    pieces, kept = reply.pieces, []
    size = 0
    try:
        async for piece in pieces:
            kept.append(piece)
            size += len(piece)
            if size > MAX_WHOLE:
                break
        body = b"".join(kept)
        if size <= MAX_WHOLE and not _is_reply(body, exchange):
            raise upstream_error(reply.status, reply.headers, body)
    except BaseException:
        await pieces.aclose()
        raise
    return ReadBody(body, pieces if size > MAX_WHOLE else None)


def _is_reply(body: bytes, exchange: Exchange) -> bool:
    """Return whether it is an object, or the stream that was asked for with another content type."""
    streams = exchange.body.get("stream") is True
    return isinstance(json_of(body), dict) or (streams and has_end(exchange.wire.name, body))
