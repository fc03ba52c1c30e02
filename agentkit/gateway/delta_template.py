"""Events that differ in nothing but their text: read without parsing their JSON. Pure.

The deltas of one reply are mostly the same bytes around a text. What was found around the text of one is compared with
the next ones, several at once; a text with a quotation mark, an escape or a control character is left to the JSON
parser, so what is read is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]*').fullmatch
_PROBE: Final = "agentkit"
_TRIES: Final = 8  # of streams whose events differ in more, none is worth a further try


class DeltaTemplate:
    """What is around the text of a reply's events.

    Args:
        read: returns an event's text; None if it says anything else.
    """

    def __init__(self, read: Callable[[bytes], str | None]) -> None:
        self._read = read
        self._start = self._end = self._between = b""
        self._tries = 0

    @property
    def learns(self) -> bool:
        """Return whether another event may show what is around the texts."""
        return self._tries < _TRIES

    def texts(self, piece: bytes) -> list[bytes] | None:
        """Return the texts of a piece of the stream that is nothing but such events; None of any other piece."""
        start, end = self._start, self._end
        if not (start and piece.startswith(start) and piece.endswith(end)):
            return None
        inner = piece[len(start) : -len(end)]
        texts = inner.split(self._between)
        if _PLAIN(inner if len(texts) == 1 else b"".join(texts)) is None or len(piece) < len(start) + len(end):
            return None
        self._tries = 0
        return texts

    def block(self, text: bytes) -> bytes:
        """Return the event with this text."""
        return self._start + text + self._end

    def learn(self, block: bytes, text: str) -> None:
        """Note what is around the text of this event, which says nothing else."""
        self._tries += 1
        written = text.encode("utf-8", "surrogatepass")
        quoted = b'"%b"' % written
        if _PLAIN(written) is None or block.count(quoted) != 1:
            return
        at = block.index(quoted) + 1
        start, end = block[:at], block[at + len(written) :]
        if self._read(start + _PROBE.encode() + end) == _PROBE:
            self._start, self._end, self._between = start, end, end + start
