"""The progress of long work, on standard error: after a second, on one line of a terminal; in a log once in 10 s."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, Self

from agentkit.cli.terminal import cells, complain, duration, truncate, width
from agentkit.cli.which_screen import capable

AFTER: Final = 1.0  # seconds until anything is shown: shorter work needs no words
AT_A_TERMINAL: Final = 0.2  # seconds between two states that are shown
IN_A_LOG: Final = 10.0  # seconds: each state is one line
BAR: Final = 30  # columns of a bar at most
_LEAST: Final = 5  # columns of a bar at least; with less room there is none
_DONE, _OPEN = "━", "─"
_BLUE, _DIM, _RESET = "\x1b[34m", "\x1b[2m", "\x1b[0m"


class ProgressLine:
    """Shows the state of some work, named in `what`, while it runs."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._started = clock()
        self._drawn = capable(sys.stderr)
        self._next = self._started + AFTER
        self._shown = False
        self._first: int | None = None

    def count(self, done: int, total: int | None = None, *notes: str) -> None:
        """Show how much is done, how fast, and how long the rest takes, unless it was shown just before.

        Args:
            done: how much is done, with what was done before this work began.
            total: how much there is; None if that is unknown.
            notes: further texts.
        """
        if self._first is None:
            self._first = done
        if (now := self._clock()) >= self._next:
            self._next = now + (AT_A_TERMINAL if self._drawn else IN_A_LOG)
            self._write(self._line(done, total, (done - self._first) / (now - self._started), notes))

    def _line(self, done: int, total: int | None, rate: float, notes: Sequence[str]) -> str:
        before, share, left = f"{done:,}", "", ""
        pace = "" if not rate else f"{rate:.2g}/s" if rate < 10 else f"{rate:,.0f}/s"
        if total:
            before, share = f"{done:,}/{total:,}", f"{100 * done / total:.0f} %"
            left = f"ETA {duration((total - done) / rate)}" if rate else ""
        after = " · ".join(filter(None, (share, pace, left, *notes)))
        room = min(width() - 1 - cells(f"{before}  {after}"), BAR)
        if not (self._drawn and total):
            line = f"{self._what}: {before}{after and f' · {after}'}"
            return truncate(line, width() - 1) if self._drawn else line
        if room < _LEAST:
            return truncate(f"{before} · {after}", width() - 1)
        full = room * done // total
        return f"{before} {_BLUE}{_DONE * full}{_RESET}{_DIM}{_OPEN * (room - full)}{_RESET} {after}"

    def say(self, text: str) -> None:
        """Print a line that stays, above the state."""
        self._clear()
        complain(text)

    def _write(self, line: str) -> None:
        if self._drawn:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
        self._shown = True

    def _clear(self) -> None:
        if self._shown and self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._clear()
