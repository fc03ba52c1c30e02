"""Parameters that are outside of any call: what opens the call was forgotten, or comes after them.

Of the first, nothing could be executed; of the second, a call without them would be. Knows the calls before.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final, Literal, NamedTuple

from agentkit.formats.damage.attribute_values import VALUES, quoting_rest
from agentkit.formats.damage.childless import FEW, REACH, Childless, childless
from agentkit.formats.damage.listed import later
from agentkit.formats.format import NestedTags, Pairs, Shape, Tag, TagParameters, ToolElement, edge
from agentkit.formats.openers import Opener
from agentkit.formats.reader import Damage, Delimiter, Wait, any_beginning, literal, may_begin, pattern
from agentkit.formats.sequence import Calls
from agentkit.formats.tags import ANY_OPENING, either, folded
from agentkit.formats.valueends import ValueEnd, end_of_value

_SPACE: Final = re.compile(r"\s*").match
_FAR: Final = 65_536  # characters in which the end of a value is looked for that has a call in it
_CDATA: Final = re.compile(r"\s*<!\[CDATA\[(?s:.*?)\]\]>").match
_CDATA_OPENS: Final = re.compile(r"\s*<!\[CDATA\[").match
_IN_A_NAME: Final = re.compile(r"<[^<>\n]{0,160}\Z").match
"""The beginning of a tag at the end of a text: its name may be a longer one."""


@dataclass(frozen=True, slots=True)
class _Outside:
    """What follows parameters, and where: the opening of a `call`, the `end` of one, or `more` of something else.

    `quotes` if the value of one has a whole call in it; `open` if it has a call, and its end was not found.
    """

    then: Literal["call", "end", "more"]
    at: int
    quotes: bool = False
    open: bool = False


def parameter(calls: Calls, entry: Opener) -> Generator[None, None, bool]:
    """A parameter that opens here, outside of any call. False, with nothing consumed, if it is text.

    It is an error if it is in an open section, or if the end of a call follows. If a call opens after it, it is text,
    and that call is ambiguous.
    """
    if isinstance(entry.shape.first, ToolElement):
        return (yield from _attribute(calls, entry) if calls.r.buf.startswith("=", calls.r.at) else _children(calls))
    part = next(p for p in entry.shape.call if isinstance(p, Pairs | TagParameters | NestedTags))
    first = entry.shape.call[0]
    begins = literal(first.strip()) if isinstance(first, str) and isinstance(part, TagParameters) else None
    end = _end_of_element(entry.shape, part) if isinstance(part, NestedTags) else end_of_value(entry.shape, part)
    if end.calls is None:
        return False
    found = yield from _follows(calls, end, begins)
    if found is None:
        return False
    if found.then == "call":
        calls.lacking = calls.r.offset + found.at
    within = calls.section is not None and calls.section.format is entry.format
    if not found.quotes and (found.then == "call" or (found.then == "more" and not within)):
        return False
    yield from _refuse(calls, calls.openers.meant(entry).inside, found.at)
    return True


@cache
def _end_of_element(shape: Shape, part: NestedTags) -> ValueEnd:
    """The end of what is in an element that has a token before each tag, as those of the call and its section have."""
    around = (shape.section.open, shape.section.close) if shape.section is not None else ()
    first, last, *rest = (edge(p).strip() for p in (shape.first, shape.call[-1], *around) if isinstance(p, str | Tag))
    token = pattern(part.token)
    edges = "|".join(pattern(text.removeprefix(part.token)) for text in (first, last, *rest))
    opens, closes = (rf"{token}(?!{edges})<{slash}[^\s<>/]{{1,128}}>" for slash in ("", "/"))
    begun = rf"{any_beginning([f'{part.token}<', first, last, *rest])}|{token}</?[^\s<>/]{{0,128}}"
    own, whole = either("close", [closes], opens), either("end", [pattern(last)], pattern(first))
    tokens = Delimiter(rf"(?:{own})|(?:{whole})", begun, re.IGNORECASE)
    stops = re.compile(may_begin(part.token)).search
    own_edges, call_edges = re.compile(own, re.IGNORECASE), re.compile(whole, re.IGNORECASE)
    return ValueEnd(tokens, stops, f"{part.token}</", own=own_edges, calls=call_edges)


def _attribute(calls: Calls, entry: Opener) -> Generator[None, None, bool]:
    """The value of an attribute that quotes a call, in a tag that opens none. False if it is text."""
    size = yield from quoting_rest(calls.r, VALUES, lambda text: _tool_in(calls, text))
    if size:
        yield from _refuse(calls, calls.openers.meant(entry).inside, size)
    return size > 0


def _children(calls: Calls) -> Generator[None, None, bool]:
    """Child elements that open here, outside of their tool's. False, with nothing consumed, if they are text.

    It is an error if the end of the tool follows, or a call is inside one; if the tool opens after them, it is
    ambiguous.
    """
    r, tags = calls.r, calls.openers.table.tags
    found: Childless | None = None
    enough, reach = 0, REACH
    while found is None:
        size = len(r.buf) - r.at
        whole = r.ended or size > reach
        if whole or size >= enough:
            text = r.buf[r.at : r.at + reach]
            found = childless(text, lambda name: any(e.tool is not None for e in tags.get((name, False), ())))
            if found is None and size > reach and _may_go_on(calls, reach) and _tool_in(calls, text):
                reach *= 2
                continue
            if whole:
                break
            enough = later(size) if size > FEW else 0
        if found is None:
            yield
    owner = _owner(calls, found) if found is not None and (found.quotes or found.then != "more") else None
    if found is None or owner is None:
        return False
    if found.then == "call":
        calls.lacking = r.offset + found.at
        if not found.quotes:
            return False
    yield from _refuse(calls, replace(owner, kind="call"), found.at)
    return True


def _may_go_on(calls: Calls, reach: int) -> bool:
    """Whether more than this may be searched; what is searched again counts as read again."""
    r = calls.r
    if reach >= _FAR or not r.may_rewind(r.offset):
        return False
    r.rewound += reach
    return True


def _tool_in(calls: Calls, text: str) -> bool:
    """Whether a tool's element opens in this text."""
    tags = calls.openers.table.tags
    return any(
        entry.tool is not None
        for found in ANY_OPENING.whole.finditer(text)
        for entry in tags.get((folded(found["name"]), False), ())
    )


