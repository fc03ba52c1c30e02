"""The arguments of a native call: the JSON text that a provider sent, read once it is complete.

Pure. Strict, except for text that servers are known to send around a valid object; each repair is named by its code in
`agentkit.formats.REPAIRS`, and changes no value (except lone surrogates, which no encoding can represent).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

from agentkit.checks.unicode import has_surrogate, without_surrogates
from agentkit.errors import ErrorCode
from agentkit.formats.format import Limits
from agentkit.schemas.typed import values
from agentkit.schemas.typed.repairs import (
    DOUBLY_ENCODED,
    LONE_SURROGATE,
    NULL_ARGUMENTS,
    RAW_NEWLINES,
    REPEATED_ARGUMENTS,
)

LIMITS: Final = Limits()  # as for a call written in text: its length, and the nesting of arrays and objects

_SPACE = re.compile(r"[\s\ufeff]*")
_KINDS: Final[Mapping[str, str]] = {"list": "an array", "str": "a string", "bool": "a boolean", "NoneType": "null"}


class NativeArguments(NamedTuple):
    """The arguments by name, and the codes of the repairs needed to read them."""

    values: dict[str, Any]
    repairs: tuple[str, ...] = ()


class ArgumentsError(ValueError):
    """The text is not an arguments object.

    Args:
        code: `invalid_json`; `invalid_arguments` for JSON that is not an object; `ambiguous_call` for several objects;
            `limit` for a text that is too long or nested too deep.
        message: what was found and what was expected, where.
        position: offset in the text.
    """

    def __init__(self, code: ErrorCode, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.position = position


def read_arguments(text: str) -> NativeArguments:
    """Read the arguments object.

    No text at all and `null` mean no arguments. Servers that send `{}` first and the object after it, or repeat or
    extend the object they sent, mean the last one (Source: litellm#20480, opencodex#361). An object encoded twice, and
    raw line ends inside strings, are read.

    Raises:
        ArgumentsError: the text is none of these.
    """
    if len(text) > LIMITS.call:
        raise ArgumentsError("limit", f"the arguments have {len(text):,} characters; at most {LIMITS.call:,} are read")
    whole = text
    found, repairs = _decode(text)
    if texts := [value for value in found if isinstance(value, str)]:
        inner = [_decode(value) if isinstance(value, str) else ([value], ()) for value in found]
        found = [value for values_of_one, _ in inner for value in values_of_one]
        repairs = tuple(dict.fromkeys((*repairs, DOUBLY_ENCODED, *(code for _, codes in inner for code in codes))))
    if values.too_deep(found, "".join(("[", text, *texts)), LIMITS.depth + 1):  # as one array: there may be many
        raise _too_deep()
    objects = [v for v in found if isinstance(v, dict)]
    if len(objects) < len(found):
        return _without_object(found, repairs)
    arguments, more = _last(objects)
    if "\\u" in whole or has_surrogate(whole):
        arguments = without_surrogates(arguments)
        if values.has_replacements(arguments, whole):
            more = (*more, LONE_SURROGATE)
    return NativeArguments(arguments, repairs + more)


def readable(text: str) -> dict[str, Any] | None:
    """The arguments by name if `read_arguments` can read the text; otherwise None."""
    try:
        return read_arguments(text).values
    except ArgumentsError:
        return None


def _decode(
    text: str, decoder: json.JSONDecoder = values.DECODER, repairs: tuple[str, ...] = ()
) -> tuple[list[Any], tuple[str, ...]]:
    """All JSON values of the text, in order, and the repairs needed to read them."""
    try:
        return _values(text, decoder), repairs
    except (ValueError, RecursionError) as error:
        if not repairs and str(error).startswith("Invalid control character"):
            return _decode(text, values.LOOSE, (RAW_NEWLINES,))
        _refuse(text, error)


def _values(text: str, decoder: json.JSONDecoder) -> list[Any]:
    found = []
    at = _SPACE.match(text).end()  # type: ignore[union-attr]  # it matches anywhere
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        at = _SPACE.match(text, end).end()  # type: ignore[union-attr]
    return found


def _refuse(text: str, error: ValueError | RecursionError) -> NoReturn:
    if isinstance(error, RecursionError):
        raise _too_deep() from None
    if isinstance(error, values.DuplicateKey):
        raise ArgumentsError("ambiguous_call", str(error)) from error
    at, message = 0, str(error)
    if isinstance(error, json.JSONDecodeError):
        at = error.pos
        seen = f"{text[at : at + 20]!r}" if at < len(text) else "the end"
        message = f"{error.msg.removesuffix(' at')} at position {at} of {len(text)}: found {seen}"
    raise ArgumentsError("invalid_json", f"the arguments are not JSON: {message}", at) from error


def _too_deep() -> ArgumentsError:
    return ArgumentsError("limit", f"the arguments are nested deeper than {LIMITS.depth} arrays and objects")


def _without_object(found: list[Any], repairs: tuple[str, ...]) -> NativeArguments:
    if found == [None]:
        return NativeArguments({}, (*repairs, NULL_ARGUMENTS))
    other = next(v for v in found if not isinstance(v, dict))
    kind = _KINDS.get(type(other).__name__, "a number")
    raise ArgumentsError("invalid_arguments", f"the arguments must be one JSON object, such as {{}}; found {kind}")


def _last(objects: list[dict[str, Any]]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The intended one of several objects: the last, if each before it is empty or part of it."""
    if len(objects) == 1:
        return objects[0], ()
    filled = [o for o in objects if o]
    last = filled[-1] if filled else {}
    for other in filled:
        if any(key not in last or last[key] != value for key, value in other.items()):
            raise ArgumentsError(
                "ambiguous_call", f"found {len(objects)} different objects; a call has one object of arguments"
            )
    return last, (REPEATED_ARGUMENTS,) if objects else ()
