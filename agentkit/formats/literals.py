"""JSON and Python values as models write them, on text that is all there. Pure; one reader, in two strictnesses.

`Literals` reads Python literals, JSON, and the mixtures of both. What it had to overlook to read a JSON text is named
in `repairs`. The inside of a string is never changed, except that escapes mean what they mean in the language of its
quotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

MAX_DEPTH: Final = 128

RAW_NEWLINES = "raw_newlines"
TRAILING_COMMA = "trailing_comma"
PYTHON_QUOTES = "python_quotes"
PYTHON_LITERALS = "python_literals"
MISSING_BRACE = "missing_brace"
SURPLUS_BRACE = "surplus_brace"
DOUBLY_ENCODED = "doubly_encoded"
INNER_QUOTES = "inner_quotes"
WRAPPED_ARGUMENTS = "wrapped_arguments"
QUOTED_VALUE = "quoted_value"
MISSING_COMMA = "missing_comma"
MISSING_CLOSE = "missing_close"

REPAIRS: Final = (
    RAW_NEWLINES,
    TRAILING_COMMA,
    PYTHON_QUOTES,
    PYTHON_LITERALS,
    MISSING_BRACE,
    SURPLUS_BRACE,
    DOUBLY_ENCODED,
    INNER_QUOTES,
    WRAPPED_ARGUMENTS,
    QUOTED_VALUE,
    MISSING_COMMA,
    MISSING_CLOSE,
)
"""Every repair, by name: of JSON bodies, of Python calls (`inner_quotes`, `missing_comma`) and of parameters between
tags (`missing_close`)."""

WHOLE_CALL_REPAIRS: Final = frozenset((WRAPPED_ARGUMENTS, QUOTED_VALUE))
"""Repairs of a call that was read, by what its tool's schema says."""

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\W\d][\w.]*")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])")
_NOT_JSON = re.compile(r"\+|-?0[\dxX]|.*_|-?\.|.*\.(?:\Z|[eE])")
_PRODUCT = re.compile(r"\s*([*/])(?![*/])\s*")
_MAX_PRODUCT: Final = 1e300
_RAW_CONTROL = re.compile(r"[\x00-\x1f]")
_STRING: Final = {
    '"': re.compile(r'[^"\\]*'),
    "'": re.compile(r"[^'\\]*"),
    '"""': re.compile(r'(?:[^"\\]|"(?!""))*'),
    "'''": re.compile(r"(?:[^'\\]|'(?!''))*"),
}
_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0",
    '"': '"', "'": "'", "\\": "\\", "/": "/", "\n": "",
}  # fmt: skip
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")
_PYTHON_WORDS: Final[Mapping[str, Any]] = {"True": True, "False": False, "None": None}
_JSON_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}


