"""The JSON bodies: arguments after a name, an envelope with both, and an envelope whose key is the name.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, Final

from agentkit.checks.unicode import without_surrogates
from agentkit.events import ArgumentDelta
from agentkit.formats import jsontext, otherkeys
from agentkit.formats.bodies.fixed_parts import missing_error
from agentkit.formats.call import CallReader
from agentkit.formats.edges import marked
from agentkit.formats.format import Envelope, Json, KeyEnvelope
from agentkit.formats.kind import IN_JSON_STRINGS, PartKind, Writing
from agentkit.formats.otherkeys import CALL_KEYS
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Wait, literal
from agentkit.schemas.typed import values
from agentkit.schemas.typed.repairs import DOUBLY_ENCODED, RAW_NEWLINES

_FENCE: Final = Delimiter(r"`{3,16}[ \t]{0,8}(?:json\w{0,8})?\s{0,64}(?=[{\[])", r"`{0,16}[ \t]{0,8}\w{0,12}\s{0,64}")


def _fence(r: Reader, call: CallReader) -> Generator[None, None, str]:
    """Consume the code fence that models put around JSON in the format's own markup; returns its backticks."""
    yield from r.space()
    if call.known_only or not r.buf.startswith("`", r.at) or (found := (yield from r.sees(_FENCE))) is None:
        return ""
    r.at = found.end()
    return "`" * found[0].count("`")


def _fence_end(r: Reader, ticks: str) -> Wait:
    """Consume the fence's end, with no more backticks than opened it: others may be the format's own."""
    yield from r.space()
    if found := (yield from r.sees(literal(ticks))):
        r.at = found.end()


def read_json(r: Reader, call: CallReader, part: Json) -> Wait:
    """Read the arguments as one JSON object; no arguments if the call's end is already here."""
    fence = yield from _fence(r, call)
    call.arguments.body = r.offset
    if not (yield from r.have(1)):
        raise missing_error(r, f"the arguments of {call.name!r}")
    last, properties = call.part == len(call.shape.call) - 1, call.tool and call.tool.parameters.get("properties")
    if r.buf[r.at] not in '{["':
        if last or properties or r.buf[r.at].isalnum():  # only the call's end shows that it has none
            raise missing_error(r, f"the arguments of {call.name!r} as JSON, {{}} for none")
        return  # before another call it was broken off
    call.arguments.by_name = take_arguments(r, call, (yield from jsontext.scan(r, call.index)))
    if fence:
        yield from _fence_end(r, fence)
    elif last and not (yield from r.follows(jsontext.AFTER_BRACE)):
        raise Damage("invalid_arguments", "expected the arguments to end at their closing brace", r.offset, got=True)
    call.complete = True


def read_key_envelope(r: Reader, call: CallReader, part: KeyEnvelope) -> Wait:
    """Read one JSON object whose only key is the tool's name."""
    yield from r.space()
    if not r.buf.startswith("{", r.at):
        raise Decline
    call.arguments.body = r.offset
    r.at += 1
    if (name := (yield from _key(r, first=True))) is None:
        raise Damage("invalid_json", "expected the tool's name as the object's key", r.offset)
    call.begin(r, name)
    call.arguments.by_name = take_arguments(r, call, (yield from jsontext.scan(r, call.index)))
    if (yield from _another_key(r, first=False)):
        raise Damage("invalid_json", "expected '}' after the arguments", r.offset)
    call.complete = True


_DESCRIBES: Final = ("description", "strict", "parameters", "inputSchema", "input_schema")
_OF_SCHEMA = Delimiter(
    r'\{\s{0,64}"(?:type|properties|required|\$schema|\$defs|title|description)"', r'\{?\s{0,64}(?:"[$\w]{0,12}"?)?'
)


