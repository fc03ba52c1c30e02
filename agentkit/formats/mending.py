"""Mend the finished, otherwise unreadable JSON body of a call.

Every repair has a name; none changes the inside of a string. Knows the call in progress and the reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agentkit.formats.call import Call
from agentkit.formats.literals import DOUBLY_ENCODED, Literals, NotALiteral, mend
from agentkit.formats.reader import Decline, Reader, pattern
from agentkit.formats.spec import Envelope, KeyEnvelope
from agentkit.formats.values import load, without_surrogates


@dataclass(frozen=True, slots=True)
class Mended:
    """A damaged call that can be read: its arguments, the repairs that it took, and where in its text it ends."""

    arguments: dict[str, Any]
    repairs: tuple[str, ...]
    end: int


def mend_call(r: Reader, call: Call, raw: str) -> Mended | None:
    """Read a damaged call; None where the permitted repairs do not suffice.

    Says that the call has begun where that was not yet known.

    Args:
        r: the parser, which says what may be mended.
        call: the call; its `body` tells where its JSON starts.
        raw: the call's whole text, its closing literal included.
    """
    if call.body < 0 or not r.repairs:
        return None
    start = call.body - r.mark
    found = _mended_body(call, raw, start, r.repairs, ended=r.ended and r.at >= len(r.buf))
    if found is None:
        return None
    value, repairs, end = found
    arguments = _arguments(r, call, without_surrogates(value))
    if isinstance(arguments, str) and DOUBLY_ENCODED in r.repairs:
        try:
            arguments, repairs = load(arguments), (*repairs, DOUBLY_ENCODED)
        except ValueError:
            return None
    return Mended(arguments, repairs, end) if isinstance(arguments, dict) else None


def _mended_body(
    call: Call, raw: str, start: int, allowed: frozenset[str], *, ended: bool
) -> tuple[Any, tuple[str, ...], int] | None:
    """The body that starts at `start`, the repairs, and where in `raw` the call ends; None where it cannot be told.

    The closing literal tells that the body is whole. Where a format has none, or it was forgotten before the next call,
    only a body whose own brackets are balanced is. What is damaged and not closed where the text `ended` was cut off.
    """
    last = call.shape.call[-1]
    closing = pattern(last.strip()) if isinstance(last, str) and last.strip() else ""
    if closing and (found := re.search(rf"\s*{closing}\s*\Z", raw[start:])):
        mended = mend(raw[start : start + found.start()], allowed)
        return (*mended, len(raw)) if mended else None
    reader = Literals(raw, start)
    try:
        value = reader.value()
    except (NotALiteral, RecursionError):
        return None
    rest = raw[reader.at :]
    if (closing and (ended or rest.strip())) or not allowed.issuperset(reader.repairs):
        return None
    return value, tuple(reader.repairs), reader.at


def _arguments(r: Reader, call: Call, value: Any) -> Any:
    """The arguments in a body that has been read; None where it is none of this call's."""
    part = next((p for p in call.shape.call if isinstance(p, Envelope | KeyEnvelope)), None)
    if part is None:  # a body behind the name; also one that stands where parameters between tags may
        return value
    if not isinstance(value, dict):
        return None
    if isinstance(part, KeyEnvelope):
        name, arguments = next(iter(value.items()), ("", None)) if len(value) == 1 else ("", None)
    else:
        name = value.get(part.name)
        arguments = next((value[key] for key in part.arguments if key in value), {})
    if not isinstance(name, str) or not name or (call.started and name != call.name):
        return None
    if not call.started:
        try:
            call.begin(r, name)
        except Decline:
            return None
    return arguments
