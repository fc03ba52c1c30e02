"""Formats as data: the parts of which a format is declared.

Knows text and events; knows no registry, no model and no I/O. A format is a linear template of parts: the engine parses
with it, `write.py` writes with it; `bodies/` defines how each kind of part is read and written. A quirk of one format
is a separate part, never an option that is used once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from agentkit.checks.bounds import refuse, whole
from agentkit.errors import FormatError
from agentkit.formats.declaration_checks import blank_literals, fault_in_call, unsafe_close
from agentkit.schemas.typed.literals import MAX_DEPTH
from agentkit.toolspec import Layout

# ---------------------------------------------------------------- parts


@dataclass(frozen=True, slots=True)
class Tag:
    """An opening or closing tag without a slot: `<function_calls>`, `</invoke>`.

    Read in any case, with a namespace prefix, with a hyphen for an underscore and with white space before `>`. A
    tag in a literal of a call (`<function=`) is read like this, except for the prefix; a token (`<|call|>`) never is.
    """

    name: str
    closing: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """Slot: the tool's name, up to the next literal. `prefix` is written before it and is optional when read.

    With `attribute`, it is in an attribute of a tag whose literals contain the quotes: entities in it are decoded.
    """

    prefix: str = ""
    attribute: bool = False


@dataclass(frozen=True, slots=True)
class CountedName:
    """Slot: the tool's name as `functions.name:0`, with the number of the call; the whole text is the call's id."""

    prefix: str = "functions."


@dataclass(frozen=True, slots=True)
class CallId:
    """Slot: the call's id, up to the next literal."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """Slot: the tool to which a message is addressed; the call in it repeats the name. Read, never written."""


@dataclass(frozen=True, slots=True)
class NameTag:
    """Slot: the tool's name in an attribute of an opening tag, `<invoke name="…">`; self-closing ends the call."""

    name: str
    attribute: str


class CallBody:
    """Slot: a call's arguments. The base of all kinds of body; `label` is the kind's name in listings.

    `raw` says that values are written as text, `may_be_empty` that the body may be empty.
    """

    __slots__ = ()
    label: ClassVar[str]
    raw: ClassVar[bool] = False
    may_be_empty: ClassVar[bool] = False

    @property
    def textual(self) -> bool:
        """True if values are written as text, so that their types come from the tool's schema."""
        return self.raw

    @property
    def start(self) -> str:
        """The body's beginning; empty if it never directly follows a tool's name."""
        return ""


@dataclass(frozen=True, slots=True)
class TagParameters(CallBody):
    """Slot: repeated `<parameter name="key">value</parameter>`; values are raw text, typed by the tool's schema.

    With `kind`, an attribute of that name says whether the value is a raw string (`true`) or JSON (`false`); a value
    marked as JSON is still read as text if the tool's schema allows only a string. `newlines` says whether one newline
    at a value's start belongs to the format.
    """

    name: str
    attribute: str
    kind: str = ""
    newlines: Literal["start", "none"] = "start"

    label: ClassVar[str] = "parameters"
    raw: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Pairs(CallBody):
    """Slot: repeated key and value between literals; values are raw text, typed by the tool's schema.

    Args:
        key: the literal before a key.
        middle: the literal between key and value.
        close: the literal after a value.
        newlines: at which ends of a value one newline belongs to the format rather than to the value.
        kind: the literals around a value's JSON type, which may replace `middle`; empty without types.
    """

    key: str
    middle: str
    close: str
    newlines: Literal["start", "both", "none"] = "start"
    kind: tuple[str, ...] = ()

    label: ClassVar[str] = "parameters"
    raw: ClassVar[bool] = True
    may_be_empty: ClassVar[bool] = True

    @property
    def start(self) -> str:
        """The literal before a key."""
        return self.key


@dataclass(frozen=True, slots=True)
class Json(CallBody):
    """Slot: the arguments as one JSON object."""

    label: ClassVar[str] = "name, then JSON"

    @property
    def start(self) -> str:
        """The opening brace."""
        return "{"


