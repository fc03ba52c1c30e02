"""JSON and Python values as models write them, in complete text. Pure; one reader, laxer with `python=True`.

`Literals` reads Python literals, JSON, and mixtures of both. The repairs needed to read a JSON text are recorded in
`repairs`. The content of a string is never changed, except that escapes have the meaning of the language of its quotes.
Of Python's expressions it supports sums and products of numbers and, only with `python=True`, adjacent strings and
strings joined by `+`; all others are rejected, as is a number with leading zeros, except one of two digits (`07`, a
month).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Context, Inexact, InvalidOperation, Overflow
from functools import reduce
from typing import Any, Final

from agentkit.schemas.typed.exact import decimal, nearest
from agentkit.schemas.typed.repairs import ARITHMETIC, LEADING_ZEROS, PYTHON_LITERALS, TRAILING_COMMA
from agentkit.schemas.typed.stringliterals import QUOTES, NotALiteral, Strings

MAX_DEPTH: Final = 128

_WORD = re.compile(r"[^\W\d][\w.]*")
_DIGITS = r"[0-9](?:_?[0-9])*"
_NUMBER = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+"
    rf"|(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?)(?![\w.])"
)
_NOT_JSON = re.compile(r"\+|-?0[xXoObB]|.*_|-?\.|.*\.(?:\Z|[eE])")
_TWO_DIGITS = re.compile(r"0[0-9]\Z")  # a month, a day, an hour: LFM2 and others write `month=07`
_LEADING_ZERO = re.compile(r"[+-]?0_?[0-9]")
MAX_NUMBER: Final = 5_000  # characters; the interpreter itself refuses integers with more than 4,300 digits
A_NUMBER: Final = "a number of at most 4,300 digits, or below 1.8e308 if it has a fraction or an exponent"
"""The expectation where a number is too long, or too large for a float: the interpreter's own limits."""
_MAX_BITS: Final = 14_000  # of an integer: 4,215 digits; the interpreter itself writes at most 4,300
_OPERATOR = re.compile(r"\s*(?:(\*)(?!\*)|(\+))\s*")
_MAX_RESULT: Final = 10**300
_EXACT: Final = Context(prec=4_300, traps=[Inexact, InvalidOperation, Overflow])
PYTHON_WORDS: Final[Mapping[str, Any]] = {"True": True, "False": False, "None": None}
_WORDS: Final[Mapping[str, Any]] = {**PYTHON_WORDS, "true": True, "false": False, "null": None}
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}


