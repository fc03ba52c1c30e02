"""Markdown, written piece by piece: words, marks around them, and blocks within lists and quotations. Knows no HTML.

Everything is written once and in order, so that the time is linear however deeply a page is nested. Words are not
escaped: a model reads names such as `snake_case` better without backslashes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

MAX_INDENT: Final = 10  # levels of lists and quotations; deeper ones are written at this level
MAX_LINKED: Final = 4_000_000  # characters of the addresses of one page; a base makes each as long as it likes

_SPACES = re.compile(r"[ \t\r\n\f\u00a0]+")


@dataclass(slots=True)
class Indent:
    """The prefixes of the lines of a list's item or a quotation: of the first line, and of the others."""

    first: str
    rest: str
    used: bool = False

    def next(self) -> str:
        """Return the prefix of the next line."""
        text = self.rest if self.used else self.first
        self.used = True
        return text


@dataclass(slots=True)
class Addresses:
    """A budget for the addresses of a page's links, each counted once; `omitted` counts those beyond it."""

    left: int = MAX_LINKED
    omitted: int = 0

    def end(self, url: str) -> str:
        """The end of a link, `](url)`; `]` if there is no room left."""
        if len(url) > self.left:
            self.omitted += 1
            return "]"
        self.left -= len(url)
        return f"]({url})"


@dataclass(slots=True)
class Mark:
    """Markup around words: `**`, or a link, with its address as `closing`. `words` says whether any were inside."""

    opening: str
    closing: str
    kind: str
    words: bool = False


@dataclass(slots=True)
class Writer:
    """Collects a page's lines."""

    lines: list[str] = field(default_factory=list)
    addresses: Addresses = field(default_factory=Addresses)
    _line: list[str] = field(default_factory=list)
    _marks: list[Mark] = field(default_factory=list)  # at most one of a kind
    _opened: list[Mark | None] = field(default_factory=list)  # all of them; None for one that has no effect
    _indents: list[Indent] = field(default_factory=list)
    _deeper: int = 0  # how many more there would be
    _gap: bool = False

    def words(self, text: str) -> None:
        """Add words to the current paragraph; white space counts as one space."""
        text = _SPACES.sub(" ", text)
        if not text or (text == " " and (not self._line or self._line[-1].endswith((" ", "\n")))):
            return
        if text.startswith(" ") and self._line and self._line[-1].endswith((" ", "\n")):
            text = text[1:]
        if text.strip():
            self._open_marks()
        self._line.append(text)

    def raw(self, text: str) -> None:
        """Add words exactly as they are: code, a line break."""
        if text.strip():
            self._open_marks()
        self._line.append(text)

    def _open_marks(self) -> None:
        for mark in self._marks:
            if not mark.words:
                mark.words = True
                self._line.append(mark.opening)

    def mark(self, kind: str, opening: str, closing: str) -> None:
        """Surround the following words; inside the same kind it has no effect."""
        known = any(mark.kind == kind for mark in self._marks)
        mark = None if known else Mark(opening, closing, kind)
        self._opened.append(mark)
        if mark is not None:
            self._marks.append(mark)

    def unmark(self) -> None:
        """End the innermost mark."""
        mark = self._opened.pop()
        if mark is None:
            return
        self._marks.remove(mark)
        if mark.words:
            self._close(mark)

    def _close(self, mark: Mark) -> None:
        """Write a closing mark, before the white space that ends the words."""
        closing = self.addresses.end(mark.closing) if mark.kind == "link" else mark.closing
        last = self._line.pop() if self._line else ""
        bare = last.rstrip()
        self._line += [bare, closing, last[len(bare) :]]

    def paragraph(self) -> None:
        """End the current paragraph, if any. Marks that are open continue in the next."""
        if any(text.strip() for text in self._line):
            open_marks = [mark for mark in self._marks if mark.words]
            for mark in reversed(open_marks):
                self._close(mark)
                mark.words = False
            text = "".join(self._line)
            self.block("\n".join(line.strip() for line in text.strip().split("\n")))
        self._line.clear()

    def block(self, text: str) -> None:
        """Add a block of lines, separated from the one before by an empty line."""
        if self._gap and self.lines:
            self.lines.append("".join(indent.rest for indent in self._indents if indent.used).rstrip())
        for line in text.split("\n"):
            self.lines.append("".join([indent.next() for indent in self._indents] + [line]).rstrip())
        self._gap = True

    def heading(self, level: int) -> None:
        """End the current line as a heading."""
        text = " ".join("".join(self._line).split())
        self._line.clear()
        if text:
            self.block(f"{'#' * level} {text}")

    def indent(self, first: str, rest: str) -> None:
        """Put this before the following lines, until `dedent`."""
        self.paragraph()
        if len(self._indents) < MAX_INDENT:
            self._indents.append(Indent(first, rest))
        else:
            self._deeper += 1

    def dedent(self) -> None:
        """End the innermost indentation."""
        self.paragraph()
        if self._deeper:
            self._deeper -= 1
        else:
            self._indents.pop()

    def close_up(self) -> None:
        """Leave no empty line before the next block: an item follows an item."""
        self._gap = False

    @property
    def text(self) -> str:
        """Return the whole text, with a newline at its end."""
        self.paragraph()
        return "\n".join(self.lines).strip("\n") + "\n" if self.lines else ""


def fence_code(code: str, language: str = "") -> str:
    """Code between fences that are longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def code_span(code: str) -> str:
    """Code within a line, between backticks that do not occur in it.

    >>> code_span("a`b")
    '``a`b``'
    """
    runs = {len(run) for run in re.findall(r"`+", code)}
    ticks = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    space = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{space}{code}{space}{ticks}"
