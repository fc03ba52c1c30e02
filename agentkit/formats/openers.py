"""The openers between calls, of a call, thinking, an answer or an aside; and the places where prose may stop for one.

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
from agentkit.formats.callarguments import ParameterKinds
from agentkit.formats.edges import begins, closers, edge_delimiter, lists_of, one_of, opener, weak
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
from agentkit.formats.identity_cache import IdentityCache
from agentkit.formats.other_json import ARRAY
from agentkit.formats.reader import Delimiter, Search, after_first, any_beginning, literal, pattern
from agentkit.formats.tags import AFTER_NAME, PREFIX, TAG_PART, fold_name, name_pattern, tag, tag_of
from agentkit.formats.valueends import Elements
from agentkit.toolspec import Layout, ToolSpec

T = TypeVar("T")
K = TypeVar("K")

TAG: Final = Delimiter(
    r"<(?P<slash>/?)(?:[^\W\d][\w.-]{0,31}+:)?(?P<name>[^\s<>/:\"'=]{1,160}+)(?=[\s/>])",
    r"</?[^\s<>/\"'=]{0,193}",
)
"""Any tag up to its name's end, with or without a namespace."""

_INSIDE: Final[Mapping[type, str]] = {Envelope: after_first("[ {"), PythonCall: r"(?!\d{1,4}\])"}
"""A pattern for text after a section's opening of one character, by the part that its calls begin with."""
_IN_OBJECT: Final = "|".join([after_first('{ "'), "[\"'\u201c\u201d\u2018\u2019`n]"])
"""A pattern for text after the bracket of a call's object, in any quotes."""

BLOCKS: Final = (
    "if", "elif", "else", "for", "while", "def", "class", "with", "try", "except", "finally", "async", "match", "case",
)  # fmt: skip
"""The first words of a block of Python."""
BLOCK: Final = Delimiter(rf"(?:{'|'.join(BLOCKS)})(?=[\s:(])", r"[a-z]{0,8}")
"""The start of a block of Python at the start of a line."""


