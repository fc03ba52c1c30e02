"""Whole calls that are plainly written, each read in one step: from its opening to its end, without waiting.

Most calls of a whole text are written as their format prescribes: one pattern matches all parts up to the body, the C
decoder or one pattern for each value reads the body, and a pattern matches the rest. Nothing is decided here. A call
that is not complete, whose end is not certain yet, or that is written in any other way, is left to its parts, which
read a plain call in the same way. The tests compare the two for every format: a text that arrives by the character is
never read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentkit.checks.tool_names import intended_tool
from agentkit.events import ArgumentDelta
from agentkit.formats import jsontext
from agentkit.formats.atoms import exact
from agentkit.formats.bodies.fixed_parts import skips
from agentkit.formats.callarguments import CallArguments
from agentkit.formats.format import (
    CallBody,
    CallId,
    CountedName,
    Envelope,
    FormatPart,
    Json,
    KeyEnvelope,
    Name,
    NameTag,
    Pairs,
    Shape,
    Skip,
    Tag,
    TagParameters,
    edge,
)
from agentkit.formats.jsontext import AFTER_BRACE
from agentkit.formats.openers import Opener, Openers
from agentkit.formats.reader import Damage, Reader
from agentkit.formats.valueends import end_of_value
from agentkit.toolspec import ToolSpec

_new = tuple.__new__
_LONGEST: Final = 128  # characters of a name; a parser with a lower limit reads every call by its parts
_NAME: Final = rf"[A-Za-z0-9_-]{{1,{_LONGEST}}}+"
_KEY: Final = rf"[A-Za-z0-9_.-]{{1,{_LONGEST}}}+"
_SPACE: Final = r"\s{0,512}+"  # less than any step skips
_ENDS: Final = r"(?=\s{0,64}+[^\s\w.:-])"  # after a name, perhaps with white space before its end
_SHORTEST: Final = 16  # characters that a call has at least; fewer are the beginning of one


class NotPlain(Exception):
    """Calls of this shape are not read in one step."""


class PlainCall:
    """A plain call: its name and id, its tool, where it starts and ends in the buffer, its arguments and their events.

    `start` is after the opening of a section, if that is here.
    """

    __slots__ = ("arguments", "deltas", "end", "id", "index", "name", "opener", "repairs", "start", "tool")

    def __init__(self, opener: Opener, index: int, head: re.Match[str], tool: ToolSpec | None) -> None:
        self.opener, self.index, self.start, self.tool = opener, index, head.end(1), tool
        self.name, self.id = head["name"], head["id"] or ""
        self.end = -1
        self.arguments: dict[str, Any] = {}
        self.deltas: list[ArgumentDelta] = []
        self.repairs: Sequence[str] = ()


def plain_call(r: Reader, opener: Opener, openers: Openers, index: int) -> PlainCall | None:
    """Return the call at the reader's position, with nothing consumed; None if its parts must read it.

    They must if its opening is common in prose.
    """
    if (len(r.buf) - r.at < _SHORTEST and not r.ended) or r.limits.name < _LONGEST:
        return None
    plain = openers.derive(_plain, opener) if opener.kind in ("call", "section") and not opener.weak else None
    if plain is None or (head := plain.head(r.buf, r.at)) is None:
        return None
    tools = openers.table.named
    if (tool := tools.get(head["name"])) is None and intended_tool(head["name"], tools):
        return None
    found = PlainCall(opener, index, head, tool)
    if not plain.read(r, openers, found, head.end()):
        return None
    return found if found.end - r.at <= r.limits.call and (found.end < len(r.buf) or r.ended) else None


def _plain(_: Openers, opener: Opener) -> CallPattern | None:
    """Return the patterns of a plain call that opens like this; None if it has too many forms."""
    try:
        return CallPattern(opener.shape, opener.kind)
    except NotPlain:
        return None


class CallPattern:
    """The patterns of a plain call of one shape; for an opener of a section, after the section's opening.

    `head` matches all that precedes the values of the body, `pair` one parameter if the body has any, `tail` the rest
    of the call; `read` reads the values and the rest, and returns False if they are not plain.

    Raises:
        NotPlain: a part of the shape has too many forms, or only later text ends the call.
    """

    __slots__ = ("body", "head", "pair", "read", "tail")

    def __init__(self, shape: Shape, kind: str) -> None:
        call, opening = shape.call, ""
        at = next(n for n, part in enumerate(call) if isinstance(part, CallBody))
        self.body, rest = call[at], call[at + 1 :]
        tail = "".join(_step(part, "") for part in rest)
        if isinstance(self.body, Pairs | TagParameters):
            self.read, self.pair = self._pairs, re.compile(_pair(shape, self.body)).match
        elif any(isinstance(part, Tag) for part in rest) or _opens_again(call):
            raise NotPlain
        else:
            self.read = self._object
            end = rf"(?={AFTER_BRACE.regex.pattern}|\Z)"
            tail = (tail or end) if isinstance(self.body, Json) else rf"{_SPACE}\}}{tail}"
        if kind == "section" and shape.section is not None:
            opening = f"{_step(shape.section.open, '')}{_SPACE}"
        steps = "".join(map(_step, call[: at + 1], (*call[1:], "")))
        head = f"({opening}){steps}"
        if head.count("(?P<name>") != 1 or not tail:
            raise NotPlain
        self.head = re.compile(head if "(?P<id>" in head else f"{head}(?P<id>(?!))?").match
        self.tail = re.compile(tail).match

    def _object(self, r: Reader, openers: Openers, found: PlainCall, start: int) -> bool:
        if (decoded := jsontext.decode_at(r, start)) is None:
            return False
        value, end, loose = decoded
        tail = self.tail(r.buf, end)
        if tail is None or loose or ("type" in value and isinstance(self.body, Envelope)):  # it may describe the tool
            return False
        found.end, found.arguments = tail.end(), value
        found.deltas = [_new(ArgumentDelta, (found.index, r.buf[start:end], None))]
        return found.tool is None or openers.parameter_kinds(found.tool).fits(value)

    def _pairs(self, r: Reader, openers: Openers, found: PlainCall, start: int) -> bool:
        """Read parameters whose values contain no edge."""
        assert isinstance(self.body, Pairs | TagParameters)
        arguments, kinds = CallArguments(), openers.parameter_kinds(found.tool) if found.tool is not None else None
        words = kinds.words if kinds is not None else ()
        trim = self.body.newlines == "both"
        buf, end, arguments.tool = r.buf, start, found.tool
        while value := self.pair(buf, end):
            key, kind, text = value.groups()
            end = value.end()
            if trim and text.endswith("\n"):  # it belongs to the value's end
                text = text[: -2 if text.endswith("\r\n") else -1]
            if key in arguments.by_name:
                return False
            if text:
                found.deltas.append(_new(ArgumentDelta, (found.index, text, key)))
            if kind is None and key in words:
                arguments.by_name[key] = text
                continue
            try:
                arguments.put_written(r, key, text, kind)
            except Damage:
                return False
            if kind not in ("string", "true") and text[:1] in ("{", "[") and isinstance(arguments.by_name[key], str):
                return False  # its closing may be in a string of it
        tail = self.tail(buf, end)
        if tail is None or end == start:
            return False
        found.end, found.arguments, found.repairs = tail.end(), arguments.by_name, arguments.repairs
        return kinds is None or kinds.fits(found.arguments)


def _opens_again(call: Sequence[FormatPart]) -> bool:
    """Return True if a call's end may open the next call, as a fence may."""
    first, close = call[0], call[-1]
    return isinstance(first, str) and isinstance(close, str) and first.strip().startswith(close.strip() or " ")


