"""What may be in a raw value and after it: the tags and literals of its own kind of call, as one pattern.

Knows the declarations; reads nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any, Final

from agentkit.formats.atoms import exact
from agentkit.formats.format import Name, NameTag, Pairs, Shape, Tag, TagParameters
from agentkit.formats.reader import Delimiter, Search, any_beginning, beginnings, may_begin, pattern
from agentkit.formats.tags import PREFIX, SPACES, TAG_PART, closing_tag, either, opening_tag, spelt, tag
from agentkit.formats.worn import begins_closing, halved, is_left
from agentkit.toolspec import Element, ToolSpec

_LAYOUT: Final = r"(?:\s|\\n){0,1024}"  # white space between pairs, where GLM models also write a newline as its escape
A_TAG: Final = re.compile(r"<(/?)([^\W\d][\w:.-]*)")
_CALLS: Final = ("call", "other")  # of a token's groups, those of a call's opening
_INSIDE: Final = r"[^<>]{0,512}"  # characters of an opening tag after its name; a longer one is content


@dataclass(frozen=True, slots=True)
class ValueEnd:
    """Where a raw value ends.

    Args:
        token: matches what may end the value, or open or close something inside it; its groups are listed below.
        stops: finds the first place at which a token may be.
        what: the closing tag, for messages.
        nested: matches an opening tag of the same name inside the value, whose closing tag is content; only for the
            content of an element, where a value and its call end with one tag.
        verbatim: whether a newline at the value's start belongs to the value.
        own: matches the closing of a value (group `close`), or the opening of one.
        calls: matches the end of a call (group `end`), or what looks like the opening of one.
        over: the end of the enclosing call as written; empty if that is not a single string.
        sections: each matches the end of a section (group `end`), or the opening of one; or the same of what encloses
            a call inside of it. Empty if these are not markup.
        opens: the literals of a value's opening: before its name, and immediately before it, if that is a tag.

    Groups of the token: `close`, a value's closing; `fit`, something that may follow it does, and within it `over`, the
    end of the call, and within that `shut`, only its section's end; `odd`, an undeclared tag follows; `value` and
    `call`, the opening of a value (with its `name`) and of a call; `end`, the call's end; `tail`, what is written
    between that and the section's end; `section`, that end; `other`, the opening of another tool's call.
    """

    token: Delimiter
    stops: Search
    what: str
    nested: Delimiter | None = None
    verbatim: bool = False
    own: re.Pattern[str] | None = None
    calls: re.Pattern[str] | None = None
    over: str = ""
    sections: tuple[re.Pattern[str], ...] = ()
    opens: tuple[str, ...] = ()

    def worn_opening(self, text: str) -> bool:
        """Whether a part of what opens a value is in this text more often than all of it."""
        found = sum(f["close"] is None for f in self.own.finditer(text)) if self.own is not None else 0
        return any(text.count(part) > found for part in self.opens)

    def marks(self, text: str) -> bool:
        """Whether a value opens or closes in this text."""
        return self.own is not None and self.own.search(text) is not None

    def balances(self, text: str) -> bool:
        """Whether as many values and calls end in this text as start there."""
        values = [f["close"] is not None for f in self.own.finditer(text)] if self.own is not None else []
        calls = [f["end"] is not None for f in self.calls.finditer(text)] if self.calls is not None else []
        return 2 * sum(values) == len(values) and 2 * sum(calls) == len(calls)

    def whole(self, text: str) -> bool:
        """Whether as many calls end in this text as start there, and no tag is closed there that was not opened.

        Nor may a section start there that does not end: after a damaged call, that of another call would.
        """
        calls = [f["end"] is not None for f in self.calls.finditer(text)] if self.calls is not None else []
        return not _closes_too_often(text) and 2 * sum(calls) == len(calls) and not self.open_section(text)

    def ends_too_often(self, text: str) -> bool:
        """Whether this text has the ends of several calls, and one that nothing opens: a call has it twice."""
        found = Counter(f.lastgroup for f in self.token.whole.finditer(text))
        if found["end"] < 2:
            return False
        return found["tail"] > found["end"] or _closes_too_often(text)

    def open_section(self, text: str) -> bool:
        """Whether more sections start in this text than end there."""
        around = ([f["end"] is not None for f in kind.finditer(text)] for kind in self.sections)
        return any(2 * sum(ends) < len(ends) for ends in around)

    def crosses_sections(self, text: str) -> bool:
        """Whether a section that does not start in this text ends there, and another one starts after it."""
        for kind in self.sections:
            around = [f["end"] is not None for f in kind.finditer(text)]
            depths = enumerate(accumulate(-1 if ends else 1 for ends in around))
            if not all(around[next((n for n, depth in depths if depth < 0), len(around)) :]):
                return True
        return False

    def closes(self, text: str) -> bool:
        """Whether this text contains a value's closing, or ends with a part of one."""
        found = self.own.finditer(text) if self.own is not None else ()
        return any(f["close"] for f in found) or halved(text, self.what)

    def crossed(self, text: str) -> bool:
        """Whether a value is closed in this text that nothing there opens, and one or a call is opened after that."""
        behind = self.unopened(text)
        found = self.own.finditer(text, behind) if self.own is not None and behind >= 0 else ()
        if any(f["close"] is None for f in found):
            return True
        return behind >= 0 and any(f.lastgroup in _CALLS for f in self.token.whole.finditer(text, behind))

    def stray(self, text: str) -> int:
        """The index after the first closing of a value that nothing in this text opens; -1 if there is none.

        Upper and lower case are the same here: a model that wrote such a closing meant the value to end with it. At the
        text's end, so are most of a closing and all of it.
        """
        if (behind := self.unopened(text)) >= 0:
            return behind
        return len(text.rstrip()) if halved(text, self.what) else -1

    def doubled(self, text: str) -> bool:
        """Whether the first or the last thing in this text is a value's closing that nothing there opens.

        So is the beginning of one at its end, and what is left of another one may follow it.
        """
        if self.own is None or self.what[0] not in text:
            return False
        if not self.marks(text):
            return begins_closing(text, self.what)
        if begins_closing(text, self.what):
            return True
        first = self.own.match(text, len(text) - len(text.lstrip()))
        if first is not None and first["close"]:
            return True
        found = list(self.own.finditer(text))
        last = found[-1] if found and self._only_ends(text[found[-1].end() :]) else None
        return last is not None and bool(last["close"]) and 2 * sum(f["close"] is not None for f in found) > len(found)

    def _only_ends(self, text: str) -> bool:
        """Whether this is only what is left of a closing, or what ends a call and its section, or nothing."""
        text = text.strip()
        while (found := self.token.match(text)) is not None and found.lastgroup in ("end", "tail", "section"):
            text = text[found.end() :].lstrip()
        return is_left(text, self.what)

    def opened(self, text: str) -> int:
        """How many more values are opened in this text than closed."""
        found = [f["close"] is None for f in self.own.finditer(text)] if self.own is not None else []
        return 2 * sum(found) - len(found)

    def half(self, text: str) -> bool:
        """Whether a call starts in this text that does not end there."""
        ends = [f["end"] is not None for f in self.calls.finditer(text)] if self.calls is not None else []
        return 2 * sum(ends) < len(ends)

    def in_a_call(self, text: str, at: int) -> bool:
        """Whether a call opens in this text before this index."""
        return self.calls is not None and any(f["end"] is None for f in self.calls.finditer(text, 0, at))

    def ends_first(self, text: str) -> bool:
        """Whether a call ends in this text before one opens."""
        first = self.calls.search(text) if self.calls is not None else None
        return first is not None and first["end"] is not None

    def unopened(self, text: str) -> int:
        """The index after the first whole closing of a value that nothing in this text opens; -1 if there is none."""
        depth = 0
        for found in self.own.finditer(text) if self.own is not None else ():
            depth += -1 if found["close"] else 1
            if depth < 0:
                return found.end()
        return -1


