"""What may open between calls: a call, thinking, an answer, an aside; and where prose may stop for it.

Compiled once per parser from the formats' declarations and the tools; knows no body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeVar

from agentkit.formats.asides import Aside, Asides
from agentkit.formats.callarguments import Expected
from agentkit.formats.edges import begins, closers, edge_of, lists_of, one_of, opener, shown, weak
from agentkit.formats.format import (
    Braced,
    Envelope,
    Format,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Shape,
    Tag,
    TagParameters,
    ToolElement,
)
from agentkit.formats.reader import Delimiter, Search, beginnings, behind, literal, pattern
from agentkit.formats.remembered import Remembered
from agentkit.formats.stops import BLOCK, line_start, line_starts, stops_of
from agentkit.formats.tags import AFTER_NAME, PREFIX, TAG_PART, folded, spelt, tag, tag_of
from agentkit.formats.valueends import Elements
from agentkit.toolspec import Layout, ToolSpec

T = TypeVar("T")

TAG: Final = Delimiter(
    r"<(?P<slash>/?)(?:[^\W\d][\w.-]{0,31}+:)?(?P<name>[^\s<>/:\"'=]{1,160}+)(?=[\s/>])",
    r"</?[^\s<>/\"'=]{0,193}",
)
"""Any tag up to its name's end, with or without a namespace."""

_INSIDE: Final[Mapping[type, str]] = {Envelope: behind("[ {"), PythonCall: r"(?!\d{1,4}\])"}
"""What may follow a section's opening of one character, by the part that its calls begin with."""
_IN_OBJECT: Final = "|".join([behind('{ "'), "[\"'\u201c\u201d\u2018\u2019`n]"])
"""What may follow the bracket of a call's object, also of one in other quotes."""


@dataclass(frozen=True, slots=True)
class Opener:
    """What an opener may open. `weak` means that it is common in prose: there only an offered tool makes a call.

    `word` is the opener of thinking or an answer that begins with a letter, and so only counts at the start of a line.
    """

    kind: Literal["call", "section", "parameter", "close", "thinking", "answer", "markup", "fence", "aside"]
    format: Format
    shape: Shape
    tool: ToolSpec | None = None
    close: str = ""
    weak: bool = False
    word: str = ""
    aside: Aside | None = None