class NotALiteral(ValueError):
    """The text is not such a value; `position` is where reading failed."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Literals:
    """Read values from `text`, starting at `at`; `at` moves behind what was read.

    Args:
        text: what is read.
        at: where reading starts.
        lenient: whether missing braces at the text's end are supplied.
        behind: what stands behind a quote that ends a string; a quote without it belongs to the string. None: every
            quote ends one.
    """

    def __init__(self, text: str, at: int = 0, *, lenient: bool = False, behind: re.Pattern[str] | None = None) -> None:
        self.text, self.at, self.lenient, self.behind = text, at, lenient, behind
        self.repairs: dict[str, None] = {}
        self.depth = 0

    def bad(self, wanted: str) -> NotALiteral:
        """The error for what stands here."""
        return NotALiteral(f"expected {wanted}, got {self.text[self.at : self.at + 20]!r}", self.at)

    def space(self) -> str:
        """Skip white space; returns the character behind it, empty at the text's end."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches the empty string
        return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        """Read one value.

        Raises:
            NotALiteral: there is none here.
        """
        c = self.space()
        if c and c in "\"'":
            return self.string(c)
        if c in ("{", "[", "("):
            return self.container(c)
        if word := _WORD.match(self.text, self.at):
            return self.word(word)
        if number := _NUMBER.match(self.text, self.at):
            return self.number(number)
        raise self.bad("a value")

    def word(self, found: re.Match[str]) -> Any:
        """A named constant, or a string with a prefix."""
        word = found[0]
        if word in ("r", "u", "R", "U") and self.text[found.end() : found.end() + 1] in ("'", '"'):
            self.at = found.end()
            return self.string(self.text[self.at], raw=word in "rR")
        for table in (_JSON_WORDS, _PYTHON_WORDS):
            if word in table:
                self.at = found.end()
                if table is _PYTHON_WORDS:
                    self.repairs[PYTHON_LITERALS] = None
                return table[word]
        raise self.bad("a value")

    def number(self, found: re.Match[str]) -> int | float:
        """A number, or a product of numbers: models leave `5*60` to whoever reads it."""
        value = self.one_number(found)
        while (operator := _PRODUCT.match(self.text, self.at)) and (factor := _NUMBER.match(self.text, operator.end())):
            self.repairs[PYTHON_LITERALS] = None
            other = self.one_number(factor)
            if operator[1] == "/" and not other:
                raise self.bad("a divisor that is not zero")
            value = value * other if operator[1] == "*" else value / other
            if not -_MAX_PRODUCT < value < _MAX_PRODUCT:
                raise self.bad("a smaller product")
        return value

    def one_number(self, found: re.Match[str]) -> int | float:
        """A number; one that is too large for its type is refused."""
        text = found[0].replace("_", "")
        if _NOT_JSON.match(text):
            self.repairs[PYTHON_LITERALS] = None
        try:
            value: int | float = int(text, 0 if "x" in text.lower() else 10)
        except ValueError:
            value = float(text) if len(text) < 5000 else math.inf
        if not math.isfinite(value):
            raise self.bad("a finite number")
        self.at = found.end()
        return value

    def string(self, quote: str, *, raw: bool = False) -> str:
        """A string in any of Python's or JSON's quotes."""
        if self.text.startswith(quote * 3, self.at):
            quote *= 3
        if quote != '"':
            self.repairs[PYTHON_QUOTES] = None
        start = self.at
        self.at += len(quote)
        pieces: list[str] = []
        plain = _STRING[quote]
        while True:
            found = plain.match(self.text, self.at)
            assert found is not None
            if found[0] and _RAW_CONTROL.search(found[0]):
                self.repairs[RAW_NEWLINES] = None
            pieces.append(found[0])
            self.at = found.end()
            if self.text.startswith(quote, self.at):
                self.at += len(quote)
                if self.behind is None or self.behind.match(self.text, self.at):
                    return "".join(pieces)
                self.repairs[INNER_QUOTES] = None
                pieces.append(quote)
                continue
            if self.at >= len(self.text):
                self.at = start
                raise NotALiteral(f"the string that starts at {start} does not end", start)
            pieces.append(self.escape(raw))

    def escape(self, raw: bool) -> str:
        """One escape; one that means nothing keeps its backslash, as in Python."""
        c = self.text[self.at + 1 : self.at + 2]
        if raw:
            self.at += 2
            return "\\" + c
        if found := _HEX.match(self.text, self.at + 1):
            self.at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            return self.surrogates(code) if code < 0x110000 else "\ufffd"
        self.at += 1 + len(c)
        return _ESCAPES.get(c, "\\" + c)

    def surrogates(self, code: int) -> str:
        """A code unit, joined with its second half where it is the first half of a pair."""
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

    def container(self, opener: str) -> Any:
        """A list, tuple or object; one value in parentheses, without a comma, is that value."""
        if self.depth >= MAX_DEPTH:
            raise self.bad(f"nesting of at most {MAX_DEPTH}")
        self.depth += 1
        self.at += 1
        closer = _CLOSERS[opener]
        pairs: dict[str, Any] = {}
        items: list[Any] = []
        comma = False
        while not self.closed(closer):
            if opener == "{":
                key = self.key()
                if self.space() != ":":
                    raise self.bad("':'")
                self.at += 1
                value = self.value()
                if key in pairs and pairs[key] != value:
                    raise self.bad(f"{key!r} only once")
                pairs[key] = value
            else:
                items.append(self.value())
            if self.space() == ",":
                self.at += 1
                comma = True
                if self.space() == closer:
                    self.repairs[TRAILING_COMMA] = None
            elif self.space() not in (closer, ""):
                raise self.bad(f"',' or {closer!r}")
        self.depth -= 1
        if opener == "(" and len(items) == 1 and not comma:
            return items[0]
        return pairs if opener == "{" else items

    def key(self) -> str:
        """An object's key."""
        key = self.value()
        if not isinstance(key, str):
            raise self.bad("a string as the key")
        return key

    def closed(self, closer: str) -> bool:
        """Whether the container ends here; a missing end is supplied at the text's end where that is allowed."""
        c = self.space()
        if c == closer:
            self.at += 1
            return True
        if not c:
            if not self.lenient:
                raise self.bad(repr(closer))
            self.repairs[MISSING_BRACE] = None
            return True
        return False


def mend(text: str, allowed: frozenset[str]) -> tuple[Any, tuple[str, ...]] | None:
    """Read damaged JSON that is all there.

    Args:
        text: the whole body.
        allowed: the repairs that may be made.

    Returns:
        The value and the names of the repairs that it took; None where those do not suffice.
    """
    reader = Literals(text.strip(), lenient=MISSING_BRACE in allowed)
    try:
        value = reader.value()
    except (NotALiteral, RecursionError):
        return None
    rest = reader.text[reader.at :].strip()
    if rest:
        if rest.strip("}] \n\t\r"):
            return None
        reader.repairs[SURPLUS_BRACE] = None
    return (value, tuple(reader.repairs)) if allowed.issuperset(reader.repairs) else None


def literal_value(text: str) -> Any:
    """One Python or JSON literal that is the whole text.

    Raises:
        NotALiteral: it is not.
    """
    reader = Literals(text)
    value = reader.value()
    if reader.space():
        raise reader.bad("the end of the text")
    return value
