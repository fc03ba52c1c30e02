"""Where to continue reading after damage, so that a damaged call does not affect its neighbours.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache
from typing import Final

from agentkit.formats.call import CallReader
from agentkit.formats.damage.listed import REACH, Listed, Next, later
from agentkit.formats.format import (
    Braced,
    NameTag,
    NestedTags,
    Pairs,
    Shape,
    Tag,
    TagParameters,
    TextArgument,
    ToolElement,
)
from agentkit.formats.reader import Damage, Delimiter, Reader, Wait, pattern
from agentkit.formats.tags import closing_tag, opening_tag
from agentkit.toolspec import Layout

_NEVER = r"(?!)"
_OVERLAP = 2048  # characters: longer than any edge with its white space


@cache
def _edges(shape: Shape) -> tuple[str, str]:
    """Regular expressions for how a call of this shape starts and ends; one that never matches if nothing shows it."""
    first, last = shape.call[0], shape.call[-1]
    starts = ends = _NEVER
    match first:
        case str(text) if text.strip():
            starts = pattern(text.strip())
        case NameTag(name):
            starts = opening_tag(name)
    match last:
        case str(text) if text.strip():
            ends = pattern(text.strip())
        case Tag(name, closing=True):
            ends = closing_tag(name)
    if ends is _NEVER and shape.section is not None:
        close = shape.section.close
        ends = closing_tag(close.name) if isinstance(close, Tag) else pattern(close.strip()) or _NEVER
    return starts, ends


def _element_edges(call: CallReader, layout: Layout) -> tuple[str, str]:
    """The same for an element per tool: any tool's tag starts a call, and its own closing tag ends one."""
    every = [tool.with_element(layout).element for tool in call.tools.values()]
    starts = "|".join(opening_tag(element.tag) for element in every if element is not None)
    own = call.tool.with_element(layout).element if call.tool is not None else None
    return starts or _NEVER, closing_tag(own.tag) if own is not None else _NEVER


def _edges_of(call: CallReader) -> tuple[str, str]:
    """The same for this call."""
    element = next((p for p in call.shape.call if isinstance(p, ToolElement)), None)
    return _edges(call.shape) if element is None else _element_edges(call, element.layout)


def _section_end(shape: Shape) -> str:
    """A regular expression for the end of a section."""
    close = shape.section.close if shape.section is not None else ""
    return closing_tag(close.name) if isinstance(close, Tag) else pattern(close.strip()) or _NEVER


_RAW = (TagParameters, Pairs, TextArgument, NestedTags, Braced)
"""Bodies whose values may contain a call unchanged."""
_CDATA = r"<!\[CDATA\[(?s:.*?)(?:\]\]>|\Z)"
"""What is marked as meant to the letter, up to its own end: a call in it is quoted."""
_PROSE: Final = r"[^<>\"']{0,512}"
"""What may be between two calls besides white space where the first one's opening tag ran over it."""
_REST_OF_TAG: Final = Delimiter(r"[^<>\n]{0,512}[\"']\s{0,64}/?>", r"[^<>\n]{0,512}\s{0,64}/?")
_REST_OF_TAGS: Final = Delimiter(
    rf"[^<>\n]{{0,512}}[\"'][^<>\n\"']{{0,8}}>{_REST_OF_TAG.whole.pattern}",
    rf"[^<>\n]{{0,512}}(?:>{_REST_OF_TAG.begun[3:-3]})?",
)
"""The rest of a tag that is in an attribute of another one, and of that."""
_INSIDE_TAG = re.compile(r"""<[^\s<>/]+(?:[^<>"']|"[^"]*"|'[^']*')*["']?\Z""")


def resync_at(r: Reader, call: CallReader, damage: Damage) -> Generator[None, None, int]:
    """The absolute offset at which reading continues, waiting for more text while it is uncertain.

    If the text ended inside the call, or the damage comes after the end of one call and the start of another (an
    unclosed string ran over them), reading continues after that first end. Otherwise it continues after the call's own
    end, or at the start of another call, whichever comes first after the damage. Damage inside an element's opening tag
    may also end with that tag, if it closes itself. If the rest of such a tag comes after that, its content does, too.
    """
    if damage.code == "limit":
        return r.offset
    within = any(isinstance(p, ToolElement | TextArgument) for p in call.shape.call)
    within = within and not damage.ended and _INSIDE_TAG.match(r.raw()[: damage.position - r.mark]) is not None
    rest = (yield from r.sees(_REST_OF_TAGS)) if within and r.offset == damage.position else None
    if rest is None:
        end = yield from _after(r, call, damage)
        if not within or end != r.offset or (rest := (yield from r.sees(_REST_OF_TAG))) is None:
            return end
    r.at = rest.end()
    starts, ends = _edges_of(call)
    return (yield from _over_quoted(r, Damage("ambiguous_call", "", r.offset), starts, ends, _NEVER))


def _after(r: Reader, call: CallReader, damage: Damage) -> Generator[None, None, int]:
    """The same without what follows the rest of a tag."""
    end = damage.end
    if end < 0 and call.listed is not None:
        end = yield from _in_list(r, call.listed, call, damage)
    if end >= 0:
        return end
    element = next((p for p in call.shape.call if isinstance(p, ToolElement)), None)
    starts, ends = _edges_of(call)
    if element is not None and damage.code != "ambiguous_call" and _starts_here(r, damage, starts):
        return damage.position
    in_tag = element is not None and not damage.ended and _INSIDE_TAG.match(r.raw()[: damage.position - r.mark])
    over = _over(r, call, damage, starts, f"{ends}|/>", _PROSE) if in_tag else _over(r, call, damage, starts, ends)
    if over >= 0:
        return over
    if in_tag and (yield from _closes_itself(r)):
        return r.offset
    if not damage.ended and any(isinstance(p, _RAW) for p in call.shape.call):
        return (yield from _over_quoted(r, damage, starts, ends, _section_end(call.shape)))
    if not damage.ended:
        yield from _next_edge(r, re.compile(f"(?P<start>{starts})|{ends}", re.IGNORECASE))
    return r.offset


