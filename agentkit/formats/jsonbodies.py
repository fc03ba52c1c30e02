"""The JSON bodies: arguments behind a name, an envelope that holds both, and an envelope whose key is the name.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from agentkit.events import ArgumentDelta
from agentkit.formats import jsontext, values
from agentkit.formats.call import Call
from agentkit.formats.literals import DOUBLY_ENCODED, RAW_NEWLINES
from agentkit.formats.reader import Damage, Decline, Reader, Wait
from agentkit.formats.spec import Envelope, Json, KeyEnvelope


def read_json(r: Reader, call: Call, part: Json) -> Wait:
    """The arguments as one JSON object; none at all where what follows stands there already."""
    yield from r.space()
    call.body = r.offset
    if not (yield from r.have(1)):
        raise Damage("truncated_call", f"the text ended before the arguments of {call.name!r}", r.offset, ended=True)
    if r.buf[r.at] in '{["':
        span = yield from jsontext.scan(r, call.index)
        call.arguments = take_arguments(r, call, span)
    elif r.buf[r.at].isalnum():
        raise Damage("invalid_json", "expected '{'", r.offset, got=True)
    call.complete = True


def read_key_envelope(r: Reader, call: Call, part: KeyEnvelope) -> Wait:
    """One JSON object whose one key is the tool's name."""
    yield from r.space()
    if not r.buf.startswith("{", r.at):
        raise Decline
    call.body = r.offset
    r.at += 1
    if not (yield from _another_key(r, first=True)):
        raise Damage("invalid_json", "expected the tool's name as the object's key", r.offset)
    name = (yield from jsontext.scan(r)).read(r)
    yield from _expect_colon(r)
    call.begin(r, name)
    call.arguments = take_arguments(r, call, (yield from jsontext.scan(r, call.index)))
    if (yield from _another_key(r, first=False)):
        raise Damage("invalid_json", "expected '}' behind the arguments", r.offset)
    call.complete = True


_OTHER_KEYS = ("type", "id", "index")
"""Keys that stand beside name and arguments; any other one tells that an object in prose is no call."""


def read_envelope(r: Reader, call: Call, part: Envelope) -> Wait:
    """One JSON object with the name and the arguments among its keys, in any order."""
    yield from r.space()
    if r.buf[r.at : r.at + 1] != "{":
        raise Decline
    call.body = r.offset
    r.at += 1
    arguments: jsontext.Span | None = None
    first = True
    while (yield from _another_key(r, first=first)):
        first = False
        key = (yield from jsontext.scan(r)).read(r)
        if call.known_only and not call.started and key not in (part.name, *part.arguments, *_OTHER_KEYS):
            raise Decline
        yield from _expect_colon(r)
        known = arguments is not None if key in part.arguments else call.started and key == part.name
        if key in part.arguments and not known:
            arguments = yield from jsontext.scan(r, call.index if call.started else None)
        elif key == part.name and not known:
            _begin_named(r, call, (yield from jsontext.scan(r)), arguments)
        else:
            again = yield from jsontext.scan(r)
            if known:
                _only_once(r, call, key, again, arguments if key in part.arguments else None)
    if not call.started:
        raise Damage("invalid_json", f"the call's JSON has no {part.name!r}", r.offset)
    call.arguments = take_arguments(r, call, arguments)
    call.complete = True


def _only_once(r: Reader, call: Call, key: str, again: jsontext.Span, arguments: jsontext.Span | None) -> None:
    """A second name or second arguments must be the same as the first."""
    given = arguments.read(r) if arguments is not None else call.name
    try:
        values.refuse_other({key: given}, key, again.read(r))
    except values.GivenTwice as e:
        raise Damage("ambiguous_call", str(e), again.start) from e


def _another_key(r: Reader, *, first: bool) -> Generator[None, None, bool]:
    yield from r.space()
    if not (yield from r.have(1)):
        raise Damage("truncated_call", "the text ended inside the JSON", r.offset, ended=True)
    c = r.buf[r.at]
    if c == "}":
        r.at += 1
        return False
    if not first:
        if c != ",":
            raise Damage("invalid_json", "expected ',' or '}'", r.offset, got=True)
        r.at += 1
        yield from r.space()
        if not (yield from r.have(1)):
            raise Damage("truncated_call", "the text ended inside the JSON", r.offset, ended=True)
        c = r.buf[r.at]
    if c != '"':
        raise Damage("invalid_json", "expected a key in double quotes", r.offset, got=True)
    return True


def _expect_colon(r: Reader) -> Wait:
    yield from r.space()
    if not (yield from r.have(1)):
        raise Damage("truncated_call", "the text ended inside the JSON", r.offset, ended=True)
    if r.buf[r.at] != ":":
        raise Damage("invalid_json", "expected ':'", r.offset, got=True)
    r.at += 1


def _begin_named(r: Reader, call: Call, span: jsontext.Span, arguments: jsontext.Span | None) -> None:
    name = span.read(r)
    if not isinstance(name, str) or not name:
        raise Damage("invalid_json", f"the call's name must be a string, got {values.dump(name)[:40]}", span.start)
    call.begin(r, name)
    if arguments is not None:
        text = r.raw()[arguments.start - r.mark : arguments.end - r.mark]
        r.out.append(ArgumentDelta(call.index, text))


def take_arguments(r: Reader, call: Call, span: jsontext.Span | None) -> dict[str, Any]:
    """The arguments of a call from the JSON value that holds them; none at all where there is no value."""
    value = span.read(r) if span is not None else {}
    if span is not None and span.loose:
        call.repairs.append(RAW_NEWLINES)
    if isinstance(value, str):
        try:
            value = values.load(value)
            call.repairs.append(DOUBLY_ENCODED)
        except ValueError:
            pass
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Damage(
            "invalid_arguments",
            f"the arguments of {call.name!r} must be a JSON object, got {values.dump(value)[:40]}",
            span.start if span else r.offset,
        )
    return value
