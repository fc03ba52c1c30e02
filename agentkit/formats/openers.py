"""What stands between calls: where one may start, where thinking starts, and what is quoted as code.

Compiled once per parser from the formats' declarations and the tools; knows no body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final, Literal

from agentkit.formats.asides import Aside, Asides
from agentkit.formats.damage import unread
from agentkit.formats.damage.listed import BLOCKS, Listed, formed
from agentkit.formats.damage.unread import Unread
from agentkit.formats.format import (
    Envelope,
    Format,
    KeyEnvelope,
    Name,
    NameTag,
    PythonCall,
    Section,
    Shape,
    Tag,
    ToolElement,
)
from agentkit.formats.reader import (
    Delimiter,
    Search,
    any_beginning,
    any_of,
    beginnings,
    behind,
    literal,
    pattern,
)
from agentkit.formats.remembered import Remembered
from agentkit.formats.tags import closing, folded, opening_tag, tag, tag_of
from agentkit.formats.valueends import Elements
from agentkit.toolspec import Layout, ToolSpec

TAG: Final = Delimiter(
    r"<(?P<slash>/?)(?:[^\W\d][\w.-]{0,31}:)?(?P<name>[^\s<>/:\"'=]{1,160})(?=[\s/>])",
    r"</?[^\s<>/\"'=]{0,193}",
)
"""Any tag up to its name's end, with or without a namespace."""


_INSIDE: Final[Mapping[type, str]] = {Envelope: behind("[ {"), PythonCall: r"(?!\d{1,4}\])"}
"""What may stand behind a section's opening of one character, by the part that its calls begin with."""


@dataclass(frozen=True, slots=True)
class Opener:
    """What an opener may open. `weak` tells that it is common in prose: there only an offered tool makes a call.

    `word` is the opener of thinking or an answer that begins with a letter, and so counts at the start of a line only.
    """

    kind: Literal["call", "section", "close", "thinking", "answer", "markup", "fence", "fence_end", "aside"]
    format: Format
    shape: Shape
    tool: ToolSpec | None = None
    close: str = ""
    weak: bool = False
    word: str = ""
    aside: Aside | None = None


