"""What may open between calls: a call, thinking, an answer, an aside; and where prose may stop for it.

Compiled once per parser from the formats' declarations and the tools; knows no body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeVar

from agentkit.errors import FormatError
from agentkit.formats.asides import Aside, Asides
from agentkit.formats.callarguments import Expected
from agentkit.formats.edges import begins, closers, edge_of, lists_of, one_of, opener, weak
from agentkit.formats.format import (
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
from agentkit.formats.other_json import ARRAY
from agentkit.formats.reader import Delimiter, Search, any_beginning, behind, literal, pattern
from agentkit.formats.remembered import Remembered
from agentkit.formats.tags import AFTER_NAME, PREFIX, TAG_PART, folded, spelt, tag, tag_of
from agentkit.formats.valueends import Elements
from agentkit.toolspec import Layout, ToolSpec

T = TypeVar("T")
K = TypeVar("K")

TAG: Final = Delimiter(
    r"<(?P<slash>/?)(?:[^\W\d][\w.-]{0,31}+:)?(?P<name>[^\s<>/:\"'=]{1,160}+)(?=[\s/>])",
    r"</?[^\s<>/\"'=]{0,193}",
)
"""Any tag up to its name's end, with or without a namespace."""

_INSIDE: Final[Mapping[type, str]] = {Envelope: behind("[ {"), PythonCall: r"(?!\d{1,4}\])"}
"""What may follow a section's opening of one character, by the part that its calls begin with."""
_IN_OBJECT: Final = "|".join([behind('{ "'), "[\"'\u201c\u201d\u2018\u2019`n]"])
"""What may follow the bracket of a call's object, also of one in other quotes."""

BLOCKS: Final = (
    "if", "elif", "else", "for", "while", "def", "class", "with", "try", "except", "finally", "async", "match", "case",
)  # fmt: skip
"""What a block of Python begins with."""
BLOCK: Final = Delimiter(rf"(?:{'|'.join(BLOCKS)})(?=[\s:(])", r"[a-z]{0,8}")
"""What starts a block of Python at the start of a line."""


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
        return any_name(self.named)

    @cached_property
    def parameters(self) -> str:
        """A regular expression for the names of the offered tools' parameters."""
        return any_name({name for tool in self.named.values() for name in tool.parameters.get("properties", {})})

    @cached_property
    def tool_tags(self) -> str:
        """A regular expression for the tags of the offered tools' elements."""
        return any_name({tag for elements in self.elements.values() for tag in elements.tags})

    @cached_property
    def own(self) -> re.Pattern[str]:
        """Finds what nothing but calls begins with."""
        return re.compile(self.own_calls() or "(?!)")

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
    """What may follow what opened here: the section's next call, its end, or a call whose opening was forgotten.

    Source of the last: 40 calls in the Berkeley leaderboard's results, as by Hermes 2 Pro 70B in parallel_186.
    """

    __slots__ = ("end", "inside", "unopened")

    def __init__(self, _: Openers, entry: Opener) -> None:
        self.inside = replace(entry, kind="call", weak=False)
        self.end = replace(entry, kind="close")
        self.unopened: Opener | None = None
        parts = [part for part in entry.shape.call if part is not entry.shape.call[0] or not isinstance(part, str)]
        if entry.shape.section is None and parts and isinstance(parts[0], Envelope):
            self.unopened = replace(entry, kind="call", shape=Shape((*parts,)), weak=True)


class Stops:
    """What finds where prose stops, given what may follow an opener's first character, and the letters of line starts.

    That is at openers, judged by their first two characters, and at backticks and line ends, which show what is quoted
    and where a line starts. `search` is for prose at the start of a line or in a code span, `within` for all other
    prose: there a line end needs no decision if what follows it opens nothing. Both find a backslash at the end.
    `bare` tells whether they also find what may begin other JSON, as a call may be JSON that nothing marks as one.
    """

    __slots__ = ("bare", "search", "within")

    def __init__(self, behind: Mapping[str, Iterable[str]], starts: Iterable[str], *, bare: bool) -> None:
        if bare:
            behind = {**behind, "[": (*behind.get("[", ()), ARRAY)}
        firsts = "".join(sorted(behind))
        opening = "".join(rf"|{re.escape(c)}(?={'|'.join(sorted(behind[c]))}|\Z)" for c in firsts)
        stops = re.escape("`~" + firsts + "".join(sorted(starts)))
        item = r"(?:(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])[ \t]{0,7}+){0,4}+"  # markers, after which a fence may begin
        nothing = rf"[^\s{stops}>\-+*\d]|[-+*]\S|\d{{1,9}}+(?:[^\d.)]|[.)]\S)"
        self.bare: Final = bare
        self.search: Final[Search] = re.compile(rf"[`~\n]{opening}|\\\Z").search
        line_end = rf"\n(?!\s{{0,64}}+{item}(?:{nothing}))"
        self.within: Final[Search] = re.compile(rf"`|~(?=~~|~?\Z){opening}|\\\Z|{line_end}").search


