"""Sequences of any length in little memory: means, counts by kind, and a few points of many. Draws nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

P = TypeVar("P")


class Curve:
    """A sequence of any length as at most `points` means of equally many neighbours."""

    def __init__(self, points: int = 64) -> None:
        self.step = 1
        """How many numbers each mean has; the last one may have fewer."""
        self._points = points
        self._sums: list[tuple[float, int]] = []

    def add(self, value: float) -> None:
        """Add the next number."""
        if self._sums and self._sums[-1][1] < self.step:
            total, count = self._sums[-1]
            self._sums[-1] = total + value, count + 1
            return
        if len(self._sums) == self._points:
            pairs = zip(self._sums[::2], self._sums[1::2], strict=True)
            self._sums = [(a + c, b + d) for (a, b), (c, d) in pairs]
            self.step *= 2
        self._sums.append((value, 1))

    def means(self) -> Iterator[tuple[float, float]]:
        """Each mean with the position of the middle of its numbers, from 0."""
        start = 0
        for total, count in self._sums:
            yield start + (count - 1) / 2, total / count
            start += count


class Shares:
    """How often each kind occurs among some things, along a sequence of any length, in at most `blocks` blocks."""

    def __init__(self, blocks: int = 32) -> None:
        self.kinds: Counter[str] = Counter()
        """How often each kind occurs in all."""
        self.step = 1
        """How many steps each block has; the last one may have fewer."""
        self._most = blocks
        self._blocks: list[tuple[int, int, Counter[str]]] = []

    def add(self, things: int, kinds: Mapping[str, int]) -> None:
        """Add the next step: how many things there are, and how many of each kind."""
        self.kinds.update(kinds)
        if not self._blocks or self._blocks[-1][0] == self.step:
            if len(self._blocks) == self._most:
                pairs = zip(self._blocks[::2], self._blocks[1::2], strict=True)
                self._blocks = [(a + d, b + e, c + f) for (a, b, c), (d, e, f) in pairs]
                self.step *= 2
            self._blocks.append((0, 0, Counter()))
        steps, all_things, counted = self._blocks[-1]
        counted.update(kinds)
        self._blocks[-1] = steps + 1, all_things + things, counted

    def shares(self, kind: str) -> Iterator[tuple[float, float]]:
        """The middle of each block that has things, from 0, and the part of them that is of this kind."""
        start = 0
        for steps, things, counted in self._blocks:
            if things:
                yield start + (steps - 1) / 2, counted[kind] / things
            start += steps


class SomeOf(Generic[P]):
    """At most `most` things of a sequence of any length, with equal distances between them."""

    def __init__(self, most: int = 500) -> None:
        self.step = 1
        """Every how many-th is kept."""
        self.kept: list[P] = []
        self._most = most
        self._seen = 0

    def add(self, thing: P) -> None:
        """Keep the next one, or not."""
        if self._seen % self.step == 0:
            if len(self.kept) == self._most:
                self.kept = self.kept[::2]
                self.step *= 2
            if self._seen % self.step == 0:
                self.kept.append(thing)
        self._seen += 1
