"""One call while it is read, and how the fixed parts of a declaration are read: literals, tags and names.

Knows the reader and the declarations. A part reads from where the call stands and leaves the call after itself. It
raises
`Decline` (this is no call) only before it has said anything, `Damage` after.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from agentkit.errors import ErrorCode
from agentkit.events import CallStart, Markup
from agentkit.formats import tags, values
from agentkit.formats.damage.listed import Listed
from agentkit.formats.damage.otherkeys import BESIDE
from agentkit.formats.format import (
    Braced,
    CallId,
    CountedName,
    Format,
    FormatPart,
    Json,
    Name,
    Pairs,
    Recipient,
    Shape,
    Skip,
    Tag,
)
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Search, Wait, beginnings, literal
from agentkit.formats.repairs import QUOTED_VALUE, WRAPPED_ARGUMENTS
from agentkit.formats.valueends import Elements
from agentkit.schemas import walk
from agentkit.toolspec import UNDECLARED, Layout, ToolSpec
from agentkit.unicode import without_surrogates

_CONTROL = re.compile(r"[\x00-\x1f\x7f]").search
_MODULES = ("functions", "tools", "default_api")
_WRAPPERS = ("arguments", "input", "parameters", "properties")


@dataclass(slots=True)
class CallReader:
    """One call while it is read.

    `known_only` tells that only an offered tool makes this a call, because what opened it is common in prose.
    `raw` names the arguments that stood as plain text between delimiters, not in CDATA.
    `elements` are those of the tools, where the format has some.
    `blocked` tells that it stands in a block of Python, whose head tells whether it would run.
    `listed` finds the next call of its section, where that is a list.
    `body` is the offset at which a JSON body starts, -1 before it.
    """

    format: Format
    shape: Shape
    tools: Mapping[str, ToolSpec]
    index: int
    tool: ToolSpec | None = None
    known_only: bool = False
    blocked: bool = False
    elements: Mapping[Layout, Elements] = field(default_factory=dict)
    listed: Listed | None = None
    part: int = 0
    before: str = ""
    lead: str = ""
    skip: int = 0
    id: str = ""
    name: str = ""
    started: bool = False
    complete: bool = False
    body: int = -1
    arguments: dict[str, Any] = field(default_factory=dict)
    raw: set[str] = field(default_factory=set)
    repairs: list[str] = field(default_factory=list)

    def begin(self, r: Reader, name: str) -> None:
        """The name is known: from here on the call gets an answer.

        Some models write a tool's name twice, `search.search`, as the name of its server and its own.

        Raises:
            Damage: the name holds a control character, as an escape in it may have made one of its letters.
        """
        if not name.isascii():
            name = str(without_surrogates(name))
        if name not in self.tools and "." in name:
            server, _, own = name.partition(".")
            name = own if server == own and own in self.tools else name
        if self.known_only and not self.knows(name):
            raise Decline
        if not name.isprintable() and _CONTROL(name):
            told = f"a tool's name has no control character, got {name[:80]!r}"
            raise Damage("invalid_json", told, r.offset)
        self.name, self.started = name, True
        self.tool = self.tools.get(name)
        self.say_lead(r)
        r.out.append(CallStart(self.index, name))

    def knows(self, name: str) -> bool:
        """Whether this is the name of an offered tool, or one behind that of a module, as prompts show tools."""
        module, _, own = name.partition(".")
        return name in self.tools or (module in _MODULES and own in self.tools)

    def say_lead(self, r: Reader) -> None:
        """What separates the call from the last one, and a section's opening, are markup and not part of it."""
        if self.before:
            r.out.append(Markup(self.before))
            self.before = ""
        if self.lead:
            r.out.append(Markup(self.lead))
            self.skip, self.lead = len(self.lead), ""

    def schema(self, parameter: str) -> tuple[walk.Schema, walk.Schema]:
        """The schema of a parameter, and the one in which its references are looked up."""
        return (self.tool.schema_of(parameter), self.tool.parameters) if self.tool else (UNDECLARED, {})

    def put(self, r: Reader, parameter: str, text: str | None, *, nulls: bool = True) -> None:
        """Take an argument written as text; None stands for one that was named without a value.

        Without `nulls`, the word null is no null where the parameter may be a string.
        """
        schema, root = self.schema(parameter)
        if text is None:
            self.set(r, parameter, None if values.accepts_null(schema, root) else values.read("", schema, root))
        else:
            self.set(r, parameter, values.read(text, schema, root, nulls=nulls))

    def set(self, r: Reader, parameter: str, value: Any) -> None:
        """Take an argument's value; a second one must be the same."""
        try:
            values.refuse_other(self.arguments, parameter, value)
        except values.GivenTwice as e:
            raise Damage("ambiguous_call", f"parameter {e}", r.offset) from e
        self.arguments[parameter] = value

    def note(self, repair: str) -> None:
        """A repair was made."""
        if repair not in self.repairs:
            self.repairs.append(repair)

    def repair(self, allowed: frozenset[str]) -> None:
        """Repair arguments that were read, by what the tool's schema says."""
        if self.tool is not None and WRAPPED_ARGUMENTS in allowed:
            self.unwrap()
        if self.tool is not None and QUOTED_VALUE in allowed:
            self.unquote()

    def unquote(self) -> None:
        """Take strings for the numbers, booleans, lists and objects that they write, where the schema has no string."""
        for name, value in self.arguments.items():
            if not isinstance(value, str):
                continue
            schema, root = self.schema(name)
            if schema and not values.accepts(value, schema, root):
                read = values.read(value, schema, root)
                if not isinstance(read, str) and (not isinstance(read, list) or value.lstrip()[:1] in ("[", "(")):
                    self.arguments[name] = read
                    self.note(QUOTED_VALUE)

    def unwrap(self) -> None:
        """Take the arguments out of one that only wraps them, where the tool has no parameter of that name."""
        if self.tool is None or len(self.arguments) != 1:
            return
        ((name, value),) = self.arguments.items()
        known = self.tool.parameters.get("properties", {})
        if name not in _WRAPPERS or name in known or not known:
            return
        inner = values.read(value, {"type": "object"}, {}) if isinstance(value, str) else value
        if isinstance(inner, dict) and inner.keys() <= known.keys():
            self.arguments = inner
            self.note(WRAPPED_ARGUMENTS)


