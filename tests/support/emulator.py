"""What a terminal shows after the control sequences it was sent, with what has scrolled away."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyte
from terminal import Terminal


class Shown:
    """A terminal's memory.

    Args:
        columns: how wide it is.
        rows: how high.
    """

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self._stream = pyte.Stream(self.screen)

    def feed(self, text: str) -> None:
        self._stream.feed(text)

    @property
    def lines(self) -> list[str]:
        """All lines, from the first to the last that is not empty, also those that scrolled away."""
        columns = range(self.screen.columns)
        past = ["".join(line[x].data for x in columns) for line in self.screen.history.top]
        lines = [line.rstrip() for line in [*past, *self.screen.display]]
        while lines and not lines[-1]:
            lines.pop()
        return lines[next((n for n, line in enumerate(lines) if line), 0) :]


class DrawnTerminal(Terminal):
    """A program in a terminal that understands control sequences, and answers them."""

    def __init__(
        self, words: list[str], *, columns: int = 80, folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.shown = Shown(columns)
        self.raw = ""
        mine = {"TERM": "xterm-256color", "NO_COLOR": "", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": str(folder / "state")}
        super().__init__(words, columns=columns, folder=folder, environment=mine | dict(environment or {}))
        self.shown.screen.write_process_input = lambda text: os.write(self.keys, text.encode())

    def receive(self, text: str) -> None:
        self.raw += text
        self.shown.feed(text)

    def until_shown(self, text: str, seconds: float = 120) -> list[str]:
        """Wait until a text is on the screen; returns all lines."""
        self.read_until(lambda: any(text in line for line in self.shown.lines), text, seconds)
        return self.shown.lines
