"""Where calls start and end in a text, and how many are open at a place: what a damaged call quotes belongs to it.

Pure. Knows the call in progress and the declarations; reads nothing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from agentkit.formats.call import CallReader
from agentkit.formats.edges import edge_of
from agentkit.formats.format import NameTag, Shape, Tag, ToolElement
from agentkit.formats.reader import pattern
from agentkit.formats.tags import closing_tag, opening_tag
from agentkit.toolspec import Layout

NEVER: Final = r"(?!)"
CDATA: Final = r"<!\[CDATA\[(?s:.*?)(?:\]\]>|\Z)"
"""What is marked as meant to the letter, up to its own end: a call in it is quoted."""
_NAMELESS: Final = r"\s{0,64}>"
"""What follows the name of a tag in which the name of a tool is missing."""
_LONGEST: Final = 256  # characters of what opens or ends a section, with its white space


class Edges(NamedTuple):
    """Regular expressions for where calls start and end; one that never matches if nothing shows it.

    `starts` is for any call, `ends` for the end of this one, `nested` for what another `ends` inside this one closes.
    """

    starts: str
    ends: str
    nested: str


@cache
def _edges(shape: Shape) -> Edges:
    """The edges of a call of this shape."""
    first, last = shape.call[0], shape.call[-1]
    starts = ends = nested = NEVER
    match first:
        case str(text) if text.strip():
            starts = nested = pattern(text.strip())
        case NameTag(name):
            starts = opening_tag(name)
            nested = rf"{starts}(?!{_NAMELESS})"  # without a name it may as well be a worn end
    match last:
        case str(text) if text.strip() and not text.strip().strip("`"):
            opens = r"\w{1,64}[ \t]{0,16}\r?\n"  # what follows a fence that begins a block of code
            ends, nested = rf"{pattern(text.strip())}(?!\w)", rf"{pattern(text.strip())}{opens}"
        case str(text) if text.strip():
            ends = pattern(text.strip())
        case Tag(name, closing=True):
            ends = closing_tag(name)
            if isinstance(first, NameTag) and first.name == name:
                behind = rf"(?=\s{{0,64}}(?:{starts}|{section_end(shape)}|\Z))"
                ends = rf"(?:{ends}|{starts}{_NAMELESS}{behind})"
    if ends is NEVER and shape.section is not None:
        return Edges(starts, section_end(shape), _section_start(shape))
    return Edges(starts, ends, nested)


def _element_edges(call: CallReader, layout: Layout) -> Edges:
    """The same for an element per tool: any tool's tag starts a call, and its own closing tag ends one."""
    every = [tool.with_element(layout).element for tool in call.tools.values()]
    starts = "|".join(opening_tag(element.tag) for element in every if element is not None)
    own = call.tool.with_element(layout).element if call.tool is not None else None
    if own is None:
        return Edges(starts or NEVER, NEVER, NEVER)
    return Edges(starts or NEVER, closing_tag(own.tag), rf"{opening_tag(own.tag)}(?![^<>]{{0,1024}}/>)")


def edges_of(call: CallReader) -> Edges:
    """The same for this call."""
    element = next((p for p in call.shape.call if isinstance(p, ToolElement)), None)
    return _edges(call.shape) if element is None else _element_edges(call, element.layout)


def _section_start(shape: Shape) -> str:
    """A regular expression for the opening of a section."""
    opening = shape.section.open if shape.section is not None else ""
    return opening_tag(opening.name) if isinstance(opening, Tag) else pattern(opening.strip()) or NEVER


def section_end(shape: Shape) -> str:
    """A regular expression for the end of a section."""
    close = shape.section.close if shape.section is not None else ""
    return closing_tag(close.name) if isinstance(close, Tag) else pattern(close.strip()) or NEVER


def opened_at(call: CallReader) -> int:
    """How long what opens the call's section is, which may contain what ends it."""
    return max(call.lead.size, len(call.lead.opening))


def after_own(text: str, opened: int, nested: str) -> int:
    """The index after the call's own opening."""
    own = re.compile(rf"\s*(?:{nested})", re.IGNORECASE).match(text, opened)
    return own.end() if own else opened


def depth_at(text: str, opened: int, edges: Edges) -> tuple[int, bool]:
    """How many calls are open at the end of this text, which begins with a call: itself, and those that it quotes.

    And whether CDATA is open there, too.
    """
    edge = re.compile(f"(?P<literal>{CDATA})|(?P<end>{edges.ends})|(?P<nested>{edges.nested})", re.IGNORECASE)
    depth, literal = 1, False
    for found in edge.finditer(text, after_own(text, opened, edges.nested)):
        depth += 1 if found["nested"] is not None else -1 if found["end"] is not None and depth > 1 else 0
        literal = found["literal"] is not None and not found[0].endswith("]]>")
    return depth, literal


def section_edge(shape: Shape) -> re.Pattern[str]:
    """What opens a section of this shape (group `open`), or ends one."""
    return re.compile(f"(?P<open>{_section_start(shape)})|{section_end(shape)}", re.IGNORECASE)


def section_begun(text: str, shape: Shape) -> int:
    """Where what may be the beginning of a section's opening or end starts, with which this text ends; else its end."""
    around = (shape.section.open, shape.section.close) if shape.section is not None else ()
    begun = (edge_of(edge).part.search(text, max(len(text) - _LONGEST, 0)) for edge in around)
    return min((found.start() for found in begun if found is not None), default=len(text))


def sections(text: str, shape: Shape) -> tuple[int, int]:
    """Where in a text, which begins in a section, that ends and another one follows, else -1; and how many are open.

    The end of a section that none follows is content.
    """
    depth, end = 1, None
    for found in section_edge(shape).finditer(text):
        if end is not None and found["open"] is not None and not text[end.end() : found.start()].strip():
            return end.start(), 0
        end = found if found["open"] is None and depth == 1 else None
        if end is None:
            depth += 1 if found["open"] is not None else -1
    return -1, depth