@dataclass(frozen=True, slots=True)
class Envelope(CallBody):
    """Slot: one JSON object that contains the tool's name and its arguments, in any order, among any other keys.

    Args:
        name: the key of the name; written and read.
        arguments: the keys under which the arguments are read; the first is written.
    """

    name: str = "name"
    arguments: tuple[str, ...] = ("arguments",)

    label: ClassVar[str] = "JSON envelope"


@dataclass(frozen=True, slots=True)
class KeyEnvelope(CallBody):
    """Slot: one JSON object with a single key, the tool's name, and its arguments as the value."""

    label: ClassVar[str] = "JSON envelope"


@dataclass(frozen=True, slots=True)
class PythonCall(CallBody):
    """Slot: a call as Python writes it, with keyword arguments: `name(city="X", n=1)`."""

    label: ClassVar[str] = "Python call"


@dataclass(frozen=True, slots=True)
class Skip:
    """Slot: characters up to the next literal that no call needs; `written` is written in their place.

    With `tokens`, the characters may contain these control tokens, but no other one and no `=`; without, neither the
    call's own first literal, nor its section's, nor an empty line. There another header would begin, and the name
    before it would be run with that call's arguments.
    """

    written: str
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Braced(CallBody):
    """Slot: `{key:value,…}` with bare keys and strings between quote tokens, as the Gemma models write it.

    With `typed` False, every value is a string between the tokens, and its type comes from the tool's schema.
    """

    quote: str
    typed: bool = True

    label: ClassVar[str] = "odd values"

    @property
    def textual(self) -> bool:
        """True if every value is written as a string, regardless of its type."""
        return not self.typed

    @property
    def start(self) -> str:
        """The opening brace."""
        return "{"


@dataclass(frozen=True, slots=True)
class NestedTags(CallBody):
    """Slot: each parameter as an element, objects and arrays as elements inside it, every tag after one token.

    Args:
        token: the literal before every tag.
        item: the tag written for an array's items; when read, any tag is accepted.
    """

    token: str
    item: str = "item"

    label: ClassVar[str] = "parameters"
    raw: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class TextArgument(CallBody):
    """Slot: the tool's first required parameter as the text up to the closing tag."""

    label: ClassVar[str] = "element per tool"
    raw: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ToolElement(CallBody):
    """Slot: one XML element per tool.

    Args:
        layout: `own`: as the tool's `Element` declares; `children`: the tag is the tool's name and every parameter is
            a child element; `text`: the tag is the tool's name and its text is the first required parameter.
    """

    layout: Layout = "own"

    label: ClassVar[str] = "element per tool"
    raw: ClassVar[bool] = True


FormatPart = (
    str
    | Tag
    | Name
    | CountedName
    | CallId
    | Recipient
    | NameTag
    | TagParameters
    | Pairs
    | Json
    | Envelope
    | KeyEnvelope
    | PythonCall
    | Skip
    | Braced
    | NestedTags
    | TextArgument
    | ToolElement
)
"""A literal, or one slot. White space in and around a literal is written unchanged, and may be missing when read."""


@dataclass(frozen=True, slots=True)
class Section:
    """The opening and the end around a run of calls.

    Args:
        open: the literal or tag that opens it; it counts only if a call follows.
        close: the literal or tag that ends it; empty without one.
        each: whether each call is written in a separate section.
    """

    open: str | Tag
    close: str | Tag = ""
    each: bool = False

    @property
    def start(self) -> str:
        """The opening as it is written: a tag on a separate line, a literal unchanged."""
        return f"{edge(self.open)}\n" if isinstance(self.open, Tag) else self.open

    @property
    def end(self) -> str:
        """The end as it is written."""
        return f"\n{edge(self.close)}" if isinstance(self.close, Tag) else self.close


def edge(part: str | Tag) -> str:
    """Return a section's opening or closing as text."""
    return f"<{'/' if part.closing else ''}{part.name}>" if isinstance(part, Tag) else part


@dataclass(frozen=True, slots=True)
class Shape:
    """One way in which a format writes calls: the parts of one call, and the section around a run of them."""

    call: tuple[FormatPart, ...]
    section: Section | None = None

    @property
    def first(self) -> FormatPart:
        """The part that a call starts with, apart from white space."""
        return next(part for part in self.call if not isinstance(part, str) or part.strip())

    @property
    def opening(self) -> FormatPart:
        """The section's opening; without a section, the part that the call starts with."""
        return self.section.open if self.section is not None else self.first


