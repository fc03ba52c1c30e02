"""The position of a call in a text: by itself, in a line of prose or code, or quoted. Fed what was said before it.

Pure. Knows Markdown as people write it; knows no tool and no parser.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from agentkit.processor.quotation import OPENING, Quotation

Standing = Literal["firm", "loose", "quoted"]
"""With its own markup; bare or fenced, so that it needs more evidence; as a quote."""

FILLER: Final = " \t\r\n;,"  # what may separate bare calls and says nothing

_MARKER: Final = re.compile(r"[ \t]*((?:[-+*]|\d{1,9}[.)])(?:[ \t]+|\Z))")
_QUOTE: Final = re.compile(r"\s*(?:(?:[-+*]|\d{1,9}[.)])\s+)*>").match  # also in a list's item
_INDENT: Final = 4  # columns; a tab counts as one such step
_START: Final = 80  # characters of a line that show what it is


class _Line:
    """Whether the current line is indented code, as Markdown has it. Fed what is said, in any pieces."""

    __slots__ = ("_blank", "_block", "_items", "_start")

    def __init__(self) -> None:
        self._start = ""
        self._blank = True  # whether the previous line is blank, or there is none
        self._block = False  # whether the last line that is not blank was indented code
        self._items: list[int] = []  # the columns at which the text of the list's open items begins

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
            self._items = self._items_after(self._start.expandtabs(_INDENT))
        self._blank = not said

    def _items_after(self, line: str) -> list[int]:
        """The list's items, and what belongs to them, continue until a line is not indented."""
        items, at = [*self._items], 0
        while found := _MARKER.match(line, at):
            items = [column for column in items if column <= found.start(1)]
            at = found.end()
            wide = at - found.start(1) - len(found[1].strip())
            items.append(at if 0 < wide <= _INDENT else at - wide + 1)
        return items if at or line[0].isspace() else []

    @property
    def quote(self) -> bool:
        """Whether the current line is a Markdown quote."""
        return _QUOTE(self._start) is not None

    @property
    def code(self) -> bool:
        """Whether the current line is indented code."""
        said = self._start.lstrip()
        indent = len(self._start.removesuffix(said).expandtabs(_INDENT))
        if not (self._blank or self._block):
            return False
        within = max((column for column in self._items if column <= indent), default=None if self._items else 0)
        return within is not None and indent - within >= _INDENT


class Before:
    """What was said before the reader's position."""

    __slots__ = ("_first", "_last", "_line", "_quotation", "_said", "_standing")

    def __init__(self) -> None:
        self._line, self._quotation = _Line(), Quotation()
        self._first = self._last = ""  # the line's first visible character, and the text's last
        self._said = False  # whether anything visible was said
        self._standing: Standing | None = None  # the position of the previous call, while nothing is said after it

    def said(self, text: str) -> bool:
        """Add a piece of what was said; returns whether it ends a quotation around the calls before it."""
        self._add(text)
        return self._quotation.said(text)

    def pause(self) -> bool:
        """Nothing is said for now; returns whether a quotation around the calls before ended."""
        return self._quotation.pause()

    def may_be_quoted(self) -> bool:
        """Whether a call that is here is in a quotation if that also ends in the call's last line."""
        return self._quotation.call()

    def _add(self, text: str) -> None:
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
        self._line, self._quotation = _Line(), Quotation()

    def calls_over(self) -> None:
        """The next call's position is its own, regardless of the previous call."""
        self._standing = None

    def call_was_text(self, text: str, standing: Standing) -> None:
        """A call does not count, and is text. The calls next to it still have its position."""
        self._add(text)
        self._quotation.call()
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
        if self._last in OPENING or self._line.quote or self._line.code:
            return "quoted"
        if head.startswith("`"):
            return "quoted" if self._said else "loose"
        if head.lstrip("[ \t\r\n").startswith(("{", name or "{", "functions.")):
            return "quoted" if self._first else "loose"
        return "firm"
