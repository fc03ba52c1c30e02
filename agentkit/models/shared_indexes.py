"""Calls of one message that started at the same index: which one does a piece with only the index belong to? Pure.

The protocol gives each block its own index. A server that gives one to several calls can be read as long as each call
is complete before the next one starts, or its block has its input. Otherwise it is ambiguous, and no call runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentkit.models.native import NativeCall
from agentkit.models.repeated_blocks import RepeatedBlocks

MIXED: Final = "another call has the same index; the arguments of the two cannot be told apart"


class SharedIndexes:
    """The calls of one message by their indexes, each with the input in its block; empty if it had none.

    Attributes:
        repeated: the blocks that may repeat one of them.
    """

    def __init__(self) -> None:
        self.repeated = RepeatedBlocks()
        self._calls: defaultdict[int, list[tuple[NativeCall, Mapping[str, Any]]]] = defaultdict(list)
        self._open: Counter[int] = Counter()  # calls whose end has not come
        self._mixed: set[int] = set()
        self._given: set[int] = set()  # where a block had its input

    def begin(self, at: int, call: NativeCall, given: Mapping[str, Any]) -> None:
        """A call has started."""
        self.repeated.add(at, call)
        if self._open[at] and at not in self._mixed:
            last, had = self._calls[at][-1]
            if not last.ended and (had or last.values is None):
                self._mixed.add(at)
                last.doubt = "" if had else MIXED
            elif at in self._given:
                self._mixed.add(at)  # deltas may still repeat what a block had
        self._calls[at].append((call, given))
        self._open[at] += 1
        if given:
            self._given.add(at)
        if at in self._mixed and not given:
            call.doubt = MIXED

    def stop(self, at: int) -> None:
        """An end has come at this index, of its last call or of one that started before."""
        self._open[at] -= 1

    def decides(self, at: int) -> bool:
        """Whether the blocks alone decide, and no delta does."""
        return at in self._mixed

    def told(self) -> Iterator[tuple[NativeCall, Mapping[str, Any]]]:
        """The calls whose blocks decide, with the inputs in them."""
        for at in self._mixed:
            yield from ((call, given) for call, given in self._calls[at] if given)