@dataclass(frozen=True, slots=True)
class Opener:
    """One thing that a literal or tag may open. `weak` means that it is common in prose: only an offered tool calls.

    `word` is the literal of thinking or an answer that begins with a letter, and so counts only at the start of a line.
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
    """Every opener by its spelling; those that begin with letters, in order."""

    __slots__ = (
        "__dict__",
        "after_first",
        "closers",
        "elements",
        "lines",
        "literals",
        "loose",
        "named",
        "spellings",
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
        self.spellings: Final[dict[str, str]] = {}
        self.after_first: Final[dict[str, set[str]]] = {}  # text after a first character, as patterns
        self.lines: Final[list[Opener]] = []
        self.words: Final[list[str]] = []
        for format, shape in ((f, shape) for f in formats for shape in (*f.shapes, *lists_of(f))):
            self._add(format, shape, tools)
        for format in formats:  # after all calls: an opening of a call is never only markup
            for tag_open, tag_close in format.thinking:
                self._add_literal(tag_open, Opener("thinking", format, Shape(()), close=tag_close))
            for answer_open, answer_close in format.answer:
                self._add_literal(answer_open, Opener("answer", format, Shape(()), close=answer_close))
            for text in format.markup:
                self._add_literal(text, Opener("markup", format, Shape(())))

    def _add(self, format: Format, shape: Shape, tools: Sequence[ToolSpec]) -> None:
        first = shape.first
        if shape.section is not None:
            opened = Opener("section", format, shape, weak=weak(shape.section.open))
            self._add_edge(shape.section.open, opened, _INSIDE.get(type(first), ""))
            if not weak(shape.section.close):
                self._add_edge(shape.section.close, Opener("close", format, shape))
        match first:
            case ToolElement(layout):
                elements = self.elements[layout] = Elements()
                for tool in tools:
                    tool = tool.with_element(layout)
                    assert tool.element is not None
                    elements.add(tool.element)
                    self._add_tag(tool.element.tag, False, Opener("call", format, shape, tool))
            case NameTag(name):
                self._add_edge(f"<{name}" if " " in name else Tag(name), Opener("call", format, shape))
            case str(text):
                self._add_edge(text, Opener("call", format, shape, weak=weak(text)))
            case Envelope() if shape.section is None:
                self._add_literal("{", Opener("call", format, shape, weak=True), _IN_OBJECT)
            case Name() | PythonCall() if shape.section is None:
                self.lines.append(Opener("call", format, shape, weak=True))
        self._add_parameters(format, shape, tools)

    def _add_parameters(self, format: Format, shape: Shape, tools: Sequence[ToolSpec]) -> None:
        for part in shape.call:
            if isinstance(part, TagParameters):
                tag = f"<{part.name}" if " " in part.name else Tag(part.name)
                self._add_edge(tag, Opener("parameter", format, shape))
            elif isinstance(part, Pairs | NestedTags):
                key = part.key if isinstance(part, Pairs) else f"{part.token}<"
                self._add_edge(key, Opener("parameter", format, shape))
            elif isinstance(part, ToolElement):
                for equals in ("='", '="'):  # an attribute that may quote a call, as one without "<" does not
                    self._add_literal(equals, Opener("parameter", format, shape), r"[\"'](?![^\"'<]{0,64}[\"'])")
                for name in {name for tool in tools for name in tool.parameters.get("properties", {})}:
                    if (fold_name(name), False) not in self.tags:
                        self._add_tag(name, False, Opener("parameter", format, shape))

    def _add_edge(self, edge: str | Tag, entry: Opener, inside: str = "") -> None:
        if isinstance(edge, Tag):
            self._add_tag(edge.name, edge.closing, entry)
        elif edge.strip():
            self._add_literal(opener(edge), entry, after_first(edge.strip()) or inside)
            if _opens_only_calls(entry) and (name := tag_of(edge)):
                self.loose.setdefault(fold_name(name), []).append(entry)
                self.after_first["<"].add(f"[{name[0].lower()}{name[0].upper()}]")

    def _add_tag(self, name: str, closes: bool, entry: Opener) -> None:
        self.tags.setdefault((fold_name(name), closes), []).append(entry)
        word = (first := name[:1] or "_").isalnum() or first == "_"  # as most are: to escape each would cost more
        self.after_first.setdefault("<", set()).add(r"[/\w]" if word else rf"[/\w{re.escape(first)}]")

    def _add_literal(self, text: str, entry: Opener, follows: str | None = None) -> None:
        text = text.strip()
        if text[0].isalnum():  # letters are everywhere in prose: such an opener counts at the start of a line
            self.lines.append(entry if entry.kind == "call" else replace(entry, word=text))
            self.words.append(text)
            return
        key = "".join(text.split())
        self.spellings[key] = text
        self.after_first.setdefault(text[0], set()).add(after_first(text) if follows is None else follows)
        entries = self.literals.setdefault(key, [])
        if entry.kind not in ("thinking", "answer", "markup") or not any(e.kind == entry.kind for e in entries):
            entries.append(entry)

    def at_tag(self, found: re.Match[str], *, loose: bool) -> Iterable[Opener]:
        """Return the openers of this tag, the exactly spelt tool first; and a misspelt literal if `loose`."""
        closes = bool(found["slash"])
        whole = fold_name(found[0].lstrip("</"))
        if (entries := self.tags.get((whole, closes))) is None:
            entries = self.tags.get((fold_name(found["name"].rstrip(AFTER_NAME)), closes), [])
        exact = [e for e in entries if e.tool is None or (e.tool.element and e.tool.element.tag == found["name"])]
        other = self.loose.get(whole, ()) if loose and not closes else ()
        return [*(exact or entries), *other] if other else exact or entries

    def tag_names(self, tools: Sequence[ToolSpec]) -> set[str]:
        """Return the names of tags of a tool, of a parameter or of a format's own markup."""
        names = [name for name, _ in self.tags]
        for tool in tools:
            names += tool.parameters.get("properties", ())
            for node in tool.element.nodes if tool.element is not None else ():
                names += node.path
        return set(map(str.lower, names))

    def at_literal(self, text: str) -> Iterable[Opener]:
        """Return the openers of this literal; in another case than declared, only those of calls and sections."""
        key = "".join(text.split())
        if (found := self.literals.get(key)) is not None:
            return found
        alike = (e for other, found in self.literals.items() if other.lower() == key.lower() for e in found)
        return [e for e in alike if e.kind not in ("thinking", "answer", "markup")]

    @cached_property
    def tool_names(self) -> str:
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
        """The pattern of all openings that only calls have."""
        return re.compile(self.own_calls() or "(?!)")

    def own_calls(self) -> str:
        """Return a regular expression for all openings that only calls have."""
        either: dict[str, None] = {}
        for entry in (entry for found in (*self.literals.values(), *self.tags.values()) for entry in found):
            if _opens_only_calls(entry):
                either[opening_of(entry).regex.pattern] = None
        return "|".join(either)

    def share_beginnings(self) -> None:
        """Let an opener that is the beginning of another one be tried after it."""
        order = {key: n for n, key in enumerate(self.literals)}
        for long in sorted(self.literals, key=len, reverse=True):
            shorter = (long[:size] for size in range(1, len(long)))
            for short in sorted((key for key in shorter if key in order), key=order.__getitem__):
                self.literals[long] += self.literals[short]