class _Envelope:
    """One envelope while it is read: the value of each key."""

    __slots__ = ("arguments", "call", "name", "others", "part", "r")

    def __init__(self, r: Reader, call: CallReader, part: Envelope) -> None:
        self.r, self.call, self.part = r, call, part
        self.name: str | None = None
        self.arguments: jsontext.Span | None = None
        self.others: dict[str, jsontext.Span] = {}

    def read(self) -> Wait:
        """Read the object's keys in any order, up to and including its closing brace."""
        r, first = self.r, True
        r.at += 1
        while (key := _arrived_key(r, first=first) or (yield from _key(r, first=first))) is not None:
            first = False
            if key in self.part.arguments:
                yield from self.read_arguments(key)
            elif key == self.part.name:
                self.take_name((yield from jsontext.scan(r)))
            else:
                yield from self.read_other(key)

    def take_name(self, span: jsontext.Span) -> None:
        name = span.read(self.r)
        if not isinstance(name, str) or not name:
            shown = values.dump(without_surrogates(name))[:40]
            raise Damage("invalid_json", f"the call's name must be a string, got {shown}", span.start)
        if self.name is not None:
            raise Damage("ambiguous_call", f"{self.part.name!r} is given twice", span.start)
        self.name = name
        if not self.call.known_only:
            _begin_named(self.r, self.call, name, self.arguments)
        elif not self.call.knows(name):
            raise Decline
        elif self.arguments is not None:
            self.begin()

    def read_arguments(self, key: str) -> Wait:
        r, call = self.r, self.call
        if self.arguments is not None:
            raise Damage("ambiguous_call", f"{key!r} is given twice", r.offset)
        if self.name is not None and not call.started and not (yield from self.may_describe()):
            self.begin()
        self.arguments = yield from jsontext.scan(r, call.index if call.started else None)
        if self.name is not None and not call.started:
            self.begin()

    def may_describe(self) -> Generator[None, None, bool]:
        """Return True if the text here may be a schema, or earlier keys describe the tool: more text must decide."""
        yield from self.r.space()
        if not self.others.keys().isdisjoint(_DESCRIBES):
            return True
        return (yield from self.r.sees(_OF_SCHEMA)) is not None

    def read_other(self, key: str) -> Wait:
        if self.call.known_only and not self.call.started and self.name is None and key not in CALL_KEYS:
            raise Decline  # before its value is read: otherwise each of several nested braces would read all inside
        self.others.setdefault(key, (yield from jsontext.scan(self.r)))

    def begin(self) -> None:
        """Begin the call, unless its keys, which are read by now, describe the tool."""
        if self.describes():
            raise Decline
        _begin_named(self.r, self.call, self.name or "", self.arguments)

    def describes(self) -> bool:
        """Return True if this describes a tool rather than calls it."""
        value = self.arguments.read(self.r) if self.arguments is not None else None
        if not self.others and not (isinstance(value, dict) and "type" in value):
            return False
        tool, prose = self.call.tools.get(self.name or ""), self.call.known_only
        if otherkeys.describes(tool, self.others, value, prose=prose):
            return True
        if self.arguments is not None or "description" not in self.others or marked(self.call.shape):
            return False
        return otherkeys.only_describes(tool, {key: span.read(self.r) for key, span in self.others.items()})

    def done(self) -> dict[str, Any]:
        """Return the arguments, regardless of their place."""
        r, call = self.r, self.call
        if self.name is None:
            raise Damage("invalid_json", f"the call's JSON has no {self.part.name!r}", r.offset)
        if self.describes():
            raise Decline if not call.started else Damage("invalid_arguments", _DESCRIPTION.format(self.name), r.offset)
        if not marked(call.shape) and self.only_names():
            if not call.started:
                call.begin(r, self.name)
            raise Damage("invalid_arguments", _NO_ARGUMENTS.format(self.name, self.part.arguments[0]), r.offset)
        if self.others:
            fields = {key: span.read(r) for key, span in self.others.items()}
            if self.arguments is None:
                return self.elsewhere(self.name, fields)
            self.refuse_either(self.name, fields)
            call.id = call.id or otherkeys.id_of(fields)
            for key in CALL_KEYS:
                fields.pop(key, None)
            if extra := otherkeys.extra_arguments(call.tools.get(self.name), fields):
                shown = ", ".join(map(repr, extra))[:200]
                where = f"expected all arguments of {self.name!r} under {self.part.arguments[0]!r}"
                raise Damage("invalid_arguments", f"{where}; {shown} found next to them", r.offset)
        if not call.started:
            call.begin(r, self.name)
        return take_arguments(r, call, self.arguments)

    def only_names(self) -> bool:
        """Return True if no key may hold arguments: then only the text around it shows that it is a call."""
        if self.arguments is not None:
            return self.arguments.read(self.r) is None
        fields = {key: span.read(self.r) for key, span in self.others.items()}
        return otherkeys.only_names(self.call.tools.get(self.name or ""), fields)

    def refuse_either(self, name: str, fields: dict[str, Any]) -> None:
        """Refuse a key that may belong to the call or be its argument, if there are no other arguments."""
        arguments = self.arguments.read(self.r) if self.arguments is not None else None
        if key := otherkeys.ambiguous_key(self.call.tools.get(name), arguments, fields):
            where = f"put it under {self.part.arguments[0]!r} if it is an argument"
            raise Damage("ambiguous_call", f"{key!r} may belong to the call, or be an argument; {where}", self.r.offset)

    def elsewhere(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of an envelope that has none under its format's key, if there is only one reading."""
        r, call = self.r, self.call
        try:
            found, repairs = otherkeys.arguments_elsewhere(call.tools.get(name), fields)
            if not r.repairs.issuperset(repairs):
                raise otherkeys.NoReading("invalid_arguments", f"got {', '.join(map(repr, fields))[:200]}")
        except otherkeys.NoReading as e:
            if not call.started:
                raise Decline from e
            wanted = f"expected the arguments of {name!r} under {self.part.arguments[0]!r}; {e}"
            raise Damage(e.code, wanted, r.offset) from e
        if not call.started:
            call.begin(r, name)
        call.arguments.repairs.extend(repairs)
        call.id = call.id or otherkeys.id_of({k: v for k, v in fields.items() if k not in found})
        return found


_NO_ARGUMENTS: Final = "{0!r} is named here without arguments: to call it, write them under {1!r}, {{}} for none"
_DESCRIPTION: Final = "this describes the tool {0!r} and does not call it; to call it, pass values for its parameters"


def read_envelope(r: Reader, call: CallReader, part: Envelope) -> Wait:
    """Read one JSON object with the name and the arguments among its keys, in any order.

    If it is common in prose, it is a call only from its arguments onward: before them, it may describe the tool.
    """
    fence = yield from _fence(r, call)
    if not r.buf.startswith("{", r.at):
        raise Decline
    call.arguments.body = r.offset
    envelope = _Envelope(r, call, part)
    yield from envelope.read()
    call.arguments.by_name = envelope.done()
    if fence:
        yield from _fence_end(r, fence)
    call.complete = True


_FIRST_KEY = re.compile(r'\s*+"([ !#-\[\]-~]+)"\s*+:').match
_NEXT_KEY = re.compile(r'\s*+,\s*+"([ !#-\[\]-~]+)"\s*+:').match


def _arrived_key(r: Reader, *, first: bool) -> str | None:
    """Return the next key, its colon consumed, without waiting, if both have arrived and are plain."""
    if (found := (_FIRST_KEY if first else _NEXT_KEY)(r.buf, r.at)) is None:
        return None
    r.at = found.end()
    return found[1]


def _key(r: Reader, *, first: bool) -> Generator[None, None, str | None]:
    """Return the next key of an object, its colon consumed; None after the closing brace."""
    if not (yield from _another_key(r, first=first)):
        return None
    key: str = (yield from jsontext.scan(r)).read(r)
    yield from _expect_colon(r)
    return key


def _another_key(r: Reader, *, first: bool) -> Generator[None, None, bool]:
    """Return True if one more key is here; consumes the comma before it, or the closing brace."""
    if (c := (yield from _next(r))) == "}":
        r.at += 1
        return False
    if not first:
        if c != ",":
            raise missing_error(r, "',' or '}'")
        r.at += 1
        c = yield from _next(r)
    if c != '"':
        raise missing_error(r, "a key in double quotes")
    return True


def _expect_colon(r: Reader) -> Wait:
    if (yield from _next(r)) != ":":
        raise missing_error(r, "':'")
    r.at += 1


def _next(r: Reader) -> Generator[None, None, str]:
    """Return the next character after white space, which is consumed."""
    yield from r.space()
    yield from r.more()
    return r.buf[r.at : r.at + 1]


def _begin_named(r: Reader, call: CallReader, name: str, arguments: jsontext.Span | None) -> None:
    call.begin(r, name)
    if arguments is not None:
        r.out.append(ArgumentDelta(call.index, r.text(arguments.start, arguments.end)))


def take_arguments(r: Reader, call: CallReader, span: jsontext.Span | None) -> dict[str, Any]:
    """Return the arguments of a call from the JSON value that contains them; no arguments without a value."""
    value = span.read(r) if span is not None else {}
    if span is not None and span.loose:
        call.arguments.repairs.append(RAW_NEWLINES)
    if isinstance(value, str):
        try:
            value = values.load(value)
            call.arguments.repairs.append(DOUBLY_ENCODED)
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


# ---------------------------------------------------------------- written


def write_json(w: Writing, part: Json) -> str:
    """Write the arguments."""
    return values.dump(dict(w.call.arguments))


def write_envelope(w: Writing, part: Envelope) -> str:
    """Write the name and the arguments, in this order and without other keys."""
    return values.dump({part.name: w.call.name, part.arguments[0]: dict(w.call.arguments)})


def write_key_envelope(w: Writing, part: KeyEnvelope) -> str:
    """Write the name as the key, the arguments as its value."""
    return values.dump({w.call.name: dict(w.call.arguments)})


_ONE_OBJECT: Final = (
    "Each call is one JSON object with the tool's name and its arguments; nothing but JSON stands inside a call."
)
KINDS = (
    PartKind(
        Json,
        read_json,
        write_json,
        taught=("The arguments are one JSON object; nothing but JSON stands there.", IN_JSON_STRINGS),
    ),
    PartKind(
        Envelope,
        read_envelope,
        write_envelope,
        taught=(_ONE_OBJECT, IN_JSON_STRINGS),
    ),
    PartKind(
        KeyEnvelope,
        read_key_envelope,
        write_key_envelope,
        taught=(
            "Each call is one JSON object whose only key is the tool's name and whose value holds the arguments.",
            IN_JSON_STRINGS,
        ),
    ),
)
