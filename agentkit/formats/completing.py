"""Repair the finished, otherwise unreadable JSON body of a call.

Every repair has a name; no repair changes the inside of a string. Knows the call in progress and the reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from agentkit.formats.call import CallReader
from agentkit.formats.format import Envelope, KeyEnvelope
from agentkit.formats.jsontext import GOES_ON
from agentkit.formats.otherkeys import (
    BESIDE,
    NESTED,
    NoReading,
    arguments_elsewhere,
    beside,
    describes,
    either,
    id_of,
)
from agentkit.formats.reader import Damage, Decline, Reader, pattern
from agentkit.schemas.typed.literals import Literals, repaired
from agentkit.schemas.typed.repairs import DOUBLY_ENCODED
from agentkit.schemas.typed.stringliterals import NotALiteral
from agentkit.schemas.typed.values import load
from agentkit.unicode import without_surrogates


@dataclass(frozen=True, slots=True)
class Repaired:
    """A damaged call that can be read: its arguments, the repairs that it took, and where in its text it ends."""

    arguments: dict[str, Any]
    repairs: tuple[str, ...]
    end: int


def repaired_call(r: Reader, call: CallReader, raw: str) -> Repaired | None:
    """Read a damaged call; None if the permitted repairs are not enough.

    Reports that the call has started, if that was not yet known.

    Args:
        r: the parser, which defines what may be repaired.
        call: the call; its `body` is where its JSON starts.
        raw: the call's whole text, its closing literal included.
    """
    if call.arguments.body < 0 or not r.repairs:
        return None
    start = call.arguments.body - r.mark
    found = _repaired_body(call, raw, start, r.repairs, ended=r.ended and r.at >= len(r.buf))
    if found is None:
        return None
    value, repairs, end = found
    arguments, more = _arguments(r, call, without_surrogates(value))
    repairs = (*repairs, *more)
    if isinstance(arguments, str) and DOUBLY_ENCODED in r.repairs:
        try:
            arguments, repairs = load(arguments), (*repairs, DOUBLY_ENCODED)
        except ValueError:
            return None
    if not isinstance(arguments, dict):
        return None
    return Repaired(arguments, repairs, end)


def _repaired_body(
    call: CallReader, raw: str, start: int, allowed: frozenset[str], *, ended: bool
) -> tuple[Any, tuple[str, ...], int] | None:
    """The body that starts at `start`, the repairs, and where in `raw` the call ends; None if that is ambiguous.

    The closing literal shows that the body is whole. If a format has none, or it was forgotten before the next call,
    only a body whose own brackets are balanced is whole. A damaged body that is not closed when the text `ended` was
    cut off.
    """
    last = call.shape.call[-1]
    closing = pattern(last.strip()) if isinstance(last, str) and last.strip() else ""
    body = raw[start:].rstrip()
    if closing and (found := re.search(rf"{closing}\Z", body)):
        read = repaired(body[: found.start()].rstrip(), allowed)
        return (*read, len(raw)) if read else None
    reader = Literals(raw, start)
    try:
        value = reader.value()
    except (NotALiteral, RecursionError):
        return None
    rest = raw[reader.at :]
    if (closing and (ended or rest.strip())) or GOES_ON.match(rest) or not allowed.issuperset(reader.repairs):
        return None
    return value, tuple(reader.repairs), reader.at


_NONE: Final[tuple[Any, tuple[str, ...]]] = (None, ())


def _arguments(r: Reader, call: CallReader, value: Any) -> tuple[Any, tuple[str, ...]]:
    """The arguments in a body that has been read, and the repairs it took; None if it is not a body of this call."""
    part = next((p for p in call.shape.call if isinstance(p, Envelope | KeyEnvelope)), None)
    if part is None:  # a body after the name; also one in the place of parameters between tags
        return value, ()
    if not isinstance(value, dict):
        return _NONE
    if isinstance(part, KeyEnvelope):
        name, arguments = next(iter(value.items()), ("", None)) if len(value) == 1 else ("", None)
        more: tuple[str, ...] = ()
    else:
        name, arguments, more = _enveloped(call, part, value)
    if not isinstance(name, str) or not name or (call.started and name != call.name) or not r.repairs.issuperset(more):
        return _NONE
    if not call.started:
        try:
            call.begin(r, name)
        except (Decline, Damage):
            return _NONE
    return arguments, more


def _enveloped(call: CallReader, part: Envelope, value: dict[str, Any]) -> tuple[Any, Any, tuple[str, ...]]:
    """The name and the arguments in an envelope, and the repairs that it took; no name if it is not a call."""
    inner = next((value[key] for key in NESTED if isinstance(value.get(key), dict)), None)
    if inner is not None and part.name not in value:
        value = {**{key: v for key, v in value.items() if key not in NESTED}, **inner}
    name = value.get(part.name)
    tool = call.tools.get(name) if isinstance(name, str) else None
    key = next((key for key in part.arguments if key in value), None)
    call.id = call.id or id_of(value)
    others = {k: v for k, v in value.items() if k not in (part.name, *part.arguments, *BESIDE)}
    given = value.get(key) if key is not None else None
    if describes(tool, others, given) or (key is not None and (either(tool, given, value) or beside(tool, others))):
        return "", None, ()
    if key is not None or not others:
        return name, value[key] if key is not None else {}, ()
    try:
        return name, *arguments_elsewhere(tool, others)
    except NoReading:
        return "", None, ()