class Openers:
    """Every literal and tag at which prose may stop, and what each may open."""

    def __init__(self, formats: Sequence[Format], tools: Sequence[ToolSpec]) -> None:
        self.formats, self.tools = tuple(formats), tuple(tools)
        self.named = {tool.name: tool for tool in tools}
        self.elements: dict[Layout, Elements] = {}
        self.sections: dict[int, tuple[Opener, Opener, Opener]] = {}
        self.lookers: dict[int, tuple[Opener, Listed | None]] = {}
        self.lost: dict[int, tuple[Opener, Unread | None]] = {}
        self.strongs: dict[int, tuple[Opener, Opener]] = {}
        self.forms: dict[int, tuple[Opener, Delimiter]] = {}
        self.behind_calls: dict[tuple[str, str | Tag], Search] = {}
        self.tags: dict[tuple[str, bool], list[Opener]] = {}
        self.literals: dict[str, list[Opener]] = {}
        self.loose: dict[str, list[Opener]] = {}  # by the name of the tag that a literal is
        self.spelt: dict[str, str] = {}
        self.behind: dict[str, set[str]] = {}  # by an opener's first character, what may stand behind it
        self.lines: list[Opener] = []
        self.words: list[str] = []
        self.fence = Opener("fence", formats[0], Shape(())) if formats else None
        for format, shape in ((f, shape) for f in formats for shape in (*f.shapes, *lists_of(f))):
            self._add(format, shape, tools)
        for format in formats:  # behind all calls: what begins a call is never mere markup
            for tag_open, tag_close in format.thinking:
                self._literal(tag_open, Opener("thinking", format, Shape(()), close=tag_close))
            for answer_open, answer_close in format.answer:
                self._literal(answer_open, Opener("answer", format, Shape(()), close=answer_close))
            for text in format.markup:
                self._literal(text, Opener("markup", format, Shape(())))
        self.closers = {format.name: closers(format) for format in formats}
        alternatives = sorted(self.literals, key=len, reverse=True)
        self.literal = _one_of(tuple([self.spelt[key] for key in alternatives]))
        self.line = _line_start(self.words, tools) if self.lines else None
        python = any(isinstance(part, PythonCall) for entry in self.lines for part in entry.shape.call)
        self.block = _BLOCK if python and tools else None
        self.asides = Asides(self._taken(tools), self.literals.keys())
        for first, following in self.asides.behind():
            self.behind.setdefault(first, set()).add(following)
        self.firsts = "".join(sorted(self.behind))
        either = "|".join(sorted({rf"{re.escape(name[0])}(?:\Z|{re.escape(name[1:2])})" for name in self.loose}))
        self.may_be_loose = re.compile(rf"<(?:\Z|{either})", re.IGNORECASE).match if either else None
        self.search, self.within = self._searches(tools)
        order = {key: n for n, key in enumerate(self.literals)}
        for long in alternatives:  # an opener that begins another one is tried after it
            shorter = (long[:size] for size in range(1, len(long)))
            for short in sorted((key for key in shorter if key in order), key=order.__getitem__):
                self.literals[long] += self.literals[short]

    def _searches(self, tools: Sequence[ToolSpec]) -> tuple[Search, Search]:
        """What finds where prose stops, at the start of a line or in a code span, and inside a line."""
        # Where prose stops: at openers as far as their second character tells, at backticks and line ends, which tell
        # what is quoted and where a line starts. `search` is for prose at the start of a line or in a code span,
        # `within` for all other: there a line end needs no decision where what follows it opens nothing.
        opening = "".join(rf"|{re.escape(c)}(?={'|'.join(sorted(self.behind[c]))}|\Z)" for c in self.firsts)
        search = re.compile(f"[`~\n]{opening}").search
        starts = {word[0] for word in (*self.words, *(tool.name for tool in tools))} if self.lines else set()
        starts |= {word[0] for word in BLOCKS} if self.block else set()
        stops = re.escape("`~" + self.firsts)
        within = re.compile(rf"`{opening}|\n(?!\s{{0,64}}+[^\s{stops}{re.escape(''.join(sorted(starts)))}])").search
        return search, within

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
                    elements.tags.append(tool.element.tag)
                    self._tag(tool.element.tag, False, Opener("call", format, shape, tool))
            case NameTag(name) if " " in name:
                self._edge(f"<{name}", Opener("call", format, shape))
            case NameTag(name):
                self._tag(name, False, Opener("call", format, shape))
            case str(text):
                self._edge(text, Opener("call", format, shape, weak=weak(text)))
            case Envelope() if shape.section is None:
                self._literal("{", Opener("call", format, shape, weak=True), behind('{ "'))
            case Name() | PythonCall() if shape.section is None:
                self.lines.append(Opener("call", format, shape, weak=True))

    def _taken(self, tools: Sequence[ToolSpec]) -> set[str]:
        """The names of tags that stand for a tool, for a parameter or for a format's own markup."""
        names = [name for name, _ in self.tags]
        for tool in tools:
            names += tool.parameters.get("properties", ())
            for node in tool.element.nodes if tool.element is not None else ():
                names += node.path
        return set(map(str.lower, names))

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
        word = name[0].isalnum() or name[0] == "_"  # as most are: to escape each would cost more than all the rest
        self.behind.setdefault("<", set()).add(r"[/\w]" if word else rf"[/\w{re.escape(name[0])}]")

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

    def of_section(self, entry: Opener) -> tuple[Opener, Opener]:
        """The next call of a section that is open, and its end."""
        found = self.sections.get(id(entry))
        if found is None:
            inside = (replace(entry, kind="call"), replace(entry, kind="close"))
            found = self.sections[id(entry)] = (*inside, entry)  # holds it, so that its id is not used again
        return found[:2]

    def strong(self, entry: Opener) -> Opener:
        """The same opener where something else tells that a call is meant, whatever its name."""
        found = self.strongs.get(id(entry))
        if found is None:
            found = self.strongs[id(entry)] = (entry, replace(entry, weak=False))  # holds it, as above
        return found[1]

    def formed(self, entry: Opener) -> Delimiter:
        """What has the form of a call here, behind its section's opening if that stands here, whatever its name."""
        found = self.forms.get(id(entry))
        if found is None:
            of, section = formed(entry.shape.call[0]), entry.shape.section
            if entry.kind == "section" and section is not None:
                edge = edge_of(section.open)
                around = rf"(?:{edge.whole.pattern})\s{{0,64}}"
                of = Delimiter(around + of.whole.pattern, rf"{edge.part.pattern}|{around}(?:{of.part.pattern})?")
            found = self.forms[id(entry)] = (entry, of)
        return found[1]

    def listed(self, entry: Opener) -> Listed | None:
        """What finds the next call of a section; None where its calls tell themselves."""
        found = self.lookers.get(id(entry))
        if found is None:
            section, first = entry.shape.section, entry.shape.call[0]
            looker = None
            if section is not None and isinstance(first, Envelope | KeyEnvelope | PythonCall):
                strong = not entry.weak or _LABELLED(str(section.open)) is not None
                alike = [s.call[0] for s in entry.format.shapes if s.section == section and s.call[0] != first]
                firsts = (first, *(p for p in alike if isinstance(p, Envelope | KeyEnvelope | PythonCall)))
                looker = Listed(section, firsts, self.named, strong=strong)
            found = self.lookers[id(entry)] = (entry, looker)  # holds it, so that its id is not used again
        return found[1]

    def unread(self, entry: Opener) -> Unread | None:
        """What tells that a call was written here that cannot be read; None where what opens it is common in prose."""
        found = self.lost.get(id(entry))
        if found is None:
            found = self.lost[id(entry)] = (entry, self._unread(entry))  # holds it, so that its id is not used again
        return found[1]

    def _unread(self, entry: Opener) -> Unread | None:
        if not _tells(entry):
            return None
        if entry.tool is not None and entry.tool.element is not None:
            return unread.in_tag(entry.tool.element.tag, entry.tool.name, entry.tool.parameters.get("properties", ()))
        if (opening := unread.opening_of(entry.shape, section=entry.kind == "section")) is None:
            return None
        literals = [key for key, entries in self.literals.items() if any(map(_tells, entries))]
        tags = {name for (name, _), entries in self.tags.items() if any(map(_tells, entries))}
        stop = [any_of(self.spelt[key] for key in literals), *map(opening_tag, tags)]
        stop += [edge_of(edge).whole.pattern for edge in self.closers[entry.format.name]]
        return unread.behind(*opening, self.named, f"(?i:{'|'.join(stop)})")

    def closes_again(self, format: Format, own: str | Tag) -> Search:
        """Matches where what closes calls of this format stands or begins, but for its section's `own` end."""
        if (found := self.behind_calls.get((format.name, own))) is None:
            edges = [edge_of(edge) for edge in self.closers[format.name] if not begins(own, edge)]
            either = [*(e.whole.pattern for e in edges), *(e.part.pattern for e in edges)]
            found = re.compile("|".join(either) or "(?!)", re.IGNORECASE).match
            self.behind_calls[(format.name, own)] = found
        return found

    def at_tag(self, found: re.Match[str], *, loose: bool) -> Iterable[Opener]:
        """What this tag may open, the exactly spelt tool first; with `loose`, also where it is a literal misspelt."""
        closes = bool(found["slash"])
        whole = folded(found[0].lstrip("</"))
        entries = self.tags.get((whole, closes)) or self.tags.get((folded(found["name"]), closes)) or []
        exact = [e for e in entries if e.tool is None or (e.tool.element and e.tool.element.tag == found["name"])]
        other = self.loose.get(whole, ()) if loose and not closes else ()
        return [*(exact or entries), *other] if other else exact or entries


