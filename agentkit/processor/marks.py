"""What the formats declare of thinking and of tools' own tags, for readers that look for calls in other text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from agentkit import formats


class MarksDeclared(NamedTuple):
    """What the formats declare that matters where their calls are looked for in other text.

    Attributes:
        thinking: the tags of thinking, without white space.
        opens: the opening tags of thinking, by the closing ones that are told apart from other text.
        by_tag: the formats in which a call consists only of the tool's own tag.
        markup: the control tokens and tags between calls and text, which do not belong to a call.
        ends: what closes a section of calls, without white space, in lower case.
    """

    thinking: frozenset[str]
    opens: Mapping[str, tuple[str, ...]]
    by_tag: frozenset[str]
    markup: frozenset[str]
    ends: frozenset[str]


@cache
def marks() -> MarksDeclared:
    """Those of all formats."""
    from agentkit.formats.declaring import REASONING
    from agentkit.formats.format import ToolElement, edge

    tags = [pair for f in formats.recoverable() for pair in f.thinking]
    closes = sorted({tag for _, tag in tags if "think" in tag.lower() or tag[2:-1] in REASONING})
    by_tag = (f.name for f in formats.auto() if any(isinstance(s.call[0], ToolElement) for s in f.shapes))
    sections = [shape.section for f in formats.recoverable() for shape in f.shapes if shape.section is not None]
    return MarksDeclared(
        frozenset("".join(tag.split()) for pair in tags for tag in pair),
        {close: tuple({start for start, end in tags if end == close}) for close in closes},
        frozenset(by_tag),
        frozenset(token.strip() for f in formats.recoverable() for token in f.markup if "python" not in token),
        frozenset("".join(edge(section.close).split()).lower() for section in sections),
    )
