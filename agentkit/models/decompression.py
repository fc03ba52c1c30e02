"""The body of an HTTP answer, decompressed: everything that agentkit and its tools receive is read by this function.

A body has at most one content coding, of the two that are asked for. It is read in steps of bounded input and output,
and other tasks run between them: the caller's limits on bytes and seconds apply even if few bytes unpack to many.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx2

ACCEPT: Final = {"Accept-Encoding": "gzip, deflate"}  # the request header that asks for the codings that are read

INPUT: Final = 16 * 1024  # bytes that one step reads at most
OUTPUT: Final = 64 * 1024  # bytes that one step returns at most
MEMBERS: Final = 1_000
"""Members of a gzip body that are read. Each may be empty, and costs as much as a kilobyte."""

_BITS: Final = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


def coding_of(headers: httpx2.Headers) -> str:
    """The content coding of an answer; empty for none.

    Raises:
        DecodingError: it has another one than `ACCEPT` asks for, or several.
    """
    import httpx2

    named = [part.strip().lower() for part in headers.get("content-encoding", "").split(",")]
    codings = [coding for coding in named if coding not in ("", "identity")]
    if len(codings) > 1 or not _BITS.keys() >= set(codings):
        raise httpx2.DecodingError(
            f"unsupported content encoding {', '.join(codings)[:80]!r}: expected gzip or deflate, once"
        )
    return codings[0] if codings else ""


async def decompress(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """The body of an answer that was not read yet, in pieces of at most `OUTPUT` bytes if it is compressed.

    Args:
        response: of a request with the headers `ACCEPT`.

    Raises:
        DecodingError: it is not compressed as declared, has an unsupported coding, or more than `MEMBERS` members.
        RemoteProtocolError: a compressed stream is interrupted.
        TransportError: as the transport raises it.
    """
    import anyio
    import httpx2

    if response.is_stream_consumed:  # a transport for tests may make an answer whole, and decompressed
        yield response.content
        return
    coding = coding_of(response.headers)
    stream = _Stream(coding) if coding else None
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            if stream is None:
                yield piece
                continue
            steps = stream.steps(piece)
            while True:
                try:
                    step = next(steps, None)
                except (zlib.error, ValueError) as e:
                    raise httpx2.DecodingError(f"the body is not {coding} as declared: {e}") from e
                if step is None:
                    break
                if step:
                    yield step
                await anyio.lowlevel.checkpoint()
    if stream is not None and not stream.whole:
        raise httpx2.RemoteProtocolError("the compressed body is incomplete")


class _Stream:
    """One compressed body.

    Args:
        coding: `gzip` or `deflate`.
    """

    def __init__(self, coding: str) -> None:
        self._bits = _BITS[coding]
        self._inflater: Any = zlib.decompressobj(self._bits)
        self._begun = False
        self._members = 1

    @property
    def whole(self) -> bool:
        """Return whether the body may end here: nothing came, or the compressed stream has ended."""
        return self._inflater.eof or not self._begun

    def steps(self, piece: bytes) -> Iterator[bytes]:
        """Decompress a piece of the body, step by step; a step may add nothing.

        Raises:
            zlib.error: it is damaged.
            ValueError: it has too many members.
        """
        for at in range(0, len(piece), INPUT):
            rest, full = piece[at : at + INPUT], False
            while rest or full:
                if self._inflater.eof and not self._next(rest):
                    return
                yield (found := self._inflate(rest))
                full = len(found) == OUTPUT and not self._inflater.eof
                rest = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail

    def _next(self, rest: bytes) -> bool:
        """Begin a further member of a gzip body; what else follows a stream belongs to no body."""
        if self._bits == _BITS["deflate"] or not rest.startswith(b"\x1f"):
            return False
        self._members += 1
        if self._members > MEMBERS:
            raise ValueError(f"it has more than {MEMBERS:,} members")
        self._inflater = zlib.decompressobj(self._bits)
        return True

    def _inflate(self, data: bytes) -> bytes:
        begun, self._begun = self._begun, True
        try:
            found: bytes = self._inflater.decompress(data, OUTPUT)
        except zlib.error:
            if begun or self._bits != _BITS["deflate"]:
                raise
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)  # without its header; Source: RFC 9110, 8.4.1.2
            found = self._inflater.decompress(data, OUTPUT)
        return found