_WRITTEN: Final[Mapping[type, Callable[[Any], str]]] = {
    Tag: lambda part: re.escape(edge(part)),
    NameTag: lambda part: rf'{re.escape(f"<{part.name} {part.attribute}=")}"(?P<name>{_NAME})"\s*+>',
    Name: lambda part: rf"(?:{re.escape(part.prefix)})?+(?P<name>{_NAME}){_ENDS}",
    CountedName: lambda part: rf"(?P<id>(?:{re.escape(part.prefix)})?+(?P<name>{_NAME}):[0-9]{{1,6}}+){_ENDS}",
    CallId: lambda _: rf"(?P<id>{_NAME}){_ENDS}",
    Json: lambda _: r"(?=\{)",
    Envelope: lambda part: (
        rf'\{{\s*+"{re.escape(part.name)}"\s*+:\s*+"(?P<name>{_NAME})"'
        rf'\s*+,\s*+"(?:{"|".join(map(re.escape, part.arguments))})"\s*+:\s*+(?=\{{)'
    ),
    KeyEnvelope: lambda _: rf'\{{\s*+"(?P<name>{_NAME})"\s*+:\s*+(?=\{{)',
    Pairs: lambda _: "",
    TagParameters: lambda _: "",
}
"""A part, up to the values of a body, as a regular expression that matches only text that the part reads."""


def _step(part: FormatPart, following: FormatPart) -> str:
    """Return a pattern for one part, with the white space before it."""
    if isinstance(part, str):
        return rf"{_SPACE}(?>{exact(part.strip())})" if part.strip() else ""
    if isinstance(part, Skip) and isinstance(following, str) and skips(part, following.strip()):
        return re.escape(part.written).replace(re.escape("{number}"), "[0-9]{1,6}+") + r"(?=\S)"
    if (written := _WRITTEN.get(type(part))) is None:
        raise NotPlain
    return _SPACE + written(part)


def _pair(shape: Shape, part: Pairs | TagParameters) -> str:
    """Return a pattern for one parameter: its key, its kind if that is written, and its value with its white space."""
    firsts = re.escape(end_of_value(shape, part).firsts)
    kind, newline = "(?P<kind>(?!))?", r"(?:\r?\n)?+" if part.newlines != "none" else ""
    if isinstance(part, TagParameters):
        kind = rf'(?: {re.escape(part.kind)}="(?P<kind>true|false)")?+' if part.kind else kind
        opening, middle = re.escape(f"<{part.name} {part.attribute}=") + '"', f'"{kind}>'
        close = re.escape(f"</{part.name}>")
    else:
        kind = rf"(?>{exact(part.kind[0].strip())})(?P<kind>[a-z]{{1,16}}+)" if part.kind else kind
        middle = kind + _SPACE.join(map(exact, (part.kind[1] if part.kind else part.middle).split()))
        opening, close = exact(part.key.strip()), exact(part.close.strip())
    return rf"{_SPACE}{opening}(?P<key>{_KEY}){middle}{newline}(?P<value>[^{firsts}]*+)(?>{close})"
