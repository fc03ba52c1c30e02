"""Mend the finished, otherwise unreadable JSON body of a call.

Every repair has a name; none changes the inside of a string. Knows the call in progress and the reader.
"""

from __future__ import annotations

import re
from typing import Any

from agentkit.formats.call import Call
from agentkit.formats.literals import DOUBLY_ENCODED, mend
from agentkit.formats.reader import Decline, Reader, pattern
from agentkit.formats.spec import Envelope, Json, KeyEnvelope
from agentkit.formats.values import load, without_surrogates


def mend_call(r: Reader, call: Call, raw: str) -> tuple[dict[str, Any], tuple[str, ...]] | None:
    """The arguments of a damaged call, and what had to be mended to read them; None where nothing permitted suffices.

    Says that the call has begun where that was not yet known.

    Args:
        r: the parser, which says what may be mended.
        call: the call; its `body` tells where its JSON starts.
        raw: the call's whole text, its closing literal included.
    """
    allowed = r.repairs
    if call.body < 0 or not allowed:
        return None
    body = raw[call.body - r.mark :]
    last = call.shape.call[-1]
    closing = pattern(last.strip()) if isinstance(last, str) and last.strip() else "(?!)"
    if (found := re.search(rf"\s*{closing}\s*\Z", body)) is None:
        return None  # nothing tells that the body is whole
    mended = mend(body[: found.start()], allowed)
    if mended is None:
        return None
    value, repairs = mended
    arguments = _arguments(r, call, without_surrogates(value))
    if isinstance(arguments, str) and DOUBLY_ENCODED in allowed:
        try:
            arguments, repairs = load(arguments), (*repairs, DOUBLY_ENCODED)
        except ValueError:
            return None
    return (arguments, repairs) if isinstance(arguments, dict) else None


def _arguments(r: Reader, call: Call, value: Any) -> Any:
    """The arguments in a body that has been read; None where it is none of this call's."""
    part = next(p for p in call.shape.call if isinstance(p, Envelope | Json | KeyEnvelope))
    if isinstance(part, Json):
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
