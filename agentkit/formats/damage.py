"""The end of a damaged call, which is one error up to the next edge.

That is its own end, the next opening, its section's end, the end of the text or, if the format has neither a call's end
nor a section's end, an empty line. Later calls of that reply are read and answered, and do not run (`Calls`) unless
the damage is an internal error: a wrong guess of where the damage ends can only mislabel an error. Knows the call in
progress, the openers and the reader.
"""

from __future__ import annotations

import re
from typing import Final

from agentkit.formats.call import CallReader
from agentkit.formats.edges import edge_delimiter
from agentkit.formats.format import Shape, Tag
from agentkit.formats.openers import Openers
from agentkit.formats.reader import Damage, Reader, Wait

_OVERLAP: Final = 2048  # characters: longer than any edge with its white space


def skip_damage(r: Reader, openers: Openers, call: CallReader, damage: Damage) -> Wait:
    """Consume the rest of a damaged call, up to the next edge; its own end belongs to it."""
    if r.offset == r.mark:
        yield from r.more()
        r.at = min(r.at + 1, len(r.buf))  # its own opening is not the next edge
    if damage.ended:
        r.at = len(r.buf)
    edges = openers.derive(_edges, call.shape)
    while True:
        size = len(r.buf)
        found = edges.search(r.buf, r.at)
        if found and (r.ended or size - found.start() >= _OVERLAP):  # otherwise more text may make it another one
            r.at = found.end() if found["end"] is not None else found.start()
            return
        r.at = size if r.ended else max(r.at, size - _OVERLAP)
        if r.ended:
            return
        yield


def _edges(openers: Openers, shape: Shape) -> re.Pattern[str]:
    """Return a pattern for the edges that end a damaged call of this shape."""
    last, section = shape.call[-1], shape.section
    ends = _edge(last) if len(shape.call) > 1 and isinstance(last, str | Tag) else ""
    close = _edge(section.close) if section is not None else ""
    named = {"end": ends, "close": close, "next": openers.table.own_calls()}
    if not (ends or close):
        named["blank"] = r"\n[ \t\r]*(?=\n)"  # nothing else says that prose follows
    return re.compile("|".join(f"(?P<{name}>{text or '(?!)'})" for name, text in named.items()), re.IGNORECASE)


def _edge(edge: str | Tag) -> str:
    return "" if isinstance(edge, str) and not edge.strip() else edge_delimiter(edge).regex.pattern
