"""Runs of backticks in prose, and the code spans that they open. Knows characters only."""

from __future__ import annotations

from copy import deepcopy
from typing import Final

_KINDS: Final = 32  # lengths of runs that wait at once: a line that has more is not prose


class Runs:
    """The runs that are not followed by one of their length yet, in order.

    The first one has opened a span. If no second one of its length follows, it is only characters, and the next one has
    opened a span. `bare` is True while the last one ends its line.
    """

    __slots__ = ("bare", "waiting")

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.bare = False

    def add(self, closes: int, opens: int) -> None:
        """Close a span of length `closes`, and all that wait in it; else a run may open one of length `opens`."""
        self.bare = False
        if closes in self.waiting:
            del self.waiting[self.waiting.index(closes) :]
        elif opens and len(self.waiting) < _KINDS:
            self.waiting.append(opens)
            self.bare = True

    def end_line(self, *, has_text: bool) -> None:
        """End the line, with all spans in it but one whose backticks end the line: that is around the next line."""
        self.waiting = self.waiting[-1:] if self.bare and not has_text else []
        self.bare = False


class Spans:
    """Code spans: the text between two runs of backticks of the same length.

    A backslash escapes a backtick outside a span. Models also escape those of real spans, so text between two escaped
    ones is also a span: `literal` reads the runs of a line as if a backslash were a character, `line` does not.
    `paragraph` are the runs that wait in the paragraph, in any of its lines: a span continues across lines if a run
    closes it. `fence` are the backticks or tildes that last ended a line, before a language's name and after text, in
    any paragraph: a fence if another one closes it, although Markdown has none of tildes there, or across an empty
    line. `closing` is the length of a run that is known to follow and close a span, even in another line; 0 for none.
    """

    __slots__ = ("closing", "fence", "line", "literal", "paragraph")

    def __init__(self) -> None:
        self.line, self.literal, self.paragraph = Runs(), Runs(), Runs()
        self.fence = ""
        self.closing = 0

    def copy(self) -> Spans:
        """Return a copy that later text does not change."""
        return deepcopy(self) if self.paragraph.waiting or self.closers or self.fence else Spans()

    @property
    def closers(self) -> set[int]:
        """The lengths of the runs that would close a span of this line."""
        return {*self.line.waiting, *self.literal.waiting}

    @property
    def fresh(self) -> bool:
        """True if only white space has followed the backticks of a span in their line."""
        return self.line.bare or self.literal.bare

    def continues(self, n: int) -> None:
        """Open a span of an earlier line, which a later run of this length closes."""
        self.line.waiting, self.literal.waiting, self.closing = [n], [n], n

    def run(self, n: int, *, escaped: bool, begins: bool = False) -> bool:
        """Add a run; a backslash escapes the first backtick of an `escaped` one. True if a span may be open.

        One that `begins` its line opens none that continues in the next: it is the rest of a fence.
        """
        if n == self.closing:
            self.closing = 0
        self.paragraph.add(n, 0 if begins else n - escaped)
        self.line.add(n, n - escaped)
        self.literal.add(n, n)
        return bool(self.line.waiting or self.literal.waiting)

    def note_text(self) -> None:
        """Take note of text other than white space in the line."""
        self.line.bare = self.literal.bare = False

    def end_line(self, *, has_text: bool) -> bool:
        """End the line; `has_text` is True if it had more than white space at its end. True if a span continues."""
        if self.closing:
            return True
        self.line.end_line(has_text=has_text)
        self.literal.end_line(has_text=has_text)
        return bool(self.line.waiting or self.literal.waiting)

    def end(self) -> None:
        """Drop all open spans, as no run closes them."""
        self.line, self.literal, self.paragraph = Runs(), Runs(), Runs()
        self.closing = 0
