"""Problematic characters: those that control a terminal or are invisible, and lone surrogates.

Pure; decided by Unicode categories. JSON can contain a lone surrogate but no encoding can, so none may get in or out.
Some servers cut a stream between the two halves of a character; the halves are joined again here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final
from unicodedata import category

_NEEDED: Final = frozenset(
    "\u200c\u200d"  # zero-width non-joiner and joiner: needed for Persian and Indic words and most emoji sequences
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # marks around numbers
)
"""The format characters (category Cf) that text needs and that are harmless: the joiners, and the visible ones, called
Prepended_Concatenation_Mark in Unicode's PropList."""


def commands(c: str) -> bool:
    """Return True if a character can control a terminal, change the text direction, end a line, or be invisible.

    These are the control characters (Cc) except newline and tab, the format characters (Cf) except those that text
    needs, lone surrogates (Cs), and the line and paragraph separators (Zl, Zp).
    """
    return c not in "\n\t" and c not in _NEEDED and category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def escape_controls(text: str) -> str:
    r"""Untrusted text with control characters escaped; its line breaks are kept.

    >>> escape_controls("bad \x1b[31mred\r\nand \u202eback")
    'bad \\x1b[31mred\nand \\u202eback'
    """
    if text.isprintable():
        return text
    return "".join(repr(c)[1:-1] if commands(c) else c for c in text.replace("\r\n", "\n"))


def visible(text: str) -> str:
    r"""A text with U+FFFD for each character that a person would not see and a model reads, such as Unicode's tags.

    >>> visible("a\u200bb\U000e0041\r\n")
    'a�b�\n'
    """
    if text.isprintable():
        return text
    return "".join("\ufffd" if commands(c) else c for c in text.replace("\r\n", "\n"))


_SURROGATE = re.compile("[\ud800-\udfff]")
_PART = 1 << 14  # characters that are encoded at once: a copy of a long text would take as much memory again


def has_surrogate(text: str) -> bool:
    """Return True if a text contains a surrogate. Encoding it is ten times as fast as searching it."""
    if len(text) > _PART:
        return not text.isascii() and any(has_surrogate(text[i : i + _PART]) for i in range(0, len(text), _PART))
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
    """A JSON value with all its strings cleaned, and null for numbers that JSON does not have.

    Python reads `NaN` and `Infinity`, but neither stores nor servers accept them.
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
    """A JSON value with every surrogate replaced by U+FFFD, even if the other half of its pair is adjacent.

    For text that is read in pieces: cleaning the pieces gives the same result as cleaning the whole.
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(v) for v in value]
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    return value


class Joiner:
    """Cleans text that arrives in pieces: half of a surrogate pair at the end of a piece waits for the next piece."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        """The clean text up to the end of this piece."""
        if self._half:
            piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)

    def close(self) -> str:
        """Return the pending text: U+FFFD for half a character, or an empty string."""
        half, self._half = self._half, ""
        return clean(half)
