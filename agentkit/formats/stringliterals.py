r"""Strings as models write them in JSON, in Python and in mixtures of both, in complete text. Pure.

The content of a string is never changed, except that escapes have the meaning of the language of its quotes: in JSON's
double quotes, an escape that only Python has keeps its backslash, as in `"C:\app"`. The repairs needed to read a JSON
text are recorded in `repairs`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from agentkit.formats.pieces import Pieces
from agentkit.formats.repairs import (
    PYTHON_LITERALS,
    PYTHON_QUOTES,
    RAW_NEWLINES,
)

_SPACE = re.compile(r"\s*")
_ODD_SPACE = re.compile(r"[^ \t\n\r]")  # not white space in JSON
QUOTES: Final = ('"', "'")
_STRING_OVER: Final = ("", ",", ")", "]", "}", ":")  # after a string: nothing joins it
_PREFIXED = re.compile(r"([a-zA-Z]{0,2})(?=[\"'])")
_PREFIXES: Final = frozenset(("", "r", "u", "f", "rf", "fr"))
_RAW_CONTROL = re.compile(r"[\x00-\x1f]")
_STRING: Final = {
    '"': re.compile(r'[^"\\]*'),
    "'": re.compile(r"[^'\\]*"),
    '"""': re.compile(r'(?:[^"\\]|"(?!""))*'),
    "'''": re.compile(r"(?:[^'\\]|'(?!''))*"),
}
_AFTER_VALUE: Final = (",", ")", "]", "}")
_BEFORE_VALUE: Final = " \t\r\n([{"  # a value may be in others
_SPACE_BEFORE: Final = 128  # characters before a string in which what precedes it is
_JSON_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/",
}  # fmt: skip
_PYTHON_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", '"': '"', "'": "'", "\\": "\\",
    "\n": "", "\r": "", "\r\n": "",
}  # fmt: skip
_OCTAL = re.compile(r"[0-7]{1,3}")
_NAMED = re.compile(r"N\{([^{}]{1,100})\}")
_ESCAPED = re.compile(r"\r\n|.?", re.DOTALL)
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")


