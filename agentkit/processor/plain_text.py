"""Texts normalized so that quoted names and examples are found in them. Knows characters only."""

from __future__ import annotations

import html
import re
import unicodedata
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
_STYLE: Final = re.compile(r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,4}[@-~]")  # a terminal's colours
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u115f\u1160\u2065\u2800]")
"""Controls and letters without a shape. Source: Default_Ignorable_Code_Point of Unicode 16; U+2800 is empty Braille."""
_MARKS: Final = {**dict.fromkeys(("Cf", "Mn", "Me", "Cs"), ""), "Pi": '"', "Pf": '"', "Zl": "\n", "Zp": "\n"}
"""Categories of characters that are written as another one, or not at all."""
_NOISE: Final = re.compile(r"[\s\"'`\\*_]+")
_LAYERS: Final = 7  # JSON in JSON in HTML, and as many again in what is read


def layers(text: str) -> list[str]:
    r"""Return the text, and the text without its escapes, layer by layer: JSON's, HTML's, an address's, a terminal's.

    >>> layers(r"&lt;a\\u005fb&gt;")
    ['&lt;a\\\\u005fb&gt;', '<a\\u005fb>', '<a_b>']
    """
    found = [text]
    for _ in range(_LAYERS):
        under = unquote(html.unescape(_ESCAPE.sub(_character, _STYLE.sub("", text))))
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
    r"""Return a text in lower case, in compatibility form, without accents and invisible characters.

    >>> plain("De\u200blete\ufe0f_ALL \u201c\uff11\u201d")
    'delete_all "1"'
    """
    if text.isascii():
        return _UNSEEN.sub("", text).lower()
    text = unicodedata.normalize("NFKD", text)
    marks = {ord(char): _MARKS[kind] for char in set(text) if (kind := unicodedata.category(char)) in _MARKS}
    return _UNSEEN.sub("", text.translate(marks)).casefold()


def bare(text: str) -> str:
    r"""Return a text without what a quote changes: escapes, entities, quotation marks, white space, emphasis.

    >>> bare('&lt;tool_call&gt;\n{"name": 1}') == bare("<tool_call> {'name':1}")
    True
    """
    return _NOISE.sub("", plain(layers(text)[-1]))
