"""Which characters command the screen that shows them, or stand in a text unseen; the Unicode classes decide.

Pure: knows characters alone.
"""

from __future__ import annotations

from typing import Final
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