@lru_cache(64)
def _one_of(texts: tuple[str, ...]) -> Delimiter:
    """One of several literals: those of a set of formats, whatever the tools are."""
    return Delimiter(any_of(texts), any_beginning(texts) or r"(?!)")


def _tells(entry: Opener) -> bool:
    """Whether nothing but a call begins so."""
    return entry.kind in ("call", "section") and not entry.weak


def edge_of(edge: str | Tag) -> Delimiter:
    """An edge of a call or a section as a delimiter; one that ends with a closing tag, as tags are read."""
    return tag(edge.name, closing=edge.closing) if isinstance(edge, Tag) else _edge_of(edge.strip())


@cache
def _edge_of(edge: str) -> Delimiter:
    bracket, behind_it = ("]", edge[1:].strip()) if _BRACKET_FIRST(edge) else ("", edge)
    before, slash, name = behind_it.rpartition("</")
    if slash and name.endswith(">"):
        own = closing(name[:-1])
        whole = pattern(before) + own.whole.pattern
        part = rf"{beginnings(before)}|{pattern(before)}\s{{0,1024}}(?:{own.part.pattern[3:-3]})"
    elif bracket:
        whole, part = pattern(behind_it), beginnings(behind_it)
    else:
        return literal(edge)
    if bracket:  # the token behind it says that the list is over, with the bracket or without it
        whole, part = rf"(?:\]\s{{0,1024}})?{whole}", rf"(?:\]\s{{0,1024}})?(?:{part})"
    return Delimiter(whole, part, re.IGNORECASE)


