"""Events that differ in nothing but their text: read without parsing their JSON. Pure.

The deltas of one reply are mostly the same bytes around a text. What was found around the text of one is compared with
the next ones, several at once. Each text must be a valid JSON string, so that what is read is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

Frame = tuple[bytes, bytes]
"""The bytes before an event's text, and those after it."""

_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]*').fullmatch
_STRING: Final = re.compile(rb'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+').fullmatch
_PROBE: Final = "agentkit"
_TRIES: Final = 8  # of streams whose events differ in more, none is worth a further try


class DeltaTemplate:
    """The bytes around the text in a reply's events.

    Args:
        read: returns an event's text; None if it says anything else.

    Attributes:
        frame: what is around the text; empty if it is not known.
    """

    def __init__(self, read: Callable[[bytes], str | None]) -> None:
        self._read = read
        self.frame: Frame = (b"", b"")
        self._between = b""
        self._tries = 0

    @property
    def learns(self) -> bool:
        """Return whether another event may show what is around the texts."""
        return self._tries < _TRIES

    def texts(self, piece: bytes) -> tuple[str, list[bytes]] | None:
        """Return the texts of a piece of the stream that is nothing but such events: joined, and each in its bytes.

        Returns None of any other piece.
        """
        start, end = self.frame
        known = start and len(piece) >= len(start) + len(end) and piece.startswith(start) and piece.endswith(end)
        if not known:
            return None
        texts = piece[len(start) : -len(end)].split(self._between)
        joined = b"".join(texts)
        if b"\\ud" in joined:  # it may be half a character
            return None
        try:
            if _PLAIN(joined) is not None:
                text = joined.decode()
            elif all(map(_STRING, texts)):
                text = "".join(map(decode_text, texts))
            else:
                return None
        except UnicodeDecodeError:
            return None
        self._tries = 0
        return text, texts

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
            self.frame, self._between = (start, end), end + start


def decode_text(text: bytes) -> str:
    """Return a text from the inside of a JSON string."""
    return str(json.loads(b'"%b"' % text)) if b"\\" in text else text.decode()