def _closes_too_often(text: str) -> bool:
    """Whether a tag is closed in this text more often than it is opened."""
    tags = Counter(A_TAG.findall(text))
    return any(n > tags["", name] for (slash, name), n in tags.items() if slash)


@dataclass(frozen=True, slots=True)
class Marks:
    """What one kind of call consists of, as regular expressions; empty for what it does not have."""

    close: str
    value: str
    call: str
    end: str
    follow: str
    tail: str = ""
    section: str = ""
    other: str = ""
    odd: str = ""

    def token(self, newline: str, space: str) -> str:
        """All of them as one regular expression; `newline` may precede what closes, `space` may follow a value."""
        shut = f"(?P<shut>{self.section})" if self.section else ""
        over = f"(?P<over>{'|'.join(filter(None, (self.end, shut)))})"
        if not (self.end or shut):  # nothing ends the call: whatever follows may
            over = "(?P<over>(?!))|"
        fit = f"(?P<fit>(?={space}(?:{over}|{self.follow})))"
        if self.odd:
            fit += f"|(?P<odd>(?={space}(?:{self.odd})))"
        rest = {"end": self.end, "tail": self.tail, "section": self.section}
        closing = "|".join(f"(?P<{name}>{text})" for name, text in rest.items() if text)
        openings = {"value": self.value, "call": self.call, "other": self.other}
        opening = "|".join(f"(?P<{name}>{text})" for name, text in openings.items() if text)
        return f"{newline}(?:(?P<close>{self.close})(?:{fit})?|{closing})|{opening}"

    def own(self, otherwise: str = "") -> re.Pattern[str]:
        """What closes and opens a value; `otherwise`, what opens one in another format that is closed alike."""
        opens = self.value
        if otherwise:
            opens = f"<(?:{self.value.removeprefix('<')}|{otherwise.removeprefix('<')})"
        return re.compile(either("close", [self.close], opens), re.IGNORECASE)


