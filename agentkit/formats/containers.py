"""The lists' items and quotations of Markdown around an open fence. Knows characters only."""

from __future__ import annotations

import re
from typing import Final

_QUOTATION: Final = re.compile(r" {0,3}> ?").match
_ITEM: Final = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])( +|\Z)").match
CODE: Final = 4  # columns: text indented by as many is code, and no fence
_TAB: Final = 4
FENCES: Final = ("```", "~~~")
_NARROWEST: Final = 2  # columns: a marker and a blank

Boxes = tuple[int, ...]
"""Containers, the outermost first: the indentation of a list item's text; 0 for a quotation; negative for indentation
without a marker, which may belong to an item that began in an earlier line, or mean nothing."""


class Containers:
    """The containers of the open fence, as its own line shows them: an indented fence belongs to an item.

    A fence ends with its container: in a quotation at an empty line without its mark, in an item at the next item or
    at text without indentation. Text without indentation directly below the fence's opening ends nothing: this model
    does not indent the text of items.

    Text without the quotation's mark is still code if no empty line precedes it (`bare`), but the next fence without
    the mark then opens a block; if earlier code had the mark (`lapsed`), the next empty line ends the fence. `first` is
    True in the first line of the fence.
    """

    __slots__ = ("bare", "boxes", "first", "lapsed")

    def __init__(self, boxes: Boxes) -> None:
        self.boxes, self.first, self.bare, self.lapsed = boxes, True, False, False

    @property
    def width(self) -> int:
        """The indentation of the containers' text, without marks of quotations."""
        return sum(map(abs, self.boxes))

    def surrounds(self, start: str) -> bool:
        """Return True if a line with this beginning is in the fence, without more indentation than its container's."""
        n, rest = _open_containers(self.boxes, start)
        return n == len(self.boxes) and not rest.strip()

    def ends_before(self, start: str, text: str, *, closes: bool) -> bool:
        """Return True if the fence ends before this line, which is then outside of it.

        Args:
            start: the line's white space and markers.
            text: the beginning of its text, if any.
            closes: it would be the fence's end.
        """
        n, rest = _open_containers(self.boxes, start)
        blank = not text and not rest.strip()
        first, self.first = self.first, self.first and blank and min(self.boxes, default=0) < 0
        if n == len(self.boxes):
            return False
        sure = tuple(box for box in self.boxes if box >= 0)
        if self.boxes[n] < 0 and _open_containers(sure, start)[0] == len(sure):
            return self._less_indented(sure, text, first=first, closes=closes or blank)
        fence, quoted, begun = text[:3] in FENCES, 0 in self.boxes[n:], bool(_containers_in(rest)[0])
        if self.bare:
            return fence or (self.lapsed and blank)
        if blank or closes:
            return quoted
        if begun or (quoted and fence) or not (first or quoted):
            return True
        if quoted:
            self.bare, self.lapsed = True, not first
        else:
            self.boxes = ()
        return False

    def _less_indented(self, sure: Boxes, text: str, *, first: bool, closes: bool) -> bool:
        """Return True if the fence ends before a line that is only less indented: outside of an item, or code."""
        if self.bare or closes:
            return self.bare and text[:3] in FENCES
        if first:
            self.boxes = sure
        else:
            self.bare = True
        return False


def around(start: str) -> Containers | None:
    """Return the containers of a fence with this white space and these markers before it in its line, if any."""
    whole = _expand(start)
    begun, rest = _containers_in(whole.lstrip(" "))
    indent = len(whole) - len(whole.lstrip(" "))
    if begun and begun[0]:
        begun = (indent + begun[0], *begun[1:])
    elif indent >= _NARROWEST:
        begun = (-indent, *begun)
    boxes = (*begun, -len(rest)) if begun and begun[-1] >= 0 and len(rest) >= _NARROWEST else begun
    return Containers(boxes) if boxes else None


def _open_containers(boxes: Boxes, start: str) -> tuple[int, str]:
    """Return the number of containers that a line is in, and the rest of its beginning."""
    rest = _expand(start)
    for n, indent in enumerate(boxes):
        if indent and len(rest) - len(rest.lstrip(" ")) >= abs(indent):
            rest = rest[abs(indent) :]
        elif not indent and (found := _QUOTATION(rest)):
            rest = rest[found.end() :]
        else:
            return n, rest
    return len(boxes), rest


def columns(space: str) -> int:
    """Return the width of white space at the beginning of a line."""
    return len(_expand(space))


def _expand(start: str) -> str:
    return start.replace("\r", "").expandtabs(_TAB)


def _containers_in(rest: str) -> tuple[Boxes, str]:
    """Return the containers that begin in this beginning of a line, and the rest of it."""
    found: list[int] = []
    while True:
        if mark := _QUOTATION(rest):
            found.append(0)
            end = mark.end()
        elif item := _ITEM(rest):
            end = item.end() if 0 < len(item[1]) <= CODE else item.start(1) + 1
            found.append(end)
        else:
            return tuple(found), rest
        rest = rest[end:]
