r"""Strings as models write them in JSON, in Python and in mixtures of both, in complete text. Pure.

The content of a string is never changed; its escapes have the meaning of the language of its quotes. An escape that
JSON does not have is an error in JSON's double quotes, as in `"C:\app"`. The repairs needed to read a JSON text are
recorded in `repairs`.
"""

from __future__ import annotations

import re
from typing import Final

from agentkit.checks.unicode import clean
from agentkit.schemas.typed.repairs import PYTHON_LITERALS, PYTHON_QUOTES, RAW_NEWLINES

_SPACE = re.compile(r"\s*")
_ODD_SPACE = re.compile(r"[^ \t\n\r]")  # not white space in JSON
QUOTES: Final = ('"', "'")
_PREFIXED = re.compile(r"([a-zA-Z]{0,2})(?=[\"'])")
_PREFIXES: Final = frozenset(("", "r", "u"))  # bytes are not text, and the fields of an f-string would be computed
_RAW_CONTROL = re.compile(r"[\x00-\x1f]")
_STRING: Final = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*+"', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.)*+'", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+"""', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]++|\\.|'(?!''))*+'''", re.DOTALL),
}
"""A string after its opening quotes, by these."""

_AFTER_VALUE = re.compile(r"\s*[,)\]}]")
_JSON_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/",
}  # fmt: skip
_PYTHON_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", '"': '"', "'": "'", "\\": "\\",
    "\n": "", "\r": "", "\r\n": "",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:(?P<hex>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(?P<octal>[0-7]{1,3})|(?P<plain>\r\n|.))",
    re.DOTALL,
)


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
        """Return the error for the text at this position."""
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

    def string_prefix(self) -> re.Match[str] | None:
        """Match the prefix, often empty, of the string that starts here; None if none does."""
        return _PREFIXED.match(self.text, self.at)

    def strings(self) -> str:
        """Adjacent strings, or strings joined by `+`, are one in Python."""
        start = self.at
        text = self.one_string()
        while self.python:
            end = self.at
            if self.space() == "+":
                self.at += 1
                self.space()
            if not self.string_prefix():
                self.at = end
                break
            if self.at == end and self.text[end - 1] == self.text[end]:
                raise self.bad("a comma or a space between two strings")  # or one quote inside a string, written twice
            self.joined = start
            text += self.one_string()
        return text

    def one_string(self) -> str:
        """Read one string with its prefix.

        Raises:
            NotALiteral: it has no end, or it cannot be text: bytes, or a template with placeholders.
        """
        found = self.string_prefix()
        prefix = found[1].lower() if found else ""
        if found is None or prefix not in _PREFIXES:
            raise self.bad("a string")
        if prefix:
            self.repairs[PYTHON_LITERALS] = None
        self.at = found.end()
        return self.string(self.text[self.at], raw=prefix == "r")

    def string(self, quote: str, *, raw: bool = False) -> str:
        """Read a string in any of Python's or JSON's quotes; in a `raw` one, a backslash is one.

        A triple-quoted string may not start with `,` `)` `]` `}`: it may be two strings with one quote each.

        Raises:
            NotALiteral: it has no end, an escape that its language does not have, or it may be two strings.
        """
        if self.text.startswith(quote * 3, self.at):
            quote *= 3
        if quote != '"':
            self.repairs[PYTHON_QUOTES] = None
        found = _STRING[quote].match(self.text, self.at + len(quote))
        if found is None:
            raise NotALiteral(f"the string that starts at {self.at} does not end", self.at)
        start, end = self.at + len(quote), found.end() - len(quote)
        if _RAW_CONTROL.search(self.text, start, end):
            self.repairs[RAW_NEWLINES] = None
        if len(quote) == 3 and _AFTER_VALUE.match(self.text, start, end):
            raise self.bad("a quote in a string to be escaped")
        if raw or self.text.find("\\", start, end) < 0:
            text = self.text[start:end]
        else:
            text = self.unescape(start, end, python=self.python or quote != '"')
        self.at = found.end()
        return text

    def unescape(self, start: int, end: int, *, python: bool) -> str:
        """Return the content of a string between two positions. Two escaped halves of a character are joined.

        It is put together as bytes: many short strings would take many times its memory.
        """
        content, at = bytearray(), start
        for found in _ESCAPE.finditer(self.text, start, end):
            self.at = found.start()
            content += (self.text[at : self.at] + self.character(found, python=python)).encode(errors="surrogatepass")
            at = found.end()
        content += self.text[at:end].encode(errors="surrogatepass")
        return clean(content.decode(errors="surrogatepass"))

    def character(self, escape: re.Match[str], *, python: bool) -> str:
        """Return the text that an escape represents; in Python, an unknown escape keeps its backslash.

        Raises:
            NotALiteral: JSON does not have it, or it is not complete.
        """
        digits, c = escape["hex"], escape["plain"]
        if digits and (python or digits[0] == "u") and (code := int(digits[1:], 16)) < 0x110000:
            return chr(code)
        if escape["octal"] and python:
            return chr(int(escape["octal"], 8))
        known = _PYTHON_ESCAPES if python else _JSON_ESCAPES
        if c in known:
            return known[c]
        if not python or c is None or c in "xuUN":
            raise self.bad("a complete escape" if python else "a JSON escape")
        return escape[0]
