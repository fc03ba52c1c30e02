"""One call while it is read. Knows the reader and the declarations, but not the parts, which are in `bodies/`."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cache

from agentkit.checks.tool_names import intended_tool
from agentkit.checks.unicode import without_surrogates
from agentkit.events import CallStart, Markup
from agentkit.formats.callarguments import CallArguments
from agentkit.formats.format import CallBody, Envelope, Format, KeyEnvelope, PythonCall, Shape
from agentkit.formats.openers import Opener, Openers
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Search, beginnings, pattern
from agentkit.formats.valueends import Elements
from agentkit.toolspec import Layout, ToolSpec

_CONTROL = re.compile(r"[\x00-\x1f\x7f]").search
_MODULES = ("functions", "tools", "default_api")


@dataclass(slots=True)
class Lead:
    """The text before a call, which is markup once the call has started.

    `between` is the text between the last call and this one; `opening`, that of a section or of a wrapping, which is
    the beginning of the call's own text; `size`, the length of that text once it was emitted as markup. `alone` is True
    if it begins its line.
    """

    between: str
    opening: str = ""
    size: int = 0
    alone: bool = False

    def emit(self, r: Reader) -> None:
        """Emit the separator before the call, and a section's opening, as markup."""
        if self.between:
            r.out.append(Markup(self.between))
            self.between = ""
        if self.opening:
            r.out.append(Markup(self.opening))
            self.size, self.opening = len(self.opening), ""


@dataclass(slots=True)
class CallReader:
    """One call while it is read.

    `known_only` means that only an offered tool makes this a call, because its opening is common in prose.
    `blocked` means that it is in a block of Python, whose head decides whether it would run.
    `part` is the number of the part that is read; `complete` means that no part after it has to be there.
    """

    opener: Opener
    openers: Openers
    index: int
    lead: Lead
    arguments: CallArguments = field(default_factory=CallArguments)
    known_only: bool = False
    blocked: bool = False
    part: int = 0
    id: str = ""
    name: str = ""
    started: bool = False
    complete: bool = False

    @property
    def format(self) -> Format:
        """The format in which it is written."""
        return self.opener.format

    @property
    def shape(self) -> Shape:
        """The shape in which it is written."""
        return self.opener.shape

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The offered tools by their names."""
        return self.openers.table.named

    @property
    def tool(self) -> ToolSpec | None:
        """The called tool, if it is known."""
        return self.arguments.tool

    @property
    def elements(self) -> Mapping[Layout, Elements]:
        """The tools' elements, if the format has them."""
        return self.openers.table.elements

    def begin(self, r: Reader, name: str) -> None:
        """Start the call of this name: from here on it gets an answer.

        A name with decoration around it is that of the only offered tool that it fits; see `intended_tool`.

        Raises:
            Damage: the name contains a control character, which an escape in it may have produced.
        """
        if not name.isascii():
            name = str(without_surrogates(name))
        tools = self.openers.table.named
        if name not in tools:
            name = intended_tool(name, tools) or name
        if self.known_only and not self.knows(name):
            raise Decline
        if not name.isprintable() and _CONTROL(name):
            message = f"expected a tool's name without control characters, got {name[:80]!r}"
            raise Damage("invalid_json", message, r.offset)
        self.name, self.started = name, True
        self.arguments.tool = tools.get(name)
        self.lead.emit(r)
        r.out.append(CallStart(self.index, name))

    def refuse_none(self, r: Reader) -> None:
        """Refuse a call in which no argument is written, if its tool requires one: it was broken off.

        Raises:
            Damage: says which one is required.
        """
        required = self.tool.parameters.get("required", ()) if self.tool is not None else ()
        if required and not self.arguments.by_name:
            wanted = f"expected the arguments of {self.name!r}, which requires {required[0]!r}"
            raise Damage("invalid_arguments", wanted, r.offset, got=True)

    def repair(self, r: Reader) -> None:
        """Repair arguments that were read, as the tool's schema requires."""
        tool = self.arguments.tool
        if tool is not None and not self.openers.parameter_kinds(tool).fits(self.arguments.by_name):
            self.arguments.repair(r.repairs)

    def knows(self, name: str) -> bool:
        """Return True for the name of an offered tool, even after a module's name, as prompts show tools."""
        tools = self.openers.table.named
        if name in tools:
            return True
        module, _, own = name.partition(".")
        return module in _MODULES and own in tools


def item_of(openers: Openers, shape: Shape) -> Delimiter:
    """Return the delimiter of the start of an offered tool's call in a list, or after another one in the same tag."""
    names, space = openers.table.tool_names, r"\s{0,64}"
    part = next((part for part in shape.call if isinstance(part, CallBody)), None)
    match part:
        case PythonCall():
            return Delimiter(rf"(?:{names}){space}\(", rf"[\w.-]{{0,256}}{space}")
        case Envelope(name=key):
            whole = rf'\{{{space}"{re.escape(key)}"{space}:{space}"(?:{names})"'
            return Delimiter(whole, rf'\{{{space}(?:"\w{{0,64}}(?:"{space}(?::{space}(?:"[\w.-]{{0,256}})?)?)?)?')
        case KeyEnvelope():
            return Delimiter(rf'\{{{space}"(?:{names})"', rf'\{{{space}(?:"[\w.-]{{0,256}})?')
    return Delimiter("(?!)", "(?!)")


def until(r: Reader, ends: tuple[str, ...], never: Search | None = None) -> Generator[None, None, str | None]:
    """Consume the characters up to the first of some literals, which stays.

    Returns None if they are too many for a name (one more than it may have is consumed), if `never` finds
    something in them, which stays, or if the text ends.
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
        if never is not None and (found_never := never(piece)):
            r.at = at + found_never.start()  # the text has not ended here, however much of it has arrived
            return None
        pieces.append(piece)
        if found:
            if delimiter.match(r.buf, stop) or (yield from r.sees(delimiter)):
                return "".join(pieces)
            if never is not None and never(r.buf[r.at : r.at + 1]):
                return None
            pieces.append(r.buf[r.at : r.at + 1])
            r.at, room = r.at + 1, room - 1
            if not room:
                return None
        elif not room or r.ended:
            return None
        else:
            yield


def ended(r: Reader, start: int) -> bool:
    """Return True if `until`, which began at this offset, found nothing because the text ended."""
    return r.ended and r.at >= len(r.buf) and r.offset - start <= r.limits.name


@cache
def _any_of(texts: tuple[str, ...]) -> tuple[Delimiter, Search]:
    whole = "|".join(pattern(t) if t.strip() else re.escape(t) for t in texts)
    part = "|".join(beginnings(t) for t in texts)
    return Delimiter(whole, part), re.compile(f"[{re.escape(''.join(t[0] for t in texts))}]").search
