"""The end of a raw value, as patterns: its closing, the text that may follow, and the markup of its own kind of call.

Holds `ValueEnd`; `MarkupOrder`, the order of a quoted call's markup; and `Elements`, a cache for each tool's element.
Compiled once from the declarations; reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from agentkit.formats.atoms import PROSE, exact
from agentkit.formats.control import MARK
from agentkit.formats.format import Name, NameTag, Pairs, Section, Shape, Tag, TagParameters, edge
from agentkit.formats.reader import Delimiter, Search, any_beginning, beginnings, may_begin, pattern
from agentkit.formats.tags import SPACES, TAG_PART, closing_tag, opening_tag
from agentkit.toolspec import Element, ToolSpec

_LAYOUT: Final = r"(?:\s|\\n){0,1024}"  # white space between pairs, where GLM models also write a newline as its escape
_NOWHERE: Final = re.compile(r"(?!)")

T = TypeVar("T")


class ValueEnd:
    """The end of a raw value.

    Attributes:
        boundary: matches an opening or a closing; its groups are listed below.
        stops: finds the first place at which a boundary may be.
        what: the closing as it is written, for messages.
        call_end: the end of the call as it is written, for messages.
        marks: the openings and closings of such a call's parts; a value may contain these only in CDATA or in a
            complete quoted call; a grammar forbids them.
        around: finds a complete quoted call, which a NUL replaces, with the section around it.
        cut_end: matches the beginning of the call's end at the end of a text, as after a stop string.
        leftover: text that may not follow the call: one more value, or the end of one.
        newline: whether one newline at the value's start belongs to the layout.
        order: the order of a complete quoted call's markup.
        firsts: the first characters of all markup.

    Groups of the boundary: `close`, the value's closing, and in it `fit` if the next text may follow it; `open`,
    another opening of such a value; `call`, the opening of a call; `end`, the end of one.
    """

    __slots__ = (
        "around", "boundary", "call_end", "cut_end", "firsts", "leftover", "marks", "newline", "order", "stops", "what",
    )  # fmt: skip

    def __init__(
        self, groups: dict[str, str], part: str, stops: str, what: str, call_end: str, marks: Sequence[str]
    ) -> None:
        others = (f"(?P<{name}>{text})" for name, text in groups.items() if text and name not in ("close", "fit"))
        whole = "|".join([f"(?P<close>{groups['close']})(?P<fit>(?={groups['fit']}))?", *others])
        self.boundary = Delimiter(whole, part, re.IGNORECASE)
        self.stops: Search = re.compile(stops, re.IGNORECASE).search
        self.what, self.call_end, self.marks = what, call_end, markup_of(*marks)
        self.firsts = "".join({"<", *(text[0] for text in self.marks)})
        self.leftover = Delimiter(
            rf"\s{{0,64}}(?:{groups['close']}|{groups['open']})", rf"\s{{0,64}}(?:{part})?", re.IGNORECASE
        )
        self.around, self.newline = _NOWHERE, True
        self.cut_end: Search = _NOWHERE.match
        self.order: MarkupOrder | None = None

    @property
    def ends_call(self) -> bool:
        """True if the closing also ends the call: then an opening of the same name is content, up to its own end."""
        return self.call_end == self.what

    def is_complete(self, quoted: str) -> bool:
        """Return True if a quoted call has its markup as a call has it, as far as the order is known."""
        return self.order is None or self.order.fits(quoted, self.find_markup)

    def find_markup(self, text: str) -> re.Match[str] | None:
        """Return a fragment of this kind of call's markup in a text."""
        return markup_search(self.marks, self.what)(text)

    def has_markup(self, text: str) -> bool:
        """Return True if a text contains markup of this kind of call: it is written in CDATA then."""
        return self.find_markup(text) is not None or self.boundary.regex.search(text) is not None


class MarkupOrder:
    """The markup of a call with raw values: that before its parameters, of each parameter, and after them.

    `others` is the markup of its kind around calls.
    """

    __slots__ = ("_markup", "_order", "_sign")

    def __init__(self, *parts: Sequence[str], others: Sequence[str]) -> None:
        known = dict.fromkeys(text.lower() for part in (*parts, others) for text in part)
        self._sign = {text: chr(n) for n, text in enumerate(known, 0x100)}
        either = "|".join(re.escape(t) + r"(?![\w.:-])" * t[-1].isalnum() for t in sorted(known, key=len, reverse=True))
        self._markup = re.compile(either or "(?!)", re.IGNORECASE)
        before, each, after = ("".join(self._sign[text.lower()] for text in part) for part in parts)
        self._order = re.compile(f"{before}(?:{each})*{after}").fullmatch

    def fits(self, text: str, find_markup: Search) -> bool:
        """Return True if a text has the markup of one call, and no other of its kind, nor a match of `find_markup`."""
        signs = "".join(self._sign[text.lower()] for text in self._markup.findall(text))
        return self._order(signs) is not None and find_markup(self._markup.sub("\n", text)) is None