def read_literal(r: Reader, call: CallReader, part: str) -> Wait:
    """A literal; white space around it may be missing or more. The last one may be missing at the text's end."""
    wanted = part.strip()
    if not wanted:
        return
    yield from r.space()
    if found := (yield from r.sees(literal(wanted))):
        r.at = found.end()
    elif not call.started:
        call.id = yield from read_loosely(r, wanted)
    elif (closing := tags.in_tag(wanted)) and (found := (yield from r.sees(tags.closing(closing[0][1:])))):
        r.at = found.end()
    elif call.complete and r.ended and wanted.startswith(r.buf[r.at :]):
        r.at = len(r.buf)  # everything was said; a sampler that stops at the closing literal leaves it out
    elif call.complete and (yield from _goes_on(r, call)):
        return
    elif r.at >= len(r.buf):
        raise Damage("truncated_call", f"the text ended before {wanted!r}", r.offset, ended=True)
    else:
        raise Damage("invalid_json", f"expected {wanted!r}", r.offset, got=True)


def read_loosely(r: Reader, wanted: str) -> Generator[None, None, str]:
    """An opening literal that is a tag, written as tags are: in any case, with attributes. Returns the id in them."""
    if (found := tags.in_tag(wanted)) is None:
        raise Decline
    name, rest = found
    opening = yield from read_opening_tag(r, name)
    if rest:
        yield from r.space()
        if (behind := (yield from r.sees(literal(rest)))) is None:
            raise Decline
        r.at = behind.end()
    return opening.attributes.get("id") or ""


def read_opening_tag(r: Reader, name: str) -> Generator[None, None, tags.Opening]:
    """An opening tag whose attributes say nothing that a call needs."""
    if (found := (yield from r.sees(tags.tag(name, closing=False)))) is None:
        raise Decline
    r.at = found.end()
    opening = yield from tags.Attributes(r, name, ()).read()
    if opening.empty or strays(opening.attributes):
        raise Decline
    return opening


def strays(attributes: Iterable[str], own: Collection[str] = ()) -> list[str]:
    """Which of a tag's attributes would be lost, as they are read nowhere; `own` are names that tell something here."""
    return [k for k in attributes if k in own or (k not in _IDLE and not k.startswith(("xml:", "xmlns:")))]


_IDLE: Final = ("xmlns", "string", *BESIDE)


def _goes_on(r: Reader, call: CallReader) -> Generator[None, None, bool]:
    """Whether the next call, the section's end or a control token stands here: models forget what closes a call."""
    first, section = call.shape.call[0], call.shape.section
    for text in (first, section.close if section is not None else "", *call.format.markup):
        if isinstance(text, str) and text.strip() and (yield from r.sees(literal(text.strip()))):
            return True
    return False


def read_tag(r: Reader, call: CallReader, part: Tag) -> Wait:
    """A tag without a slot."""
    if call.complete:
        return
    yield from r.space()
    found = yield from r.sees(tags.tag(part.name, closing=part.closing))
    if found is None and (yield from _goes_on(r, call)):
        return
    if found is None:
        what = f"</{part.name}>" if part.closing else f"<{part.name}>"
        if r.at >= len(r.buf):
            raise Damage("truncated_call", f"the text ended before {what}", r.offset, ended=True)
        raise Damage("invalid_arguments", f"expected {what}", r.offset, got=True)
    r.at = found.end()