class Successors:
    """The openers after an opener: the section's next call, its end, or a call without its opening.

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
    """Searches for the places where prose stops; made from what may follow openers' first characters, and line starts.

    That is at openers, judged by their first two characters, and at backticks and line ends, which begin and end quoted
    text and lines. `search` is for prose at the start of a line or in a code span, `in_line` for all other prose: there
    a line end needs no decision if the next line opens nothing. Both find a backslash at the end.
    `bare` says that they also find the start of other JSON, as a call may be JSON that nothing marks as one.
    """

    __slots__ = ("bare", "in_line", "search")

    def __init__(self, after_first: Mapping[str, Iterable[str]], starts: Iterable[str], *, bare: bool) -> None:
        if bare:
            after_first = {**after_first, "[": (*after_first.get("[", ()), ARRAY)}
        firsts = "".join(sorted(after_first))
        opening = "".join(rf"|{re.escape(c)}(?={'|'.join(sorted(after_first[c]))}|\Z)" for c in firsts)
        stops = re.escape("`~" + firsts + "".join(sorted(starts)))
        item = r"(?:(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])[ \t]{0,7}+){0,4}+"  # markers, after which a fence may begin
        nothing = rf"[^\s{stops}>\-+*\d]|[-+*]\S|\d{{1,9}}+(?:[^\d.)]|[.)]\S)"
        self.bare: Final = bare
        self.search: Final[Search] = re.compile(rf"[`~\n]{opening}|\\\Z").search
        line_end = rf"\n(?!\s{{0,64}}+{item}(?:{nothing}))"
        self.in_line: Final[Search] = re.compile(rf"`|~(?=~~|~?\Z){opening}|\\\Z|{line_end}").search


class LineStart:
    """The texts that may begin a call only at the start of a line, and their openers.

    `opens` matches these texts: openers that begin with letters, and tools' names before arguments. `entries` are their
    openers; `block` is the start of a block of Python there, None if no call is Python; `firsts`, the first characters
    of all these.
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
    """Return a regular expression for one of these names."""
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"


