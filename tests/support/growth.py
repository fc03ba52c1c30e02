"""Whether twice the input takes about twice the time, asked so that neither the machine nor other tests decide."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import thread_time

from corpora import source
from format_tools import TOOLS

from agentkit.events import SourceEvent
from agentkit.formats import Format, Parser


def cpu_seconds(run: Callable[[], object]) -> float:
    """The CPU time of this thread alone, without the search for garbage.

    Threads that other tests left do not count: beside a busy one, all that is longer than the five milliseconds
    for which Python lets a thread run is measured too long, and what is shorter is not.
    """
    gc.collect(0)
    gc.disable()
    try:
        since = thread_time()
        run()
        return thread_time() - since
    finally:
        gc.enable()


def reading_seconds(format: Format, text: str, piece: int) -> float:
    """The CPU time to read a text that comes in pieces of so many characters; none of which is lost."""
    pieces = [text[i : i + piece] for i in range(0, len(text), piece)]
    parser = Parser(format, TOOLS)
    events: list[SourceEvent] = []

    def read() -> None:
        for each in pieces:
            events.extend(parser.feed(each))
        events.extend(parser.close())

    spent = cpu_seconds(read)
    assert source(events) == text
    return spent


def assert_linear(seconds: Callable[[int], float], size: int, *, most: float = 2.2) -> None:
    """Twice the size takes at most `most` times as long, from `size` on or from a size up to eight times that.

    One good measurement of several is enough: whatever else the machine does only adds, most to the shortest runs.
    """
    seen = []
    for scale in (1, 1, 1, 2, 2, 4, 4, 8):
        small, large = seconds(size * scale), seconds(2 * size * scale)
        if large <= most * small:
            return
        seen.append(f"{size * scale}: {small:.4f} s, twice that: {large:.4f} s")
    raise AssertionError(f"more than {most} times as long for twice the size\n" + "\n".join(seen))
