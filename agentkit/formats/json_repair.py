"""Repair the finished, otherwise unreadable JSON body of a call.

Every repair has a name; no repair changes the inside of a string. Knows the call in progress and the reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agentkit.checks.unicode import without_surrogates
from agentkit.formats import otherkeys
from agentkit.formats.call import CallReader
from agentkit.formats.format import Envelope, KeyEnvelope
from agentkit.formats.jsontext import GOES_ON
from agentkit.formats.reader import Damage, Decline, Reader, pattern
from agentkit.schemas.typed.literals import Literals
from agentkit.schemas.typed.repairs import DOUBLY_ENCODED
from agentkit.schemas.typed.values import load


@dataclass(frozen=True, slots=True)
class RepairedCall:
    """A damaged call that can be read: its arguments, the repairs that it took, and where in its text it ends."""

    arguments: dict[str, Any]
    repairs: tuple[str, ...]
    end: int


def repaired_call(r: Reader, call: CallReader, raw: str) -> RepairedCall | None:
    """Read a damaged call; None if the permitted repairs are not enough.

    Reports that the call has started, if that was not yet known.

    Args:
        r: the parser, which has the permitted repairs.
        call: the call; its `body` is where its JSON starts.
        raw: the call's whole text, its closing literal included.
    """
    if call.arguments.body < 0 or not r.repairs:
        return None
    try:
        value, repairs, end = _body(call, raw, call.arguments.body - r.mark, ended=r.ended and r.at >= len(r.buf))
        name, arguments, more = _name_and_arguments(call, value)
        if isinstance(arguments, str):
            arguments, more = load(arguments), (*more, DOUBLY_ENCODED)
    except (ValueError, RecursionError):
        return None
    repairs = (*repairs, *more)
    if not isinstance(name, str) or not isinstance(arguments, dict) or not r.repairs.issuperset(repairs):
        return None
    if not name or (call.started and name != call.name):
        return None
    if not call.started:
        try:
            call.begin(r, name)
        except (Decline, Damage):
            return None
    return RepairedCall(arguments, repairs, end)


def _body(call: CallReader, raw: str, start: int, *, ended: bool) -> tuple[Any, tuple[str, ...], int]:
    """Return the body that starts at `start`, the repairs, and the call's end in `raw`.

    The closing literal shows that the body is whole. If a format has none, or it was forgotten before the next call,
    only a body whose own brackets are balanced is whole. A damaged body that is not closed when the text `ended` was
    cut off.

    Raises:
        ValueError: it is not a value, or it is ambiguous where it ends.
    """
    last = call.shape.call[-1]
    closing = pattern(last.strip()) if isinstance(last, str) and last.strip() else ""
    closed = re.compile(rf"{closing}\s*\Z").search(raw, start) if closing else None
    reader = Literals(raw[: closed.start()] if closed else raw, start)
    value = reader.value()
    rest = reader.text[reader.at :]
    if rest.strip() if closed else (closing and (ended or rest.strip())) or GOES_ON.match(rest):
        raise reader.bad("the end of the call")
    return without_surrogates(value), tuple(reader.repairs), len(raw) if closed else reader.at


def _name_and_arguments(call: CallReader, value: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the name and the arguments in a body that has been read, and the repairs that it took.

    Raises:
        ValueError: it is not a body of this call.
    """
    part = next((p for p in call.shape.call if isinstance(p, Envelope | KeyEnvelope)), None)
    if part is None:  # a body after the name; also one in the place of parameters between tags
        return call.name, value, ()
    if not isinstance(value, dict):
        raise otherkeys.NoReading("invalid_json", "expected an object")
    if isinstance(part, Envelope):
        return _from_envelope(call, part, value)
    ((name, arguments),) = value.items()
    return name, arguments, ()


def _from_envelope(call: CallReader, part: Envelope, value: dict[str, Any]) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the name and the arguments in an envelope, and the repairs that it took.

    Raises:
        NoReading: it is not a call, or the arguments can be read in more than one way.
    """
    inner = next((value[key] for key in otherkeys.NESTED if isinstance(value.get(key), dict)), None)
    if inner is not None and part.name not in value:
        value = {**{key: v for key, v in value.items() if key not in otherkeys.NESTED}, **inner}
    name = value.get(part.name)
    tool = call.tools.get(name) if isinstance(name, str) else None
    key = next((key for key in part.arguments if key in value), None)
    arguments = value.get(key) if key is not None else None
    others = {k: v for k, v in value.items() if k not in (part.name, *part.arguments, *otherkeys.CALL_KEYS)}
    call.id = call.id or otherkeys.id_of(value)
    if otherkeys.describes(tool, others, arguments) or (
        key is not None and (otherkeys.ambiguous_key(tool, arguments, value) or otherkeys.extra_arguments(tool, others))
    ):
        raise otherkeys.NoReading("ambiguous_call", "expected one reading")
    if key is None and others:
        return name, *otherkeys.arguments_elsewhere(tool, others)
    return name, arguments if key is not None else {}, ()
