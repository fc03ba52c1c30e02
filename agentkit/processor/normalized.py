"""Texts as names and examples are looked for in them: without what a quote changes. Knows characters only."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache
from typing import Final
from urllib.parse import unquote

_ESCAPE: Final = re.compile(
    r"""\\(?:
        u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})  # JSON: a character in two halves
        | u([0-9a-fA-F]{4}) | u\{([0-9a-fA-F]{1,6})\} | U([0-9a-fA-F]{8}) | x([0-9a-fA-F]{2})  # as in Python
        | (.)
    )""",
    re.DOTALL | re.VERBOSE,
)
_CONTROL: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_STYLE: Final = re.compile(
    r"""(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,4}[@-~]  # a terminal's colours
    | \x1b\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)  # its links and titles
    | \x1b[ -/]{0,4}[0-Z^-~]
    | (.)\x08(?=\1) | _\x08  # bold and underlined by a typewriter
    """,
    re.VERBOSE,
)
_STYLED: Final = re.compile("[\x1b\x08\x9b]")
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NOISE: Final = re.compile(r"[\s\"'`\\*_]+")
_LAYERS: Final = 7  # JSON in JSON in HTML, and as many again in what is read

_INVISIBLE: Final = frozenset("\u115f\u1160\u2065\u2800\u3164\uffa0")
"""Letters and signs without a shape; the others have a category of their own.

Source: Default_Ignorable_Code_Point of Unicode 16 (DerivedCoreProperties.txt), and the empty pattern of Braille.
"""
_QUOTES: Final = frozenset("\u201a\u201e\u2032\u300c\u300d\u300e\u300f\u301d\u301e\u301f")
"""Quotation marks that are not of the categories Pi and Pf."""


def layers(text: str) -> list[str]:
    r"""The text, and what its escapes stand for, layer by layer: JSON's, HTML's, an address's, a terminal's styles.

    >>> layers(r"&lt;a\\u005fb&gt;")
    ['&lt;a\\\\u005fb&gt;', '<a\\u005fb>', '<a_b>']
    """
    found = [text]
    for _ in range(_LAYERS):
        seen = _STYLE.sub("", text) if _STYLED.search(text) else text
        under = unquote(html.unescape(_ESCAPE.sub(_character, seen)))
        if under == text:
            break
        found.append(text := under)
    return found


def _character(escape: re.Match[str]) -> str:
    high, low, *codes, other = escape.groups()
    if other is not None:
        return _CONTROL.get(other, other)
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    code = int(next(filter(None, codes)), 16)
    return chr(code) if code <= 0x10FFFF else escape[0]


def plain(text: str) -> str:
    r"""A text in small letters without accents, compatible characters as one, and nothing invisible.

    >>> plain("De\u200blete\ufe0f_\u3164ALL \u201c\uff11\u201d")
    'delete_all "1"'
    """
    if text.isascii():
        return _UNSEEN.sub("", text).lower()
    text = unicodedata.normalize("NFKD", text)
    marks = {ord(char): mark for char in set(text) if (mark := _plain_mark(char)) != char}
    return text.translate(marks).casefold()


@cache
def _plain_mark(char: str) -> str:
    """Return a character as it is in a plain text: nothing, a space, a dash, a quotation mark, or the character."""
    match unicodedata.category(char):
        case "Cf" | "Mn" | "Me" | "Cs":
            return ""
        case "Cc":
            return char if char in "\t\n" else ""
        case "Zs" | "Zl" | "Zp":
            return " "
        case "Pd":
            return "-"
        case "Pi" | "Pf":
            return '"'
    return "" if char in _INVISIBLE else '"' if char in _QUOTES else char


def bare(text: str) -> str:
    r"""A text without what changes when it is repeated: escapes, entities, quotation marks, white space, emphasis.

    >>> bare('&lt;tool_call&gt;\n{"name": 1}') == bare("<tool_call> {'name':1}")
    True
    """
    return _NOISE.sub("", plain(layers(text)[-1]))
