"""Whole calls that are plainly written, each read in one step: from its opening to its end, without waiting.

Most calls of a whole text are written as their format prescribes. The steps that the parts would take for one are then
known: a pattern takes all of them up to the body, the C decoder or one pattern for each value reads the body, and a
pattern takes the rest. Nothing is decided here. A call that is not complete, whose end is not certain yet, or that is
written in any other way than the patterns say, is left to its parts, which find the same in a plain one: law 1 compares
the two for every format, as a text that arrives by the character is never read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from agentkit.checks.tool_names import meant
from agentkit.events import ArgumentDelta
from agentkit.formats import jsontext, values
from agentkit.formats.atoms import exact
from agentkit.formats.bodies.fixed import ends_of_name, skips
from agentkit.formats.call import CallReader, Lead
from agentkit.formats.edges import edge_of
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
)
from agentkit.formats.jsontext import OVER
from agentkit.formats.openers import Opener, Openers
from agentkit.formats.reader import Damage, Reader, literal
from agentkit.formats.valueends import ValueEnd, end_of_value
from agentkit.toolspec import ToolSpec

_new = tuple.__new__
_NAME: Final = r"[A-Za-z0-9_-]{1,128}+"
_KEY: Final = r"[A-Za-z0-9_.-]{1,128}+"
_SPACE: Final = r"\s{0,512}+"  # less than any step skips


class Unlike(Exception):
    """Calls of this shape are not read in one step."""


class Found:
    """A plain call: its name and id, its tool, where it starts and ends in the buffer, its arguments and their events.

    `start` is after the opening of a section, if that is here.
    """

    __slots__ = ("arguments", "deltas", "end", "id", "index", "name", "opener", "repairs", "start", "tool")

    def __init__(self, opener: Opener, index: int, head: re.Match[str], tools: Mapping[str, ToolSpec]) -> None:
        name, id_ = head.group("name", "id")
        self.opener, self.index, self.start = opener, index, head.end(1)
        self.name: str = name if name in tools else meant(name, tools) or name
        self.id: str = id_ or ""
        self.tool = tools.get(self.name)
        self.end = -1
        self.arguments: dict[str, Any] = {}
        self.deltas: list[ArgumentDelta] = []
        self.repairs: Sequence[str] = ()


_SHORTEST: Final = 16
"""Characters that a call has at least, with its opening, its name and its end; fewer are the beginning of one."""

Read = Callable[[Reader, Openers, Found, int], bool]
"""Reads a body, and all that follows it, from an index of the buffer; False if it is not plain."""


def plain_call(r: Reader, opener: Opener, openers: Openers, index: int) -> Found | None:
    """The call that opens at the reader's position, with nothing consumed; None if it is to be read by its parts."""
    if len(r.buf) - r.at < _SHORTEST and not r.ended:
        return None
    known: dict[int, tuple[Opener, PlainCall | None]] = openers.table.plain
    if (pair := known.get(id(opener))) is None:
        tells = opener.kind in ("call", "section") and not opener.weak
        pair = known[id(opener)] = (opener, _made(opener.shape, opener.kind == "section") if tells else None)
    if (plain := pair[1]) is None or (head := plain.head(r.buf, r.at)) is None:
        return None
    found = Found(opener, index, head, openers.table.named)
    if found.tool is None and meant(found.name, openers.table.named):
        return None
    if not plain.body(r, openers, found, head.end()):
        return None
    return found if found.end - r.at <= r.limits.call and len(found.name) <= r.limits.name else None


class PlainCall:
    """How a plain call of one shape is read, after the opening of a section if `section`.

    `head` matches all that precedes the values, `body` reads these, and the rest of the call.

    Raises:
        Unlike: a part of the shape has too many forms.
    """

    __slots__ = ("body", "head")

    def __init__(self, shape: Shape, *, section: bool) -> None:
        at = next((n for n, part in enumerate(shape.call) if isinstance(part, CallBody)), -1)
        body = shape.call[at]
        steps = "".join(_step(shape, n) for n in range(at))
        head = rf"({_section(shape) if section else ''}){steps}{_into(body)}"
        head += "" if "(?P<id>" in head else "(?P<id>(?!))?"
        if at < 0 or head.count("(?P<name>") != 1:
            raise Unlike
        self.head = re.compile(head).match
        self.body = _json(shape, at) if isinstance(body, Json | Envelope | KeyEnvelope) else _pairs(shape, at)


@lru_cache(256)
def _made(shape: Shape, section: bool) -> PlainCall | None:
    try:
        return PlainCall(shape, section=section)
    except Unlike:
        return None


# ---------------------------------------------------------------- before the body, and after it


def _section(shape: Shape) -> str:
    """The opening of a section, without attributes, and the white space after it."""
    edge = shape.section.open if shape.section is not None else ""
    if isinstance(edge, Tag):
        return rf"{re.escape(f'<{edge.name}>')}\s*+"
    if edge_of(edge) is not literal(edge.strip()):
        raise Unlike
    return rf"(?>{exact(edge.strip())})\s*+"


