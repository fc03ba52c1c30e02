"""The lines at the bottom of a terminal that are drawn again and again, while its window may change its size.

Loads rich. A terminal that gets narrower folds the lines it shows, at a moment that a program does not learn. So the
cursor waits at the first of these lines, whose place the terminal keeps, and everything below it is erased; and no
line is folded while it is drawn, so that the number of lines is known.
"""

from __future__ import annotations

from typing import Final, TextIO

from rich.console import Console, RenderableType
from rich.segment import Segment, SegmentLines

from agentkit.cli.markdown_lines import Safe

NARROW: Final = 40  # columns down to which a window can be narrowed without any of these lines scrolling away
FRACTION: Final = 2 / 3  # of the rows of a window: some below the last line may be empty
_CUT, _FOLD = "\x1b[?7l", "\x1b[?7h"
_ERASE: Final = "\r\x1b[2K\n\x1b[J\x1b[1A"  # from the second line: erased from the very top, tmux would keep them


class LiveRegion:
    """Draws lines, and erases them.

    Args:
        console: where to draw.
        out: the same terminal, for control sequences.
    """

    def __init__(self, console: Console, out: TextIO) -> None:
        self._console = console
        self._out = out
        self._shown: tuple[str, int] | None = None  # what is drawn, and the width for which
        self._height = 0  # lines, with empty ones above: after a window was widened nothing below becomes empty

    def draw(self, part: RenderableType) -> None:
        """Draw something in place of what was drawn before."""
        with self._console.capture() as captured:
            self._console.print(Safe(part), end="")
        text = captured.get()
        if (drawn := (text, self._console.width)) == self._shown:
            return
        lines = text.count("\n")
        self._height = lines if self._shown is None else max(lines, self._height)
        up, gap = f"\x1b[{self._height}A" if self._height else "", "\n" * (self._height - lines)
        self._out.write(f"\x1b[?25l{_CUT}{_ERASE}{gap}{text}{up}{_FOLD}")
        self._out.flush()
        self._shown = drawn

    def erase(self) -> None:
        """Remove what was drawn."""
        if self._shown is not None:
            self._out.write(f"{_ERASE}\x1b[?25h")
            self._out.flush()
        self._shown = None

    def fitting(self, part: RenderableType, most: int) -> SegmentLines:
        """The last lines of `part` that fit into a fraction of `most` rows, even after narrowing to `NARROW`."""
        lines = self._console.render_lines(Safe(part), pad=False)[-most:]
        rows = taken = 0
        for line in reversed(lines):
            rows += max(1, -(-Segment.get_line_length(line) // NARROW))
            if rows > most * FRACTION:
                break
            taken += 1
        return SegmentLines(lines[-max(taken, 1) :], new_lines=True)
