"""Parameters that are outside of any call: what opens the call was forgotten, or comes after them.

Of the first, nothing could be executed; of the second, a call without them would be. Knows the calls before.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final, Literal

from agentkit.formats.damage.childless import FEW, REACH, Childless, childless
from agentkit.formats.damage.listed import later
from agentkit.formats.format import Pairs, TagParameters, ToolElement
from agentkit.formats.openers import Opener
from agentkit.formats.reader import Damage, Delimiter, Wait, literal
from agentkit.formats.sequence import Calls
from agentkit.formats.tags import folded
from agentkit.formats.valueends import ValueEnd, end_of_value

_SPACE: Final = re.compile(r"\s*").match
_IN_A_NAME: Final = re.compile(r"<[^<>\n]{0,160}\Z").match
"""The beginning of a tag at the end of a text: its name may be a longer one."""


@dataclass(frozen=True, slots=True)
class _Outside:
    """What follows parameters, and where: the opening of a `call`, the `end` of one, or `more` of something else."""

    then: Literal["call", "end", "more"]
    at: int


def parameter(calls: Calls, entry: Opener) -> Generator[None, None, bool]:
    """A parameter that opens here, outside of any call. False, with nothing consumed, if it is text.

    It is an error if it is in an open section, or if the end of a call follows. If a call opens after it, it is text,
    and that call is ambiguous.
    """
    if isinstance(entry.shape.first, ToolElement):
        return (yield from _children(calls))
    part = next(p for p in entry.shape.call if isinstance(p, Pairs | TagParameters))
    first = entry.shape.call[0]
    begins = literal(first.strip()) if isinstance(first, str) and isinstance(part, TagParameters) else None
    if (end := end_of_value(entry.shape, part)).calls is None:
        return False
    found = yield from _follows(calls, end, begins)
    if found is None:
        return False
    r = calls.r
    if found.then == "call":
        calls.lacking = r.offset + found.at
        return False
    if found.then == "more" and (calls.section is None or calls.section.format is not entry.format):
        return False
    yield from _refuse(calls, calls.openers.meant(entry).inside, found.at)
    return True


def _children(calls: Calls) -> Generator[None, None, bool]:
    """Child elements that open here, outside of their tool's. False, with nothing consumed, if they are text.

    It is an error if the end of the tool follows; if the tool opens after them, it is ambiguous.
    """
    r, tags = calls.r, calls.openers.table.tags
    found: Childless | None = None
    enough = 0
    while found is None:
        size = len(r.buf) - r.at
        whole = r.ended or size >= REACH
        if whole or size >= enough:
            found = childless(
                r.buf[r.at : r.at + REACH], lambda name: any(e.tool is not None for e in tags.get((name, False), ()))
            )
            if whole:
                break
            enough = later(size) if size > FEW else 0
        if found is None:
            yield
    owner = _owner(calls, found) if found is not None and found.then != "more" else None
    if found is None or owner is None:
        return False
    if found.then == "call":
        calls.lacking = r.offset + found.at
        return False
    yield from _refuse(calls, replace(owner, kind="call"), found.at)
    return True


def _owner(calls: Calls, found: Childless) -> Opener | None:
    """What opens the tool of the tag after these elements, if it has them all."""
    for entry in calls.openers.table.tags.get((found.tag, False), ()):
        nodes = entry.tool.element.nodes if entry.tool is not None and entry.tool.element is not None else ()
        if found.names <= {folded(node.path[0]) for node in nodes if node.kind == "element"}:
            return entry
    return None


def _refuse(calls: Calls, opener: Opener, size: int) -> Wait:
    """The error for as much text as this, which is what is left of a call."""
    r = calls.r
    call = calls.fresh(opener)
    r.open()
    wanted = "expected a parameter only after the opening of a call"
    position = r.offset
    r.at += size
    yield from calls.damaged(call, Damage("invalid_arguments", wanted, position, got=True, end=r.offset))
    calls.over()
    calls.last, calls.reopen = call.opener, None


def _follows(calls: Calls, end: ValueEnd, begins: Delimiter | None) -> Generator[None, None, _Outside | None]:
    """What follows the parameters that open here; None if none does. `begins` is before the tag that opens a call."""
    r = calls.r
    enough = 0
    while True:
        size = len(r.buf) - r.at
        whole = r.ended or size >= REACH
        if whole or size >= enough:
            found = _behind(end, begins, r.buf[r.at : r.at + REACH], whole=whole)
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
    at = first.end()
    while True:
        closing, edge = end.own.search(text, at), end.calls.search(text, at)
        if edge is not None and (closing is None or edge.start() < closing.start()):
            return _Outside("more", _opens_at(text, edge, begins))
        if closing is None and not whole:
            return False
        if closing is None or not closing["close"]:
            return _Outside("more", closing.start() if closing is not None else len(text))
        at = _SPACE(text, closing.end()).end()  # type: ignore[union-attr]  # it matches nothing too
        if edge := end.calls.match(text, at):
            return _at_edge(end, edge, whole=whole)
        if begins is not None and begins.match(text, at):
            return _Outside("call", at)
        if not (again := end.own.match(text, at)) or again["close"]:
            undecided = at >= len(text) or end.token.part.match(text, at)
            undecided = undecided or (begins is not None and begins.part.match(text, at))
            return False if undecided and not whole else _Outside("more", closing.end())
        at = again.end()


def _at_edge(end: ValueEnd, edge: re.Match[str], *, whole: bool) -> _Outside | Literal[False]:
    """What is at an edge of a call; what seems to open one may become the end of one with more text."""
    if edge["end"]:
        return _Outside("end", edge.end())
    undecided = not whole and end.token.part.match(edge.string, edge.start())
    return False if undecided else _Outside("call", edge.start())


def _opens_at(text: str, edge: re.Match[str], begins: Delimiter | None) -> int:
    """Where a call opens of which this is the tag: at what comes before that, if it is there."""
    before = begins.whole.finditer(text, 0, edge.start()) if begins is not None and not edge["end"] else ()
    return next((f.start() for f in before if not text[f.end() : edge.start()].strip()), edge.start())
