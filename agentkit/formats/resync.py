"""Where to go on reading after damage, so that a damaged call costs its neighbours nothing.

Knows the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache

from agentkit.formats.reader import Damage, Reader, Wait
from agentkit.formats.spec import Format, NameTag, Tag, ToolElement
from agentkit.formats.tagtext import closing_tag, opening_tag

_OVERLAP = 512  # characters: longer than any edge with its white space


@cache
def _edges(format: Format) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    """How a call of this format starts and how it ends; None where that is not told by fixed text."""
    first, last = format.call[0], format.call[-1]
    starts = ends = None
    match first:
        case str():
            starts = re.escape(first.strip())
        case NameTag(name):
            starts = opening_tag(name)
    match last:
        case str():
            ends = re.escape(last.strip())
        case Tag(name, closing=True):
            ends = closing_tag(name)
    return (
        re.compile(starts, re.IGNORECASE) if starts else None,
        re.compile(ends, re.IGNORECASE) if ends else None,
    )


def resync_at(r: Reader, format: Format, damage: Damage) -> Generator[None, None, int]:
    """The absolute offset at which reading goes on, waiting for more text where it is not yet told.

    Where the text ended inside the call, or the damage lies behind the end of one call and the start of another (an
    unclosed string ran over them), reading goes on behind that first end. Else it goes on behind the call's own end, or
    at the start of another call, whichever comes first after the damage.
    """
    if damage.code == "limit" or any(isinstance(p, ToolElement) for p in format.call):
        return r.offset
    starts, ends = _edges(format)
    if starts is None or ends is None:
        return r.offset
    between = re.compile(f"(?:{ends.pattern})(?=\\s*(?:{starts.pattern}))", re.IGNORECASE)
    until = None if damage.ended else damage.position - r.mark
    if over := between.search(r.raw()[:until]):
        return r.mark + over.end()
    if not damage.ended:
        yield from _next_edge(r, starts, ends)
    return r.offset


def _next_edge(r: Reader, starts: re.Pattern[str], ends: re.Pattern[str]) -> Wait:
    """Consume up to the next start of a call, or over the next end of one, or up to the text's end."""
    edge = re.compile(f"(?P<start>{starts.pattern})|{ends.pattern}", re.IGNORECASE)
    while True:
        if found := edge.search(r.buf, r.at):
            r.at = found.start() if found["start"] else found.end()
            return
        r.at = max(r.at, len(r.buf) - (0 if r.ended else _OVERLAP))
        if r.ended:
            return
        yield