def _step(shape: Shape, n: int) -> str:
    """One part before the body, as a regular expression that matches nothing but what the part reads."""
    match shape.call[n]:
        case str(text):
            return _literal(text)
        case Name(prefix):
            return rf"\s*+{_optional(prefix)}(?P<name>{_NAME}){_ends(shape, n)}"
        case CountedName(prefix):
            return rf"\s*+(?P<id>{_optional(prefix)}(?P<name>{_NAME}):[0-9]{{1,6}}+){_ends(shape, n)}"
        case CallId():
            return rf"\s*+(?P<id>{_NAME}){_ends(shape, n)}"
        case NameTag(tag, attribute):
            return rf'\s*+{re.escape(f"<{tag} {attribute}=")}"(?P<name>{_NAME})"\s*+>'
        case Skip(written) as part if skips(part, _next(shape, n)):
            return (
                re.escape(written).replace(re.escape("{number}"), "[0-9]{1,6}+") + f"(?={re.escape(_next(shape, n))})"
            )
    raise Unlike


def _literal(text: str) -> str:
    return rf"\s*+(?>{exact(text.strip())})" if text.strip() else ""


def _optional(prefix: str) -> str:
    return f"(?:{re.escape(prefix)})?+" if prefix else ""


def _next(shape: Shape, n: int) -> str:
    following = shape.call[n + 1]
    if not isinstance(following, str) or not following.strip():
        raise Unlike
    return following.strip()


def _ends(shape: Shape, n: int) -> str:
    """What directly follows a name."""
    ends = ends_of_name(shape.call[n + 1 :])
    if any(re.match(r"[\w.:-]", text) for text in ends):
        raise Unlike
    space = "" if any(text[0].isspace() for text in ends) else r"\s{0,64}+"  # which is not part of the name
    return f"(?={space}(?:{'|'.join(map(re.escape, ends))}))"


def _into(body: FormatPart) -> str:
    """What of the body precedes its values."""
    match body:
        case Json():
            return r"\s*+(?=\{)"
        case Envelope(name, arguments):
            keys = "|".join(map(re.escape, arguments))
            return rf'\s*+\{{\s*+"{re.escape(name)}"\s*+:\s*+"(?P<name>{_NAME})"\s*+,\s*+"(?:{keys})"\s*+:\s*+(?=\{{)'
        case KeyEnvelope():
            return rf'\s*+\{{\s*+"(?P<name>{_NAME})"\s*+:\s*+(?=\{{)'
        case Pairs() | TagParameters():
            return ""
    raise Unlike


def _rest(parts: Sequence[FormatPart], space: str) -> str:
    """What follows the body."""
    out = ""
    for part in parts:
        match part:
            case str(text):
                out += rf"{space}(?>{exact(text.strip())})" if text.strip() else ""
            case Tag(name, True):
                out += f"{space}{re.escape(f'</{name}>')}"
            case _:
                raise Unlike
    return out


# ---------------------------------------------------------------- JSON


def _json(shape: Shape, at: int) -> Read:
    """Reads one JSON object with the C decoder."""
    body, parts = shape.call[at], shape.call[at + 1 :]
    if any(isinstance(part, Tag) for part in parts):
        raise Unlike
    closing = "" if isinstance(body, Json) else r"\s*+\}"
    tail = re.compile(closing + _rest(parts, r"\s*+")).match
    last = isinstance(body, Json) and not parts
    more = _more_of_opening(shape)
    typed = isinstance(body, Envelope)

    def read(r: Reader, openers: Openers, found: Found, start: int) -> bool:
        if (decoded := jsontext.decoded(r, start)) is None:
            return False
        value, end, loose = decoded
        over = tail(r.buf, end)
        if over is None or loose or (typed and "type" in value):  # with a type, it may describe a tool
            return False
        if last and _goes_on(r, end):
            return False
        if more and more.startswith(r.buf[over.end() : over.end() + len(more)]):  # what closes it may open the next one
            return False
        found.end, found.arguments = over.end(), value
        found.deltas = [_new(ArgumentDelta, (found.index, r.buf[start:end], None))]
        return found.tool is None or openers.expected(found.tool).fits(value)

    return read


def _more_of_opening(shape: Shape) -> str:
    """What of a call's opening follows what is also its closing, as in a fence; empty if none is."""
    first, close = shape.call[0], shape.call[-1]
    if isinstance(first, str) and isinstance(close, str) and close.strip() and first.strip().startswith(close.strip()):
        return first.strip()[len(close.strip()) :]
    return ""


def _goes_on(r: Reader, end: int) -> bool:
    """Whether more of the arguments is after what closes them, or may be; as `Reader.sees` finds it."""
    return OVER.match(r.buf, end) is None and (end < len(r.buf) or not r.ended)


# ---------------------------------------------------------------- parameters


