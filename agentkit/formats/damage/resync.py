"""Where to continue reading after damage, so that a damaged call does not affect its neighbours.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from agentkit.formats.call import CallReader
from agentkit.formats.damage.attribute_values import REST, quoting_rest
from agentkit.formats.damage.balance import (
    CDATA,
    NEVER,
    Edges,
    after_own,
    depth_at,
    edges_of,
    opened_at,
    section_begun,
    section_edge,
    section_end,
    sections,
)
from agentkit.formats.damage.listed import REACH, Listed, Next, later
from agentkit.formats.format import (
    Braced,
    Envelope,
    Json,
    KeyEnvelope,
    NestedTags,
    Pairs,
    Shape,
    TagParameters,
    TextArgument,
    ToolElement,
)
from agentkit.formats.reader import Damage, Delimiter, Reader, Wait

_UNBOUNDED: Final = 1 << 62
_FAR: Final = 65_536  # characters in which the end of a call is looked for that quotes the one at its damage
_OVERLAP = 2048  # characters: longer than any edge with its white space
_RAW = (TagParameters, Pairs, TextArgument, NestedTags, Braced)
"""Bodies whose values may contain a call unchanged."""
_JSON = (Json, Envelope, KeyEnvelope)
_CDATA_END: Final = re.compile(r"\]\]>")
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
    edges, size = edges_of(call), 0
    here = within and r.offset == damage.position
    if here and edges.starts is not NEVER:
        size = yield from quoting_rest(r, REST, lambda text: re.search(edges.starts, text, re.IGNORECASE) is not None)
    rest = (yield from r.sees(_REST_OF_TAGS)) if here and not size else None
    if rest is None and not size:
        end = yield from _after(r, call, damage, within=within)
        if not within or end != r.offset or (rest := (yield from r.sees(_REST_OF_TAG))) is None:
            return end
    r.at = rest.end() if rest is not None else r.at + size
    edges = edges._replace(nested=edges.starts)  # what starts may be in this one's content
    return (yield from _over_quoted(r, Damage("ambiguous_call", "", r.offset), edges, NEVER, opened_at(call)))


def _after(r: Reader, call: CallReader, damage: Damage, *, within: bool) -> Generator[None, None, int]:
    """The same without what follows the rest of a tag; `within` if the damage is in one."""
    element = next((p for p in call.shape.call if isinstance(p, ToolElement)), None)
    edges, end = edges_of(call), damage.end
    if end < 0 and not damage.ended and any(isinstance(p, _JSON) for p in call.shape.call):
        end = yield from _over_brackets(r, call, damage, edges)
    if end < 0 and call.listed is not None:
        end = yield from _in_list(r, call.listed, call, damage)
    if end >= 0:
        return end
    in_tag = element is not None and not damage.ended and (yield from _inside_tag(r, damage))
    over = _over(r, call, damage, edges._replace(ends=f"{edges.ends}|/>"), _PROSE) if in_tag else -1
    over = over if over >= 0 or in_tag else _over(r, call, damage, edges)
    if over >= 0:
        return over
    if in_tag and (yield from _closes_itself(r)):
        return r.offset
    if damage.ended:
        return r.offset
    raw = any(isinstance(p, _RAW) for p in call.shape.call)
    closes = section_end(call.shape) if raw else NEVER
    return (yield from _over_quoted(r, damage, edges, closes, -1 if within else opened_at(call), raw=raw))


def _over(r: Reader, call: CallReader, damage: Damage, edges: Edges, between: str = r"\s*") -> int:
    """The end of a call that another one follows, before the damage: a string that was not closed ran over it.

    What is quoted in the call, from its start to its end, is not the end of this one.
    """
    if edges.starts is NEVER and edges.ends is NEVER:
        return r.offset
    starts, ends, nested = edges
    edge = re.compile(
        f"{CDATA}|(?P<end>{ends})(?P<next>(?={between}(?:{starts})))?|(?P<nested>{nested})", re.IGNORECASE
    )
    text = r.raw()[: None if damage.ended else damage.position - r.mark]
    depth = 1
    for found in edge.finditer(text, after_own(text, opened_at(call), nested)):
        if found["nested"] is not None:
            depth += 1
        elif found["end"] is not None and (depth > 1 or found["next"] is not None):
            depth -= 1
        if not depth:
            return r.mark + found.end()
    return -1


def _over_literal(r: Reader) -> Wait:
    """Consume the rest of CDATA; nothing if it does not end."""
    start = r.offset
    if found := (yield from _found(r, _CDATA_END)):
        r.at = found.end()
    else:
        r.back_to(start)


def _in_list(r: Reader, listed: Listed, call: CallReader, damage: Damage) -> Generator[None, None, int]:
    """Where the next call of a section starts after a damaged one, or where the section ends; -1 if that is unknown."""
    before = r.raw()[opened_at(call) : damage.position - r.mark]
    start = damage.position - len(before)
    if listed.close is not None:
        over, depth = sections(before, call.shape)
        if over >= 0 and listed.strong:
            return start + over
        if not damage.ended and (end := (yield from _over_sections(r, call.shape, damage, depth))) >= 0:
            return end
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


def _inside_tag(r: Reader, damage: Damage) -> Generator[None, None, bool]:
    """Whether the damage is in an opening tag, and does not end it, as another tag does."""
    if _INSIDE_TAG.match(r.raw()[: damage.position - r.mark]) is None:
        return False
    read = r.raw()[damage.position - r.mark :]
    while not (read + r.buf[r.at :]).strip() and not r.ended:
        yield
    return not (read + r.buf[r.at :]).lstrip().startswith("<")


def _over_brackets(r: Reader, call: CallReader, damage: Damage, edges: Edges) -> Generator[None, None, int]:
    """The end of the JSON of a damaged call that quotes others, where nothing but its brackets shows that end.

    -1, with nothing consumed but what the call has, if it quotes none, or its brackets do not balance.
    """
    first = call.shape.call[0]
    if edges.ends is not NEVER and not (isinstance(first, str) and re.match(edges.ends, first.lstrip(), re.IGNORECASE)):
        return -1
    quoted = call.listed.open.pattern if call.listed is not None else edges.starts
    edge = re.compile(rf"(?P<opens>\{{)|(?P<closes>\}})|(?P<quoted>{quoted})", re.IGNORECASE)
    reached, text = r.offset, r.raw()[: damage.position - r.mark]
    seen = [found.lastgroup for found in edge.finditer(text, after_own(text, opened_at(call), edges.starts))]
    depth, quotes = seen.count("opens") - seen.count("closes"), quoted is NEVER or "quoted" in seen
    if reached > damage.position:
        r.back_to(damage.position)
    while depth > 0 and r.offset - damage.position < REACH and (found := (yield from _found(r, edge))):
        depth += (found["opens"] is not None) - (found["closes"] is not None)
        quotes |= found["quoted"] is not None
        r.at = found.end()
    return r.offset if not depth and quotes and r.offset > damage.position else _returned(r, reached)


def _returned(r: Reader, reached: int) -> int:
    """-1, at the place that was reached before."""
    if r.offset > reached:
        r.back_to(reached)
    r.at = reached - r.base
    return -1


def _over_sections(r: Reader, shape: Shape, damage: Damage, depth: int) -> Generator[None, None, int]:
    """The end of the section of a damaged call, over the sections that it quotes, of which some are open where it is.

    -1, with nothing consumed but what the call has, if it quotes none, or that end is missing.
    """
    reached, quotes = r.offset, depth > 1
    start = r.mark + section_begun(r.raw()[: damage.position - r.mark], shape)  # where it is damaged one may open
    if reached > start:
        r.back_to(start)
    while r.offset - damage.position < REACH and (found := (yield from _found(r, section_edge(shape)))):
        quotes |= found["open"] is not None
        depth += 1 if found["open"] is not None else -1
        r.at = found.end() if depth else found.start()
        if not depth:
            break
    return r.offset if not depth and quotes else _returned(r, reached)


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


def _found(r: Reader, edge: re.Pattern[str], stop: int = _UNBOUNDED) -> Generator[None, None, re.Match[str] | None]:
    """The next edge, once it is certain which one it is; what cannot begin one is consumed, up to the offset `stop`."""
    while True:
        size = min(len(r.buf), stop - r.base)
        whole = r.ended or size < len(r.buf)
        found = edge.search(r.buf, r.at, size)
        if found and (whole or size - found.start() >= _OVERLAP):  # otherwise more text may make it another one
            return found
        r.at = max(r.at, size - (0 if whole else _OVERLAP))  # an edge may begin before the one that was found
        if whole:
            return None
        yield


def _over_quoted(
    r: Reader, damage: Damage, edges: Edges, closes: str, opened: int, *, raw: bool = True
) -> Generator[None, None, int]:
    """Where to continue after damage in a call: what starts after it may be quoted in a value, or directly inside.

    It belongs to the damaged call until that has ended: after as many ends as there were starts. If they are too few, a
    call that starts exactly at the damage is the next one, unless the damage is the ambiguous end of a value, or in an
    opening tag, whose rest its own value may be; otherwise the damaged call ended with the first end, or where another
    tool's element starts.
    """
    reached = r.offset
    if r.offset > damage.position:
        r.back_to(damage.position)
    starts, ends, nested = edges
    depth, literal = depth_at(r.raw(), opened, edges) if opened >= 0 else (1, False)
    edge = re.compile(
        rf"(?P<nested>{nested})|(?P<close>{closes})|(?P<end>{ends})|(?P<start>{starts})|(?P<literal><!\[CDATA\[)",
        re.IGNORECASE,
    )
    first = -1
    try:
        if literal:
            yield from _over_literal(r)
        yield from r.space()
        here = r.offset if damage.code != "ambiguous_call" and not damage.in_tag else -1
        while found := (yield from _found_outside(r, edge)):
            at = r.base + found.start()
            opens = found["nested"] is not None or found["start"] is not None
            if found["close"] is not None and depth == 1 and first < 0:
                r.at = found.start()
                return at
            if at == here and opens:
                first = at
                return (yield from _end_around(r, edge, first, depth))
            depth += _deeper(found)
            r.at = found.end()
            if first < 0 and (found["end"] is not None if raw else at >= reached):
                first = at if opens else r.offset
            if not depth:
                break
    except Damage:  # the call is too long: it is over at the first place where it may have been
        pass
    return r.offset if not depth or first < 0 else first


def _end_around(r: Reader, edge: re.Pattern[str], start: int, depth: int) -> Generator[None, None, int]:
    """The end of a damaged call around one that starts at this offset; that offset if it is missing.

    An end that is only written twice is none of a call around it.
    """
    if not r.may_rewind(start):
        return start
    before, over = "", start  # the last edge, and where it ends
    while found := (yield from _found_outside(r, edge, start + _FAR)):
        shut = found["close"] is not None and depth == 1
        depth += _deeper(found)
        twice = found[0] == before and not r.text(over, r.base + found.start()).strip()
        r.at, before = found.end(), found[0]  # in any cutting the same
        over = r.offset
        if shut or (twice and not depth):
            break
        if not depth:
            return r.offset
    return start


def _deeper(found: re.Match[str]) -> int:
    """How many more calls are open after this edge."""
    return 1 if found["nested"] is not None else -1 if found["end"] is not None else 0


def _found_outside(
    r: Reader, edge: re.Pattern[str], stop: int = _UNBOUNDED
) -> Generator[None, None, re.Match[str] | None]:
    """The next edge that is not in CDATA, as `_found`."""
    while (found := (yield from _found(r, edge, stop))) and found["literal"] is not None:
        r.at = found.end()
        yield from _over_literal(r)
    return found
