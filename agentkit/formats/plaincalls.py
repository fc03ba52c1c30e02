"""Whole calls that are plainly written, each read in one step: from its opening to its end, without waiting.

Most calls of a whole text are written as their format prescribes. The steps that the parts would take for one are then
known: a pattern takes all of them up to the body, the C decoder or one pattern for each value reads the body, and a
pattern takes the rest. Nothing is decided here. A call that is not complete, whose end is not certain yet, or that is
written in any other way than the patterns say, is left to its parts, which find the same in a plain one: law 1 compares
the two for every format, as a text that arrives by the character is never read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from agentkit.events import ArgumentDelta
from agentkit.formats import jsontext, values
from agentkit.formats.bodies.fixed import ends_of_name, skips
from agentkit.formats.call import CallReader, Lead
from agentkit.formats.damage.missing_close import close_values
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
from agentkit.formats.jsontext import GOES_ON
from agentkit.formats.openers import Opener, Openers
from agentkit.formats.reader import Damage, Reader, literal, pattern
from agentkit.formats.valueends import ValueEnd, end_of_value
from agentkit.toolspec import ToolSpec

_LONGEST_NAME: Final = 64  # characters of a plain name; limits may allow fewer
_NAME: Final = rf"[A-Za-z0-9_-]{{1,{_LONGEST_NAME}}}+"
_KEY: Final = rf"[A-Za-z0-9_.-]{{1,{_LONGEST_NAME}}}+"
_SPACE: Final = r"\s{0,512}+"  # less than any step skips
_BLANK: Final = re.compile(r"\s*").match


class Unlike(Exception):
    """Calls of this shape are not read in one step."""


class Found:
    """A plain call: its name and id, its tool, where it starts and ends in the buffer, its arguments and their events.

    `start` is after the opening of a section, if that is here.
    """

    __slots__ = ("arguments", "deltas", "end", "id", "index", "name", "opener", "repairs", "start", "tool")

    def __init__(self, opener: Opener, index: int, head: re.Match[str], tools: Mapping[str, ToolSpec]) -> None:
        self.opener, self.index = opener, index
        self.start = head.end(1)
        self.id: str = head["id"] or ""
        self.name: str = head["name"]
        self.tool = tools.get(self.name)
        self.end = -1
        self.arguments: dict[str, Any] = {}
        self.deltas: list[ArgumentDelta] = []
        self.repairs: Sequence[str] = ()


Read = Callable[[Reader, Openers, Found, int], bool]
"""Reads a body, and all that follows it, from an index of the buffer; False if it is not plain."""


class PlainCall:
    """How a plain call of one shape is read, after the opening of a section if `section`.

    Raises:
        Unlike: a part of the shape has too many forms.
    """

    def __init__(self, shape: Shape, *, section: bool) -> None:
        at = next((n for n, part in enumerate(shape.call) if isinstance(part, CallBody)), -1)
        body = shape.call[at]
        steps = "".join(_step(shape, n) for n in range(at))
        head = rf"({_section(shape) if section else ''}){steps}{_into(body)}"
        head += "" if "(?P<id>" in head else "(?P<id>(?!))?"
        if at < 0 or head.count("(?P<name>") != 1:
            raise Unlike
        self._head = re.compile(head).match
        self._body = _json(shape, at) if isinstance(body, Json | Envelope | KeyEnvelope) else _pairs(shape, at)

    def find(self, r: Reader, opener: Opener, openers: Openers, index: int) -> Found | None:
        """The call at the reader's position, with nothing consumed; None if it is not plain."""
        if (head := self._head(r.buf, r.at)) is None:
            return None
        found = Found(opener, index, head, openers.table.named)
        return found if self._body(r, openers, found, head.end()) else None


def plain_call(r: Reader, opener: Opener, openers: Openers, index: int) -> Found | None:
    """The call that opens at the reader's position, with nothing consumed; None if it is to be read by its parts."""
    known: dict[int, tuple[Opener, PlainCall | None]] = openers.plain
    if (pair := known.get(id(opener))) is None:
        tells = opener.kind in ("call", "section") and not opener.weak
        pair = known[id(opener)] = (opener, _made(opener.shape, opener.kind == "section") if tells else None)
    if (plain := pair[1]) is None or r.limits.name < _LONGEST_NAME:
        return None
    found = plain.find(r, opener, openers, index)
    return found if found is not None and found.end - r.at <= r.limits.call else None


