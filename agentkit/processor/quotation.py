"""Quotations in a line of prose: which are open where a call is, and whether one of them ends after it.

Pure. Knows the quotation marks of many languages, and tells apostrophes and inches from them; knows no call.
"""

# ruff: noqa: RUF001 - the quotation marks of many languages

from __future__ import annotations

import re
from copy import deepcopy
from html.entities import html5
from typing import Final

CLOSES: Final = {
    '"': ('"',), "'": ("'",), "＂": ("＂",), "＇": ("＇",),
    "“": ("”",), "‘": ("’",), "”": ("”",), "’": ("’",), "‟": ("”",), "‛": ("’",),
    "„": ("“", "”", '"', "''"), "‚": ("‘", "’", "'"), "⹂": ("”", "“"),
    "«": ("»",), "»": ("«", "»"), "‹": ("›",), "›": ("‹", "›"), "《": ("》",), "〈": ("〉",),
    "「": ("」",), "『": ("』",), "｢": ("｣",), "〝": ("〞", "〟"),
    "﹁": ("﹂",), "﹃": ("﹄",), "︽": ("︾",), "︿": ("﹀",),
    "❝": ("❞",), "❛": ("❜",), "❠": ("❝", "❞"), "❟": ("❛", "❜"), "❮": ("❯",), "🙶": ("🙷",), "🙸": ("🙶", "🙷"),
    "⸂": ("⸃",), "⸄": ("⸅",), "⸉": ("⸊",), "⸌": ("⸍",), "⸜": ("⸝",), "⸠": ("⸡",),
    "״": ("״",), "׳": ("׳",), "՚": ("՚",), "´": ("´",),
    "``": ("''",), ",,": ("''", '"', "“", "”"), "<<": (">>",),
}  # fmt: skip
"""What opens a quotation, and what closes it.

Sources: the characters of Unicode 16 with the property Quotation_Mark (PropList.txt) or of the categories Pi and Pf,
the ornaments and vertical forms of the same marks, and signs that are written in their place: of angles in Chinese, of
Hebrew and Armenian, the acute accent, and the ASCII of TeX and of typewriters.
"""

_BOTH: Final = frozenset("\"'”’»›＂＇״׳՚´") | {"``", ",,"}
"""They open some quotations and close others, or are something else, such as apostrophes."""
_TOUCHING: Final = frozenset("\"'＂＇")  # of `_BOTH`, those that only a quotation has directly before a call
_APOSTROPHES: Final = frozenset("'’＇״׳՚´")
_RUNS: Final = frozenset("`,<>'")  # two of them are a mark, but not more
_BEFORE: Final = frozenset("([{—–-/:,=") | (frozenset(CLOSES) - _APOSTROPHES)
_CALL: Final = "\0"  # how a call looks to the marks next to it: neither a space nor a word

MARKS: Final = frozenset({*CLOSES, *(mark for marks in CLOSES.values() for mark in marks)})
_ENTITIES: Final = {f"&{name}": mark for name, mark in html5.items() if mark in MARKS and name.endswith(";")}
_NAMED: Final = "|".join(sorted(name[1:-1] for name in _ENTITIES))
_MARK: Final = re.compile(
    rf"&(?:{_NAMED}|\#0{{0,4}}\d{{2,6}}|\#[xX]0{{0,4}}[\da-fA-F]{{2,5}});"
    rf"|\\[\"']|{'|'.join(sorted(map(re.escape, MARKS), key=len, reverse=True))}"
)
_SAYS: Final = re.compile(rf"[&\\\n{re.escape(''.join(MARKS))}]").search
_LONGEST: Final = 24  # characters of an entity, without its edges
_MAY_GO_ON: Final = re.compile(
    rf"(?:\\[\"']?|&[#\w]{{0,{_LONGEST}}};?|([{''.join(_RUNS)}])\1?|[{''.join(m for m in _BOTH if len(m) == 1)}])\Z"
)
"""The end of a text in which the next character tells what a mark is, or whether it is one."""


def _read_as(found: str) -> str:
    """The mark that this is, perhaps escaped, or as an entity of HTML; empty for another character."""
    if found[0] != "&":
        return found.removeprefix("\\")
    if found[1] != "#":
        return _ENTITIES[found]
    code = int(found[3:-1], 16) if found[2] in "xX" else int(found[2:-1])
    return chr(code) if code <= 0x10FFFF and chr(code) in MARKS else ""