class LineStart:
    """What may begin a call only at the start of a line, and what it then opens.

    `opens` are these beginnings: openers that begin with letters, and tools' names if arguments follow; `entries`, what
    they may open; `block` is what starts a block of Python there, None if no call is Python; `firsts`, the first
    characters of all these.
    """

    __slots__ = ("block", "entries", "firsts", "opens")

    def __init__(self, words: Sequence[str], names: Sequence[str], entries: list[Opener]) -> None:
        known, python = any_name(names), any(isinstance(part, PythonCall) for e in entries for part in e.shape.call)
        whole = "|".join([rf"(?:{known})(?=\s*[({{])", *map(pattern, words)])
        self.opens: Final = Delimiter(whole, rf"(?:{known})\s{{0,64}}|{any_beginning((*names, *words))}")
        self.entries: Final = entries
        self.block: Final = BLOCK if python and names else None
        self.firsts: Final = {word[0] for word in (*words, *names, *(BLOCKS if self.block is not None else ()))}


def any_name(names: Iterable[str]) -> str:
    """A regular expression for one of these names."""
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"


class Openers:
    """Every literal and tag at which prose may stop, and what each may open.

    `fence` is the fence that wraps a reply's calls; `lists` says whether Python calls may be in brackets alone;
    `may_be_loose` matches the beginning of what may be a misspelt literal.
    """

    __slots__ = (
        "_derived",
        "_expected",
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
        _check_tools(tools)
        self.formats = tuple(formats)
        self.table = table = Table(formats, tools)
        self._derived: dict[tuple[Any, Any], Any] = {}
        self._expected: dict[int, Expected] = {}
        self.following: Final[dict[tuple[int, ...], Any]] = {}  # by the identities of openers: what `nextcall` knows
        self.fence = Opener("fence", formats[0], Shape(())) if formats else None
        self.literal = one_of(tuple([table.spelt[key] for key in sorted(table.literals, key=len, reverse=True)]))
        self.line = LineStart(table.words, [*table.named], table.lines) if table.lines else None
        self.asides = Asides(table.taken(tools), table.literals.keys(), [format.result.mark for format in formats])
        for first, following in self.asides.behind():
            table.behind.setdefault(first, set()).add(following)
        firsts = re.escape("".join({name[0] for name in table.loose}))
        self.may_be_loose = re.compile(rf"<(?:\Z|[{firsts}])" if firsts else "(?!)", re.IGNORECASE).match
        self.lists = any(e.weak and isinstance(e.shape.first, PythonCall) for e in table.literals.get("[", ()))
        if self.lists:
            table.behind["["].add(r"\s{0,64}[\"']")
        starts = self.line.firsts if self.line is not None else ()
        self.stops = Stops(table.behind, starts, bare=bool(table.literals.keys() & set("{[")))
        table.share_beginnings()

    def derived(self, make: Callable[[Openers, K], T], of: K) -> T:
        """What a function makes of a shape or an opener with these openers, made once."""
        if (found := self._derived.get((make, id(of)))) is None:
            found = self._derived[make, id(of)] = make(self, of), of  # kept here, so that its id stays its own
        made: T = found[0]
        return made

    def meant(self, entry: Opener) -> Meant:
        """What may follow what opened here."""
        return self.derived(Meant, entry)

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


def _check_tools(tools: Iterable[object]) -> None:
    """Refuse tools of another type.

    Raises:
        FormatError: one is not a `ToolSpec`, or has no name; says what was found.
    """
    for tool in tools:
        if not isinstance(tool, ToolSpec):
            found = f"{type(tool).__name__} {tool!r:.60}"
            raise FormatError(f"tools are a sequence of ToolSpec, such as registry.offered_specs(None); found {found}")
        if not tool.name:
            raise FormatError(f"a tool has no name: {tool!r:.60}")


_made: Remembered[Openers] = Remembered()


def openers_of(formats: Sequence[Format], tools: Sequence[ToolSpec]) -> Openers:
    """The openers for exactly these formats and tools, cached: a parser is created for every response.

    Raises:
        FormatError: a tool is of another type, or has no name.
    """
    return _made.get(formats, tools, lambda: Openers(formats, tools))