class Table:
    """Every opener by how it is written; for the openers that letters begin, in order."""

    __slots__ = (
        "__dict__",
        "behind",
        "closers",
        "elements",
        "lines",
        "literals",
        "loose",
        "named",
        "plain",
        "spelt",
        "tags",
        "words",
    )

    def __init__(self, formats: Sequence[Format], tools: Sequence[ToolSpec]) -> None:
        self.named: Final = {tool.name: tool for tool in tools}
        self.closers: Final = {format.name: closers(format) for format in formats}
        self.elements: Final[dict[Layout, Elements]] = {}
        self.tags: Final[dict[tuple[str, bool], list[Opener]]] = {}
        self.literals: Final[dict[str, list[Opener]]] = {}
        self.loose: Final[dict[str, list[Opener]]] = {}  # by the name of the tag that a literal is
        self.spelt: Final[dict[str, str]] = {}
        self.behind: Final[dict[str, set[str]]] = {}  # by an opener's first character, what may follow it
        self.lines: Final[list[Opener]] = []
        self.words: Final[list[str]] = []
        self.plain: Final[dict[int, Any]] = {}  # by an opener's identity: what `plaincalls` knows of it
        for format, shape in ((f, shape) for f in formats for shape in (*f.shapes, *lists_of(f))):
            self._add(format, shape, tools)
        for format in formats:  # after all calls: what begins a call is never only markup
            for tag_open, tag_close in format.thinking:
                self._literal(tag_open, Opener("thinking", format, Shape(()), close=tag_close))
            for answer_open, answer_close in format.answer:
                self._literal(answer_open, Opener("answer", format, Shape(()), close=answer_close))
            for text in format.markup:
                self._literal(text, Opener("markup", format, Shape(())))

    def _add(self, format: Format, shape: Shape, tools: Sequence[ToolSpec]) -> None:
        first = shape.first
        if shape.section is not None:
            opened = Opener("section", format, shape, weak=weak(shape.section.open))
            self._edge(shape.section.open, opened, _INSIDE.get(type(first), ""))
            if not weak(shape.section.close):
                self._edge(shape.section.close, Opener("close", format, shape))
        match first:
            case ToolElement(layout):
                elements = self.elements[layout] = Elements()
                for tool in tools:
                    tool = tool.with_element(layout)
                    assert tool.element is not None
                    elements.add(tool.element)
                    self._tag(tool.element.tag, False, Opener("call", format, shape, tool))
            case NameTag(name):
                self._edge(f"<{name}" if " " in name else Tag(name), Opener("call", format, shape))
            case str(text):
                self._edge(text, Opener("call", format, shape, weak=weak(text)))
            case Envelope() if shape.section is None:
                self._literal("{", Opener("call", format, shape, weak=True), _IN_OBJECT)
            case Name() | PythonCall() if shape.section is None:
                self.lines.append(Opener("call", format, shape, weak=True))
        self._parameters(format, shape, tools)

    def _parameters(self, format: Format, shape: Shape, tools: Sequence[ToolSpec]) -> None:
        """What begins a parameter, outside of any call."""
        for part in shape.call:
            if isinstance(part, TagParameters):
                tag = f"<{part.name}" if " " in part.name else Tag(part.name)
                self._edge(tag, Opener("parameter", format, shape))
            elif isinstance(part, Pairs | NestedTags):
                key = part.key if isinstance(part, Pairs) else f"{part.token}<"
                self._edge(key, Opener("parameter", format, shape))
            elif isinstance(part, ToolElement):
                for equals in ("='", '="'):  # an attribute that may quote a call, as one without "<" does not
                    self._literal(equals, Opener("parameter", format, shape), r"[\"'](?![^\"'<]{0,64}[\"'])")
                for name in {name for tool in tools for name in tool.parameters.get("properties", {})}:
                    if (folded(name), False) not in self.tags:
                        self._tag(name, False, Opener("parameter", format, shape))

    def _edge(self, edge: str | Tag, entry: Opener, inside: str = "") -> None:
        if isinstance(edge, Tag):
            self._tag(edge.name, edge.closing, entry)
        elif edge.strip():
            self._literal(opener(edge), entry, behind(edge.strip()) or inside)
            if _tells(entry) and (name := tag_of(edge)):
                self.loose.setdefault(folded(name), []).append(entry)
                self.behind["<"].add(f"[{name[0].lower()}{name[0].upper()}]")

    def _tag(self, name: str, closes: bool, entry: Opener) -> None:
        self.tags.setdefault((folded(name), closes), []).append(entry)
        word = (first := name[:1] or "_").isalnum() or first == "_"  # as most are: to escape each would cost more
        self.behind.setdefault("<", set()).add(r"[/\w]" if word else rf"[/\w{re.escape(first)}]")

    def _literal(self, text: str, entry: Opener, follows: str | None = None) -> None:
        text = text.strip()
        if text[0].isalnum():  # letters are everywhere in prose: such an opener counts at the start of a line
            self.lines.append(entry if entry.kind == "call" else replace(entry, word=text))
            self.words.append(text)
            return
        key = "".join(text.split())
        self.spelt[key] = text
        self.behind.setdefault(text[0], set()).add(behind(text) if follows is None else follows)
        entries = self.literals.setdefault(key, [])
        if entry.kind not in ("thinking", "answer", "markup") or not any(e.kind == entry.kind for e in entries):
            entries.append(entry)

    def at_tag(self, found: re.Match[str], *, loose: bool) -> Iterable[Opener]:
        """What this tag may open, the exactly spelt tool first; with `loose`, also as a misspelt literal."""
        closes = bool(found["slash"])
        whole = folded(found[0].lstrip("</"))
        if (entries := self.tags.get((whole, closes))) is None:
            entries = self.tags.get((folded(found["name"].rstrip(AFTER_NAME)), closes), [])
        exact = [e for e in entries if e.tool is None or (e.tool.element and e.tool.element.tag == found["name"])]
        other = self.loose.get(whole, ()) if loose and not closes else ()
        return [*(exact or entries), *other] if other else exact or entries

    def taken(self, tools: Sequence[ToolSpec]) -> set[str]:
        """The names of tags of a tool, of a parameter or of a format's own markup."""
        names = [name for name, _ in self.tags]
        for tool in tools:
            names += tool.parameters.get("properties", ())
            for node in tool.element.nodes if tool.element is not None else ():
                names += node.path
        return set(map(str.lower, names))

    def at_literal(self, text: str) -> Iterable[Opener]:
        """What this literal may open: in another case than declared, only what is a part of a call or section."""
        key = "".join(text.split())
        if (found := self.literals.get(key)) is not None:
            return found
        alike = (e for other, found in self.literals.items() if other.lower() == key.lower() for e in found)
        return [e for e in alike if e.kind not in ("thinking", "answer", "markup")]

    @cached_property
    def known(self) -> str:
        """A regular expression for the offered tools' names."""
        return "|".join(map(re.escape, sorted(self.named, key=len, reverse=True))) or "(?!)"

    @cached_property
    def parameters(self) -> str:
        """A regular expression for the names of the offered tools' parameters."""
        names = {name for tool in self.named.values() for name in tool.parameters.get("properties", {})}
        return "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"

    @cached_property
    def tool_tags(self) -> str:
        """A regular expression for the tags of the offered tools' elements."""
        tags = {tag for elements in self.elements.values() for tag in elements.tags}
        return "|".join(map(re.escape, sorted(tags, key=len, reverse=True))) or "(?!)"

    @cached_property
    def own(self) -> re.Pattern[str]:
        """Finds what nothing but calls begins with."""
        return re.compile(self.own_calls() or "(?!)", re.IGNORECASE)

    def own_calls(self) -> str:
        """A regular expression for what nothing but calls begins with."""
        either: dict[str, None] = {}
        for entry in (entry for found in (*self.literals.values(), *self.tags.values()) for entry in found):
            if _tells(entry):
                either[opening_of(entry).whole.pattern] = None
        return "|".join(either)

    def share_beginnings(self) -> None:
        """An opener that is the beginning of another one is tried after it."""
        order = {key: n for n, key in enumerate(self.literals)}
        for long in sorted(self.literals, key=len, reverse=True):
            shorter = (long[:size] for size in range(1, len(long)))
            for short in sorted((key for key in shorter if key in order), key=order.__getitem__):
                self.literals[long] += self.literals[short]


