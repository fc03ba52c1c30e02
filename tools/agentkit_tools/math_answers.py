"""Comparison of two answers to a mathematical problem; formulas by `math-verify` where it is installed."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from agentkit_tools.formulas import equal_formulas

MAX_ANSWER: Final = 2000  # characters; a longer answer is a mistake, and expensive to compare
MAX_FORMULA: Final = 300  # characters of a formula that is compared

_EXPENSIVE = re.compile(r"!|\*\*|\^[^,;=]*\^|\^\s*\{?\s*-?\d{2,}|\d{30,}|\\(?:int|sum|prod|lim|binom)")
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:/\d+)?")
_MARKUP = re.compile(r"\\(?:left|right|,|;|!|:|quad|qquad|displaystyle)(?![a-zA-Z])|\\text\{\s*\}|[\s~]")
_FRACTION = re.compile(r"\\[dt]?frac\{?(-?\d+)\}?\{?(-?\d+)\}?")
_UNITS = re.compile(r"\^\{?\\circ\}?|\\degree|°|\\%|%|\\\$|\$|€|£")


def boxed_answer(text: str) -> str | None:
    r"""Return the contents of the last `\boxed{…}`, with balanced braces; None if there is none.

    >>> boxed_answer(r"so \boxed{1}, or rather \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    """
    boxes = {found.end() for found in re.finditer(r"\\f?boxed\s*\{", text)}
    opened: list[int] = []
    last: tuple[int, int] | None = None
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif opened and (start := opened.pop()) in boxes:
            last = max(last or (start, 0), (start, brace.start()))
    return text[slice(*last)] if last else None


def number(text: str) -> Fraction | None:
    r"""The number that a text is, exactly; None if it is anything else.

    >>> number("$1,234.50"), number(r"\frac{3}{4}"), number("about 5")
    (Fraction(2469, 2), Fraction(3, 4), None)
    """
    bare = _UNITS.sub("", _MARKUP.sub("", text)).rstrip(".")
    bare = _FRACTION.sub(r"\1/\2", bare)
    if len(bare) > 100 or not re.search(r"\d", bare) or not _NUMBER.fullmatch(bare):
        return None
    above, _, below = bare.replace(",", "").partition("/")
    if not re.search(r"\d", above) or (below and not int(below)):
        return None
    return Fraction(above) / int(below or 1)


def same_answer(answer: str, truth: str) -> bool:
    r"""Return True if an answer is right: the same number, the same formula, or else the same text.

    >>> same_answer("0.5", r"\frac12"), same_answer("2 sqrt 3", "3")
    (True, False)
    """
    if len(answer) > MAX_ANSWER or not answer.strip():
        return False
    given, right = number(answer), number(truth)
    if given is not None or right is not None:
        if given is not None and right is not None:
            return given == right
    elif _plain(answer) == _plain(truth):
        return True
    return _verified(answer, truth)


def _plain(text: str) -> str:
    return _UNITS.sub("", _MARKUP.sub("", text)).rstrip(".").casefold()


def _verified(answer: str, truth: str) -> bool:
    """Return the verdict of `math-verify`; False without asking if it would certainly take too long."""
    if len(answer) > MAX_FORMULA or _EXPENSIVE.search(answer):
        return False
    return equal_formulas(answer, truth)