class NotALiteral(ValueError):
    """The text is not a value of this kind; `position` is where reading failed."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Strings:
    """Read strings from `text`, starting at `at`; `at` moves past each.

    Args:
        text: the text to read.
        at: where reading starts.
        python: the text is Python: adjacent strings are one, and Python's escapes also apply in double quotes.
    """

    def __init__(self, text: str, at: int, *, python: bool) -> None:
        self.text, self.at, self.python = text, at, python
        self.repairs: dict[str, None] = {}
        self.joined = -1  # where the last string began that consists of several

    def bad(self, wanted: str) -> NotALiteral:
        """The error for the text at this position."""
        return NotALiteral(f"expected {wanted}, got {self.text[self.at : self.at + 20]!r}", self.at)

    def space(self) -> str:
        """Skip white space; returns the character after it, empty at the text's end."""
        start, c = self.at, self.text[self.at : self.at + 1]
        if not c.isspace():
            return c
        self.at = _SPACE.match(self.text, start).end()  # type: ignore[union-attr]  # it always matches
        if _ODD_SPACE.search(self.text, start, self.at):
            self.repairs[PYTHON_LITERALS] = None
        return self.text[self.at : self.at + 1]

    def prefixed(self) -> re.Match[str] | None:
        """The prefix, often empty, of the string that starts here; None if none does."""
        return _PREFIXED.match(self.text, self.at)

    def strings(self) -> str:
        """Adjacent strings, or strings joined by `+`, are one in Python."""
        start = self.at
        text = self.one_string()
        while True:
            at = self.at
            if self.text[at : at + 1] in _STRING_OVER:
                return text
            if self.space() == "+" and self.python:
                self.at += 1
                self.space()
            if not self.python or not self.prefixed():
                self.at = at
                return text
            if self.at == at and self.text[at - 1] == self.text[at]:
                raise self.bad("a comma or a space between two strings")  # or one quote inside a string, written twice
            self.joined = start
            text += self.one_string()

    def one_string(self) -> str:
        """One string with its prefix.

        Raises:
            NotALiteral: it has no end, or it cannot be text: bytes, or a template with placeholders.
        """
        if self.text[self.at : self.at + 1] in QUOTES:
            return self.string(self.text[self.at])
        found = self.prefixed()
        prefix = found[1].lower() if found else ""
        if found is None or prefix not in _PREFIXES:
            raise self.bad("a string")
        if prefix:
            self.repairs[PYTHON_LITERALS] = None
        self.at = found.end()
        return self.string(self.text[self.at], raw="r" in prefix, filled="f" in prefix)

    def string(self, quote: str, *, raw: bool = False, filled: bool = False) -> str:
        """A string in any of Python's or JSON's quotes."""
        if self.text.startswith(quote * 3, self.at):
            quote *= 3
        if quote != '"':
            self.repairs[PYTHON_QUOTES] = None
        start = self.at
        self.at += len(quote)
        pieces: Pieces | None = None  # nearly all strings are one piece
        plain = _STRING[quote]
        while True:
            found = plain.match(self.text, self.at)
            assert found is not None
            if not found[0].isprintable() and _RAW_CONTROL.search(found[0]):
                self.repairs[RAW_NEWLINES] = None
            piece = self.unbraced(found[0]) if filled else found[0]
            self.at = found.end()
            if self.text.startswith(quote, self.at):
                self.at += len(quote)
                self.refuse_two_values(start, len(quote))
                return piece if pieces is None else pieces.text() + piece
            pieces = pieces or Pieces()
            pieces.add(piece)
            if self.at >= len(self.text):
                self.at = start
                raise NotALiteral(f"the string that starts at {start} does not end", start)
            if filled and self.text[self.at + 1 : self.at + 2] in ("{", "}"):
                raise self.bad("a string without placeholders")
            pieces.add(self.raw_escape() if raw else self.escape(python=self.python or quote != '"' or filled))

    def refuse_two_values(self, start: int, size: int) -> None:
        """Refuse a string from `start`, in quotes of this size, that may be two values which are one quote each.

        Then what is between three quotes continues after a value, and ends as what precedes one: a key, a parameter's
        name, an item of a list.

        Raises:
            NotALiteral: it may be.
        """
        if size < 3:
            return
        between = self.text[start + 3 : self.at - 3].lstrip().rstrip(_BEFORE_VALUE)
        end, before = between[-1:], between[:-1].rstrip()[-1:]
        named = self.python and end == "=" and (before.isalnum() or before == "_")
        keyed = named or (end == ":" and before in QUOTES)
        listed = end == "," and self.text[max(start - _SPACE_BEFORE, 0) : start].rstrip()[-1:] not in (":", "=")
        if (keyed and between[0] in _AFTER_VALUE) or (listed and between[0] == ","):
            self.at = start
            raise self.bad("a quote in a string to be escaped")

    def unbraced(self, text: str) -> str:
        """A piece of an f-string; an expression in braces would have to be computed."""
        rest = text.replace("{{", "").replace("}}", "")
        if "{" in rest or "}" in rest:
            raise self.bad("a string without placeholders")
        return text.replace("{{", "{").replace("}}", "}")

    def raw_escape(self) -> str:
        """In a raw string, a backslash and the character after it are taken literally."""
        text = self.text[self.at : self.at + 2]
        self.at += len(text)
        return text

    def escape(self, *, python: bool) -> str:
        """One escape; an unknown one keeps its backslash, as in Python."""
        found = _ESCAPED.match(self.text, self.at + 1)
        c = found[0] if found else ""
        plain = _PYTHON_ESCAPES if python else _JSON_ESCAPES
        if c in plain:
            self.at += 1 + len(c)
            return plain[c]
        found = _HEX.match(self.text, self.at + 1)
        if found and (python or found[2]):
            self.at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            return self.surrogates(code) if code < 0x110000 else "\ufffd"
        if not python:
            raise self.bad("a JSON escape")
        if octal := _OCTAL.match(self.text, self.at + 1):
            self.at = octal.end()
            return chr(int(octal[0], 8))
        if named := _NAMED.match(self.text, self.at + 1):
            return self.named(named)
        if c in ("x", "u", "U", "N"):
            raise self.bad("a complete escape")
        self.at += 1 + len(c)
        return "\\" + c

    def named(self, found: re.Match[str]) -> str:
        """A character by its Unicode name."""
        try:
            c = unicodedata.lookup(found[1])
        except KeyError:
            raise self.bad("the name of a character") from None
        self.at = found.end()
        return c

    def surrogates(self, code: int) -> str:
        """A code unit, joined with its second half if it is the first half of a pair."""
        if (
            0xD800 <= code < 0xDC00
            and self.text.startswith("\\u", self.at)
            and (low := _HEX.match(self.text, self.at + 1))
        ):
            second = int(low[2] or "0", 16)
            if 0xDC00 <= second < 0xE000:
                self.at = low.end()
                return chr(0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00))
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
