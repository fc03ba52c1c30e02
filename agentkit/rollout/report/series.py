"""Sequences of any length in little memory: averages, and a few points of many. Draws nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar

P = TypeVar("P")

_Block: TypeAlias = tuple[int, float, dict[str, float]]  # steps, their weight, and their amounts


class Averages:
    """Averages of named amounts along a sequence of any length: at most `most` blocks of equally many steps."""

    def __init__(self, most: int = 32) -> None:
        self.step = 1
        """How many steps each block has; the last one may have fewer."""
        self._most = most
        self._blocks: list[_Block] = []

    def add(self, weight: float, amounts: Mapping[str, float]) -> None:
        """Add the next step: over how much it is averaged, and its amounts by name."""
        step = (1, weight, dict(amounts))
        if self._blocks and self._blocks[-1][0] < self.step:
            self._blocks[-1] = _joined(self._blocks[-1], step)
            return
        if len(self._blocks) == self._most:
            self._blocks = list(map(_joined, self._blocks[::2], self._blocks[1::2]))
            self.step *= 2
        self._blocks.append(step)

    def of(self, name: str) -> Iterator[tuple[float, float]]:
        """The middle of each block that has any weight, from 0, and the average of this amount in it."""
        start = 0
        for steps, weight, amounts in self._blocks:
            if weight:
                yield start + (steps - 1) / 2, amounts.get(name, 0) / weight
            start += steps


def _joined(a: _Block, b: _Block) -> _Block:
    return a[0] + b[0], a[1] + b[1], {name: a[2].get(name, 0) + b[2].get(name, 0) for name in a[2] | b[2]}


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