def _whole_tag(names: str) -> str:
    """A regular expression for a whole opening tag that does not close itself."""
    return rf"<{PREFIX}(?:{names})(?=[\s>]){_INSIDE}(?<!/)>"


def _started_tag(names: str) -> str:
    """The same for its beginnings, after its name."""
    return rf"<{PREFIX}(?:{names})\s{_INSIDE}+"


def end_of_value(shape: Shape, part: TagParameters | Pairs) -> ValueEnd:
    """The end of a value of this kind of call, looked up by the declaration's identity: its hash is expensive."""
    found = _known.get((id(shape), id(part)))
    if found is None:
        end = end_of_pair(shape, part) if isinstance(part, Pairs) else end_of_parameter(shape, part)
        found = _known[id(shape), id(part)] = (shape, part, end)  # keeps both, so that no id is used again
    return found[2]


_known: dict[tuple[int, int], tuple[Shape, TagParameters | Pairs, ValueEnd]] = {}


@cache
def end_of_parameter(shape: Shape, part: TagParameters) -> ValueEnd:
    """The end of a value between `<parameter name="…">` and its closing tag."""
    at = shape.call.index(part)
    own = re.escape(part.name)
    calls = "|".join(re.escape(p.name) for p in shape.call if isinstance(p, NameTag)) or "(?!)"
    ends = [closing_tag(p.name) for p in shape.call[at:] if isinstance(p, Tag)]
    texts = [p.strip() for p in shape.call[at:] if isinstance(p, str) and p.strip()]
    ended, tail = ("|".join(ends), texts) if ends or not texts else (pattern(texts[0]), texts[1:])
    close = shape.section.close if shape.section is not None else ""
    section = "" if isinstance(close, Tag) else close.strip()
    name = rf"""(?=[^<>]*?\s{re.escape(part.attribute)}\s{{0,64}}=\s{{0,64}}["']?(?P<name>[^"'<>]{{1,256}}))"""
    marks = Marks(
        close=closing_tag(part.name),
        value=rf"<{PREFIX}{own}(?=[\s>]){name}{_INSIDE}(?<!/)>",
        call=_whole_tag(calls),
        end=ended,
        follow=opening_tag(part.name),
        tail="|".join(map(pattern, tail)),
        section=closing_tag(close.name) if isinstance(close, Tag) else pattern(section),
    )
    literals = [*texts, *([section] if section else [])]
    begun = [TAG_PART, _started_tag(f"{own}|{calls}")]
    begun += [f"(?:{closing_tag(part.name)}{SPACES})?{beginnings(text)}" for text in literals]
    first = {p.name[0] for p in shape.call if isinstance(p, NameTag | TagParameters)}
    stops = rf"<(?=[/\w{re.escape(''.join(sorted(first)))}]|\Z)" + "".join(f"|{may_begin(t)}" for t in literals)
    token = Delimiter(marks.token("", SPACES), "|".join(begun), re.IGNORECASE)
    begins = either("end", ends, rf"<{PREFIX}(?:{calls})\b")
    whole = re.compile(begins, re.IGNORECASE) if ends else None
    over = next((f"</{p.name}>" for p in shape.call[at:] if isinstance(p, Tag)), "")
    search = re.compile(stops, re.IGNORECASE).search
    own_tag = f"</{part.name}>"
    opens = marks.own(rf"<{PREFIX}{own}={_INSIDE}>")
    return ValueEnd(token, search, own_tag, own=opens, calls=whole, over=over, sections=_sections(shape))


