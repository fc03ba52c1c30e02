"""Texts as they are compared with what they may be quoted from: without what a quote changes. Knows characters only."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

_ESCAPE: Final = re.compile(
    r"""\\(?:
        u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})  # JSON: a character in two halves
        | u([0-9a-fA-F]{4}) | u\{([0-9a-fA-F]{1,6})\} | U([0-9a-fA-F]{8}) | x([0-9a-fA-F]{2})  # as in Python
        | (.)
    )""",
    re.DOTALL | re.VERBOSE,
)
_CONTROL: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_QUOTED: Final = re.compile(r"(?m)^[ \t]*(?:>[ \t]?)+")
_NUMBERED: Final = re.compile(
    r"""(?m)^[ \t]*(?:
        (?:(?!\d+[:-])[\w.~/\\@+-]{1,200}[:-](?=\d))?\d+[ \t]*[:|.)\u2192]?[ \t]*  # as in `12: `, `12 | `, `a.py:12:`
        | (?:\[\d+\]|\(\d+\)|(?:[lL]|[lL]n|[lL]ine)[ \t]?\d+)[ \t]*[:|.)\u2192]?[ \t]*  # as in `[12] `, `L12: `
        | (?://|[-+|\#\u2022*])[ \t]?  # of a comment, a diff, a list
    )""",
    re.VERBOSE,
)
_BREAK: Final = re.compile(r"<(?:br[ \t]*/?|/?p)>", re.IGNORECASE)
_NOISE: Final = re.compile(r"[\s\"'`\\*_]+")
_TAG: Final = re.compile(r"<\s{0,64}+/?\s{0,64}+[\w.:-]++(?:[\s=/][^<>]{0,512})?>")
_ATTRIBUTE: Final = re.compile(r"""\s{0,64}=\s{0,64}(["'])[ ]{0,8}([^'"<>\n]{0,256}?)[ ]{0,8}\1""")
_LOOSE: Final = re.compile(r"(?<=[<=/])\s+|\s+(?=[=>/])")
_LAYERS: Final = 3  # JSON in JSON in HTML: how many layers of escapes are removed
_READINGS: Final = 10  # of one message, at most, and as many with its marks made plain
_MARKS: Final = ("QUOTATION MARK", "PRIME", "APOSTROPHE", "CORNER BRACKET", "ACUTE ACCENT", "GRAVE ACCENT")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    high, low, *codes, other = escape.groups()
    if other is not None:
        return _CONTROL.get(other, other)
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    code = int(next(filter(None, codes)), 16)
    return chr(code) if code <= 0x10FFFF else escape[0]


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text)


def _unnumbered(text: str) -> str:
    return _NUMBERED.sub("", text)


def _undoubled(text: str) -> str:
    return text.replace('""', '"')


_UNWRAP: Final[Sequence[Callable[[str], str]]] = (_unescaped, html.unescape, _unquoted, _unnumbered, _undoubled)


@cache
def _plain_mark(char: str) -> str:
    """What a character beyond ASCII is in plain text: a quotation mark, white space, nothing, or itself.

    >>> [_plain_mark(char) for char in "\u201c\u2039\u00a0\u200bé"]
    ['"', "'", ' ', '', 'é']
    """
    match unicodedata.category(char):
        case "Cf":
            return ""  # invisible: a zero-width space, a byte order mark, a direction
        case "Zs" | "Zl" | "Zp" | "Cc":
            return " "
        case "Pi" | "Pf" | "Ps" | "Pe" | "Po" | "Sk" | "Lm" | "So" as category:
            name = unicodedata.name(char, "")
            if category in ("Pi", "Pf") or any(mark in name for mark in _MARKS):
                return "'" if "SINGLE" in name or "APOSTROPHE" in name or "ACCENT" in name else '"'
    return char


def _with_plain_marks(text: str) -> str:
    """The text with the quotation marks and white space of ASCII, and without what is invisible."""
    if text.isascii():
        return text
    marks = {ord(char): mark for char in set(text) if char > "\x7f" and (mark := _plain_mark(char)) != char}
    return text.translate(marks) if marks else text


def _straight(text: str) -> str:
    """The text with plain marks, its tags written without needless white space, and HTML's line breaks as such."""
    text = _ATTRIBUTE.sub(r'="\2"', _BREAK.sub("\n", _with_plain_marks(text)))
    return _TAG.sub(_tight, text)


def _tight(tag: re.Match[str]) -> str:
    return _LOOSE.sub("", " ".join(tag[0].split()))


def bare(text: str, *, listed: bool = False) -> str:
    r"""A text without what changes when it is quoted: escapes, entities, quotation marks, white space, emphasis.

    Args:
        text: the text.
        listed: whether its lines are numbered or in a list or a diff, whose marks are then removed.

    >>> bare('> &lt;tool_call&gt;\n{"name": 1}') == bare("<tool_call> {'name':1}")
    True
    """
    for _ in range(_LAYERS):
        whole = html.unescape(_unescaped(text))
        if whole == text:
            break
        text = whole
    text = _unquoted(_BREAK.sub("\n", _with_plain_marks(text)))
    return _NOISE.sub("", _unnumbered(text) if listed else text).casefold()


def readings(text: str) -> list[str]:
    """The text, and what it may be quoted from: the text without one or more layers of escapes and quote marks."""
    found = {text: None}
    layer = [text]
    for _ in range(_LAYERS):
        layer = [new for old in layer for unwrap in _UNWRAP if (new := unwrap(old)) != old and new not in found]
        found |= dict.fromkeys(layer[: _READINGS - len(found)])
        layer = list(dict.fromkeys(layer))[:_READINGS]
    return list(found | dict.fromkeys(map(_straight, found)))
