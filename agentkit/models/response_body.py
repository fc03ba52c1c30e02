"""The body of one response while it arrives: bounded, closed at its end, with its beginning kept for error messages.

Knows bytes and when a wire is done; knows no provider. It reads the SDK's connection itself: the SDKs' own readers have
no bound on a line, lose the first event after a byte order mark, and wait for the end of the connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final

from agentkit.models.sse import BOM, EventReader, EventTooLong, ServerEvent
from agentkit.models.stream_errors import ErrorInStream, whole_error
from agentkit.models.wire import DONE, Wire, WireEvent
from agentkit.schemas.typed import values

MAX_EVENT: Final = 64 * 1024 * 1024
"""The maximum size of one event of a stream, in bytes. The longest known repeat a whole response, with images."""

DRAIN: Final = 0.1
"""Seconds to wait for the connection's end once the response is over; a connection that ends in time is reused."""

HEAD: Final = 2_000
"""Bytes of a response's beginning that are kept, in case it has to be shown. Keys are redacted before it is cut."""

MAX_DEPTH: Final = 200
"""The nesting of arrays and objects in one event, or in a whole response: a call's arguments and what contains them."""

TOO_DEEP: Final = f"JSON in the response is nested deeper than {MAX_DEPTH} arrays and objects"

HEARTBEATS: Final = frozenset(("ping", "pong", "heartbeat", "keepalive", "keep-alive", "keep_alive"))
"""The JSON strings that proxies and servers send so that a connection stays open."""


class Unreadable(Exception):
    """A response that is not what was requested: not an event stream, not JSON, or too long."""


class ResponseBody:
    """The body of one response.

    Args:
        pieces: its bytes, decompressed.
        content_type: as the server names it.
        limit: the maximum number of its bytes.
        linger: seconds to wait, once the wire is done, for what may follow: the usage.
    """

    def __init__(self, pieces: AsyncIterator[bytes], content_type: str, *, limit: int, linger: float) -> None:
        self._pieces = pieces
        self._type = content_type.partition(";")[0].strip()
        self._limit = limit
        self._linger = linger
        self.size = 0
        self.head = b""

    async def events(
        self, wire: Wire, as_streamed: Callable[[Mapping[str, Any]], Iterable[WireEvent]]
    ) -> AsyncGenerator[WireEvent, None]:
        """The events of a response, streamed or whole, whatever was requested (Source: unsloth#6570, chat-ui#657).

        Args:
            wire: reads the events.
            as_streamed: converts a whole response to events.

        Raises:
            Unreadable: the body is neither.
            ErrorInStream: the server reports an error outside of its own events.
        """
        reader: EventReader | None = None
        begun: list[bytes] = []
        async with aclosing(self._bounded(wire)) as pieces:
            async for piece in pieces:
                if reader is None:
                    begun.append(piece)
                    if not self._streams():
                        continue
                    reader, piece = EventReader(MAX_EVENT), b"".join(begun)
                for event in _events(reader.feed(piece)):
                    yield event
        rest = _events(reader.close()) if reader else as_streamed(_whole(b"".join(begun))) if self.size else ()
        for event in rest:
            yield event

    def _streams(self) -> bool:
        """Return whether what has come begins an event stream: not a whole response, nor only spaces.

        Raises:
            Unreadable: it begins a web page.
        """
        start = self.head.removeprefix(BOM).lstrip()[:1]
        if start == b"<" and "json" not in self._type:
            named = f" ({self._type})" if self._type else ""
            raise Unreadable(f"expected an event stream, found a page{named}")
        return "json" not in self._type and start not in (b"", b"{", b"[")

    async def _bounded(self, wire: Wire) -> AsyncGenerator[bytes, None]:
        """The pieces, until the body ends or the wire has waited long enough for its end.

        What has already arrived is read even after that time, so that a busy machine does not lose the usage.
        """
        clock = asyncio.get_running_loop().time
        ends: float | None = None
        while True:
            if wire.done:
                wait = DRAIN if wire.over else self._linger
                ends = min(ends or clock() + wait, clock() + wait)
            try:
                async with asyncio.timeout_at(ends):
                    piece = await anext(self._pieces)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if ends is None:
                    raise
                return
            self.size += len(piece)
            if self.size > self._limit:
                raise Unreadable(f"the response is larger than the {self._limit:,} bytes of max_response")
            if len(self.head) < HEAD:
                self.head += piece[: HEAD - len(self.head)]
            yield piece


def _events(found: Iterator[ServerEvent]) -> Iterator[WireEvent]:
    """The events in the data of a stream."""
    try:
        for name, data in found:
            if data.startswith("[DONE]"):
                yield DONE
                continue
            value = _error(data) if name == "error" else _json(data)
            for event in value if isinstance(value, list) else [value]:
                yield _event(name, event)
    except EventTooLong:
        raise Unreadable(f"an event of the stream is longer than {MAX_EVENT:,} bytes") from None


def _error(data: str) -> Any:
    """The data of an error, which may be words alone."""
    try:
        return _json(data)
    except json.JSONDecodeError:
        return data


def _event(name: str, value: object) -> WireEvent:
    """One event; its type is the one in its data, or else its name. A heartbeat in another form says nothing."""
    if not isinstance(value, Mapping):
        if name == "error":
            return {"type": name, "error": value}
        return {} if isinstance(value, str) and value.lower() in HEARTBEATS else {"data": value}
    if name == "error" and value.get("type") not in (None, name) and not value.get("error"):
        return {"type": name, "error": value}
    return {**value, "type": name} if name and value.get("type") is None else value


def _whole(body: bytes) -> Mapping[str, Any]:
    found = _json(body.removeprefix(BOM).decode())
    if not isinstance(found, Mapping):
        raise Unreadable(f"expected a JSON object, found {str(found)[:200]}")
    if (error := whole_error(found)) is not None:
        raise ErrorInStream.of(error)
    return found


def _json(text: str) -> Any:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    except ValueError as e:  # an integer of more digits than Python reads
        raise Unreadable(f"JSON in the response cannot be read: {e}") from e
    if values.too_deep(found, text, MAX_DEPTH):
        raise Unreadable(TOO_DEEP)
    return found
