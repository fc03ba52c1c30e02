"""How a call stands in a text: by itself, in a line of prose or code, or quoted. Fed what was said before it.

Pure. Knows Markdown as people write it; knows no tool and no parser.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Standing = Literal["firm", "loose", "quoted"]
"""With markup of its own; bare or fenced, so that more must speak for it; as a quote."""

FILLER: Final = " \t\r\n;,"  # what stands between bare calls and says nothing

_QUOTES: Final = frozenset("\"'\u201c\u2018\u201e\u00ab")
_MARKER: Final = re.compile(r"(?:[-+*]|\d{1,9}[.)])\s")
_INDENT: Final = 4  # columns; a tab is as much
_START: Final = 80  # characters of a line that tell what it is


class _Line:
    """Whether the current line is indented code, as Markdown has it. Fed what is said, in any pieces."""

    __slots__ = ("_blank", "_block", "_listed", "_start")

    def __init__(self) -> None:
        self._start = ""
        self._blank = True  # whether nothing stands in the line before, or before it
        self._block = False  # whether the last line with anything in it was indented code
        self._listed = False  # whether a list's items, and what belongs to them, go on

    def said(self, text: str) -> None:
        """This much more was said."""
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
        """Whether what stands here is."""
        said = self._start.lstrip()
        indent = len(self._start.removesuffix(said).expandtabs(_INDENT))
        return indent >= _INDENT and (self._blank or self._block) and not self._listed


class Before:
    """What was said before the place where the reader is."""

    __slots__ = ("_first", "_last", "_line", "_said", "_standing")

    def __init__(self) -> None:
        self._line = _Line()
        self._first = self._last = ""  # the line's first visible character, and the text's last
        self._said = False  # whether anything visible was
        self._standing: Standing | None = None  # how the call before stands, while nothing is said after it

    def said(self, text: str) -> None:
        """This much more was said."""
        if text.strip(FILLER):
            self._standing, self._said = None, True
        self._line.said(text)
        line = text.rpartition("\n")
        if line[1]:
            self._first = ""
        self._first = self._first or line[2].lstrip()[:1]
        self._last = text[-1:] or self._last

    def thought(self) -> None:
        """Something was thought: what follows stands at the beginning of a line."""
        self._first = self._last = ""
        self._line = _Line()

    def calls_over(self) -> None:
        """The next call stands as it does by itself, whatever call was before."""
        self._standing = None

    def call_was_text(self, standing: Standing) -> None:
        """What was said last was a call that does not count. The calls beside it still stand as it does."""
        self._standing = standing

    def standing(self, head: str, name: str) -> Standing:
        """How a call stands that begins here; one right behind another stands as that one does.

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