@dataclass(frozen=True, slots=True)
class ResultShape:
    """The form of a tool's result for the model: text around the result, with `{name}`, `{id}` and `{status}` slots."""

    open: str
    close: str

    @property
    def mark(self) -> str:
        """The first tag or token of a result, up to white space or a slot; empty for one that is words alone."""
        found = re.search(r"[<\[][^\s{]*", self.open)
        return found[0] if found is not None else ""


THINK = (("<think>", "</think>"), ("<thinking>", "</thinking>"))


@dataclass(frozen=True, slots=True)
class Format:
    """The form of calls in text: one declaration, read in three directions.

    Args:
        name: its canonical name.
        call: the parts of one call, in order.
        section: the opening and end around a run of calls; None for calls without a section.
        separator: written between two calls; when read, its characters other than white space are skipped there.
        also: other shapes in which the same models write calls: read, never written.
        result: the form of results for the model.
        thinking: the tags around reasoning; a call inside them never counts.
        answer: the literals around a visible answer, or around text of others, in which nothing is a call.
        markup: control tokens that are hidden between calls and text.
        ends: tokens that end a turn and mean something else in prose: they are hidden after a call.
        aliases: other names of the same format.
        families: model families known to write it.

    Raises:
        FormatError: calls written like this could not be distinguished from text or each other; names the wrong part.
    """

    name: str
    call: tuple[FormatPart, ...]
    section: Section | None = None
    separator: str = "\n"
    also: tuple[Shape, ...] = ()
    result: ResultShape = ResultShape(
        'Result of {name}:\n<tool_result name="{name}" call_id="{id}" status="{status}">\n', "\n</tool_result>"
    )
    thinking: tuple[tuple[str, str], ...] = THINK
    answer: tuple[tuple[str, str], ...] = ()
    markup: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    families: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for shape in self.shapes:
            around = (edge(shape.section.open), edge(shape.section.close)) if shape.section is not None else None
            if wrong := fault_in_call(shape.call, around):
                raise FormatError(f"format {self.name!r} cannot be declared: {wrong}")
        wrong = blank_literals(thinking=self.thinking, answer=self.answer, markup=self.markup, ends=self.ends)
        if wrong := wrong or unsafe_close(self.result.close):
            raise FormatError(f"format {self.name!r} cannot be declared: {wrong}")

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Every shape that is read; the one that is written comes first."""
        return (Shape(self.call, self.section), *self.also)

    @property
    def textual(self) -> bool:
        """True if values are written as text, so that their types come from the schema (and coercion is lenient)."""
        return any(isinstance(p, CallBody) and p.textual for p in self.call)

    @property
    def body(self) -> str:
        """The kind of body, for listings."""
        return next((p.label for p in self.call if isinstance(p, CallBody)), "other")

    @property
    def tagged(self) -> bool:
        """True if each tool has its own element, whose tag calls it."""
        return any(isinstance(p, ToolElement) for p in self.call)

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings after which a sampler may stop: the end of the section. Empty for calls without a section.

        A sampler that stops there omits the string; the parser reads the calls regardless.
        """
        if self.section is None or self.section.each or not self.section.close:
            return ()
        close = self.section.close
        return (f"</{close.name}>" if isinstance(close, Tag) else close.strip(),)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a parser.

    Args:
        call: characters of one call; 10,000 or more, as this many may be searched for the end of a damaged call.
        depth: levels of nested JSON; 1 or more.
        space: white space skipped before a delimiter, in characters; 0 or more.
        name: characters of a tool's or parameter's name; 1 or more.

    Raises:
        ConfigError: a limit is out of range.
    """

    call: int = 16_000_000
    depth: int = MAX_DEPTH
    space: int = 1024
    name: int = 256

    def __post_init__(self) -> None:
        refuse("Limits", {name: getattr(self, name) for name in _LIMITS}, _LIMITS)


_LIMITS: Final = {"call": whole(10_000, "characters"), "depth": whole(1), "space": whole(0), "name": whole(1)}
