"""JSON and Python values as models write them, in complete text. Pure; one reader with two levels of strictness.

`Literals` reads Python literals, JSON, and mixtures of both. The repairs needed to read a JSON text are recorded in
`repairs`. The content of a string is never changed, except that escapes have the meaning of the language of its quotes.
Of Python's expressions it supports adjacent strings, strings joined by `+`, and arithmetic of numbers; all others are
rejected. Also rejected are text that looks like arithmetic but is more likely a range, a date or a telephone number
(`10-20`, `12/31`), and a number with leading zeros, except one of two digits (`07`, a month).
"""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentkit.formats.repairs import (
    ARITHMETIC,
    INNER_QUOTES,
    INVALID_ESCAPE,
    JOINED_STRINGS,
    LEADING_ZEROS,
    MISSING_BRACE,
    PYTHON_LITERALS,
    PYTHON_QUOTES,
    RAW_NEWLINES,
    SURPLUS_BRACE,
    TRAILING_COMMA,
)

MAX_DEPTH: Final = 128

_SPACE = re.compile(r"\s*")
_ODD_SPACE = re.compile(r"[^ \t\n\r]")  # not white space in JSON
_WORD = re.compile(r"[^\W\d][\w.]*")
_DIGITS = r"[0-9](?:_?[0-9])*"
_NUMBER = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+"
    rf"|(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?)(?![\w.])"
)
_NOT_JSON = re.compile(r"\+|-?0[xXoObB]|.*_|-?\.|.*\.(?:\Z|[eE])")
_TWO_DIGITS = re.compile(r"0[0-9]\Z")  # a month, a day, an hour: LFM2 and others write `month=07`
_LEADING_ZERO = re.compile(r"[+-]?0+[0-9]+\Z")
_MAX_DIGITS: Final = 5_000  # characters of a number
_MAX_BITS: Final = 14_000  # of an integer: 4,215 digits; the interpreter itself writes at most 4,300
_OPERATOR = re.compile(r"\s*(?:([*/])(?![*/])|([+-]))\s*")
_COMPUTE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
_DATE = re.compile(r"[0-9]+([-/])[0-9]+\1[0-9]+(?![\w.])")
_MAX_RESULT: Final = 1e300
_QUOTES: Final = ('"', "'")
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
PYTHON_WORDS: Final[Mapping[str, Any]] = {"True": True, "False": False, "None": None}
_JSON_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}