def _owner(calls: Calls, found: Childless) -> Opener | None:
    """What opens the tool of the tag after these elements, if it has them all; if they quote a call, any tool's."""
    tags = calls.openers.table.tags
    for entry in tags.get((found.tag, False), ()):
        if found.names <= _children_of(entry):
            return entry
    if not found.quotes:
        return None
    return next((entry for of in tags.values() for entry in of if found.names & _children_of(entry)), None)


def _children_of(entry: Opener) -> set[str]:
    """The names of the child elements of the tool that opens so."""
    nodes = entry.tool.element.nodes if entry.tool is not None and entry.tool.element is not None else ()
    return {folded(node.path[0]) for node in nodes if node.kind == "element"}


def _refuse(calls: Calls, opener: Opener, size: int) -> Wait:
    """The error for as much text as this, which is what is left of a call."""
    r = calls.r
    call = calls.fresh(opener)
    r.open()
    wanted = "expected a parameter only after the opening of a call"
    position = r.offset
    if size > r.limits.call:
        yield  # it is longer than a call may be: the parser answers for it
    r.at += size
    yield from calls.damaged(call, Damage("invalid_arguments", wanted, position, got=True, end=r.offset))
    calls.over()
    calls.last, calls.reopen = call.opener, None


def _follows(calls: Calls, end: ValueEnd, begins: Delimiter | None) -> Generator[None, None, _Outside | None]:
    """What follows the parameters that open here; None if none does. `begins` is before the tag that opens a call."""
    r = calls.r
    enough, reach = 0, REACH
    while True:
        size = len(r.buf) - r.at
        whole = r.ended or size > reach
        if whole or size >= enough:
            found = _behind(end, begins, r.buf[r.at : r.at + reach], whole=whole)
            if found and found.open and size > reach and _may_go_on(calls, reach):
                reach *= 2
                continue
            if found is not False:
                return found
            enough = later(size) if size > FEW else 0
        yield