class Meant:
    """What follows from one opener; each part of it is computed when it is first needed."""

    def __init__(self, entry: Opener, table: Table) -> None:
        self.entry, self._table = entry, table

    @cached_property
    def inside(self) -> Opener:
        """The next call of a section that is open."""
        return replace(self.entry, kind="call", weak=False)

    @cached_property
    def end(self) -> Opener:
        """The end of a section."""
        return replace(self.entry, kind="close")

    @cached_property
    def unopened(self) -> Opener | None:
        """The same call without its opening literal, for use after another one; None if nothing shows what it is.

        Source: 40 calls in the Berkeley leaderboard's results, as by Hermes 2 Pro 70B in parallel_186.
        """
        shape = self.entry.shape
        parts = shape.call[isinstance(shape.call[0], str) :]
        if len(parts) > 1 and isinstance(parts[1], Braced) and (word := _WORD_BEFORE_NAME(str(shape.call[0]))):
            parts = (word[1], *parts)  # the rest of the literal, after its token
        elif shape.section is not None or not parts or not (isinstance(parts[0], Envelope) or shown(parts)):
            return None
        return replace(self.entry, kind="call", shape=Shape(parts), weak=True)

    @cached_property
    def begins_again(self) -> Delimiter:
        """What a call without its opening literal begins with: an object, or a tool's name and what follows names."""
        first, *rest = self.unopened.shape.call if self.unopened is not None else (None, "")
        written = word = ""
        if isinstance(first, str):
            written, word, first, rest = first, pattern(first), Name(), ["{"]
        if not isinstance(first, Name) or not isinstance(rest[0], str):
            return Delimiter(r"\{" if isinstance(first, Envelope) else "(?!)", "(?!)")
        names = sorted(self._table.named, key=len, reverse=True)
        either = "|".join(map(re.escape, names)) or "(?!)"
        return Delimiter(
            rf"{word}(?:{either})\s{{0,64}}{pattern(rest[0].strip())}",
            "|".join(
                [
                    *(beginnings(f"{written}{name}") for name in names),
                    rf"{word}(?:{either})\s{{0,64}}{beginnings(rest[0].strip())}",
                ]
            ),
        )


@dataclass(frozen=True, slots=True)
class LineStart:
    """What may begin a call only at the start of a line, and what it then opens.

    Args:
        opens: the beginnings: tools' names, and openers that begin with letters; `firsts` are their first characters.
        entries: what they may open; `block`, what starts a block of Python there, None if no call is Python.
    """

    opens: Delimiter
    entries: list[Opener]
    block: Delimiter | None
    firsts: set[str]


