"""Surrogates at the boundary. JSON can carry half of a UTF-16 pair; no encoding can, so none may get in or out.

Pure. Some servers cut a stream between the halves of one character; the halves are joined again here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    r"""The text with surrogate pairs joined and lone halves replaced by U+FFFD.

    >>> clean("a\\ud83d\\ude00b\\ud800")
    'a😀b�'
    """
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_json(value: Any) -> Any:
    """JSON of any shape with all its texts cleaned, and null for numbers that JSON does not have.

    Python reads `NaN` and `Infinity`; no store takes them, nor a server to which they are sent back.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(k): clean_json(v) for k, v in value.items()}
    if isinstance(value, list):
        return [clean_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Joiner:
    """Cleans text that arrives in pieces: the first half of a pair at the end of a piece waits for the next piece."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        """The clean text that this piece completes."""
        if self._half:
            piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)

    def close(self) -> str:
        """What still waited: U+FFFD for half a character, or nothing."""
        half, self._half = self._half, ""
        return clean(half)