_BRACKET_FIRST: Final = re.compile(r"\]\s*(?=<[|/]|```)").match


def begins(own: str | Tag, edge: str | Tag) -> bool:
    """Whether this is the section's own end, or the beginning of it."""
    return own == edge or (isinstance(own, str) and isinstance(edge, str) and own.startswith(edge))


@cache
def lists_of(format: Format) -> tuple[Shape, ...]:
    """Lists of envelopes between the literals of one call: models put all their calls there, as JSON's own list."""
    found = []
    for shape in format.shapes:
        match shape.call:
            case (str(start), Envelope() as envelope, *rest) if shape.section is None and start.strip():
                end = "".join(part for part in rest if isinstance(part, str))
                found.append(Shape((envelope,), Section(f"{start}[", f"]{end}")))
    return tuple(found)


@cache
def closers(format: Format) -> tuple[str | Tag, ...]:
    """What closes calls of this format, and the turn behind them."""
    found: dict[str | Tag, None] = dict.fromkeys(format.ends)
    for shape in format.shapes:
        edges = [shape.call[-1], shape.section.close if shape.section is not None else ""]
        found |= dict.fromkeys(e for e in edges if isinstance(e, str | Tag) and not weak(e) and len(shape.call) > 1)
    return tuple(sorted(found, key=lambda edge: -len(edge if isinstance(edge, str) else edge.name)))


def _line_start(words: Sequence[str], tools: Sequence[ToolSpec]) -> Delimiter:
    """The literals of letters, and the tools' names where arguments follow, that open a call at the start of a line."""
    names = sorted((tool.name for tool in tools), key=len, reverse=True)
    calls = [rf"(?:{'|'.join(map(re.escape, names))})(?=\s*[({{])"] if names else []
    part = [rf"{re.escape(name)}\s{{0,64}}" for name in names] + [beginnings(text) for text in (*names, *words)]
    return Delimiter("|".join([*calls, *map(pattern, words)]) or "(?!)", "|".join(part) or "(?!)")


