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
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from agentkit.formats.exact import as_float, fraction, nearest
from agentkit.formats.repairs import (
    ARITHMETIC,
    INVALID_ESCAPE,
    JOINED_STRINGS,
    LEADING_ZEROS,
    MISSING_BRACE,
    PYTHON_LITERALS,
    SURPLUS_BRACE,
    TRAILING_COMMA,
)
from agentkit.formats.stringliterals import QUOTES, Doubtful, NotALiteral, Strings, may_keep_escapes

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
_MAX_DIGITS: Final = 5_000  # characters of a number
A_NUMBER: Final = "a number of at most 4,300 digits, or below 1.8e308 if it has a fraction or an exponent"
"""What is wanted where a number is too long, or too large for a float: the interpreter's own limits."""
_MAX_BITS: Final = 14_000  # of an integer: 4,215 digits; the interpreter itself writes at most 4,300
_OPERATOR = re.compile(r"\s*(?:([*/])(?![*/])|([+-]))\s*")
_COMPUTE: Final[Mapping[str, Callable[[Fraction, Fraction], Fraction]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
_DATE = re.compile(r"[0-9]+([-/])[0-9]+\1[0-9]+(?![\w.])")
_MAX_RESULT: Final = 10**300
PYTHON_WORDS: Final[Mapping[str, Any]] = {"True": True, "False": False, "None": None}
_JSON_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}


class Literals(Strings):
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
        super().__init__(text, at, after=after, python=python)
        self.lenient = lenient
        self.depth = 0
        self.plain = False  # whether the expression is clearly meant to be computed

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
        return self.sum(value, start)

    def operand(self, c: str) -> Any:
        """A value, which starts here with this character, without any arithmetic after it."""
        if c in QUOTES or self.prefixed():
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
            Doubtful: it contains only `-` and `/`, without white space around them; or a number of it begins with a
                zero, as in a date.
        """
        self.repairs[ARITHMETIC] = None
        outer, self.plain = self.plain, False
        value = self.product(value)
        while found := self.operator("+-"):
            value = self.result(value, found, self.product(self.factor()))
        if not self.plain or LEADING_ZEROS in self.repairs:
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
        value = self.operand(self.space())
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.at = at
            raise self.bad("a number")
        return value

    def result(self, a: int | float, sign: str, b: int | float) -> int | float:
        """The result of the operator on two numbers."""
        if sign == "/" and not b:
            raise self.bad("a divisor that is not zero")
        one, other = fraction(a), fraction(b)
        if one is None or other is None:
            raise self.bad("larger numbers")
        exact = _COMPUTE[sign](one, other)
        if not -_MAX_RESULT < exact < _MAX_RESULT or exact.denominator.bit_length() > _MAX_BITS:
            raise self.bad("a smaller result")
        integer = sign != "/" and isinstance(a, int) and isinstance(b, int)
        return int(exact) if integer else as_float(exact)

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
        if _TWO_DIGITS.match(found[0]):
            self.repairs[LEADING_ZEROS] = None
        elif _LEADING_ZERO.match(found[0]):
            raise self.doubtful("a number without leading zeros, or a value in quotes", self.at, found.end())
        try:
            value = _number(text) if len(text) < _MAX_DIGITS else math.inf
        except (ValueError, OverflowError):
            value = math.inf
        if value.bit_length() > _MAX_BITS if isinstance(value, int) else not math.isfinite(value):
            raise self.bad(A_NUMBER)
        self.at = found.end()
        return value

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
        """An object's key: one string, since several next to each other are a key and a value without their colon."""
        start = self.at
        key = self.value()
        if not isinstance(key, str) or self.joined >= start:
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
    return int(text) if text.lstrip("+-").isdigit() else nearest(text)


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


def literal_value(text: str, *, zeros: bool = True) -> Any:
    """The Python or JSON literal that makes up the whole text; without `zeros`, no number in it begins with a zero.

    Raises:
        NotALiteral: the text is not a literal.
    """
    reader = Literals(text)
    value = reader.value()
    if reader.space():
        raise reader.bad("the end of the text")
    if not _COMPUTED.isdisjoint(reader.repairs):
        raise NotALiteral("expected a value, got an expression that has to be computed", 0)
    if not zeros and LEADING_ZEROS in reader.repairs:
        raise NotALiteral("expected numbers without leading zeros", 0)
    return value


def keeps_escapes(text: str) -> bool:
    """Whether a string in this literal has an escape that JSON does not have, and that therefore kept its backslash."""
    if not may_keep_escapes(text):  # as in nearly all texts: they are not read again
        return False
    reader = Literals(text)
    try:
        reader.value()
    except (NotALiteral, RecursionError):
        return False
    return INVALID_ESCAPE in reader.repairs
