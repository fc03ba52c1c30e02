"""Whether a line of a text is code by its indentation, or belongs to a Markdown quote. Fed what is said, in any pieces.

Pure. Knows Markdown as people write it; where that differs, a line is rather code than none.
"""

from __future__ import annotations

import re
from typing import Final, Literal

_ITEM: Final = re.compile(r"[ \t]*((?:[-+*]|\d{1,9}[.)])(?:[ \t]+|\Z))").match
_QUOTE: Final = re.compile(r"\s*(?:(?:[-+*]|\d{1,9}[.)])\s+)*>").match  # also in a list's item
_MARKS: Final = re.compile(r"(?:\s*(?:>|(?:[-+*]|\d{1,9}[.)])(?:\s|\Z)))*").match
_INDENT: Final = 4  # columns; a tab ends at a multiple of them
_START: Final = 80  # characters of a line that show what it is

_ENDS: Final = re.compile(r"#{1,6}(?=[ \t]|\Z)|([-*_])[ \t]*(?:\1[ \t]*){2,}\Z|```[^`]*\Z|~~~|<!--").match
"""A heading, a rule, a fence, and a comment: each ends a paragraph, and leaves none open."""
_UNDERLINES: Final = re.compile(r"(?:=+|-+)[ \t]*\Z").match  # the paragraph before, which is a heading
_COLUMNS: Final = re.compile(r"(?=[^-]*-)(?=[^|]*\|)[|:\- \t]+\Z").match  # below the first line of a table
_DEFINES: Final = re.compile(r"""\[[^\[\]]+\]:[ \t]*\S+(?:[ \t]+(?:"[^"]*"?|'[^']*'?|\([^()]*\)?))?[ \t]*\Z""").match
"""A link, if no paragraph is open."""
_BREAKS_IN: Final = re.compile(r"[ \t]*(?:(?:[-+*]|1[.)])[ \t]|#{1,6}[ \t])").match  # it ends a paragraph

Open = Literal["", "paragraph", "quote", "table"]
"""What a line leaves open, which the next line may continue: nothing, a paragraph, one of a quote, a table."""


class Block:
    """The block that the current line is in: an indented line is code unless it continues a paragraph."""

    __slots__ = ("_items", "_open", "_start")

    def __init__(self) -> None:
        self._start = ""
        self._open: Open = ""
        self._items: list[int] = []  # the columns at which the text of the list's open items begins

    def said(self, text: str) -> None:
        """Add a piece of what was said."""
        line, *more = text.split("\n")
        self._start = (self._start + line)[:_START]
        for line in more:
            self._over()
            self._start = line[:_START]

    @property
    def quote(self) -> bool:
        """Whether the current line is of a Markdown quote; without a mark if it continues a paragraph of the quote."""
        return _QUOTE(self._start) is not None or (self._open == "quote" and _BREAKS_IN(self._start) is None)

    @property
    def code(self) -> bool:
        """Whether the current line is indented code."""
        return self._is_code(self._start.expandtabs(_INDENT))

    def _is_code(self, line: str) -> bool:
        indent = len(line) - len(line.lstrip())
        within = max((column for column in self._items if column <= indent), default=None if self._items else 0)
        if within is not None and indent - within >= _INDENT and self._open not in ("paragraph", "quote"):
            return True
        at = wide = 0
        while found := _ITEM(line, at):  # code in the item's own line
            at, wide = found.end(), len(found[1]) - len(found[1].rstrip())
        return wide > _INDENT

    def _over(self) -> None:
        """The current line ended."""
        if self._start[:1].isalpha() and self._open in ("", "paragraph"):  # as most lines of prose
            self._open, self._items = "paragraph", []
        elif line := self._start.expandtabs(_INDENT).rstrip():
            self._open = "" if self._is_code(line) else self._left_open(line)
            self._items = self._items_after(line)
        else:
            self._open = ""

    def _left_open(self, line: str) -> Open:
        """What a line other than code leaves open."""
        found, quoted = _MARKS(line), _QUOTE(line) is not None
        began = found is not None and found.end() > 0
        said = line[found.end() :].lstrip() if found else line.lstrip()
        if not said or _ENDS(line.lstrip()) or _ENDS(said):
            return ""
        if self._open == "table" and not began:
            return "table"
        own = quoted is (self._open == "quote")
        if self._open in ("paragraph", "quote") and ((own and quoted) or not began):
            if own and _COLUMNS(said):
                return "table"
            return "" if own and _UNDERLINES(said) else self._open
        if _DEFINES(said):
            return ""
        return "quote" if quoted else "paragraph"

    def _items_after(self, line: str) -> list[int]:
        """The list's items, and what belongs to them, continue until a line is not indented."""
        if _ENDS(line.lstrip()):
            return self._items if line[0].isspace() else []
        items, at = [*self._items], 0
        while found := _ITEM(line, at):
            items = [column for column in items if column <= found.start(1)]
            at = found.end()
            wide = at - found.start(1) - len(found[1].strip())
            items.append(at if 0 < wide <= _INDENT else at - wide + 1)
        return items if at or line[0].isspace() else []
