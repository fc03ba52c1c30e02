"""Texts as they are compared with what they may be quoted from: without what a quote changes. Knows characters only."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final
from urllib.parse import unquote, unquote_plus

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
_STYLE: Final = re.compile(
    r"""(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,4}[@-~]  # a terminal's colours
    | \x1b\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)  # its links and titles
    | \x1b[ -/]{0,4}[0-Z^-~]
    | (.)\x08(?=\1) | _\x08  # bold and underlined by a typewriter
    """,
    re.VERBOSE,
)
_PERCENT: Final = re.compile("%[0-9a-fA-F]{2}")
_BREAK: Final = re.compile(r"<(?:br[ \t]*/?|/?p)>", re.IGNORECASE)
_NOISE: Final = re.compile(r"[\s\"'`\\*_]+")
_TAG: Final = re.compile(r"<\s{0,64}+/?\s{0,64}+[\w.:-]++(?:[\s=/][^<>]{0,512})?>")
_ATTRIBUTE: Final = re.compile(r"""\s{0,64}=\s{0,64}(["'])[ ]{0,8}([^'"<>\n]{0,256}?)[ ]{0,8}\1""")
_LOOSE: Final = re.compile(r"(?<=[<=/])\s+|\s+(?=[=>/])")
_LAYERS: Final = 3  # JSON in JSON in HTML: how many layers of escapes are removed to read it
_DEEPEST: Final = 2 * _LAYERS + 1  # to compare it: as many again are in what is read, and one more is its own
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


def _unstyled(text: str) -> str:
    return _STYLE.sub("", text) if "\x1b" in text or "\x08" in text or "\x9b" in text else text


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text)


def _unnumbered(text: str) -> str:
    return _NUMBERED.sub("", text)


def _undoubled(text: str) -> str:
    return text.replace('""', '"')


_UNWRAP: Final[Sequence[Callable[[str], str]]] = (
    _unescaped,
    html.unescape,
    _unstyled,
    _unquoted,
    _unnumbered,
    _undoubled,
)


@cache
def _plain_mark(char: str) -> str:
    """What a character beyond ASCII is in plain text: a quotation mark, a space, a minus, a digit, nothing, or itself.

    >>> [_plain_mark(char) for char in "\u201c\u2039\u00a0\u2212\u0663\u200bé"]
    ['"', "'", ' ', '-', '3', '', 'é']
    """
    match unicodedata.category(char):
        case "Cf":
            return ""  # invisible: a zero-width space, a byte order mark, a direction
        case "Zs" | "Zl" | "Zp" | "Cc":
            return " "
        case "Nd":
            return str(unicodedata.digit(char))
        case "Pd":
            return "-"
        case "Sm" if char == "\u2212":
            return "-"
        case "Pi" | "Pf" | "Ps" | "Pe" | "Po" | "Sk" | "Lm" | "So" as category:
            name = unicodedata.name(char, "")
            if category in ("Pi", "Pf") or any(mark in name for mark in _MARKS):
                return "'" if "SINGLE" in name or "APOSTROPHE" in name or "ACCENT" in name else '"'
    return char


def _with_plain_marks(text: str) -> str:
    """The text with the quotation marks, white space and minus of ASCII, and without what is invisible."""
    if text.isascii():
        return text
    marks = {ord(char): mark for char in set(text) if char > "\x7f" and (mark := _plain_mark(char)) != char}
    return text.translate(marks) if marks else text


def _straight(text: str) -> str:
    """The text in plain characters, its tags written without needless white space, and HTML's line breaks as such."""
    text = _ATTRIBUTE.sub(r'="\2"', _BREAK.sub("\n", unicodedata.normalize("NFKC", _with_plain_marks(text))))
    return _TAG.sub(_tight, text)


def _tight(tag: re.Match[str]) -> str:
    return _LOOSE.sub("", " ".join(tag[0].split()))


def plain(text: str) -> str:
    """A text in plain characters, without escapes, entities, a terminal's styles and marks of quoted lines."""
    for _ in range(_DEEPEST):
        whole = html.unescape(_unescaped(_unstyled(text)))
        if whole == text:
            break
        text = whole
    text = _unstyled(_BREAK.sub("\n", _with_plain_marks(text)))
    return _unquoted(text if text.isascii() else unicodedata.normalize("NFKD", text))


def bare(text: str) -> str:
    r"""A text without what changes when it is quoted: escapes, entities, quotation marks, white space, emphasis.

    >>> bare('> &lt;tool_call&gt;\n{"name": 1}') == bare("<tool_call> {'name':1}")
    True
    """
    return _without_noise(plain(text))


def _decoded(text: str) -> list[str]:
    """The text, and what is percent-encoded in it, as in an address and as in a form."""
    return list(dict.fromkeys((text, unquote(text), unquote_plus(text)))) if _PERCENT.search(text) else [text]


def names_alone(text: str, word: re.Pattern[str]) -> bool:
    """Whether a text contains a word that is not a part of another, also in what is percent-encoded.

    Args:
        text: the text.
        word: a pattern for it, in lower case.
    """
    return any(word.search(plain(each).casefold()) for each in _decoded(text))


def examined(text: str, *, decoded: bool) -> tuple[list[str], frozenset[str]]:
    """A text, bare, also without the marks of its lines if it is a list or a diff; and what is visible in it.

    Args:
        text: the text.
        decoded: whether what is percent-encoded in it counts as well.
    """
    texts = _decoded(text) if decoded else [text]
    known = [plain(each) for each in texts]
    seen = (visible(each) for one, other in zip(texts, known, strict=True) for each in (one, html.unescape(one), other))
    bare_texts = dict.fromkeys(_without_noise(each) for one in known for each in (one, _unnumbered(one)))
    return list(bare_texts), frozenset().union(*seen)


def _without_noise(text: str) -> str:
    return _NOISE.sub("", text).casefold()


def visible(text: str) -> frozenset[str]:
    """The characters of a text that are seen; all quotation marks are one.

    >>> sorted(visible("\u201cA\u200b'"))
    ['"', 'a']
    """
    seen = {char for each in set(text) for char in _plain_mark(each).casefold()}
    return frozenset('"' if char in "'`" else char for char in seen if not char.isspace())


def readings(text: str) -> list[str]:
    """The text, and what it may be quoted from: the text without one or more layers of escapes and quote marks."""
    found = {text: None}
    layer = [text]
    for _ in range(_LAYERS):
        layer = [new for old in layer for unwrap in _UNWRAP if (new := unwrap(old)) != old and new not in found]
        found |= dict.fromkeys(layer[: _READINGS - len(found)])
        layer = list(dict.fromkeys(layer))[:_READINGS]
    return list(found | dict.fromkeys(map(_straight, found)))