class Quotation:
    """The quotations of the current line. Fed what is said, in any pieces.

    None continues in the next line, except for one whose mark only white space separates from the calls: it is around
    them if a mark that closes it is the next thing after them.
    """

    __slots__ = ("_around", "_called", "_last", "_near", "_open", "_touches", "_waits")

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._around: set[str] = set()  # those that were open at a call
        self._near = ""  # what may open one, if only white space, or calls, came after it
        self._touches = False  # whether nothing came after it
        self._called = False  # whether calls came after it
        self._last = ""  # the character before, in the line
        self._waits = ""  # the end of the text, if the next character tells about it

    @property
    def touches(self) -> bool:
        """Whether a mark that opens a quotation is directly before this place."""
        return self._touches

    @property
    def around(self) -> bool:
        """Whether a quotation that may still end is around the calls before."""
        return bool(self._around)

    def said(self, text: str) -> bool:
        """Add a piece of prose; returns whether a quotation around the calls before it ended."""
        if not self._waits and _SAYS(text) is None:
            self._other(text, 0, len(text))
            self._last = text[-1:] or self._last
            return False
        text, self._waits = self._waits + text, ""
        if found := _MAY_GO_ON.search(text, max(0, len(text) - _LONGEST - 2)):
            text, self._waits = text[: found.start()], found[0]
        return self._read(text, self._waits[:1])

    def meets(self) -> bool:
        """A call comes next; returns whether a quotation around the calls before it ended."""
        return self._settle(_CALL)

    def call(self) -> bool:
        """A call is here; returns whether it may be in a quotation."""
        self._settle(_CALL)
        self._last, self._touches = _CALL, False
        if self._near:
            self._open.add(self._near)
            self._called = True
        self._around |= self._open
        return bool(self._open)

    def pause(self) -> bool:
        """Nothing is said for now; returns whether a quotation around the calls before ended, if nothing follows."""
        return bool(self._waits) and deepcopy(self)._settle("")

    def _settle(self, after: str) -> bool:
        text, self._waits = self._waits, ""
        return self._read(text, after)

    def _read(self, text: str, after: str) -> bool:
        at, closed = 0, False
        seen = len(text.rstrip())
        while (end := text.find("\n", at)) >= 0:
            closed |= self._marks(text, at, end, "\n")
            self._around &= {self._near}
            self._open, self._last, self._touches = set(), "", False
            at = end + 1
            if not self._around:  # lines that can neither end a quotation nor lead to a call
                last = text.rfind("\n", at, seen if seen > at else len(text)) + 1
                self._other(text, at, last)
                at = max(at, last)
        return self._marks(text, at, len(text), after) or closed

    def _marks(self, text: str, start: int, end: int, after: str) -> bool:
        """Read part of a line; returns whether a quotation around a call ended."""
        at, closed = start, False
        for found in _MARK.finditer(text, start, end):
            if not (mark := _read_as(found[0])):
                continue
            self._other(text, at, found.start())
            at = found.end()
            before = text[found.start() - 1] if found.start() > start else self._last
            closed |= self._mark(mark, before, text[at : at + 1] or after)
        self._other(text, at, end)
        self._last = text[end - 1] if end > start else self._last
        return closed

    def _other(self, text: str, start: int, end: int) -> None:
        """Read what is between marks."""
        if start < end:
            self._touches = False
            if self._near and not text[start:end].isspace():
                self._leads("")

    def _leads(self, mark: str) -> None:
        """This mark, if any, is now the one that may lead to a call."""
        if self._near not in self._open:
            self._around.discard(self._near)
        self._near, self._called = mark, False

    def _mark(self, mark: str, before: str, after: str) -> bool:
        """Read a mark; returns whether it closes a quotation around a call."""
        if mark[0] in _RUNS and mark[0] in (before, after):  # part of a longer run
            self._leads("")
            self._touches = mark[0] in _TOUCHING
            return False
        word, spaced, doubtful = after.isalnum(), not before.strip(), mark in _BOTH
        answers = self._called and mark in CLOSES[self._near]
        ended = {opened for opened in self._open if mark in CLOSES[opened]} | ({self._near} if answers else set())
        if mark in _APOSTROPHES and (word or (spaced and mark != "’" and not answers)):
            ended = set()
        elif doubtful and spaced and word:
            ended = set()  # it opens another one
        closed = bool(ended & self._around)
        self._open -= ended
        self._around = set() if closed else self._around
        leads = not ended and mark in CLOSES and (not doubtful or spaced or before in _BEFORE)
        sure = not doubtful or mark == '"' or after.strip()
        if leads and sure and not (mark in _APOSTROPHES and after.isdigit()):
            self._open.add(mark)
        self._leads(mark if leads else "")
        self._touches = (leads and mark != "``") or mark[0] in _TOUCHING  # backticks may be only characters
        return closed
