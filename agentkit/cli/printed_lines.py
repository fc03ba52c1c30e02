"""What others print while a run is shown, kept until there is a place for it. Knows only text."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator

from agentkit.cli.terminal import plain


class PrintedLines(io.TextIOBase):
    """A stream in place of standard output, also for other threads: whole lines, to be taken out later."""

    def __init__(self) -> None:
        self._held = ""
        self._lines: deque[str] = deque()

    def write(self, text: str) -> int:
        """Keep a text."""
        *lines, self._held = (self._held + text).split("\n")
        self._lines.extend(map(plain, lines))
        return len(text)

    def writable(self) -> bool:
        """True."""
        return True

    def lines(self, *, rest: bool = False) -> Iterator[str]:
        """What was printed since the last time.

        Args:
            rest: also a line that did not end.
        """
        if rest and self._held:
            self.write("\n")
        while self._lines:
            yield self._lines.popleft()
