"""Tokens that matter to readers which look for calls in other text: of thinking, of sections, and quotation marks."""

# ruff: noqa: RUF001 - quotation marks

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from agentkit import formats

QUOTATION_MARKS: Final = frozenset("\"'“”„‟‘’‚‛«»‹›「」『』＂＇")
_QUOTES: Final = QUOTATION_MARKS | {"`"}


class FormatTokens(NamedTuple):
    """The tokens that the formats declare.

    Attributes:
        thinking: the tags of thinking, without white space.
        closes: the closing ones that are told apart from other text, the longest first.
        by_tag: the formats in which a call consists only of the tool's own tag.
        other: one of the control tokens and tags between calls and text, which belong to no call.
        ends: what closes a section of calls, without white space, in lower case.
    """

    thinking: frozenset[str]
    closes: tuple[str, ...]
    by_tag: frozenset[str]
    other: re.Pattern[str]
    ends: frozenset[str]


@cache
def format_tokens() -> FormatTokens:
    """Collect the tokens of all formats."""
    from agentkit.formats.declaration_checks import REASONING
    from agentkit.formats.format import ToolElement, edge

    tags = [pair for f in formats.recoverable() for pair in f.thinking]
    closes = {tag for _, tag in tags if "think" in tag.lower() or tag[2:-1] in REASONING}
    by_tag = (f.name for f in formats.auto() if any(isinstance(s.call[0], ToolElement) for s in f.shapes))
    sections = [shape.section for f in formats.recoverable() for shape in f.shapes if shape.section is not None]
    other = sorted({t.strip() for f in formats.recoverable() for t in f.markup if "python" not in t}, key=len)
    return FormatTokens(
        frozenset("".join(tag.split()) for pair in tags for tag in pair),
        tuple(sorted(closes, key=len, reverse=True)),
        frozenset(by_tag),
        re.compile(rf"\s*(?:{'|'.join(map(re.escape, reversed(other)))})", re.IGNORECASE),
        frozenset("".join(edge(section.close).split()).lower() for section in sections),
    )


def last_end_of_thinking(text: str) -> int:
    """Return the index of the last closing tag that is not in quotation marks or backticks; else -1."""
    for end in reversed(list(_closings().finditer(text))):
        if not _QUOTES.issuperset((text[max(end.start() - 1, 0) : end.start()], text[end.end() : end.end() + 1])):
            return end.start()
    return -1


@cache
def _closings() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, format_tokens().closes)))