def until(r: Reader, ends: tuple[str, ...], never: Search | None = None) -> Generator[None, None, str | None]:
    """Consume the characters up to the first of some literals, which stays.

    Returns None where they are too many for a name (one more than it may have is consumed), where `never` finds
    something in them, or where the text ends.
    """
    delimiter, first = _any_of(ends)
    pieces: list[str] = []
    room = r.limits.name + 1
    while True:
        at = r.at
        found = first(r.buf, at, at + room)
        r.at = stop = found.start() if found else min(len(r.buf), at + room)
        piece = r.buf[at:stop]
        room -= stop - at
        if never is not None and never(piece):
            return None
        pieces.append(piece)
        if found:
            if delimiter.match(r.buf, stop) or (yield from r.sees(delimiter)):
                return "".join(pieces)
            pieces.append(piece := r.buf[r.at : r.at + 1])
            r.at, room = r.at + 1, room - 1
            if not room or (never is not None and never(piece)):
                return None
        elif not room or r.ended:
            return None
        else:
            yield


def ended(r: Reader, start: int) -> bool:
    """Whether `until`, which began at this offset, found nothing because the text ended."""
    return r.ended and r.at >= len(r.buf) and r.offset - start <= r.limits.name


@cache
def _any_of(texts: tuple[str, ...]) -> tuple[Delimiter, Search]:
    whole = "|".join(re.escape(t) for t in texts)
    part = "|".join(beginnings(t) for t in texts)
    return Delimiter(whole, part), re.compile(f"[{re.escape(''.join(t[0] for t in texts))}]").search


@cache
def _ends_of_name(parts: tuple[FormatPart, ...]) -> tuple[str, ...]:
    """What may stand behind a name that these parts follow."""
    ends: list[str] = []
    for part in parts:
        match part:
            case str(text) if text.strip():
                return (*ends, text.split()[0])
            case str():
                ends.append("\n")
            case Pairs():
                ends.append(part.key)
            case Json() | Braced():
                return (*ends, "{")
            case Skip():
                ends += [" ", "<", '"']
            case other:
                raise TypeError(f"a name cannot end before {other!r}")
    return tuple(ends)


_IN_NO_NAME = re.compile(r"[<>{}\[\]()\"'`,;=]").search
_IN_NO_TAG = re.compile(r"[{}\n]").search  # the body is there already: what should stand before it was forgotten
_IN_NO_SKIP = re.compile(r"[<>]").search
_IN_NO_ATTRIBUTE = re.compile(r"[<>\"]").search
_NAME = re.compile(r"[^\s<>{}\[\]()\"'`,;=]{1,256}\Z")


def _read_name(r: Reader, call: CallReader, *, attribute: bool = False) -> Generator[None, None, str]:
    yield from r.space()
    ends = _ends_of_name(call.shape.call[call.part + 1 :])
    text = (yield from until(r, ends, _IN_NO_ATTRIBUTE if attribute else _IN_NO_NAME)) or ""
    name = (tags.decoded(text) if attribute else text).strip().removesuffix(r"\n")
    if _NAME.match(name) is None:
        raise Decline
    return name


def read_name(r: Reader, call: CallReader, part: Name) -> Wait:
    """The tool's name, up to what follows it."""
    name = yield from _read_name(r, call, attribute=part.attribute)
    following = call.shape.call[call.part + 1]
    if call.known_only and isinstance(following, str) and following.strip():
        found = yield from r.sees(literal(following.strip()))
        if found is None and not (r.ended and r.cut == r.offset):
            raise Decline  # what opened it is common in prose, and what must follow a call's name does not
    call.begin(r, name.removeprefix(part.prefix))


_COUNT = re.compile(r":\d+\Z")


def read_counted_name(r: Reader, call: CallReader, part: CountedName) -> Wait:
    """The tool's name in the id of the call."""
    call.id = yield from _read_name(r, call)
    call.begin(r, _COUNT.sub("", call.id).removeprefix(part.prefix))


def read_call_id(r: Reader, call: CallReader, part: CallId) -> Wait:
    """The call's id, up to what follows it."""
    call.id = yield from _read_name(r, call)


def read_recipient(r: Reader, call: CallReader, part: Recipient) -> Wait:
    """A name that the call itself says again."""
    yield from _read_name(r, call)


def read_skip(r: Reader, call: CallReader, part: Skip) -> Wait:
    """Characters that say nothing, up to the next literal."""
    following = call.shape.call[call.part + 1]
    assert isinstance(following, str)
    start = r.offset
    not_in = _IN_NO_TAG if "<" in part.written or not part.written else _IN_NO_SKIP
    if (yield from until(r, (following.strip(),), not_in)) is None:
        if not call.started:
            raise Decline
        over = ended(r, start) or r.cut >= start
        r.back_to(start)
        code: ErrorCode = "truncated_call" if over else "invalid_json"
        raise Damage(code, f"expected {following.strip()!r}", start, ended=over)
