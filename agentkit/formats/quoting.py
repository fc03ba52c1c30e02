"""Text quoted as code in prose, in the manner of Markdown. Knows characters only."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Final

from agentkit.formats.containers import CODE, Containers, around, columns
from agentkit.formats.spans import Spans

_MARKERS: Final = re.compile(r"\s*(?:(?:>|(?:[-+*]|\d{1,9}[.)])\s)\s*)*").match
_BEGUN: Final = re.compile(
    r"\s*(?:(?:(?P<quote>>)|(?P<item>[-+*]|\d{1,9}[.)])\s)\s*)*(?:<[a-zA-Z/!][^\n]*>\s*)?"
).fullmatch  # markers and elements, after which a block may begin
_LAST: Final = re.compile(r"(?:[-+*]|\d{1,9}[.)])?\s*\Z").match  # the marker of an item without text, if any
_DEEPEST: Final = 16  # columns: more of a list's item makes no difference
_BEGINNING: Final = 256  # characters of a line that may be its markers and elements
_EMPTY: Final = re.compile(r"\n[ \t\r]*\n").search
_MARKER: Final = re.compile(r"(?:[-+*]|\d{1,9}[.)]?)?").fullmatch  # a possible beginning of one


@dataclass(slots=True)
class Quoting:
    """The state of prose: inside a code span or a fenced block, or in neither.

    A fence is of backticks or tildes, at the start of a line, of a list item or of a quotation, and closed by as many
    of them, less than four columns further to the right, or by the end of that item or quotation. A single line with
    both (``` ```a``` ```) is a span. A fence with a language's name, inside a block, does not close it: models show a
    block in a block like this. A span ends with its line, unless its backticks end that line and it is around the next
    one, or the run that closes it follows in its paragraph.

    `fence` are the characters that opened the block, `inner` is the number of blocks open in it, `opening` is True in
    its first line, and `boxes` are the containers of the open fence, if any. `late` is the length of a fence after
    other text in a line of this paragraph, with a language's name, outside any block: its end opens no block. `blank`
    is True while the line has only white space; `lead` is the incomplete marker of a list item or quotation after white
    space and complete markers, None once the line has other text and no fence may open in it; `off` is True if quoting
    does not count; `span`, if a span of `spans` may be open; `escaped`, if the text ends with a backslash that nothing
    escapes; `start` is the line's beginning, if that is only markers and elements so far.
    """

    off: bool = False
    fence: str = ""
    inner: int = 0
    opening: bool = False
    boxes: Containers | None = None
    late: int = 0
    spans: Spans = field(default_factory=Spans)
    span: bool = False
    escaped: bool = False
    blank: bool = True
    lead: str | None = ""
    start: str = ""

    @property
    def quoted(self) -> bool:
        """True if this place is quoted."""
        return not self.off and (self.fence != "" or self.span)

    @property
    def inside(self) -> bool:
        """True if this is inside a line, and a line break changes nothing once the next line has more text."""
        return self.lead is None and not (self.span or self.opening or self.boxes)

    @property
    def calm(self) -> bool:
        """True if more text in this line changes nothing, nor an empty line after it."""
        waits = self.late or self.spans.paragraph.waiting
        return self.lead is None and not self.start and not waits and not (self.span and self.spans.fresh)

    @property
    def margin(self) -> int | None:
        """The indentation below which a line after an empty line ends a block that begins here; 0 for any such line.

        None if only the block's own end does.
        """
        if self.blank:
            return None
        found = _BEGUN(self.start) if self.start else None
        if found is None or found["quote"]:
            return 0
        return min(found.start("item"), _DEEPEST) + 1 if found["item"] else None

    def copy(self) -> Quoting:
        """Return a copy that later text does not change."""
        return replace(self, spans=self.spans.copy(), boxes=copy(self.boxes))

    def note(self, text: str) -> None:
        """Take note of plain prose without backticks."""
        line = text.rfind("\n")
        if line >= 0:
            if self.boxes:
                self._note_lines(text[: line + 1])
            if self.span:
                self.span = self.spans.end_line(has_text=text.count("\n") > 1 or text[:line].strip() != "")
            self._note_empty(text)
            self.blank = True
            self.lead = self.start = ""
            self.opening = False
            text = text[line + 1 :]
        if self.span and text and not text.isspace():
            self.spans.note_text()
        if self.escaped or text.endswith("\\"):
            n = len(text) - len(text.rstrip("\\"))
            self.escaped = bool(n % 2) ^ (self.escaped and line < 0 and n == len(text))
        if self.lead is None:
            if self.start:
                self.start = _short(self.start + text)
        elif self.boxes is None and text[:1].isalpha():  # as most lines begin: no marker has letters
            self.blank, self.lead, self.start = False, None, ""
        elif text:
            self._note_start(text, self.lead)

    def _note_start(self, text: str, lead: str) -> None:
        """Take note of more text in a line that has only markers so far, the last of which may be incomplete."""
        self.blank = self.blank and text.isspace()
        start = lead + text
        found = _MARKERS(start)
        if found and self.spans.paragraph.waiting and not found[0].isspace() and found[0]:
            self.spans.paragraph.waiting = []  # another block begins
        lead = start[found.end() :] if found else start
        start = self.start + text
        if _MARKER(lead):
            self.lead, self.start = lead, start[: _BEGINNING + 1]
            return
        if self.boxes:
            self._begin(start[: -len(lead)], lead)
        self.lead, self.start = None, _short(start) if lead[0] == "<" else ""

    def _note_lines(self, text: str) -> None:
        """Take note of the ends of lines, some of which may be outside of the fence's container."""
        first, *more = text.split("\n")[:-1]
        for line in [self.start + first, *more] if self.lead is not None else more:
            found = _MARKERS(line)
            end = found.end() if found and not _LAST(line, found.end()) else len(line)
            self._begin(line[:end], line[end:])

    def look(self, next_text: str) -> None:
        """Take note of the next text: at the start of a line outside of its container, it ends a fence."""
        if self.boxes and self.lead == "":
            self._begin(self.start, next_text)

    def _begin(self, start: str, next_text: str, *, closes: bool = False) -> None:
        """Take note of a line's start: its white space and markers, and then this text, if any."""
        if self.boxes and self.boxes.ends_before(start, next_text, closes=closes):
            self._end_fence()

    def _end_fence(self) -> None:
        self.fence, self.inner, self.boxes = "", 0, None

    def _note_empty(self, text: str) -> None:
        """End the paragraph at an empty line: no later fence or run is the end of one that began in it."""
        if (self.late or self.spans.paragraph.waiting) and _EMPTY("\n" * self.blank + text):
            self.late, self.spans.paragraph.waiting = 0, []

    def may_close(self, mark: str, n: int) -> bool:
        """Return True if a run of `n` marks here is the end of the open fence, unless it opens one inside it."""
        if mark != self.fence[:1] or n < len(self.fence):
            return False
        if self.blank:
            return columns(self.start) < CODE + (self.boxes.width if self.boxes else 0)
        return self.lead == "" and self.boxes is not None and self.boxes.surrounds(self.start)

    def may_be_late(self, mark: str, n: int) -> bool:
        """Return True if a run of `n` marks here may be a fence after other text in its line, or the end of one."""
        return n >= 3 and not self.fence and (self.lead != "" or (mark == "`" and 0 < self.late <= n))

    def ticks(self, mark: str, n: int, *, opens: bool = False) -> None:
        """Take note of a run of `n` backticks or tildes; with `opens`, only a language's name follows in the line."""
        if self.boxes and self.lead is not None:
            self._begin(self.start.removesuffix(self.lead), mark * n, closes=self.may_close(mark, n) and not opens)
        if self.may_close(mark, n):
            self.inner += 1 if opens else -1
            if self.inner < 0:
                self._end_fence()
        elif self.fence:
            if self.opening and mark == self.fence[0] == "`":  # no fence, but two runs of backticks
                self.spans.run(len(self.fence), escaped=False)
                self.span = self.spans.run(n, escaped=self.escaped)
                self.fence, self.boxes = "", None
        elif self.lead == "" and not opens and self.may_be_late(mark, n):
            self.late, self.spans.fence = 0, ""
            self.no_span()
        elif self.lead == "" and n >= 3:
            self.fence, self.inner, self.opening, self.late, self.spans.fence = mark * n, 0, True, 0, ""
            self.boxes = around(self.start) if self.start else None
            self.no_span()
        elif mark == "`":
            self.span = self.spans.run(n, escaped=self.escaped, begins=self.blank)
            self.late = n if opens else self.late
        elif self.span:
            self.spans.note_text()
        self.spans.fence = mark * n if opens and not self.fence else self.spans.fence
        self.blank, self.lead, self.start, self.escaped = False, None, "", False

    def decide_fence(self, *, closes: bool) -> bool:
        """Take note that a fence closes the one that may have opened, or that none does; returns `closes`."""
        if closes:
            self.fence, self.inner, self.late = self.spans.fence, 0, 0
            self.no_span()
        self.spans.fence = ""
        return closes

    def no_span(self) -> None:
        """Take note that no code span is open here, whatever backticks came before."""
        self.spans.end()
        self.span = False

    def continues(self, n: int) -> None:
        """Take note that this is in a span of an earlier line, which a run of this length closes."""
        self.spans.continues(n)
        self.span = True


def _short(start: str) -> str:
    """Return a line's start; empty if it is too long."""
    return start if len(start) <= _BEGINNING else ""
