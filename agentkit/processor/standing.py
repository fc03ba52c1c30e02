"""The position of a call in a text: by itself, in a line of prose or code, or quoted. Fed what was said before it.

Pure. Knows Markdown as people write it; knows no tool and no parser.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Standing = Literal["firm", "loose", "quoted"]
"""With its own markup; bare or fenced, so that it needs more evidence; as a quote."""

FILLER: Final = " \t\r\n;,"  # what may separate bare calls and says nothing

_QUOTES: Final = frozenset("\"'\u201c\u2018\u201e\u00ab")
_MARKER: Final = re.compile(r"(?:[-+*]|\d{1,9}[.)])\s")
_INDENT: Final = 4  # columns; a tab counts as one such step
_START: Final = 80  # characters of a line that show what it is


class _Line:
    """Whether the current line is indented code, as Markdown has it. Fed what is said, in any pieces."""

    __slots__ = ("_blank", "_block", "_listed", "_start")

    def __init__(self) -> None:
        self._start = ""
        self._blank = True  # whether the previous line is blank, or there is none
        self._block = False  # whether the last line that is not blank was indented code
        self._listed = False  # whether a list's items, and what belongs to them, continue

    def said(self, text: str) -> None:
        """Add a piece of what was said."""
        line, *more = text.split("\n")
        self._start = (self._start + line)[:_START]
        for line in more:
            self._over()
            self._start = line[:_START]

    def _over(self) -> None:
        said = self._start.strip()
        if said:
            self._block = self.code
            self._listed = _MARKER.match(f"{said} ") is not None or (self._listed and self._start[0].isspace())
        self._blank = not said

    @property
    def code(self) -> bool:
        """Whether the current line is indented code."""
        said = self._start.lstrip()
        indent = len(self._start.removesuffix(said).expandtabs(_INDENT))
        return indent >= _INDENT and (self._blank or self._block) and not self._listed


class Before:
    """What was said before the reader's position."""

    __slots__ = ("_first", "_last", "_line", "_said", "_standing")

    def __init__(self) -> None:
        self._line = _Line()
        self._first = self._last = ""  # the line's first visible character, and the text's last
        self._said = False  # whether anything visible was said
        self._standing: Standing | None = None  # the position of the previous call, while nothing is said after it

    def said(self, text: str) -> None:
        """Add a piece of what was said."""
        if text.strip(FILLER):
            self._standing, self._said = None, True
        self._line.said(text)
        line = text.rpartition("\n")
        if line[1]:
            self._first = ""
        self._first = self._first or line[2].lstrip()[:1]
        self._last = text[-1:] or self._last

    def thought(self) -> None:
        """Something was thought: what follows is at the beginning of a line."""
        self._first = self._last = ""
        self._line = _Line()

    def calls_over(self) -> None:
        """The next call's position is its own, regardless of the previous call."""
        self._standing = None

    def call_was_text(self, standing: Standing) -> None:
        """What was said last was a call that does not count. The calls next to it still have its position."""
        self._standing = standing

    def standing(self, head: str, name: str) -> Standing:
        """The position of a call that begins here; a call directly after another has the same one.

        Args:
            head: its first characters.
            name: its tool.
        """
        if self._standing is None:
            self._standing = self._by_itself(head.lstrip(), name)
        return self._standing

    def _by_itself(self, head: str, name: str) -> Standing:
        if self._last in _QUOTES or self._first == ">" or self._line.code:
            return "quoted"
        if head.startswith("`"):
            return "quoted" if self._said else "loose"
        if head.lstrip("[ \t\r\n").startswith(("{", name or "{", "functions.")):
            return "quoted" if self._first else "loose"
        return "firm"
