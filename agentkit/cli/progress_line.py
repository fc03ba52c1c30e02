"""The progress of long work, on standard error: after a second, on one line of a terminal; in a log once in 10 s."""

from __future__ import annotations

import sys
import time
from typing import Final, Self

from agentkit.cli.terminal import cells, complain, truncate, width
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

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._drawn = capable(sys.stderr)
        self._next = self._started + AFTER
        self._shown = False
        self._first: int | None = None

    def show(self, state: str) -> None:
        """Show the state, unless another one was shown just before."""
        if (now := time.monotonic()) >= self._next:
            seconds = int(now - self._started)
            self._write(truncate(f"{self._what}: {state} ({seconds // 60}:{seconds % 60:02} min)", width()))

    def count(self, done: int, total: int, *notes: str) -> None:
        """Show how much is done, how fast, and how long the rest takes.

        Args:
            done: how much is done, with what was done before this work began.
            total: how much there is.
            notes: what else there is to say.
        """
        if self._first is None:
            self._first = done
        if (now := time.monotonic()) < self._next:
            return
        rate = (done - self._first) / (now - self._started)
        left = f"ETA {remaining((total - done) / rate)}" if rate else ""
        pace = "" if not rate else f"{rate:.2g}/s" if rate < 10 else f"{rate:,.0f}/s"
        share = f"{100 * done / max(total, 1):.0f} %"
        after = " · ".join(filter(None, (share, pace, left, *notes)))
        before = f"{done:,}/{total:,}"
        room = min(width() - 1 - cells(f"{before}  {after}"), BAR)
        if not self._drawn:
            self._write(f"{self._what}: {before} · {after}")
        elif room < _LEAST:
            self._write(truncate(f"{before} · {after}", width() - 1))
        else:
            full = room * done // max(total, 1)
            bar = f"{_BLUE}{_DONE * full}{_RESET}{_DIM}{_OPEN * (room - full)}{_RESET}"
            self._write(f"{before} {bar} {after}")

    def say(self, text: str) -> None:
        """Print a line that stays, above the state."""
        self._clear()
        complain(text)

    def _write(self, line: str) -> None:
        self._next = time.monotonic() + (AT_A_TERMINAL if self._drawn else IN_A_LOG)
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


def remaining(seconds: float) -> str:
    """A duration in one or two units, rounded to seconds.

    >>> [remaining(s) for s in (0.4, 42, 754, 9000)]
    ['1 s', '42 s', '12 min 34 s', '2 h 30 min']
    """
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