_BLOCK: Final = Delimiter(rf"(?:{'|'.join(BLOCKS)})(?=[\s:(])", r"[a-z]{0,8}")
_made: Remembered[Openers] = Remembered()


def openers_of(formats: Sequence[Format], tools: Sequence[ToolSpec]) -> Openers:
    """The openers for these very formats and tools, remembered: a parser is made for every response."""
    return _made.get(formats, tools, lambda: Openers(formats, tools))


def _starts(tools: Sequence[ToolSpec]) -> str:
    """A regular expression for the beginnings of the tools' names, and for white space behind one."""
    whole = "|".join(rf"{re.escape(tool.name)}\s{{0,64}}" for tool in tools) or "(?!)"
    return "|".join([whole, *(beginnings(tool.name) for tool in tools)])


def opener(edge: str) -> str:
    """The beginning of a literal at which prose stops: up to its first white space or JSON bracket."""
    word = edge.split()[0]
    found = re.match(r"(.[^\[{]{2,})[\[{]", word)
    return found[1] if found and not found[1].isalnum() else word


_LABELLED: Final = re.compile(r"```\w*tool").match  # a fence that says that it holds calls
_COMMON: Final = ("", "[", "{", "]", "}", "<tool>")


def weak(edge: str | Tag) -> bool:
    """Whether this is common in prose, so that only an offered tool's name makes it the start of a call."""
    return not isinstance(edge, Tag) and (edge.strip() in _COMMON or fenced(edge))


def fenced(edge: object) -> bool:
    """Whether this is the beginning of a code fence."""
    return isinstance(edge, str) and edge.lstrip().startswith("```")


@dataclass(slots=True)
class Quoting:
    """Whether the prose is inside a code span or a fenced block, in the manner of Markdown.

    A fence is of backticks or tildes, at the start of a line, and closed by as many of the same. One line alone opens
    none with backticks (``` ```a``` ``` is a span), and one with a language's name, inside another, closes none: models
    show a block in a block so.

    `fence` is the number of characters that opened the block, `mark` which, `inner` how many blocks are open in it, and
    `opening` tells that its first line is not over; `span` the number that opened the span; 0 outside. `blank` tells
    that the current line holds nothing but white space so far; `off`, that quoting does not count.
    """

    off: bool = False
    fence: int = 0
    mark: str = ""
    inner: int = 0
    opening: bool = False
    span: int = 0
    blank: bool = True

    @property
    def quoted(self) -> bool:
        """Whether what stands here is quoted."""
        return not self.off and (self.fence > 0 or self.span > 0)

    @property
    def inside(self) -> bool:
        """Whether this is inside a line, and a line break changes nothing once more has been said in the next one."""
        return not (self.blank or self.span or self.opening)

    def said(self, text: str) -> None:
        """Plain prose, without backticks, went by."""
        line = text.rfind("\n")
        if line >= 0:
            self.span = 0  # an unmatched backtick is a character, not code to the end of the text
            self.blank = True
            self.opening = False
            text = text[line + 1 :]
        self.blank = self.blank and (not text or text.isspace())

    def may_close(self, mark: str, n: int) -> bool:
        """Whether a run of `n` marks here is the end of the open fence, unless it opens one inside it."""
        return self.fence > 0 and self.blank and mark == self.mark and n >= self.fence

    def ticks(self, mark: str, n: int, *, opens: bool = False) -> None:
        """A run of `n` backticks or tildes went by; with `opens`, a language's name is all that follows in the line."""
        if self.may_close(mark, n):
            self.inner += 1 if opens else -1
            if self.inner < 0:
                self.fence = self.inner = 0
        elif self.fence:
            if self.opening and mark == self.mark == "`":
                self.fence, self.span = 0, 0 if n == self.fence else self.fence
        elif self.blank and n >= 3:
            self.fence, self.mark, self.inner, self.opening = n, mark, 0, True
        elif mark == "`":
            self.span = n if not self.span else 0 if n == self.span else self.span
        self.blank = False
