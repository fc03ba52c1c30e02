"""Quotations in a line of prose: which are open where a call is, and whether one of them ends after it.

Pure. Knows the quotation marks of many languages, and tells apostrophes and inches from them; knows no call.
"""

from __future__ import annotations

import re
from typing import Final

_CLOSES: Final = {
    '"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u201e": "\u201c\u201d", "\u201a": "\u2018\u2019",
    "\u201d": "\u201d", "\u00ab": "\u00bb", "\u00bb": "\u00ab\u00bb", "\u2039": "\u203a", "\u203a": "\u2039\u203a",
    "\u300c": "\u300d", "\u300e": "\u300f", "\u300a": "\u300b", "\u3008": "\u3009", "\u301d": "\u301e\u301f",
    "\uff02": "\uff02",
}  # fmt: skip
_BOTH: Final = frozenset("\"'\u201d\u00bb\u203a\uff02")  # some open and close, others open here and close elsewhere
_APOSTROPHES: Final = frozenset("'\u2019")
_UNSURE: Final = _BOTH | _APOSTROPHES  # what follows them tells what they are
_MARK: Final = re.compile(f"[{''.join({*_CLOSES, *''.join(_CLOSES.values())})}]")
_BEFORE: Final = frozenset("([{\u2014\u2013-/:,=") | (frozenset(_CLOSES) - _APOSTROPHES)  # may precede an opening mark
_CALL: Final = "\0"  # how a call looks to the marks next to it: neither a space nor a word

OPENING: Final = frozenset(_CLOSES) - frozenset("\u201d\u00bb\u203a")
"""The marks that open a quotation if they touch what they are before."""


class Quotation:
    """The quotations of the current line, none of which continues in the next. Fed what is said, in any pieces."""

    __slots__ = ("_around", "_last", "_open", "_waits")

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._around: set[str] = set()  # those that were open at a call
        self._last = ""  # the character before, in the line
        self._waits = ""  # a mark that the next character tells about

    def said(self, text: str) -> bool:
        """Add a piece of prose; returns whether a quotation around the calls before it ended."""
        text, self._waits = self._waits + text, ""
        if text[-1:] in _UNSURE:
            text, self._waits = text[:-1], text[-1]
        return self._read(text, self._waits)

    def call(self) -> bool:
        """A call is here; returns whether it may be in a quotation."""
        self._settle(_CALL)
        self._last = _CALL
        self._around |= self._open
        return bool(self._open)

    def pause(self) -> bool:
        """Nothing is said for now; returns whether a quotation around the calls before ended."""
        return self._settle("")

    def _settle(self, after: str) -> bool:
        text, self._waits = self._waits, ""
        return self._read(text, after)

    def _read(self, text: str, after: str) -> bool:
        line = text.find("\n")
        closed = self._marks(text, 0, len(text) if line < 0 else line, after)
        if line >= 0:
            self._open, self._around, self._last = set(), set(), ""
            self._marks(text, text.rfind("\n") + 1, len(text), after)
        return closed

    def _marks(self, text: str, start: int, end: int, after: str) -> bool:
        """Read part of a line; returns whether a quotation around a call ended."""
        closed = False
        for found in _MARK.finditer(text, start, end):
            at = found.start()
            before = text[at - 1] if at > start else self._last
            ended = self._mark(found[0], before, text[at + 1 : at + 2] or after)
            if ended & self._around:
                closed, self._around = True, set()
        self._last = text[end - 1] if end > start else self._last
        return closed

    def _mark(self, mark: str, before: str, after: str) -> set[str]:
        """Read a mark; returns what it closes."""
        word, spaced = after.isalnum(), not before.strip()
        ended = {opened for opened in self._open if mark in _CLOSES[opened]}
        if mark in _APOSTROPHES and (word or (mark == "'" and spaced)):
            ended = set()
        elif mark in _BOTH and spaced and word:
            ended = set()  # it opens another one
        self._open -= ended
        opens = not ended and mark in _CLOSES
        if opens and mark in _BOTH:
            opens = spaced or before in _BEFORE
            opens = opens and (mark == '"' or bool(after.strip())) and not (mark == "'" and after.isdigit())
        if opens:
            self._open.add(mark)
        return ended
