"""The progress of long work, on standard error: after a second, on one line of a terminal; in a log once in 10 s."""

from __future__ import annotations

import sys
import time
from typing import Final, Self

from agentkit.cli.terminal import truncate, width

AFTER: Final = 1.0  # seconds until anything is shown: shorter work needs no words
AT_A_TERMINAL: Final = 0.2  # seconds between two states that are shown
IN_A_LOG: Final = 10.0  # seconds, too: each state is a line of its own


class ProgressLine:
    """Shows the state of some work, named in `what`, while it runs."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._next = self._started + AFTER
        self._shown = False

    def show(self, state: str) -> None:
        """Tell the state; it is shown unless another one was shown just before."""
        now = time.monotonic()
        if now < self._next:
            return
        self._shown = True
        seconds = int(now - self._started)
        line = truncate(f"{self._what}: {state} ({seconds // 60}:{seconds % 60:02} min)", width())
        self._next = now + (AT_A_TERMINAL if self._terminal else IN_A_LOG)
        if self._terminal:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._shown and self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
