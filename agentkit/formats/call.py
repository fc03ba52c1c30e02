"""One call while it is read. Knows the reader and the declarations, but not the parts, which are in `bodies/`."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agentkit.events import CallStart, Markup
from agentkit.formats import values
from agentkit.formats.damage.listed import Listed
from agentkit.formats.format import Format, Shape
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Search, beginnings
from agentkit.formats.repairs import QUOTED_VALUE, WRAPPED_ARGUMENTS
from agentkit.formats.valueends import Elements
from agentkit.schemas import walk
from agentkit.toolspec import UNDECLARED, Layout, ToolSpec
from agentkit.unicode import without_surrogates

_CONTROL = re.compile(r"[\x00-\x1f\x7f]").search
_MODULES = ("functions", "tools", "default_api")
_WRAPPERS = ("arguments", "input", "properties")
"""Source: vLLM's parsers of DeepSeek V3.2 (`arguments`, `input`) and of MiniCPM 5 (`properties`), with their tests."""


@dataclass(slots=True)
class CallReader:
    """One call while it is read.

    `known_only` means that only an offered tool makes this a call, because what opened it is common in prose.
    `raw` names the arguments that were plain text between delimiters, not in CDATA.
    `elements` are those of the tools, if the format has them.
    `blocked` means that it is in a block of Python, whose head decides whether it would run.
    `listed` finds the next call of its section, if that is a list.
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

        Some models write a tool's name twice, `search.search`, once as the name of its server.

        Raises:
            Damage: the name contains a control character, which an escape in it may have produced.
        """
        if not name.isascii():
            name = str(without_surrogates(name))
        if name not in self.tools and "." in name:
            server, _, own = name.partition(".")
            name = own if server == own and own in self.tools else name
        if self.known_only and not self.knows(name):
            raise Decline
        if not name.isprintable() and _CONTROL(name):
            told = f"expected a tool's name without control characters, got {name[:80]!r}"
            raise Damage("invalid_json", told, r.offset)
        self.name, self.started = name, True
        self.tool = self.tools.get(name)
        self.say_lead(r)
        r.out.append(CallStart(self.index, name))

    def knows(self, name: str) -> bool:
        """Whether this is the name of an offered tool, or one after that of a module, as prompts show tools."""
        module, _, own = name.partition(".")
        return name in self.tools or (module in _MODULES and own in self.tools)

    def say_lead(self, r: Reader) -> None:
        """What separates the call from the last one, and a section's opening, are markup, not part of the call."""
        if self.before:
            r.out.append(Markup(self.before))
            self.before = ""
        if self.lead:
            r.out.append(Markup(self.lead))
            self.skip, self.lead = len(self.lead), ""

    def schema(self, parameter: str) -> tuple[walk.Schema, walk.Schema]:
        """The schema of a parameter, and the one in which its references are resolved."""
        return (self.tool.schema_of(parameter), self.tool.parameters) if self.tool else (UNDECLARED, {})

    def put(self, r: Reader, parameter: str, text: str | None, *, nulls: bool = True) -> None:
        """Add an argument written as text; None stands for one that was named without a value.

        Without `nulls`, the word null is text if the parameter may be a string.
        """
        schema, root = self.schema(parameter)
        if text is None:
            self.set(r, parameter, None if values.accepts_null(schema, root) else values.read("", schema, root))
        else:
            self.set(r, parameter, values.read(text, schema, root, nulls=nulls))

    def set(self, r: Reader, parameter: str, value: Any) -> None:
        """Add an argument's value; a second one must be the same."""
        try:
            values.refuse_other(self.arguments, parameter, value)
        except values.GivenTwice as e:
            raise Damage("ambiguous_call", f"parameter {e}", r.offset) from e
        self.arguments[parameter] = value

    def note(self, repair: str) -> None:
        """Note that a repair was made."""
        if repair not in self.repairs:
            self.repairs.append(repair)

    def repair(self, allowed: frozenset[str]) -> None:
        """Repair arguments that were read, as the tool's schema requires."""
        if self.tool is not None and WRAPPED_ARGUMENTS in allowed:
            self.unwrap()
        if self.tool is not None and QUOTED_VALUE in allowed:
            self.unquote()

    def unquote(self) -> None:
        """Read strings as the numbers, booleans, lists and objects they write, if the schema allows no string."""
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
        """Unwrap arguments from one that only wraps them, if the tool has no parameter of that name."""
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


def until(r: Reader, ends: tuple[str, ...], never: Search | None = None) -> Generator[None, None, str | None]:
    """Consume the characters up to the first of some literals, which stays.

    Returns None if they are too many for a name (one more than it may have is consumed), if `never` finds
    something in them, or if the text ends.
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