class Openers:
    """Every literal and tag at which prose may stop, and the openers of each.

    `fence` is the fence that wraps a reply's calls; `lists` says that Python calls may be in brackets alone;
    `may_be_loose` matches the beginning of a literal that may be misspelt.
    """

    __slots__ = (
        "_derived",
        "_parameter_kinds",
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
        self._parameter_kinds: dict[int, ParameterKinds] = {}
        self.following: Final[dict[tuple[int, ...], Any]] = {}  # the cache of `nextcall`, by the identities of openers
        self.fence = Opener("fence", formats[0], Shape(())) if formats else None
        self.literal = one_of(tuple([table.spellings[key] for key in sorted(table.literals, key=len, reverse=True)]))
        self.line = LineStart(table.words, [*table.named], table.lines) if table.lines else None
        self.asides = Asides(table.tag_names(tools), table.literals.keys(), [format.result.mark for format in formats])
        for first, following in self.asides.first_characters():
            table.after_first.setdefault(first, set()).add(following)
        firsts = re.escape("".join({name[0] for name in table.loose}))
        self.may_be_loose = re.compile(rf"<(?:\Z|[{firsts}])" if firsts else "(?!)", re.IGNORECASE).match
        self.lists = any(e.weak and isinstance(e.shape.first, PythonCall) for e in table.literals.get("[", ()))
        if self.lists:
            table.after_first["["].add(r"\s{0,64}[\"']")
        starts = self.line.firsts if self.line is not None else ()
        self.stops = Stops(table.after_first, starts, bare=bool(table.literals.keys() & set("{[")))
        table.share_beginnings()

    def derive(self, make: Callable[[Openers, K], T], of: K) -> T:
        """Return a function's result for a shape or an opener with these openers, computed once."""
        if (found := self._derived.get((make, id(of)))) is None:
            found = self._derived[make, id(of)] = make(self, of), of  # kept here, so that its id stays its own
        made: T = found[0]
        return made

    def successors(self, entry: Opener) -> Successors:
        """Return the openers after this one."""
        return self.derive(Successors, entry)

    def parameter_kinds(self, tool: ToolSpec) -> ParameterKinds:
        """Return the parameters of one of the tools by the values that its schema allows."""
        if (found := self._parameter_kinds.get(id(tool))) is None:
            found = ParameterKinds(tool)  # has the tool, so that its id is not used again
            self._parameter_kinds[id(tool)] = found
        return found

    def closes_again(self, format: Format, own: str | Tag) -> Search:
        """Return a match function for the ends of this format's calls, or halves of them, but its section's `own`."""
        if (found := self._derived.get((format.name, own))) is None:
            edges = [edge_delimiter(edge) for edge in self.table.closers[format.name] if not begins(own, edge)]
            either = [*(e.regex.pattern for e in edges), *(rf"(?:{e.beginning})\Z" for e in edges)]
            found = re.compile("|".join(either) or "(?!)", re.IGNORECASE).match
            self._derived[format.name, own] = found
        return found


def opening_of(entry: Opener) -> Delimiter:
    """Return the delimiter of the opening of a call or a section."""
    section, first = entry.shape.section, entry.shape.first
    if entry.tool is not None and entry.tool.element is not None:
        return Delimiter(rf"<{PREFIX}{name_pattern(entry.tool.element.tag)}(?![\w.-])", TAG_PART, re.IGNORECASE)
    if entry.kind == "section" and section is not None:
        return edge_delimiter(section.open)
    match first:
        case str():
            return edge_delimiter(first)
        case NameTag(name):
            return tag(name, closing=False)
    return literal("{")


def _opens_only_calls(entry: Opener) -> bool:
    """Return True if only a call begins like this."""
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


_made: IdentityCache[Openers] = IdentityCache()


def openers_of(formats: Sequence[Format], tools: Sequence[ToolSpec]) -> Openers:
    """Return the openers for exactly these formats and tools, cached: a parser is created for every response.

    Raises:
        FormatError: a tool is of another type, or has no name.
    """
    return _made.get(formats, tools, lambda: Openers(formats, tools))