def _pairs(shape: Shape, at: int) -> Read:
    """Reads parameters whose values contain nothing that may open or close anything."""
    part = shape.call[at]
    if not isinstance(part, Pairs | TagParameters):
        raise Unlike
    if not (rest := _rest(shape.call[at + 1 :], _SPACE)):
        raise Unlike  # nothing ends the call but what may come next
    pair, tail = re.compile(_pair(shape, part, at)).match, re.compile(rest).match
    edge = end_of_value(shape, part)
    trim = isinstance(part, Pairs) and part.newlines == "both"

    def read(r: Reader, openers: Openers, found: Found, start: int) -> bool:
        call = CallReader(found.opener, openers, found.index, Lead(""), name=found.name)
        call.arguments.tool = found.tool
        buf, end, stop = r.buf, start, -1
        while value := pair(buf, end):
            key, kind, text = value.groups()
            end, stop = value.end(), value.end(3)
            if trim and text.endswith("\n"):
                text, stop = _trimmed(text, stop)
            if key in call.arguments.by_name or len(key) > r.limits.name:
                return False
            found.deltas.append(_new(ArgumentDelta, (found.index, text, key)))
            if not _put(r, call, part, key, text, kind) or (text.startswith(("[", "{")) and _is_cut(call, key, kind)):
                return False
        if end == start and (found.tool is None or found.tool.parameters.get("required")):
            return False  # prose may only mention what opens it; or it was broken off
        over = tail(buf, end)
        if over is None or (stop >= 0 and not _is_over(r, edge, stop)):
            return False
        found.end = over.end()
        return _settles(r, call, found)

    return read


def _trimmed(text: str, stop: int) -> tuple[str, int]:
    """A value and where it ends, without the line end that belongs to what closes it."""
    cut = 2 if text.endswith("\r\n") else 1
    return text[:-cut], stop - cut


def _settles(r: Reader, call: CallReader, found: Found) -> bool:
    """Take the arguments as the tool's schema requires; False if the call is damaged."""
    try:
        call.repair(r)
    except Damage:
        return False
    found.deltas = [delta for delta in found.deltas if delta.text]
    found.arguments, found.repairs = call.arguments.by_name, call.arguments.repairs
    return True


def _pair(shape: Shape, part: Pairs | TagParameters, at: int) -> str:
    """One parameter: its `key`, its `kind` if that is written, and its `value` with all white space in it.

    Raises:
        Unlike: a value may be over at characters that are common in values, or what follows one seems to end the call.
    """
    section = shape.section.close if shape.section is not None else ""
    after = [p.strip() for p in (*shape.call[at + 1 :], section) if isinstance(p, str) and p.strip()]
    if isinstance(part, TagParameters):
        if not all(text.startswith("<") for text in after):
            raise Unlike
        kind = rf'(?: {re.escape(part.kind)}="(?P<kind>true|false)")?+' if part.kind else _NO_KIND
        opening = rf'{_SPACE}{re.escape(f"<{part.name} {part.attribute}=")}"(?P<key>{_KEY})"{kind}>(?:\r?\n)?+'
        return rf"{opening}(?P<value>[^<]*+){re.escape(f'</{part.name}>')}"
    first = next(p for p in shape.call if isinstance(p, str) and p.strip()).strip()
    key, close = part.key.strip(), part.close.strip()
    if key.startswith(tuple(after)):
        raise Unlike
    firsts = re.escape("".join(sorted({text[0] for text in ("<", first, key, close, *after)})))
    kind, words = _NO_KIND, part.middle.split()
    if part.kind:
        kind = rf"(?>{exact(part.kind[0].strip())})(?P<kind>[a-z]{{1,16}}+)"
        words = part.kind[1].split()
    middle = rf"{kind}(?={re.escape(words[0])})" + "".join(rf"{_SPACE}{exact(word)}" for word in words)
    newline = r"(?:\r?\n)?+" if part.newlines != "none" else ""
    return rf"{_SPACE}{exact(key)}(?P<key>{_KEY}){middle}{newline}(?P<value>[^{firsts}]*+)(?>{exact(close)})"


_NO_KIND: Final = "(?P<kind>(?!))?"


def _put(r: Reader, call: CallReader, part: Pairs | TagParameters, key: str, text: str, kind: str | None) -> bool:
    """Add one argument; False if its value is ambiguous."""
    arguments, tool = call.arguments, call.arguments.tool
    words = call.openers.expected(tool).words if tool is not None and kind is None else ()
    if key in words or kind == ("string" if isinstance(part, Pairs) else "true"):
        arguments.by_name[key] = text
        return True
    try:
        if kind is not None and isinstance(part, Pairs):
            arguments.put_typed(r, key, text, kind)
        elif kind is not None and not (tool and tool.declares(key)):
            arguments.by_name[key] = values.read(text, {}, {})
        else:
            arguments.put(r, key, text)
    except Damage:
        return False
    return True


def _is_cut(call: CallReader, key: str, kind: str | None) -> bool:
    """Whether a value that accepts no text begins as JSON and is not JSON: what closed it may be in a string of it."""
    if not isinstance(call.arguments.by_name[key], str):
        return False
    return kind not in (None, "string", "true") or call.arguments.is_data(key)


def _is_over(r: Reader, edge: ValueEnd, stop: int) -> bool:
    """Whether the closing of the last value, at an index of the buffer, certainly ends the value."""
    found = edge.token.match(r.buf, stop)
    return found is not None and found.lastgroup == "fit"