class Literals(Strings):
    """Read values from `text`, starting at `at`; `at` moves past each value.

    Args:
        text: the text to read.
        at: where reading starts.
        python: the text is Python: adjacent strings are one, and Python's escapes also apply in double quotes.
    """

    def __init__(self, text: str, at: int = 0, *, python: bool = False) -> None:
        super().__init__(text, at, python=python)
        self.depth = 0

    def value(self) -> Any:
        """Read one value.

        Raises:
            NotALiteral: there is no value here.
        """
        c = self.space()
        start = self.at
        value = self.operand(c)
        if isinstance(value, bool) or not isinstance(value, int | float) or not _OPERATOR.match(self.text, self.at):
            if self.text.startswith("(", start):  # not the parentheses of an expression
                self.repairs[PYTHON_LITERALS] = None
            return value
        return self.compute(value, start)

    def operand(self, c: str) -> Any:
        """Read a value, which starts here with this character, without any arithmetic after it."""
        if c in QUOTES or self.string_prefix():
            return self.strings()
        if c in ("{", "[", "("):
            return self.container(c)
        if (word := _WORD.match(self.text, self.at)) and word[0] in _WORDS:
            self.at = word.end()
            if word[0] in PYTHON_WORDS:
                self.repairs[PYTHON_LITERALS] = None
            return _WORDS[word[0]]
        if number := _NUMBER.match(self.text, self.at):
            return self.number(number)
        raise self.bad("a value")

    # ------------------------------------------------------------ numbers

    def compute(self, value: int | float, start: int) -> int | float:
        """Return the exact result of a number and the arithmetic after it: models leave `5*60` to the reader.

        Source: results of the Berkeley leaderboard, `1.5 * 5` by Hermes 2 Theta 70B (irrelevance_211) and `52*5*4*3*2`
        by Llama 3 70B (parallel_multiple_146).
        """
        self.repairs[ARITHMETIC] = None
        integers = isinstance(value, int)
        try:
            summands = [decimal(value)]
            while found := _OPERATOR.match(self.text, self.at):
                self.at = found.end()
                value = self.number_or_group()
                integers = integers and isinstance(value, int)
                if found[1]:
                    summands[-1] = _EXACT.multiply(summands[-1], decimal(value))
                else:
                    summands.append(decimal(value))
            result = reduce(_EXACT.add, summands)
        except ArithmeticError:
            raise self.bad("a result that is a number of at most 4,300 digits") from None
        if not -_MAX_RESULT < result < _MAX_RESULT:
            raise self.bad("a smaller result")
        if LEADING_ZEROS in self.repairs:
            self.at = start
            raise self.bad("numbers without leading zeros")
        return int(result) if integers else nearest(str(result))

    def number_or_group(self) -> int | float:
        """Read a number, or arithmetic in parentheses."""
        at = self.at
        value = self.operand(self.space())
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.at = at
            raise self.bad("a number")
        return value

    def number(self, found: re.Match[str]) -> int | float:
        """Read a number.

        Raises:
            NotALiteral: it is too large for its type, or it begins with zeros.
        """
        text = found[0].replace("_", "")
        if _NOT_JSON.match(found[0]):
            self.repairs[PYTHON_LITERALS] = None
        if _TWO_DIGITS.match(found[0]):
            self.repairs[LEADING_ZEROS] = None
        elif _LEADING_ZERO.match(found[0]):
            raise self.bad("a number without leading zeros, or a value in quotes")
        try:
            value = _number(text) if len(text) < MAX_NUMBER else math.inf
        except ValueError:  # more digits than the interpreter accepts
            value = math.inf
        if value.bit_length() > _MAX_BITS if isinstance(value, int) else not math.isfinite(value):
            raise self.bad(A_NUMBER)
        self.at = found.end()
        return value

    def container(self, opener: str) -> Any:
        """Read a list, tuple or object; a single value in parentheses, without a comma, is that value."""
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
        """Read an object's key: one string, since several next to each other are a key and a value without colon."""
        start = self.at
        key = self.value()
        if not isinstance(key, str) or self.joined >= start:
            raise self.bad("a string as the key")
        return key

    def closed(self, closer: str) -> bool:
        """Return True if the container ends here; its closing bracket is consumed."""
        c = self.space()
        if not c:
            raise self.bad(repr(closer))
        self.at += c == closer
        return c == closer


def _number(text: str) -> int | float:
    digits = text.lstrip("+-")
    if digits.isdigit() or digits[:2].lower() in ("0x", "0o", "0b"):
        return int(text, 10 if digits.isdigit() else 0)
    return nearest(text)


def read_damaged(text: str, allowed: frozenset[str]) -> tuple[Any, tuple[str, ...]] | None:
    """Read complete but damaged JSON.

    Args:
        text: the whole body.
        allowed: the repairs that may be made.

    Returns:
        The value and the names of the repairs that were needed; None if the allowed ones do not suffice.
    """
    reader = Literals(text.strip())
    try:
        value = reader.value()
    except (NotALiteral, RecursionError):
        return None
    return (value, tuple(reader.repairs)) if not reader.space() and allowed.issuperset(reader.repairs) else None


def literal_value(text: str, *, zeros: bool = True) -> Any:
    """Read a text that is one Python or JSON literal; without `zeros`, no number in it begins with a zero.

    Raises:
        NotALiteral: the text is not a literal.
    """
    reader = Literals(text)
    value = reader.value()
    if reader.space():
        raise reader.bad("the end of the text")
    if ARITHMETIC in reader.repairs or reader.joined >= 0:
        raise NotALiteral("expected a value, got an expression that has to be computed", 0)
    if not zeros and LEADING_ZEROS in reader.repairs:
        raise NotALiteral("expected numbers without leading zeros", 0)
    return value
