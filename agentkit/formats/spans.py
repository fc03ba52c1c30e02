"""Runs of backticks in prose, and the code spans that they open. Knows characters only."""

from __future__ import annotations

from typing import Final

_KINDS: Final = 32  # lengths of runs that wait at once: a line that has more is not prose


class _Runs:
    """The runs that none of their length has followed yet, the first one first.

    The first one has opened a span. If none of its length ever comes, it is only characters, and the next one has.
    `bare` is whether the last one ends its line so far.
    """

    __slots__ = ("bare", "waiting")

    def __init__(self, waiting: list[int]) -> None:
        self.waiting = waiting
        self.bare = False

    def copy(self) -> _Runs:
        """The same, apart from what comes."""
        runs = _Runs([*self.waiting])
        runs.bare = self.bare
        return runs

    def add(self, closes: int, opens: int) -> None:
        """A run closes a span of length `closes`, with all that waits in it; else it may open one of length `opens`."""
        self.bare = False
        if closes in self.waiting:
            del self.waiting[self.waiting.index(closes) :]
        elif opens and len(self.waiting) < _KINDS:
            self.waiting.append(opens)
            self.bare = True

    def over(self, *, said: bool) -> None:
        """The line ended, with all spans in it but one whose backticks end the line: that is around the next."""
        self.waiting = self.waiting[-1:] if self.bare and not said else []
        self.bare = False


class Spans(_Runs):
    """Code spans: what is between two runs of backticks of the same length.

    A backslash escapes a backtick outside a span. Models also escape those of real spans, so what is between two
    escaped ones is a span, too: `literal` reads the runs of a line that has one as if a backslash were a character.
    `paragraph` are those that wait in the paragraph, in whatever lines: a span continues over the ends of lines if one
    closes it. `fence` are the backticks or tildes that last ended a line, before a language's name and after text, in
    any paragraph: a fence if another one closes it, although Markdown has none of tildes there, or over an empty line.
    `closing` is the length of a run that is known to follow and close a span, even in another line; 0 for none.
    """

    __slots__ = ("closing", "fence", "literal", "paragraph")

    def __init__(self) -> None:
        self.waiting = []
        self.bare = False
        self.literal: _Runs | None = None
        self.paragraph = _Runs([])
        self.fence = ""
        self.closing = 0

    def copy(self) -> Spans:
        """The same, apart from what comes."""
        spans = Spans()
        spans.waiting, spans.bare, spans.closing, spans.fence = [*self.waiting], self.bare, self.closing, self.fence
        spans.literal = self.literal.copy() if self.literal is not None else None
        spans.paragraph = self.paragraph.copy()
        return spans

    def continues(self, n: int) -> None:
        """A run of this length follows, and closes a span of an earlier line."""
        self.waiting, self.closing = [n], n

    @property
    def closers(self) -> set[int]:
        """The lengths of the runs that would close a span."""
        return {*self.waiting, *(self.literal.waiting if self.literal is not None else ())}

    @property
    def fresh(self) -> bool:
        """Whether nothing but white space has followed the backticks of a span in their line."""
        return self.bare or (self.literal is not None and self.literal.bare)

    def run(self, n: int, *, escaped: bool, begins: bool = False) -> bool:
        """A run went by; a backslash escapes the first backtick of an `escaped` one. True if a span may be open.

        One that `begins` its line opens none that continues in the next: it is what is left of a fence.
        """
        if n == self.closing:
            self.closing = 0
        self.paragraph.add(n, 0 if begins else n - escaped)
        if not escaped and self.literal is None and not self.waiting:
            self.waiting.append(n)
            self.bare = True
            return True
        if escaped and self.literal is None:
            self.literal = _Runs([*self.waiting])
        self.add(n, n - escaped)
        if self.literal is None:
            return bool(self.waiting)
        self.literal.add(n, n)
        if self.waiting or self.literal.waiting:
            return True
        self.literal = None
        return False

    def said(self) -> None:
        """More than white space followed in the line."""
        self.bare = False
        if self.literal is not None:
            self.literal.bare = False

    def line_over(self, *, said: bool) -> bool:
        """The line ended; `said` is whether more than white space went by before its end. True if a span continues."""
        if self.closing:
            return True
        self.over(said=said)
        if self.literal is None:
            return bool(self.waiting)
        self.literal.over(said=said)
        return bool(self.waiting or self.literal.waiting)

    def end(self) -> None:
        """No run closes what is open."""
        self.waiting, self.literal, self.bare, self.closing = [], None, False, 0
        self.paragraph.waiting = []
