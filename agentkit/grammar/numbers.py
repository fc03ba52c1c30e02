"""Numbers between bounds as rules over their digits. Pure; depends on rules alone.

Text of these rules always reads back as a finite number: at most 15 digits, and exponents of at most two.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

from agentkit.grammar.rules import Alt, Chars, Lit, Repeat, Rule, alt, opt, seq

DIGITS: Final = "0123456789"
_LARGEST: Final = 10**15 - 1  # every integer up to here is exact in a double
_DIGIT: Final = Chars(DIGITS)
_NATURAL: Final = Alt((Lit("0"), seq(Chars(DIGITS[1:]), Repeat(_DIGIT, 0, 14))))
INTEGER: Final = seq(opt(Lit("-")), _NATURAL)
NUMBER: Final = seq(
    INTEGER, opt(seq(Lit("."), Repeat(_DIGIT, 1, 15))), opt(seq(Chars("eE"), opt(Chars("+-")), Repeat(_DIGIT, 1, 2)))
)


class EmptyRange(ValueError):
    """There is no number between the bounds."""


def integer(low: Decimal | None, high: Decimal | None, open_low: bool = False, open_high: bool = False) -> Rule:
    """Return the rule of an integer between bounds: included, or excluded if `open_`. None leaves a side unbounded.

    Raises:
        EmptyRange: there is no such number.
    """
    if low is None and high is None:
        return INTEGER
    a = -_LARGEST if low is None else _above(low, open_low)
    b = _LARGEST if high is None else _below(high, open_high)
    out = [natural(max(a, 0), b)] if b >= max(a, 0) else []
    if a < 0 and a <= min(b, -1):
        out.append(seq(Lit("-"), natural(max(1, -b), -a)))
    if not out:
        raise EmptyRange
    return alt(out)


def number(low: Decimal | None, high: Decimal | None, open_low: bool = False, open_high: bool = False) -> Rule:
    """Return the rule of a number between bounds: integers, decimals decided by the integer part, and precise ones.

    Raises:
        EmptyRange: there is no such number.
    """
    if low is None and high is None:
        return NUMBER
    low, high = Decimal(-_LARGEST) if low is None else low, Decimal(_LARGEST) if high is None else high
    out: list[Rule] = []
    if high >= 0:
        positive = (low, open_low) if low >= 0 else (Decimal(0), False)
        out += _unsigned(*positive, high, open_high)
    if low < 0:
        negative = (-high, open_high) if high < 0 else (Decimal(0), False)
        out += [seq(Lit("-"), rule) for rule in _unsigned(*negative, -low, open_low)]
    if not out:
        raise EmptyRange
    return alt(out)


def _above(bound: Decimal, exclusive: bool) -> int:
    return int(bound.to_integral_value(ROUND_FLOOR)) + 1 if exclusive else int(bound.to_integral_value(ROUND_CEILING))


def _below(bound: Decimal, exclusive: bool) -> int:
    return int(bound.to_integral_value(ROUND_CEILING)) - 1 if exclusive else int(bound.to_integral_value(ROUND_FLOOR))


def _unsigned(low: Decimal, open_low: bool, high: Decimal, open_high: bool) -> list[Rule]:
    out = []
    first, last = _above(low, open_low), _below(high, open_high)
    if first <= last:
        out.append(natural(first, last))
    top = int(high.to_integral_value(ROUND_FLOOR)) - 1  # k.f is below k + 1
    if first <= top:
        out.append(seq(natural(first, top), Lit("."), Repeat(_DIGIT, 1, 15)))
    places = max(2, *(-int(b.normalize().as_tuple().exponent) for b in (low, high)))
    a, b = _above(low.scaleb(places), open_low), _below(high.scaleb(places), open_high)
    if a <= b:
        out.append(natural(a, b, places))
    return out


def natural(low: int, high: int, places: int = 0) -> Rule:
    """Return the rule of a natural number from `low` to `high`, a decimal point before the last `places` digits."""
    out = []
    for size in range(max(len(str(low)), places + 1), max(len(str(high)), places + 1) + 1):
        least = 0 if size == places + 1 else 10 ** (size - 1)
        a, b = max(low, least), min(high, 10**size - 1)
        if a <= b:
            out.append(_between(str(a).zfill(size), str(b).zfill(size), places))
    return alt(out)


def _between(low: str, high: str, places: int) -> Rule:
    """Return the rule of digits of one length, from `low` to `high`, a decimal point before the last `places`."""
    if places and len(low) == places:
        return seq(Lit("."), _between(low, high, 0))
    if not low:
        return Lit("")
    if not places and set(low) == {"0"} and set(high) == {"9"}:
        return Repeat(_DIGIT, len(low), len(low))
    a, b, rest = int(low[0]), int(high[0]), len(low) - 1
    if a == b:
        return seq(Lit(low[0]), _between(low[1:], high[1:], places))
    zeros, nines = "0" * rest, "9" * rest
    out = []
    if low[1:] != zeros:
        out.append(seq(Lit(low[0]), _between(low[1:], nines, places)))
        a += 1
    if high[1:] != nines:
        out.append(seq(Lit(high[0]), _between(zeros, high[1:], places)))
        b -= 1
    if a <= b:
        out.insert(0, seq(Chars(DIGITS[a : b + 1]), _between(zeros, nines, places)))
    return alt(out)
