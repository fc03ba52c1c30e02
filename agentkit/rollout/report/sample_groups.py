"""The rewards of the trajectories of each sample: their spread, and pass@k. Draws nothing."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, sqrt
from typing import Final, NamedTuple

MOST_SAMPLES: Final = 100_000
"""Samples of which the rewards are counted; those of further ones are not."""


@dataclass(slots=True)
class SampleGroup:
    """The rewards of one sample's trajectories.

    Args:
        count: how many there are.
        mean: their mean.
        squares: the sum of the squares of their distances from it.
        lowest: the lowest.
        highest: the highest.
        successes: how many are a success.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    lowest: float = float("inf")
    highest: float = float("-inf")
    successes: int = 0

    def add(self, reward: float, success: bool) -> None:
        """Count one reward. Source: Welford (1962), for the sum of squares."""
        self.count += 1
        distance = reward - self.mean
        self.mean += distance / self.count
        self.squares += distance * (reward - self.mean)
        self.lowest, self.highest = min(self.lowest, reward), max(self.highest, reward)
        self.successes += success

    @property
    def deviation(self) -> float:
        """The standard deviation of a sample (n - 1); 0 for one reward."""
        return sqrt(max(self.squares, 0.0) / (self.count - 1)) if self.count > 1 else 0.0


class PassRate(NamedTuple):
    """The probability that at least one of `k` trajectories of a sample is a success, on average over the samples."""

    k: int
    rate: float


class SampleGroups:
    """All samples with their rewards.

    Args:
        success: the least reward of a success.
    """

    def __init__(self, success: float = 1.0) -> None:
        self.success: Final = success
        self._groups: dict[str, SampleGroup] = {}

    def add(self, sample_id: str, reward: float) -> None:
        """Count the reward of one trajectory."""
        if sample_id in self._groups or len(self._groups) < MOST_SAMPLES:
            self._groups.setdefault(sample_id, SampleGroup()).add(reward, reward >= self.success)

    def several(self) -> list[SampleGroup]:
        """The groups of at least two trajectories, by their mean."""
        return sorted((one for one in self._groups.values() if one.count > 1), key=lambda one: one.mean)

    def pass_rates(self) -> list[PassRate]:
        """Return pass@k for k = 1, 2, 4, …, up to the number of trajectories that at least 90 % of the samples have.

        All rates are over the same samples, so a rate never falls with k. The estimate is unbiased:
        1 - C(n - c, k) / C(n, k) of n trajectories with c successes. Source: Chen et al., "Evaluating Large Language
        Models Trained on Code" (2021).
        """
        groups, most = list(self._groups.values()), 1
        while groups and 10 * sum(one.count >= 2 * most for one in groups) >= 9 * len(groups):
            most *= 2
        groups = [one for one in groups if one.count >= most]
        return [
            PassRate(
                k, sum(1 - comb(one.count - one.successes, k) / comb(one.count, k) for one in groups) / len(groups)
            )
            for k in (2**n for n in range(most.bit_length() if groups else 0))
        ]