@cache
def end_of_pair(shape: Shape, part: Pairs) -> ValueEnd:
    """The end of a value between literals.

    With `newlines` "both", one newline before the literal belongs to the end; with "none", not even the one at the
    value's start is dropped.
    """
    close, key = part.close.strip(), part.key.strip()
    at = shape.call.index(part)
    first = next(p for p in shape.call if isinstance(p, str) and p.strip()).strip()
    rest = [p.strip() for p in shape.call[at + 1 :] if isinstance(p, str) and p.strip()]
    section = shape.section.close if shape.section is not None else ""
    ending = "" if isinstance(section, Tag) else section.strip()
    words = [text.split()[0] for text in (part.middle, *part.kind[:1])]
    named = rf"""\s{{0,64}}(?P<name>[^<>"\n]{{1,256}}?)\s{{0,64}}(?={_quoted("|".join(map(pattern, words)))})"""
    marks = Marks(  # in a pattern that is read in any case
        close=exact(close),
        value=_quoted(exact(key)) + named,
        call=_quoted(exact(first)) + _name_of(shape),
        end=exact(rest[0]),
        follow=exact(key),
        tail="|".join(map(exact, rest[1:])),
        section=exact(ending),
    )
    trim = part.newlines == "both"
    texts = [*rest, *([ending] if ending else [])]
    begun = [rf"{_quoted(any_beginning((close, first, key, *texts)))}\\?"]
    begun.append(rf"{_quoted(pattern(key))}\s{{0,64}}[^<>\"\n]{{0,256}}\s{{0,64}}{_quoted(any_beginning(words))}")
    begun.append(rf"{_quoted(pattern(first))}\s{{0,64}}")
    follow = "|".join(["\\\\", any_beginning((key, rest[0], *([ending] if ending else [])))])
    begun += [f"{pattern(close)}{_LAYOUT}(?:{follow})"]
    before = r"(?:\r?\n|\r)?" if trim else ""
    starts = sorted({text[0] for text in (close, *texts)})
    marked = f"[{re.escape(''.join(starts))}]"
    newline_stops = rf"|\n(?={marked}|\Z)|\r(?=\n(?:{marked}|\Z)|\Z)" if trim else ""
    stops = "|".join(dict.fromkeys(may_begin(text) for text in (close, first, key, *texts))) + newline_stops
    token = Delimiter(
        marks.token(r"(?:\r?\n)?" if trim else "", _LAYOUT), f"{before}(?:{'|'.join(begun)})", re.IGNORECASE
    )
    search = re.compile(stops, re.IGNORECASE).search
    whole = re.compile(either("end", [pattern(rest[0])], pattern(_WORD.split(first)[0])))
    verbatim = part.newlines == "none"
    around = _sections(shape)
    opened = key.startswith(f"<{close[2:-1]}=")
    own = marks.own(rf"<{PREFIX}{re.escape(close[2:-1])}\s{_INSIDE}(?<!/)>" if opened else "")
    tag = f"<{close[2:]}" if close.startswith("</") else key
    opens = (key, tag) if part.middle.rstrip().endswith(tag) else (key,)
    end = ValueEnd(token, search, close, verbatim=verbatim, own=own, calls=whole, over=rest[0], sections=around)
    return replace(end, opens=opens)


def _quoted(literals: str) -> str:
    """The pattern of literals in which the quotes around an attribute may be single or escaped: no content opens so."""
    return literals.replace('"', r"""\\?["']""")


_WORD: Final = re.compile(r"(?<=\S)[\s\"']")  # the text before it names the literal


