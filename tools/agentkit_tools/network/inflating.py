"""Decompresses the body of an answer, and knows whether it was whole: a stream that breaks off is no end. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

_GZIP = zlib.MAX_WBITS | 16


class Inflating:
    """One body, in pieces.

    Args:
        codings: as `Content-Encoding` lists them, of `gzip`, `deflate`, `identity` and empty names.
    """

    def __init__(self, codings: Sequence[str]) -> None:
        self._steps = [_Step(coding) for coding in reversed(codings) if coding in ("gzip", "deflate")]

    def read(self, piece: bytes) -> bytes:
        """What a piece of the body adds.

        Raises:
            ValueError: it is not compressed as declared.
        """
        try:
            for step in self._steps:
                piece = step.read(piece)
        except zlib.error as e:
            raise ValueError(str(e)) from e
        return piece

    @property
    def whole(self) -> bool:
        """Whether the body may end here: nothing came, or each compressed stream has ended."""
        return all(step.whole for step in self._steps)


class _Step:
    """One coding of a body."""

    def __init__(self, coding: str) -> None:
        self._gzip = coding == "gzip"
        self._stream = zlib.decompressobj(_GZIP if self._gzip else zlib.MAX_WBITS)
        self._begun = False

    @property
    def whole(self) -> bool:
        return self._stream.eof or not self._begun

    def read(self, piece: bytes) -> bytes:
        found = b""
        while piece:
            if self._stream.eof:  # a further member of a gzip file; what else follows belongs to no body
                if not (self._gzip and piece.startswith(b"\x1f")):
                    break
                self._stream = zlib.decompressobj(_GZIP)
            found += self._inflated(piece)
            self._begun = True
            piece = self._stream.unused_data
        return found

    def _inflated(self, piece: bytes) -> bytes:
        try:
            return self._stream.decompress(piece)
        except zlib.error:
            if self._begun or self._gzip:
                raise
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave the header of `deflate` out
            return self._stream.decompress(piece)
