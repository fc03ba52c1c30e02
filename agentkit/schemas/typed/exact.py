"""Numbers with more digits than a float can hold. Pure.

Such a number is a `RoundedNumber`: a float in every respect, with the written digits. The schema then decides about it:
an integer, or the digits as a string.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from agentkit.schemas.walk import Schema, alternatives, child

DECIMAL: Final = "decimal"
"""The `format` of a string whose digits count, as the OpenAPI Initiative's registry of formats has it."""

_SHORT: Final = 16  # characters: with fewer digits, the shortest text of the nearest float has the same ones
_DEPTH: Final = 32


class RoundedNumber(float):
    """The float nearest to a written number that no float equals.

    Attributes:
        written: the number as decimal digits.
    """

    __slots__ = ("written",)
    written: str

    def __new__(cls, value: float, written: str) -> RoundedNumber:
        """Return the float, with the written digits."""
        made = super().__new__(cls, value)
        made.written = written
        return made

    def __reduce__(self) -> tuple[type[RoundedNumber], tuple[float, str]]:
        return RoundedNumber, (float(self), self.written)


def nearest(text: str) -> float:
    """Return the float nearest to a decimal number; infinite if it is too large for one."""
    value = float(text)
    if (len(text) >= _SHORT or not value) and repr(value) != text and math.isfinite(value):
        try:
            same = Decimal(text) == Decimal(repr(value))
        except InvalidOperation:  # an exponent beyond all bounds
            same = False
        return value if same else RoundedNumber(value, text)
    return value


def decimal(value: float) -> Decimal:
    """Return the number that was written for this one.

    Raises:
        InvalidOperation: its exponent is beyond all bounds.
    """
    return Decimal(value) if isinstance(value, int) else Decimal(getattr(value, "written", None) or repr(value))


def as_integer(value: float) -> int | None:
    """Return the integer that was written for this number; None if the number is not an integer."""
    try:
        exact = decimal(value)
    except InvalidOperation:
        return None
    return int(exact) if exact == exact.to_integral_value() else None


def exactly(value: Any, schema: Any, root: Schema, depth: int = 0) -> Any:
    """Return a value with each `RoundedNumber` in it as its schema can have it: an integer, or the digits as a string.

    The digits of a fraction where the schema wants an integer also become a string: validation shows them.
    """
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return value
    match value:
        case RoundedNumber():
            return _exactly(value, list(alternatives(schema, root)))
        case dict():
            return {name: _inside(inner, name, schema, root, depth) for name, inner in value.items()}
        case list():
            return [_inside(inner, i, schema, root, depth) for i, inner in enumerate(value)]
    return value


def _inside(value: Any, step: str | int, schema: Schema, root: Schema, depth: int) -> Any:
    made = value
    if isinstance(value, RoundedNumber | dict | list):
        for option in alternatives(schema, root):
            made = exactly(value, child(option, step), root, depth + 1)
            if not rounded(made):
                return made
    return made


def _exactly(value: RoundedNumber, options: list[Schema]) -> Any:
    kinds = [option.get("type") for option in options]
    if "integer" in kinds and (number := as_integer(value)) is not None:
        return number
    digits = any(option.get("type") == "string" and option.get("format") == DECIMAL for option in options)
    return value.written if digits or ("integer" in kinds and "number" not in kinds) else value


def rounded(value: Any) -> bool:
    """Return True if a value contains a `RoundedNumber`."""
    if isinstance(value, dict):
        return any(map(rounded, value.values()))
    return any(map(rounded, value)) if isinstance(value, list) else type(value) is RoundedNumber