def _sections(shape: Shape) -> tuple[re.Pattern[str], ...]:
    """What ends a section of this shape, or opens one; and the literals around a call that is in a tag."""
    edges = [] if shape.section is None else [(shape.section.open, shape.section.close)]
    if any(isinstance(p, NameTag) for p in shape.call) and isinstance(shape.call[0], str):
        last = shape.call[-1]
        edges += [(shape.call[0], last)] if isinstance(last, str) else []
    found = []
    for first, last in edges:
        opens = opening_tag(first.name) if isinstance(first, Tag) else pattern(first.strip())
        ends = closing_tag(last.name) if isinstance(last, Tag) else pattern(last.strip())
        found += [re.compile(f"(?P<end>{ends})|{opens}", re.IGNORECASE)] if opens and ends else []
    return tuple(found)


def _name_of(shape: Shape) -> str:
    """What must follow the literal that opens a call: the beginning of a name, if one comes next."""
    at = next(i for i, p in enumerate(shape.call) if isinstance(p, str) and p.strip())
    named = len(shape.call) > at + 1 and isinstance(shape.call[at + 1], Name)
    return r"(?=\s{0,64}[^\W\d])" if named else ""


class Elements:
    """The tools' elements: their tags, and where the values inside them end, created once for each.

    They live as long as what was created from these tools: an application may offer others with each request.
    """

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.children: dict[str, None] = {}  # the names of their child elements
        self.groups: dict[int, tuple[ToolSpec, Any]] = {}  # by a tool's identity: its child elements as a tree
        self._ends: dict[tuple[int, str, tuple[str, ...]], tuple[ToolSpec, ValueEnd]] = {}
        self._others: dict[str, tuple[str, ...]] = {}

    def add(self, element: Element) -> None:
        """Add the element of one tool."""
        self.tags.append(element.tag)
        for node in element.nodes:
            if node.kind == "element":
                self.children[node.path[0]] = None

    def others(self, tag: str) -> tuple[str, ...]:
        """The tags of all other tools."""
        if (found := self._others.get(tag)) is None:
            found = self._others[tag] = tuple([other for other in self.tags if other != tag])
        return found

    def end(self, tool: ToolSpec, name: str, siblings: Iterable[str], parents: tuple[str, ...]) -> ValueEnd:
        """The end of the value of a tool's child element; see `end_of_element`."""
        key = (id(tool), name, parents)
        if (found := self._ends.get(key)) is None:
            among = tuple(dict.fromkeys([*siblings, name]))
            end = end_of_element(name, among, parents, self.others(parents[-1]))
            found = self._ends[key] = (tool, end)  # kept here, so that its id is not used again
        return found[1]


def end_of_element(name: str, siblings: tuple[str, ...], parents: tuple[str, ...], others: tuple[str, ...]) -> ValueEnd:
    """The end of a child element's value.

    Args:
        name: the child's.
        siblings: the names of elements that may be next to it.
        parents: the elements around it, the innermost first, the tool's own last.
        others: the tags of the other tools.
    """
    tool, own = spelt(parents[-1]), spelt(name)
    marks = Marks(
        close=closing_tag(name),
        value=_whole_tag(own),
        call=_whole_tag(tool),
        end=closing_tag(parents[0]),
        tail="|".join(map(closing_tag, parents[1:])),
        follow="|".join(map(opening_tag, siblings)) or r"(?!)",
        other="|".join(map(opening_tag, others)),
        odd=r"<[^\W\d!]",
    )
    token = Delimiter(marks.token("", SPACES), f"{TAG_PART}|{_started_tag(f'{own}|{tool}')}", re.IGNORECASE)
    return ValueEnd(token, _ELEMENT_STOPS, f"</{name}>", own=marks.own())


_ELEMENT_STOPS: Final = re.compile(r"<(?=[/\w]|\Z)").search


@lru_cache(4096)  # names of tools and parameters, which an application may make without end
def end_of_content(name: str) -> ValueEnd:
    """The end of an element's own content: its closing tag, balanced with opening tags of the same name inside."""
    whole = Delimiter(f"(?P<close>{closing_tag(name)})", TAG_PART, re.IGNORECASE)
    stops = re.compile(rf"<(?=[/\w{re.escape(name[0])}]|\Z)").search
    return ValueEnd(whole, stops, f"</{name}>", nested=tag(name, closing=False))