_MARKUP: Final = re.compile(r"</?[^<>\s]*>?").findall


def markup_of(*literals: str) -> tuple[str, ...]:
    """Return the tags and special tokens in literals; a literal without any as it is."""
    return tuple(found for text in literals for found in (_MARKUP(text) or [text]))


@lru_cache(4096)
def markup_search(marks: tuple[str, ...], closing: str = "") -> Search:
    """Return a search for these literals, in any case: a tag up to its name's end, or up to its interruption."""
    either = "|".join(_fragment(mark, closing) for mark in dict.fromkeys(marks))
    return re.compile(either or "(?!)", re.IGNORECASE).search


_PLAIN_TAG: Final = re.compile(r"<(?P<slash>/?)(?P<name>[\w.:-]+)>?").fullmatch
_SPECIAL: Final = re.compile(r"[|｜]|\]<").search


def fragments_of(mark: str, closing: str = "") -> tuple[str, ...]:
    """Return what is most of a special token, with a bar: it without its end, or without its first character.

    No part of the value's closing is one of another token: a grammar cannot forbid it.
    """
    if not _SPECIAL(mark):
        return (mark,)
    others = closing if mark != closing else ""
    enough = max(5, len(mark) * 2 // 3)  # Gemma's `<|"|>` is no longer than 5
    start = next((mark[:n] for n in range(enough, len(mark)) if mark[:n] not in others and _SPECIAL(mark[:n])), mark)
    end = mark[1:]
    return (start, end) if len(end) >= 5 and end not in others else (start,)


def _fragment(mark: str, closing: str) -> str:
    """Return a pattern for a literal or most of it: a tag without `>`, a special token without its end or start.

    A closing tag is also recognized if it stops at a line's end, another tag or the value's end, or lacks one letter.
    """
    if _SPECIAL(mark):
        return f"(?<!{MARK})(?:{'|'.join(map(re.escape, fragments_of(mark, closing)))})"  # a marked token is a quote
    if (tag := _PLAIN_TAG(mark)) is None:
        return re.escape(mark)
    name = tag["name"]
    whole = rf"<{tag['slash']}{re.escape(name)}(?=[\s/>=<:]|\Z)"
    if not tag["slash"]:
        return whole
    half = rf"</(?=[^\s<>]){beginnings(name)}(?=<|[ \t\r]{{0,64}}(?:\n|\Z))"
    near = "|".join(re.escape(name[:n] + name[n + 1 :]) for n in range(1, len(name) - 1))
    return rf"{whole}|{half}" + (rf"|</(?:{near})>" if len(name) > 3 else "")


@lru_cache(4096)
def end_beginning(end: str, *others: str) -> Search:
    """Match the first characters of `end` at the end of a text, if none of `others` begins with them."""
    shared = max((n for n in range(len(end)) if any(text.startswith(end[:n]) for text in others)), default=0)
    either = "|".join(re.escape(end[:n]) for n in range(len(end) - 1, max(shared, 1), -1))
    return re.compile(rf"{_LAYOUT}(?:{either or '(?!)'})\Z", re.IGNORECASE).match


def _around(shape: Shape) -> re.Pattern[str]:
    """Return a pattern for a complete quoted call, its tags replaced by a NUL, with its literals and its section."""
    tags = [n for n, part in enumerate(shape.call) if isinstance(part, NameTag | Tag)]
    before, after = (shape.call[: tags[0]], shape.call[tags[-1] + 1 :]) if tags else ((), ())
    lead, tail = ("".join(pattern(p.strip()) for p in parts if isinstance(p, str)) for parts in (before, after))
    call = rf"{lead}\s*\0\s*{tail}"
    edges = [re.escape(text) for text in _section_edges(shape.section)]
    around = rf"{edges[0]}\s*(?:{call}\s*)+{edges[1]}" if len(edges) == 2 else "(?!)"
    return re.compile(f"{around}|{call}" if lead or tail else around, re.IGNORECASE)


def _section_edges(section: Section | None) -> list[str]:
    """Return the opening and the end of a section, as they are written."""
    return [] if section is None else [text for e in (section.open, section.close) if (text := edge(e).strip())]


def end_of_value(shape: Shape, part: TagParameters | Pairs) -> ValueEnd:
    """Return the end of a value of this kind of call, cached by the declaration's identity: hashing it is slow."""
    found = _known.get((id(shape), id(part)))
    if found is None:
        end = _end_of_pair(shape, part) if isinstance(part, Pairs) else _end_of_parameter(shape, part)
        end.around, end.newline = _around(shape), part.newlines != "none"
        found = _known[id(shape), id(part)] = (shape, part, end)  # keeps both, so that no id is used again
    return found[2]


_known: dict[tuple[int, int], tuple[Shape, TagParameters | Pairs, ValueEnd]] = {}


def leftover_of(shape: Shape) -> Delimiter | None:
    """Return the delimiter of a further raw value, or of a value's end; None for calls without raw values."""
    part = next((part for part in shape.call if isinstance(part, TagParameters | Pairs)), None)
    return None if part is None else end_of_value(shape, part).leftover


_A_CLOSING_TAG: Final = re.compile(r"</[^<>]+>").fullmatch


def _end_of_parameter(shape: Shape, part: TagParameters) -> ValueEnd:
    """Return the end of a value between `<parameter name="…">` and its closing tag."""
    names = [p.name for p in shape.call if isinstance(p, NameTag)]
    after = shape.call[shape.call.index(part) :]
    tail = [text for p in after if isinstance(p, str | Tag) and (text := edge(p).strip())]
    section = _section_edges(shape.section)
    literals = [text for text in (*tail, *section[1:]) if not _A_CLOSING_TAG(text)]
    ends = [closing_tag(text[2:-1]) if _A_CLOSING_TAG(text) else pattern(text) for text in (*tail, *section[1:])]
    close, opens = closing_tag(part.name), opening_tag(part.name)
    groups = {"close": close, "open": opens, "call": "|".join(map(opening_tag, names)), "end": "".join(ends[:1])}
    groups["fit"] = f"{SPACES}(?:{'|'.join([opens, *ends])})" if ends else ""  # else any text may follow
    begun = [TAG_PART, *(f"(?:{close}{SPACES})?{beginnings(text)}" for text in literals)]
    firsts = re.escape("".join(sorted({name[0] for name in (*names, part.name)})))
    stops = [rf"<(?=[/\w{firsts}]|\Z)", *map(may_begin, literals)]
    before = [p.strip() for p in shape.call[: shape.call.index(part)] if isinstance(p, str) and "<" in p]
    calls = [*before, *(f"<{name}" for name in names)]
    marks = (f"</{part.name}>", f"<{part.name}", *calls, *tail, *section)
    call_end = "".join(tail[:1])
    end = ValueEnd(groups, "|".join(begun), "|".join(stops), f"</{part.name}>", call_end, marks)
    end.cut_end = end_beginning(call_end, f"<{part.name}", f"</{part.name}")
    end.order = MarkupOrder(
        markup_of(*calls[-1:]), (f"<{part.name}", f"</{part.name}>"), markup_of(*tail[:1]), others=end.marks
    )
    return end


def _end_of_pair(shape: Shape, part: Pairs) -> ValueEnd:
    """Return the end of a value between literals.

    With `newlines` "both", one newline before the literal belongs to the end.
    """
    close, key, at = part.close.strip(), part.key.strip(), shape.call.index(part)
    first = next(p for p in shape.call if isinstance(p, str) and p.strip()).strip()
    rest = [p.strip() for p in shape.call[at + 1 :] if isinstance(p, str) and p.strip()]
    texts = [*rest, *_section_edges(shape.section)[1:]]
    named = len(shape.call) > 1 and isinstance(shape.call[1], Name)
    trim = part.newlines == "both"
    groups = {
        "close": (r"(?:\r?\n)?" if trim else "") + exact(close),
        "fit": f"{_LAYOUT}(?:{'|'.join(map(exact, (key, *texts)))})",
        "open": rf"{_any_quotes(exact(key))}\s{{0,64}}(?=[^<>\"'\n\s])",
        "call": _any_quotes(exact(first)) + (r"(?=\s{0,64}[^\W\d])" if named else ""),
        "end": exact(rest[0]),
    }
    begun = [
        rf"{_any_quotes(any_beginning((close, first, key, *texts)))}\\?",
        *(rf"{_any_quotes(pattern(text))}\s{{0,64}}" for text in (key, first)),
        rf"{exact(close)}{_LAYOUT}(?:\\|{any_beginning((key, *texts))})",
    ]
    stops = [*dict.fromkeys(may_begin(text) for text in (close, first, key, *texts))]
    if trim:
        starts = "".join(re.escape(c) for c in sorted({text[0] for text in (close, *texts)}))
        stops += [rf"\n(?=[{starts}]|\Z)", rf"\r(?=\n(?:[{starts}]|\Z)|\Z)"]
    middle = markup_of(*(text for text in (*part.kind, part.middle if not part.kind else "") if "<" in text))
    calls = [p.strip() for p in shape.call[:at] if isinstance(p, str) and "<" in p]
    marks = (close, key, first, *calls, *middle, *rest, *_section_edges(shape.section))
    before = r"(?:\r?\n|\r)?" if trim else ""
    end = ValueEnd(groups, f"{before}(?:{'|'.join(begun)})", "|".join(stops), close, rest[0], marks)
    end.cut_end = end_beginning(rest[0], key, close)
    end.order = MarkupOrder(
        markup_of(*calls), (*markup_of(key), *middle, *markup_of(close)), markup_of(rest[0]), others=end.marks
    )
    return end


def _any_quotes(literals: str) -> str:
    """Return the pattern of literals with single or escaped quotes, even in attributes: no content opens like this."""
    return literals.replace('"', r"""\\?["']""")


class Elements:
    """The tools' elements, and results computed once for each; they live as long as these tools' openers."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self._known: dict[int, tuple[Any, tuple[str, ...], ToolSpec]] = {}  # by identity: an application makes more

    def add(self, element: Element) -> None:
        """Add the element of one tool."""
        self.tags.append(element.tag)

    def derive(self, tool: ToolSpec, make: Callable[[ToolSpec], T]) -> tuple[T, tuple[str, ...]]:
        """Return the result of `make` for a tool, and the tags of all others."""
        if (found := self._known.get(id(tool))) is None:
            assert tool.element is not None
            others = tuple(sorted({*self.tags} - {tool.element.tag}))
            found = self._known[id(tool)] = (make(tool), others, tool)  # kept, so that its id is not used again
        return found[:2]


def _tags(names: Sequence[str]) -> tuple[str, str, str]:
    """Return regular expressions for the opening tags of these elements, their beginnings, and their closing tags."""
    opens = "|".join(map(opening_tag, names))
    ends = "|".join(map(closing_tag, names))
    return (rf"(?:{opens})[^<>]{{0,512}}+(?<!/)>", rf"(?:{opens})[^<>]{{0,512}}+", ends) if names else ("", "(?!)", "")


@lru_cache(4096)  # names of tools and parameters, which an application may make without end
def end_of_element(
    name: str, siblings: tuple[str, ...], parents: tuple[str, ...], others: tuple[str, ...] = ()
) -> ValueEnd:
    """Return the end of a child element's value.

    Args:
        name: the child's.
        siblings: the names of elements that may be next to it.
        parents: the elements around it, the innermost first, the tool's own last.
        others: the tags of the other tools.
    """
    call, begun, ends = _tags((parents[-1], *others))
    follow = [*map(opening_tag, siblings), closing_tag(parents[0]), r"<[^\W\d!]"]  # which is then named
    groups = {"close": closing_tag(name), "open": opening_tag(name), "call": call, "end": ends}
    groups["fit"] = f"{SPACES}(?:{'|'.join(follow)})"
    marks = [f"</{name}>", f"<{name}", *(f"{slash}{parent}" for parent in parents for slash in ("</", "<"))]
    end = ValueEnd(groups, f"{TAG_PART}|{begun}", r"<(?=[/\w]|\Z)", f"</{name}>", f"</{parents[0]}>", marks)
    end.cut_end = end_beginning(f"</{parents[0]}>", f"</{name}>")
    return end


_AFTER: Final = r"[.,;:!?)\"'*_`]{0,3}"  # of the sentence in which an element is written


@lru_cache(4096)
def end_of_content(name: str, others: tuple[str, ...] = ()) -> ValueEnd:
    """Return the end of an element's own content: its closing tag, balanced with opening tags of the same name inside.

    Args:
        name: the element's.
        others: the tags of the other tools.
    """
    call, begun, ends = _tags(others)
    groups = {"close": (close := closing_tag(name)), "open": opening_tag(name), "call": call, "end": ends}
    groups["fit"] = rf"{_AFTER}(?:[\s<]|\Z)|{PROSE}\n"
    firsts = re.escape("".join(sorted({other[0] for other in (name, *others)})))
    part = rf"</?[^\s<>/\"'=]{{0,160}}\s{{0,64}}|{close}(?:{_AFTER}|{PROSE})|{begun}"
    end = ValueEnd(groups, part, rf"<(?=[/\w{firsts}]|\Z)", f"</{name}>", f"</{name}>", (f"</{name}>", f"<{name}"))
    end.cut_end = re.compile(rf"{PROSE}\Z").match
    return end
