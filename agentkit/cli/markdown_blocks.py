"""Markdown that is still being written, as blocks: those that can no longer change, and the one that can.

Knows only text. A block is an element at CommonMark's top level: a paragraph, a list, a fence of code, ….
Loads markdown-it, which comes with rich; imported only by what draws on a terminal.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from markdown_it import MarkdownIt

_BLANK_AT_END: Final = re.compile(r"(?:^|\n)[ \t]*\n\Z")
_AROUND: Final = re.compile(r"\A(?:[ \t]*\n)+|(?:\n[ \t]*)+\Z")
_ENDS: Final = ("paragraph_open", "heading_open", "table_open", "hr")
"""The blocks that a blank line ends; a list may continue after it."""


@cache
def reader() -> MarkdownIt:
    """The parser of an answer's Markdown.

    It hides nothing that the model wrote: HTML is text, as are entities (`&#27;` would become a control character) and
    definitions of links, which would not be shown where they are.
    """
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["entity", "reference"])


class MarkdownBlocks:
    """A streamed text as blocks. They do not depend on how the text was cut."""

    def __init__(self) -> None:
        self.open = ""  # the text that may still change
        self._looked = 0  # how many characters of `open`, up to a line's end, are known to hold no finished block

    def feed(self, text: str) -> None:
        """Add more text."""
        self.open += text

    def take_finished(self) -> list[str]:
        """Take out the blocks that nothing can change any more."""
        end = self.open.rfind("\n") + 1  # an incomplete line may still become anything
        if end == self._looked:
            return []
        text = self.open[:end]
        starts, last = _starts(text)
        blocks = _cut(text, starts)
        rest = "" if last in _ENDS and _BLANK_AT_END.search(text) else blocks.pop()
        self.open = rest + self.open[end:]
        self._looked = self.open.rfind("\n") + 1
        return _without_blank_lines(blocks)

    def close(self) -> list[str]:
        """Take out the rest, as blocks."""
        text, self.open, self._looked = self.open, "", 0
        return _without_blank_lines(_cut(text, _starts(text)[0]))


def _starts(text: str) -> tuple[list[int], str]:
    """Where each block begins, the first at 0, and the kind of the last."""
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    tokens = reader().parse(text)
    blocks = [(lines[token.map[0]], token.type) for token in tokens if token.level == 0 and token.map]
    return [0, *(start for start, _ in blocks[1:])], blocks[-1][1] if blocks else ""


def _cut(text: str, starts: list[int]) -> list[str]:
    ends = [*starts[1:], len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _without_blank_lines(blocks: list[str]) -> list[str]:
    """The blocks without the blank lines around them, which depend on where the text was cut."""
    return [_AROUND.sub("", block) for block in blocks if block.strip()]