def _over(r: Reader, call: CallReader, damage: Damage, starts: str, ends: str, between: str = r"\s*") -> int:
    """The end of a call that another one follows, before the damage: a string that was not closed ran over it."""
    if starts is _NEVER and ends is _NEVER:
        return r.offset
    next_call = re.compile(f"{_CDATA}|(?P<end>{ends})(?={between}(?:{starts}))", re.IGNORECASE)
    text = r.raw()[: None if damage.ended else damage.position - r.mark]
    opened = max(call.lead.size, len(call.lead.opening))  # what opens a section may contain what ends it
    return next((r.mark + found.end() for found in next_call.finditer(text, opened) if found["end"] is not None), -1)


def _starts_here(r: Reader, damage: Damage, starts: str) -> bool:
    """Whether another call starts exactly where the damage is."""
    return not damage.ended and re.match(starts, r.raw()[damage.position - r.mark :], re.IGNORECASE) is not None


def _in_list(r: Reader, listed: Listed, call: CallReader, damage: Damage) -> Generator[None, None, int]:
    """Where the next call of a section starts after a damaged one, or where the section ends; -1 if that is unknown."""
    before = r.raw()[max(call.lead.size, len(call.lead.opening)) : damage.position - r.mark]
    start = damage.position - len(before)
    if listed.over is not None and (over := listed.over.search(before)):
        return start + over.start()
    if damage.ended or not r.may_rewind(r.offset):
        return -1
    inside = listed.inside(before)
    start, enough = start + inside.at, 0
    known = r.raw()[start - r.mark :]
    found: Next | None = None
    text = known
    while found is None:
        text = known + r.buf[r.at :]
        whole = r.all_here or len(text) >= REACH
        if whole or len(text) >= enough:
            found, enough = listed.next(text[:REACH], whole=whole, opened=True, inside=inside), later(len(text))
        if found is None:
            yield
    # what is searched is read again: it counts as read twice, by an amount that does not depend on how the text is cut
    r.rewound += found.end if found.told or found.kind == "call" else min(len(text), REACH)
    if found.kind == "none" and not found.told:
        return -1
    end = start + len(text[: found.end].rstrip(", ;\t\r\n" if found.kind == "call" else None))
    end = max(end, damage.position)
    if end > r.offset:
        r.at = end - r.base
    return end


def _closes_itself(r: Reader) -> Generator[None, None, bool]:
    """Consume the rest of an opening tag; returns whether the tag closes itself."""
    slash = False
    while True:
        found = _TAG_END.search(r.buf, r.at)
        rest = r.buf[r.at : found.start() if found else len(r.buf)]
        slash = rest.endswith("/") or (slash and not rest)
        closed = found is not None and found[0] == ">"
        r.at += len(rest) + closed
        if found or r.ended:
            return slash and closed
        yield


_TAG_END = re.compile("[<>]")


def _next_edge(r: Reader, edge: re.Pattern[str]) -> Wait:
    """Consume up to the next start of a call, or past the next end of one, or up to the text's end."""
    if found := (yield from _found(r, edge)):
        r.at = found.start() if found["start"] else found.end()


def _found(r: Reader, edge: re.Pattern[str]) -> Generator[None, None, re.Match[str] | None]:
    """The next edge, once it is certain which one it is; what cannot begin one is consumed."""
    while True:
        found = edge.search(r.buf, r.at)
        if found and (r.ended or len(r.buf) - found.start() >= _OVERLAP):  # otherwise more text may make it another one
            return found
        r.at = max(r.at, len(r.buf) - (0 if r.ended else _OVERLAP))  # an edge may begin before the one that was found
        if r.ended:
            return None
        yield


def _over_quoted(r: Reader, damage: Damage, starts: str, ends: str, closes: str) -> Generator[None, None, int]:
    """Where to continue after damage in a call of raw values: what starts after it may be quoted in one.

    A call that starts exactly at the damage is the next one, unless the damage is the ambiguous end of a value, or in
    an opening tag, whose rest its own value may be. Any other belongs to the damaged call until that has ended: after
    as many ends as there were starts, or, if they are too few, after the first.
    """
    if r.offset > damage.position:
        r.back_to(damage.position)
    edge = re.compile(f"(?P<start>{starts})|(?P<close>{closes})|{ends}", re.IGNORECASE)
    depth, first = 1, -1
    try:
        yield from r.space()
        here = r.offset if damage.code != "ambiguous_call" and not damage.in_tag else -1
        while found := (yield from _found(r, edge)):
            at = r.base + found.start()
            if (at == here and found["start"]) or (found["close"] and depth == 1 and first < 0):
                r.at = found.start()
                return at
            depth += 1 if found["start"] else -1 if not found["close"] else 0
            r.at = found.end()
            if found["start"] is None and found["close"] is None and first < 0:
                first = r.offset
            if not depth:
                break
    except Damage:  # the call is too long: it is over at the first place where it may have been
        pass
    return r.offset if not depth or first < 0 else first
