"""Calls of one message that were begun at the same index: whose is a piece that names the index alone? Pure.

The protocol gives each block an index of its own. A server that gives one to several calls can be read as long as each
call is whole before the next one begins, or its block holds its input. Otherwise nobody can tell, and no call runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentkit.models.native import NativeCall

MIXED: Final = "another call has the same index; the arguments of the two cannot be told apart"


class SharedIndexes:
    """The calls of one message by their indexes, each with the input that its block held; empty where it held none."""

    def __init__(self) -> None:
        self._calls: defaultdict[int, list[tuple[NativeCall, Mapping[str, Any]]]] = defaultdict(list)
        self._open: Counter[int] = Counter()  # calls whose end has not come
        self._mixed: set[int] = set()

    def begin(self, at: int, call: NativeCall, given: Mapping[str, Any]) -> None:
        """A call has begun."""
        if self._open[at] and at not in self._mixed:
            last, had = self._calls[at][-1]
            if not last.ended and (had or last.values is None):
                self._mixed.add(at)
                last.doubt = "" if had else MIXED
            elif any(held for _, held in self._calls[at]):
                self._mixed.add(at)  # deltas may still say again what a block held
        self._calls[at].append((call, given))
        self._open[at] += 1
        if at in self._mixed and not given:
            call.doubt = MIXED

    def stop(self, at: int) -> None:
        """An end has come at this index, of its last call or of one begun before."""
        self._open[at] -= 1

    def decides(self, at: int) -> bool:
        """Whether the blocks alone decide, and no delta does."""
        return at in self._mixed

    def told(self) -> Iterator[tuple[NativeCall, Mapping[str, Any]]]:
        """The calls whose blocks decide, with the inputs that these hold."""
        for at in self._mixed:
            yield from ((call, given) for call, given in self._calls[at] if given)
