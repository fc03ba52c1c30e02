"""The output of one stream in bounded memory: its first and its last bytes. Pure."""

from __future__ import annotations

from agentkit.sandbox.quota import StreamOutput


class OutputBuffer:
    """Bytes as they arrive; of more than `most`, the first and the last half are kept, cut between UTF-8 characters.

    >>> buffer = OutputBuffer(8)
    >>> for piece in (b"abc", b"defghijk", b"lm"):
    ...     buffer.add(piece)
    >>> buffer.take()
    StreamOutput(head=b'abcd', left_out=5, tail=b'jklm', started=b'', more=False)
    """

    def __init__(self, most: int) -> None:
        self._head_most = most // 2
        self._tail_most = most - self._head_most
        self._started = b""
        self._empty()

    def _empty(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def __bool__(self) -> bool:
        return bool(self._head)

    def add(self, piece: bytes) -> None:
        """Keep the first and the last bytes, drop from the middle."""
        room = self._head_most - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if len(self._tail) > 2 * self._tail_most:  # seldom, so that each byte is moved a bounded number of times
            self._shorten()

    def _shorten(self) -> None:
        if (excess := len(self._tail) - self._tail_most) > 0:
            del self._tail[:excess]
            self._dropped += excess

    def has(self, mark: bytes) -> bool:
        """Return True if the kept bytes contain the mark. A mark across the cut is not found."""
        if not self._dropped and len(self._tail) <= self._tail_most:
            return mark in self._head + self._tail
        return mark in self._tail or mark in self._head

    def take(self, *, more: bool = False) -> StreamOutput:
        """Return and clear the bytes kept since the last call. With `more`, the last character may be incomplete."""
        self._shorten()
        kept = StreamOutput(bytes(self._head), self._dropped, bytes(self._tail), self._started, more)
        output = kept.whole_characters()
        self._started = output.incomplete_end if more else b""
        self._empty()
        return output