class Openers:
    """Every literal and tag at which prose may stop, and what each may open.

    `fence` is the fence that wraps a reply's calls; `may_be_loose` matches what may be a misspelt literal.
    """

    __slots__ = (
        "_derived",
        "_expected",
        "_meant",
        "asides",
        "fence",
        "following",
        "formats",
        "line",
        "lists",
        "literal",
        "may_be_loose",
        "stops",
        "table",
    )

    def __init__(self, formats: Sequence[Format], tools: Sequence[ToolSpec]) -> None:
        self.formats = tuple(formats)
        self.table = table = Table(formats, tools)
        self._meant: dict[int, Meant] = {}
        self._expected: dict[int, Expected] = {}
        self._derived: dict[tuple[Any, Any], Any] = {}
        self.following: Final[dict[tuple[int, ...], Any]] = {}  # by the identities of openers: what `nextcall` knows
        self.fence = Opener("fence", formats[0], Shape(())) if formats else None
        self.literal = one_of(tuple([table.spelt[key] for key in sorted(table.literals, key=len, reverse=True)]))
        python = any(isinstance(part, PythonCall) for entry in table.lines for part in entry.shape.call)
        block = BLOCK if python and tools else None
        begun = line_start(table.words, [tool.name for tool in tools]) if table.lines else None
        letters = {text.strip()[:1] for text in (*table.words, *(tool.name for tool in tools))}
        self.line = LineStart(begun, table.lines, block, letters) if begun is not None else None
        self.asides = Asides(table.taken(tools), table.literals.keys(), [format.result.mark for format in formats])
        for first, following in self.asides.behind():
            table.behind.setdefault(first, set()).add(following)
        either = "|".join(sorted({rf"{re.escape(name[0])}(?:\Z|{re.escape(name[1:2])})" for name in table.loose}))
        self.may_be_loose = re.compile(rf"<(?:\Z|{either})", re.IGNORECASE).match if either else None
        starts = line_starts((*table.words, *(tool.name for tool in tools)), blocks=block is not None)
        self.lists = any(e.weak and isinstance(e.shape.first, PythonCall) for e in table.literals.get("[", ()))
        if self.lists:
            table.behind["["].add(r"\s{0,64}[\"']")
        self.stops = stops_of(table.behind, starts if table.lines else (), bare=bool(table.literals.keys() & set("{[")))
        table.share_beginnings()

    def meant(self, entry: Opener) -> Meant:
        """What follows from an opener."""
        if (found := self._meant.get(id(entry))) is None:
            found = self._meant[id(entry)] = Meant(entry, self.table)  # kept here, so that its id is not used again
        return found

    def derived(self, make: Callable[[Openers, Shape], T], shape: Shape) -> T:
        """What a function makes of a shape with these openers, made once."""
        if (found := self._derived.get((make, id(shape)))) is None:
            found = self._derived[make, id(shape)] = make(self, shape), shape  # kept here, so that its id stays its own
        made: T = found[0]
        return made

    def expected(self, tool: ToolSpec) -> Expected:
        """What the schema of one of the tools says."""
        if (found := self._expected.get(id(tool))) is None:
            found = self._expected[id(tool)] = Expected(tool)  # has the tool, so that its id is not used again
        return found

    def closes_again(self, format: Format, own: str | Tag) -> Search:
        """Matches what closes calls of this format, or the beginning of it, except its section's `own` end."""
        if (found := self._derived.get((format.name, own))) is None:
            edges = [edge_of(edge) for edge in self.table.closers[format.name] if not begins(own, edge)]
            either = [*(e.whole.pattern for e in edges), *(e.begun for e in edges)]
            found = re.compile("|".join(either) or "(?!)", re.IGNORECASE).match
            self._derived[format.name, own] = found
        return found


def opening_of(entry: Opener) -> Delimiter:
    """How what opens a call or a section is written, as a delimiter."""
    section, first = entry.shape.section, entry.shape.first
    if entry.tool is not None and entry.tool.element is not None:
        return Delimiter(rf"<{PREFIX}{spelt(entry.tool.element.tag)}(?![\w.-])", TAG_PART, re.IGNORECASE)
    if entry.kind == "section" and section is not None:
        return edge_of(section.open)
    match first:
        case str():
            return edge_of(first)
        case NameTag(name):
            return tag(name, closing=False)
    return literal("{")


def _tells(entry: Opener) -> bool:
    """Whether nothing but a call begins like this."""
    return entry.kind in ("call", "section") and not entry.weak


_WORD_BEFORE_NAME: Final = re.compile(r"<[^<>]+>(\w+ ?:)").fullmatch
_made: Remembered[Openers] = Remembered()


def openers_of(formats: Sequence[Format], tools: Sequence[ToolSpec]) -> Openers:
    """The openers for exactly these formats and tools, cached: a parser is created for every response."""
    return _made.get(formats, tools, lambda: Openers(formats, tools))
