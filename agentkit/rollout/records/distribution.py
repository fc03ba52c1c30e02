"""Many numbers in little memory: exact count, sum, extremes; quantiles to 2 %. Two of them can be merged.

A number is counted in a bucket whose bounds differ by 2 %, which keeps the mean of its numbers. So a quantile is at
most 2 % from the exact one, and exact if only few different numbers were added. From a microsecond to a day there are
about 1,300 buckets; the memory does not grow with the numbers. Source: Masson, Rim, Lee, "DDSketch" (VLDB 2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

_GAMMA: Final = 1.02
_LOG: Final = math.log(_GAMMA)
_SMALLEST: Final = 1e-9  # anything nearer to 0 is counted as 0


class Distribution:
    """Numbers of which only the distribution is kept."""

    __slots__ = ("_buckets", "count", "highest", "lowest", "not_finite", "total")

    def __init__(self) -> None:
        self.count: int = 0
        """How many finite numbers were added."""
        self.not_finite: int = 0
        """How many infinities and NaN were added; they are counted nowhere else."""
        self.total: float = 0.0
        """The sum of the finite ones."""
        self.lowest: float = math.inf
        self.highest: float = -math.inf
        self._buckets: dict[int, tuple[int, float]] = {}  # how many numbers, and their mean

    def add(self, value: float) -> None:
        """Count one number."""
        if not math.isfinite(value):
            self.not_finite += 1
            return
        self.count += 1
        self.total += value
        self.lowest = min(self.lowest, value)
        self.highest = max(self.highest, value)
        self._count(_bucket(value), 1, value)

    def merge(self, other: Distribution) -> None:
        """Count all numbers of another one."""
        self.count += other.count
        self.not_finite += other.not_finite
        self.total += other.total
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        for bucket, (count, mean) in other._buckets.items():
            self._count(bucket, count, mean)

    def _count(self, bucket: int, count: int, mean: float) -> None:
        before, old = self._buckets.get(bucket, (0, mean))
        now = before + count
        self._buckets[bucket] = now, old + (mean - old) * (count / now)  # stays exact if all are equal

    @property
    def mean(self) -> float:
        """The arithmetic mean; 0 without numbers."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, q: float) -> float:
        """The number below which the fraction `q` of all lies, to 2 %; exact for 0 and 1; 0 without numbers."""
        rank = q * (self.count - 1)
        if self.count == 0:
            return 0.0
        if rank <= 0 or q >= 1:
            return self.lowest if rank <= 0 else self.highest
        seen = 0
        for value, count in self.bars():
            seen += count
            if seen > rank:
                return min(max(value, self.lowest), self.highest)
        return self.highest

    def bars(self) -> Iterator[tuple[float, int]]:
        """The mean of each bucket, in ascending order, and how many numbers are in it."""
        for bucket in sorted(self._buckets):
            count, mean = self._buckets[bucket]
            yield mean, count


_ZERO: Final = 1 + math.ceil(-math.log(_SMALLEST) / _LOG)  # so that every bucket above it has a positive number


def _bucket(value: float) -> int:
    """0 for zero; else the position of the bucket, negative for a negative number."""
    size = abs(value)
    if size < _SMALLEST:
        return 0
    place = math.ceil(math.log(size) / _LOG) + _ZERO
    return place if value > 0 else -place
