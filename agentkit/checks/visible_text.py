"""Text for a decision: nothing is removed, and every character that a person would not see is escaped. Pure."""

from __future__ import annotations

import re
from typing import Final

_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters that are not control characters: fillers, variation selectors, the empty Braille cell."""


def visible(text: str) -> str:
    r"""One line that hides nothing: each invisible character and each line end is escaped.

    >>> visible("a\u202egnp.exe")
    'a\\u202egnp.exe'
    """
    return text if shows(text) else "".join(c if shows(c) else _escape(c) for c in text)


def shows(text: str) -> bool:
    """Say if every character of a text is visible or a space."""
    return text.isprintable() and (text.isascii() or _BLANK.search(text) is None)


def _escape(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"