@lru_cache(256)
def _made(shape: Shape, section: bool) -> PlainCall | None:  # a key of the cache
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
    return rf"(?>{pattern(edge.strip())})\s*+"


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
    return rf"\s*+(?>{pattern(text.strip())})" if text.strip() else ""


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
    return f"(?={'|'.join(map(re.escape, ends))})"


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
                out += rf"{space}(?>{pattern(text.strip())})" if text.strip() else ""
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
    typed = isinstance(body, Envelope)

    def read(r: Reader, openers: Openers, found: Found, start: int) -> bool:
        if (decoded := jsontext.decoded(r, start)) is None:
            return False
        value, end, loose = decoded
        over = tail(r.buf, end)
        if over is None or loose or (typed and "type" in value):  # with a type, it may describe a tool
            return False
        if last and GOES_ON.may_be(r.buf, end):
            return False
        found.end, found.arguments = over.end(), value
        found.deltas.append(ArgumentDelta(found.index, r.buf[start:end]))
        return found.tool is None or openers.expected(found.tool).fits(value)

    return read


# ---------------------------------------------------------------- parameters


def _pairs(shape: Shape, at: int) -> Read:
    """Reads parameters whose values contain nothing that may open or close anything."""
    part = shape.call[at]
    if not isinstance(part, Pairs | TagParameters):
        raise Unlike
    pair = re.compile(_pair(shape, part, at)).match
    tail = re.compile(_rest(shape.call[at + 1 :], _SPACE)).match
    edge = end_of_value(shape, part)
    trim = isinstance(part, Pairs) and part.newlines == "both"

    def texts(buf: str, start: int) -> Iterator[re.Match[str]]:
        while found := pair(buf, start):
            yield found
            start = found.end()

    def read(r: Reader, openers: Openers, found: Found, start: int) -> bool:
        call = CallReader(found.opener, openers, found.index, Lead(""), name=found.name)
        call.arguments.tool = found.tool
        buf, end, stop = r.buf, start, -1
        for value in texts(buf, start):
            end, key, text = value.end(), value["key"], value["value"]
            stop = value.end("value")
            if trim and text.endswith("\n"):
                cut = 2 if text.endswith("\r\n") else 1
                text, stop = text[:-cut], stop - cut
            if text:
                found.deltas.append(ArgumentDelta(call.index, text, key))
            if not _put(r, call, part, key, text, value["kind"]):
                return False
        over = tail(buf, end)
        if over is None or (stop >= 0 and not _is_over(r, edge, stop)):
            return False
        found.end = over.end()
        try:
            close_values(call, r.base + found.end, allowed=r.repairs)
            call.repair(r)
        except Damage:
            return False
        found.arguments, found.repairs = call.arguments.by_name, call.arguments.repairs
        return True

    return read


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
        kind = rf"(?>{pattern(part.kind[0].strip())})(?P<kind>[a-z]{{1,16}}+)"
        words = part.kind[1].split()
    middle = rf"{kind}(?={re.escape(words[0])})" + "".join(rf"{_SPACE}{pattern(word)}" for word in words)
    newline = r"(?:\r?\n)?+" if part.newlines != "none" else ""
    return rf"{_SPACE}{pattern(key)}(?P<key>{_KEY}){middle}{newline}(?P<value>[^{firsts}]*+)(?>{pattern(close)})"


_NO_KIND: Final = "(?P<kind>(?!))?"


def _put(r: Reader, call: CallReader, part: Pairs | TagParameters, key: str, text: str, kind: str | None) -> bool:
    """Add one argument; False if its name is given twice."""
    arguments = call.arguments
    if key in arguments.by_name:
        return False
    arguments.plain.add(key)
    if kind in ("string", "true"):
        arguments.by_name[key] = text
    elif kind == "false" and not (call.tool and call.tool.declares(key)):
        arguments.by_name[key] = values.read(text, {}, {})
    elif kind and kind != "false":
        arguments.by_name[key] = arguments.read(text, {"type": kind}, {}, r.repairs)
    elif call.tool is not None and key in call.openers.expected(call.tool).words:
        arguments.by_name[key] = text
    else:
        arguments.put(r, key, text)
    return True


def _is_over(r: Reader, edge: ValueEnd, stop: int) -> bool:
    """Whether the closing of the last value, at an index of the buffer, certainly ends the value."""
    buf, token = r.buf, edge.token
    found = token.match(buf, stop)
    if found is None or found.lastgroup != "fit" or found["over"] is None or found.groupdict().get("section"):
        return False
    at = found.end("over")
    while True:
        at = _BLANK(buf, at).end()  # type: ignore[union-attr]  # it matches nothing too
        behind = token.match(buf, at)
        if behind is not None and behind.lastgroup == "call":
            return True
        if not r.ended and (at >= len(buf) or token.part.match(buf, at) is not None):
            return False
        if behind is None:
            return True
        if behind.lastgroup not in ("tail", "section"):
            return False
        at = behind.end()