class NotALiteral(ValueError):
    """The text is not a value of this kind; `position` is where reading failed."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Doubtful(NotALiteral):
    """The text can be read as a number, and as something that belongs in quotes."""


class Literals:
    """Read values from `text`, starting at `at`; `at` moves past each value.

    Args:
        text: the text to read.
        at: where reading starts.
        lenient: whether missing braces at the text's end are added.
        after: what must follow a quote that ends a string; any other quote belongs to the string. None: every quote
            ends one.
        python: the text is Python: adjacent strings are one, and Python's escapes also apply in double quotes.
    """

    def __init__(
        self,
        text: str,
        at: int = 0,
        *,
        lenient: bool = False,
        after: re.Pattern[str] | None = None,
        python: bool = False,
    ) -> None:
        self.text, self.at, self.lenient, self.after, self.python = text, at, lenient, after, python
        self.repairs: dict[str, None] = {}
        self.depth = 0
        self.plain = False  # whether the expression is clearly meant to be computed

    def bad(self, wanted: str) -> NotALiteral:
        """The error for the text at this position."""
        return NotALiteral(f"expected {wanted}, got {self.text[self.at : self.at + 20]!r}", self.at)

    def space(self) -> str:
        """Skip white space; returns the character after it, empty at the text's end."""
        start, self.at = self.at, _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # it always matches
        if self.at > start and _ODD_SPACE.search(self.text, start, self.at):
            self.repairs[PYTHON_LITERALS] = None
        return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        """Read one value.

        Raises:
            NotALiteral: there is no value here.
        """
        self.space()
        start = self.at
        value = self.operand()
        if isinstance(value, bool) or not isinstance(value, int | float) or not _OPERATOR.match(self.text, self.at):
            if self.text.startswith("(", start):  # not the parentheses of an expression
                self.repairs[PYTHON_LITERALS] = None
            return value
        return self.sum(value, start)

    def operand(self) -> Any:
        """A value without any arithmetic after it."""
        c = self.space()
        if c in _QUOTES or self.prefixed():
            return self.strings()
        if c in ("{", "[", "("):
            return self.container(c)
        if word := _WORD.match(self.text, self.at):
            return self.word(word)
        if number := _NUMBER.match(self.text, self.at):
            return self.number(number)
        raise self.bad("a value")

    def word(self, found: re.Match[str]) -> Any:
        """A named constant."""
        word = found[0]
        for table in (_JSON_WORDS, PYTHON_WORDS):
            if word in table:
                self.at = found.end()
                if table is PYTHON_WORDS:
                    self.repairs[PYTHON_LITERALS] = None
                return table[word]
        raise self.bad("a value")

    # ------------------------------------------------------------ numbers

    def sum(self, value: int | float, start: int) -> int | float:
        """The result of a number and the arithmetic after it: models leave `5*60` to the reader.

        Source: results of the Berkeley leaderboard, `1.5 * 5` by Hermes 2 Theta 70B (irrelevance_211) and `52*5*4*3*2`
        by Llama 3 70B (parallel_multiple_146).

        Raises:
            Doubtful: it contains only `-` and `/`, without white space around them.
        """
        self.repairs[ARITHMETIC] = None
        outer, self.plain = self.plain, False
        value = self.product(value)
        while found := self.operator("+-"):
            value = self.result(value, found, self.product(self.factor()))
        if not self.plain:
            raise self.doubtful("a value in quotes, or white space around the operators to be computed", start, self.at)
        self.plain = outer
        return value

    def doubtful(self, wanted: str, start: int, end: int) -> Doubtful:
        """The error for text that may not be meant as a number."""
        return Doubtful(f"expected {wanted}, got {self.text[start:end][:40]!r}", start)

    def product(self, value: int | float) -> int | float:
        """A number, multiplied or divided by those after it."""
        while found := self.operator("*/"):
            value = self.result(value, found, self.factor())
        return value

    def operator(self, wanted: str) -> str:
        """The operator here, if it is one of the expected ones; otherwise empty, and nothing is consumed."""
        found = _OPERATOR.match(self.text, self.at)
        sign = (found[1] or found[2]) if found else ""
        if found is None or sign not in wanted:
            return ""
        self.at = found.end()
        self.plain = self.plain or sign in "+*" or (found[0][0].isspace() and found[0][-1].isspace())
        return sign

    def factor(self) -> int | float:
        """A number, or one in parentheses."""
        at = self.at
        value = self.operand()
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.at = at
            raise self.bad("a number")
        return value

    def result(self, a: int | float, sign: str, b: int | float) -> int | float:
        """The result of the operator on two numbers."""
        if sign == "/" and not b:
            raise self.bad("a divisor that is not zero")
        try:
            value: int | float = _COMPUTE[sign](a, b)
        except OverflowError:
            value = math.inf
        if not -_MAX_RESULT < value < _MAX_RESULT:
            raise self.bad("a smaller result")
        return value

    def number(self, found: re.Match[str]) -> int | float:
        """A number.

        Raises:
            NotALiteral: it is too large for its type.
            Doubtful: it may be a date, or it begins with zeros.
        """
        text = found[0].replace("_", "")
        if date := _DATE.match(self.text, self.at):
            raise self.doubtful("a value in quotes", self.at, date.end())
        if _NOT_JSON.match(found[0]):
            self.repairs[PYTHON_LITERALS] = None
        if _TWO_DIGITS.match(text):
            self.repairs[LEADING_ZEROS] = None
        elif _LEADING_ZERO.match(text):
            raise self.doubtful("a number without leading zeros, or a value in quotes", self.at, found.end())
        try:
            value = _number(text) if len(text) < _MAX_DIGITS else math.inf
        except (ValueError, OverflowError):
            value = math.inf
        if value.bit_length() > _MAX_BITS if isinstance(value, int) else not math.isfinite(value):
            raise self.bad("a number of a usual size")
        self.at = found.end()
        return value

    # ------------------------------------------------------------ strings

    def prefixed(self) -> re.Match[str] | None:
        """The prefix, often empty, of the string that starts here; None if none does."""
        return _PREFIXED.match(self.text, self.at)

    def strings(self) -> str:
        """Adjacent strings, or strings joined by `+`, are one, as in Python; in JSON only joined ones are."""
        text = self.one_string()
        while True:
            at = self.at
            if self.text[at : at + 1] in _STRING_OVER:
                return text
            joined = self.space() == "+"
            if joined:
                self.at += 1
                self.space()
            if not (joined or self.python) or not self.prefixed():
                self.at = at
                return text
            if not self.python:
                self.repairs[JOINED_STRINGS] = None
            text += self.one_string()

    def one_string(self) -> str:
        """One string with its prefix.

        Raises:
            NotALiteral: it has no end, or it cannot be text: bytes, or a template with placeholders.
        """
        if self.text[self.at : self.at + 1] in _QUOTES:
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
        pieces: list[str] = []
        plain = _STRING[quote]
        while True:
            found = plain.match(self.text, self.at)
            assert found is not None
            if found[0] and _RAW_CONTROL.search(found[0]):
                self.repairs[RAW_NEWLINES] = None
            pieces.append(self.unbraced(found[0]) if filled else found[0])
            self.at = found.end()
            if self.text.startswith(quote, self.at):
                self.at += len(quote)
                if self.after is None or self.after.match(self.text, self.at):
                    return "".join(pieces)
                self.repairs[INNER_QUOTES] = None
                pieces.append(quote)
                continue
            if self.at >= len(self.text):
                self.at = start
                raise NotALiteral(f"the string that starts at {start} does not end", start)
            if filled and self.text[self.at + 1 : self.at + 2] in ("{", "}"):
                raise self.bad("a string without placeholders")
            pieces.append(self.raw_escape() if raw else self.escape(python=self.python or quote != '"'))

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
        if not python and c in _JSON_ESCAPES:
            self.at += 2
            return _JSON_ESCAPES[c]
        if found := _HEX.match(self.text, self.at + 1):
            if not python and not found[2]:
                self.repairs[INVALID_ESCAPE] = None
            self.at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            return self.surrogates(code) if code < 0x110000 else "\ufffd"
        if not python:
            self.repairs[INVALID_ESCAPE] = None
        if octal := _OCTAL.match(self.text, self.at + 1):
            self.at = octal.end()
            return chr(int(octal[0], 8))
        if named := _NAMED.match(self.text, self.at + 1):
            return self.named(named)
        if python and c in ("x", "u", "U", "N"):
            raise self.bad("a complete escape")
        self.at += 1 + len(c)
        return _PYTHON_ESCAPES.get(c, "\\" + c)

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

    def container(self, opener: str) -> Any:
        """A list, tuple or object; a single value in parentheses, without a comma, is that value."""
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
        """Whether the container ends here; at the text's end, a missing end is added if that is allowed.

        Not after a comma or an opening bracket: more was to follow, so that it would be half a value.
        """
        c = self.space()
        if c == closer:
            self.at += 1
            return True
        if not c:
            if not self.lenient or self.text.endswith(_MORE_FOLLOWS):
                raise self.bad(repr(closer))
            self.repairs[MISSING_BRACE] = None
            return True
        return False


def _number(text: str) -> int | float:
    """The number that a matched text represents.

    Raises:
        ValueError: it has more digits than the interpreter accepts.
    """
    kind = text.lstrip("+-")[:2].lower()
    if kind in ("0x", "0o", "0b"):
        return int(text, 0)
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def repaired(text: str, allowed: frozenset[str]) -> tuple[Any, tuple[str, ...]] | None:
    """Read complete but damaged JSON.

    Args:
        text: the whole body.
        allowed: the repairs that may be made.

    Returns:
        The value and the names of the repairs that were needed; None if the allowed ones do not suffice.
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


_MORE_FOLLOWS: Final = (",", "{", "[", "(")
_COMPUTED: Final = frozenset((ARITHMETIC, JOINED_STRINGS))


def literal_value(text: str) -> Any:
    """The Python or JSON literal that makes up the whole text.

    Raises:
        NotALiteral: the text is not a literal.
    """
    reader = Literals(text)
    value = reader.value()
    if reader.space():
        raise reader.bad("the end of the text")
    if not _COMPUTED.isdisjoint(reader.repairs):
        raise NotALiteral("expected a value, got an expression that has to be computed", 0)
    return value