def _behind(end: ValueEnd, begins: Delimiter | None, text: str, *, whole: bool) -> _Outside | Literal[False] | None:
    """What follows the parameters with which this text begins; None if there are none, False while more must decide."""
    assert end.own is not None
    assert end.calls is not None
    first = end.own.match(text)
    if first is None or first["close"]:
        return False if not whole and end.token.part.match(text) else None
    if not whole and _IN_A_NAME(text, text.rfind("<")):
        return False
    at, quotes = first.end(), False
    while True:
        value = _value(end, text, at, whole=whole)
        if value.stop is not None:
            return _Outside("more", _opens_at(text, value.stop, begins), quotes)
        if value.end < 0:
            if not whole:
                return False
            return _Outside(
                "more",
                len(text) if value.call is None else _opens_at(text, value.call, begins),
                quotes,
                open=value.call is not None,
            )
        quotes |= value.call is not None
        at = _SPACE(text, value.end).end()  # type: ignore[union-attr]  # it matches nothing too
        if edge := end.calls.match(text, at):
            return _at_edge(end, edge, quotes, whole=whole)
        if begins is not None and begins.match(text, at):
            return _Outside("call", at, quotes)
        if not (again := end.own.match(text, at)) or again["close"]:
            undecided = at >= len(text) or end.token.part.match(text, at)
            undecided = undecided or (begins is not None and begins.part.match(text, at))
            return False if undecided and not whole else _Outside("more", value.end, quotes)
        at = again.end()


class _Value(NamedTuple):
    """Where a value ends, -1 if that is not in the text; what stops it before, and the first call in it, if any."""

    end: int
    stop: re.Match[str] | None = None
    call: re.Match[str] | None = None


def _value(end: ValueEnd, text: str, at: int, *, whole: bool) -> _Value:
    """The value that starts at this index: it ends at its closing, over whole calls, or over what is in CDATA."""
    assert end.own is not None
    assert end.calls is not None
    depth, call = 0, None
    if cdata := _CDATA(text, at):
        call = end.calls.search(text, cdata.start(), cdata.end())
        at = cdata.end()
    elif not whole and _CDATA_OPENS(text, at):
        return _Value(-1)  # what is in it ends nothing once it is closed
    for found in _marks(end.own, end.calls).finditer(text, at):
        if found["own"] is not None:
            if depth == 0:
                closes = found["close"] is not None
                return _Value(found.end(), call=call) if closes else _Value(-1, stop=found, call=call)
        elif found["end"] is None:
            depth, call = depth + 1, call or found
        elif depth == 0:
            return _Value(-1, stop=found, call=call)
        else:
            depth -= 1
    return _Value(-1, call=call)


@lru_cache(256)
def _marks(own: re.Pattern[str], calls: re.Pattern[str]) -> re.Pattern[str]:
    """What opens or closes a value (group `own`), or a call."""
    return re.compile(f"(?P<own>{own.pattern})|{calls.pattern}", re.IGNORECASE)


def _at_edge(end: ValueEnd, edge: re.Match[str], quotes: bool, *, whole: bool) -> _Outside | Literal[False]:
    """What is at an edge of a call; what seems to open one may become the end of one with more text."""
    if edge["end"]:
        return _Outside("end", edge.end(), quotes)
    undecided = not whole and end.token.part.match(edge.string, edge.start())
    return False if undecided else _Outside("call", edge.start(), quotes)


def _opens_at(text: str, edge: re.Match[str], begins: Delimiter | None) -> int:
    """Where a call opens of which this is the tag: at what comes before that, if it is there."""
    opens = "end" in edge.re.groupindex and edge["end"] is None
    before = begins.whole.finditer(text, 0, edge.start()) if begins is not None and opens else ()
    return next((f.start() for f in before if not text[f.end() : edge.start()].strip()), edge.start())
