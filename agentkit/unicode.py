"""Characters that make trouble: those that command a screen or hide, and halves of a surrogate pair.

Pure; the Unicode classes decide. JSON can carry half of a UTF-16 pair; no encoding can, so none may get in or out. Some
servers cut a stream between the halves of one character; the halves are joined again here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final
from unicodedata import category

_NEEDED: Final = frozenset(
    "\u200c\u200d"  # not joined, joined: Persian and Indic words and most families of emoji are written with them
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # signs around numbers
)
"""The format characters (class Cf) that text needs and that command nothing: the joiners, and those that print, which
Unicode's PropList calls Prepended_Concatenation_Mark."""


def commands(c: str) -> bool:
    """Whether a character may command a screen, turn the text's direction, end a line oddly, or hide.

    The controls (Cc) but newline and tab, the format characters (Cf) but those that text needs, halves of a surrogate
    pair (Cs), the separators of lines and paragraphs (Zl, Zp).
    """
    return c not in "\n\t" and c not in _NEEDED and category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def escaped(text: str) -> str:
    r"""Text of others with its commanding characters as escapes; the lines of it stay lines.

    >>> escaped("bad \x1b[31mred\r\nand \u202eback")
    'bad \\x1b[31mred\nand \\u202eback'
    """
    if text.isprintable():
        return text
    return "".join(repr(c)[1:-1] if commands(c) else c for c in text.replace("\r\n", "\n"))


_SURROGATE = re.compile("[\ud800-\udfff]")


def has_surrogate(text: str) -> bool:
    """Whether half of a pair stands in a text. To encode it tells that ten times as fast as to search it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def clean(text: str) -> str:
    r"""The text with surrogate pairs joined and lone halves replaced by U+FFFD.

    >>> clean("a\\ud83d\\ude00b\\ud800")
    'a😀b�'
    """
    if text.isascii() or not has_surrogate(text):
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


def without_surrogates(value: Any) -> Any:
    """JSON of any shape with each half of a pair replaced by U+FFFD, be the other half beside it.

    For what is read from a text piece by piece: the pieces, made clean one by one, then are the whole made clean.
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(v) for v in value]
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
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
