"""What opens like a tool's element and cannot be read, around another call: its own end shows that it was a call.

Knows the reader and where calls start and end, but not how they are written.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import lru_cache
from typing import Final

from agentkit.formats.damage.balance import CDATA, Edges
from agentkit.formats.damage.listed import REACH, later
from agentkit.formats.reader import Reader, Search
from agentkit.formats.tags import AFTER_NAME, PREFIX, spelt

_FEW: Final = 64  # characters that are searched again with each new one


def around_call(r: Reader, tag: str, edges: Edges) -> Generator[None, None, int]:
    """How long the opening of this tag is that is here; 0 if its own end does not come, or no call before that.

    Its own end comes after as many ends as starts. Consumes nothing.
    """
    opening = _opening(tag)(r.buf, r.at)
    if opening is None or not r.may_rewind(r.offset):
        return 0
    edge, size, enough, end = _edge(edges), len(opening[0]), 0, 0
    while True:
        text = r.buf[r.at : r.at + REACH]
        whole = r.ended or len(text) == REACH
        if whole or len(text) >= enough:
            if (end := _end_around(text, size, edge)) or whole:
                break
            enough = later(len(text)) if len(text) > _FEW else 0
        yield
    r.rewound += end or len(text)  # what is searched is read again, in any cutting the same
    return size if end else 0


def _end_around(text: str, at: int, edge: re.Pattern[str]) -> int:
    """The index after the end of a call, which is open at this index, if another one starts in it; otherwise 0."""
    depth, starts = 1, False
    for found in edge.finditer(text, at):
        starts |= found["nested"] is not None or found["start"] is not None
        depth += (found["nested"] is not None) - (found["end"] is not None)
        if not depth:
            return found.end() if starts else 0
    return 0


@lru_cache(256)
def _opening(tag: str) -> Search:
    return re.compile(rf"<{PREFIX}{spelt(tag)}(?=[\s/>{AFTER_NAME}])", re.IGNORECASE).match


@lru_cache(256)
def _edge(edges: Edges) -> re.Pattern[str]:
    return re.compile(
        rf"{CDATA}|(?P<nested>{edges.nested})|(?P<end>{edges.ends})|(?P<start>{edges.starts})", re.IGNORECASE
    )
