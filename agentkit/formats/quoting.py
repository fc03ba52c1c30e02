"""What is quoted as code in prose, in the manner of Markdown. Knows characters only."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from agentkit.formats.spans import Spans

_MARKERS: Final = re.compile(r"\s*(?:(?:>|(?:[-+*]|\d{1,9}[.)])\s)\s*)*").match
_BEGUN: Final = re.compile(
    r"\s*(?:(?:(?P<quote>>)|(?P<item>[-+*]|\d{1,9}[.)])\s)\s*)*(?:<[a-zA-Z/!][^\n]*>\s*)?"
).fullmatch  # markers and elements, after which a block may begin
_DEEPEST: Final = 16  # columns: more of a list's item makes no difference
_BEGINNING: Final = 256  # characters of a line that may be its markers and elements
_EMPTY: Final = re.compile(r"\n[ \t\r]*\n").search
_MARKER: Final = re.compile(r"(?:[-+*]|\d{1,9}[.)]?)?").fullmatch  # what may become one


@dataclass(slots=True)
class Quoting:
    """Whether the prose is inside a code span or a fenced block, in the manner of Markdown.

    A fence is of backticks or tildes, at the start of a line, of a list's item or of a quotation, and closed by as many
    of them. A single line with both (``` ```a``` ```) is a span, and a fence with a language's name, inside a block,
    does not close it: models show a block in a block like this. A span ends with its line, unless its backticks end
    that line: then it is around the next.

    `fence` is the number of characters that opened the block, `mark` which, `inner` how many blocks are open in it (or
    outside of any, how many backticks and a language's name ended a line of this paragraph: text before a fence, whose
    end then opens no block),
    `opening` whether its first line is not over, and `marked` whether it began after a marker. `blank` is whether the
    current line has nothing but white space so far; `lead`, what it has so far of the marker of a list's item or of a
    quotation, after white space and whole markers; None once it has anything else, and no fence may open in it; `off`,
    whether quoting does not count; `span`, whether a span of `spans` may be open; `escaped`, whether the text ends with
    a backslash that nothing escapes; `start`, how the line begins, if that is only markers and elements so far.
    """

    off: bool = False
    fence: int = 0
    mark: str = ""
    inner: int = 0
    opening: bool = False
    marked: bool = False
    spans: Spans = field(default_factory=Spans)
    span: bool = False
    escaped: bool = False
    blank: bool = True
    lead: str | None = ""
    start: str = ""

    @property
    def quoted(self) -> bool:
        """Whether what is here is quoted."""
        return not self.off and (self.fence > 0 or self.span)

    @property
    def inside(self) -> bool:
        """Whether this is inside a line, and a line break changes nothing once the next line has more text."""
        return self.lead is None and not (self.span or self.opening)

    @property
    def calm(self) -> bool:
        """Whether more text in this line changes nothing."""
        return self.lead is None and not self.start and not (self.span and self.spans.fresh)

    @property
    def margin(self) -> int | None:
        """What ends a block that begins here, besides its own end. None: nothing.

        Otherwise an empty line before a line that is indented by less than this; 0 for any line.
        """
        if self.blank:
            return None
        found = _BEGUN(self.start) if self.start else None
        if found is None or found["quote"]:
            return 0
        return min(found.start("item"), _DEEPEST) + 1 if found["item"] else None

    def note(self, text: str) -> None:
        """Plain prose, without backticks, went by."""
        line = text.rfind("\n")
        if line >= 0:
            if self.span:
                self.span = self.spans.line_over(said=text.count("\n") > 1 or text[:line].strip() != "")
            self._note_empty(text)
            self.blank = True
            self.lead = self.start = ""
            self.opening = False
            text = text[line + 1 :]
        if self.span and text and not text.isspace():
            self.spans.said()
        if self.escaped or text.endswith("\\"):
            n = len(text) - len(text.rstrip("\\"))
            self.escaped = bool(n % 2) ^ (self.escaped and line < 0 and n == len(text))
        if self.lead is None:
            if self.start:
                self.start = _begun(self.start + text)
        elif text[:1].isalpha():  # as most lines begin: no marker has letters
            self.blank, self.lead, self.start = False, None, ""
        elif text:
            self.blank = self.blank and text.isspace()
            start = self.lead + text
            found = _MARKERS(start)
            lead = start[found.end() :] if found else start
            if _MARKER(lead):
                self.lead, self.start = lead, (self.start + text)[: _BEGINNING + 1]
            else:
                self.lead, self.start = None, _begun(self.start + text) if lead[0] == "<" else ""

    def _note_empty(self, text: str) -> None:
        """A paragraph ends with an empty line: no fence after that is the end of one that began in it."""
        if self.inner and not self.fence and _EMPTY("\n" * self.blank + text):
            self.inner = 0

    def may_close(self, mark: str, n: int) -> bool:
        """Whether a run of `n` marks here is the end of the open fence, unless it opens one inside it."""
        here = self.blank or (self.marked and self.lead == "")
        return self.fence > 0 and here and mark == self.mark and n >= self.fence

    def may_be_late(self, mark: str, n: int) -> bool:
        """Whether a run of `n` marks here may be a fence that text precedes in its line, or the end of one."""
        return mark == "`" and n >= 3 and not self.fence and (self.lead != "" or 0 < self.inner <= n)

    def ticks(self, mark: str, n: int, *, opens: bool = False) -> None:
        """A run of `n` backticks or tildes went by; with `opens`, a language's name is all that follows in the line."""
        if self.may_close(mark, n):
            self.inner += 1 if opens else -1
            if self.inner < 0:
                self.fence = self.inner = 0
        elif self.fence:
            if self.opening and mark == self.mark == "`":  # no fence, but two runs of backticks
                self.spans.run(self.fence, escaped=False)
                self.span = self.spans.run(n, escaped=self.escaped)
                self.fence = 0
        elif self.lead == "" and not opens and self.may_be_late(mark, n):
            self.inner = 0
            self.no_span()
        elif self.lead == "" and n >= 3:
            self.fence, self.mark, self.inner, self.opening, self.marked = n, mark, 0, True, not self.blank
            self.no_span()
        elif mark == "`":
            self.span = self.spans.run(n, escaped=self.escaped)
            self.inner = n if opens else self.inner
        elif self.span:
            self.spans.said()
        self.blank, self.lead, self.start, self.escaped = False, None, "", False

    def no_span(self) -> None:
        """No code span is open here, whatever backticks went by."""
        if self.span:
            self.spans.end()
            self.span = False


def _begun(start: str) -> str:
    """The same, unless it is too long."""
    return start if len(start) <= _BEGINNING else ""
