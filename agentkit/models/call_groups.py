"""Sets of calls that only grow, and what two of them have in common, without looking at each call again. Pure."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from agentkit.models.native import NativeCall


class CallGroup:
    """Calls in the order in which they came into the group."""

    __slots__ = ("calls", "ranks")

    def __init__(self) -> None:
        self.calls: list[NativeCall] = []
        self.ranks: dict[int, int] = {}  # by the calls' indexes

    def __contains__(self, call: NativeCall) -> bool:
        return call.index in self.ranks

    def __len__(self) -> int:
        return len(self.calls)

    def add(self, call: NativeCall) -> None:
        """A call comes into the group, unless it is in it."""
        if call.index not in self.ranks:
            self.ranks[call.index] = len(self.calls)
            self.calls.append(call)


class Common:
    """The calls that are in two groups, as both grow.

    Args:
        one: a group.
        other: another group.
        order: a number for each of their calls; the call with the smallest one is the first.
    """

    __slots__ = ("_found", "_groups", "_order", "_seen")

    def __init__(self, one: CallGroup, other: CallGroup, order: Callable[[NativeCall], int]) -> None:
        self._groups = (one, other)
        self._seen = (0, 0)
        self._order = order
        self._found: list[tuple[int, int, NativeCall]] = []

    def first(self, valid: Callable[[NativeCall], bool], but: NativeCall | None = None) -> NativeCall | None:
        """The first call in both; None if there is none.

        Args:
            valid: whether a call counts; one that does not will never count again.
            but: a call that does not count now.
        """
        self._grow()
        found = self._found
        while found and not valid(found[0][2]):
            heappop(found)
        if not found or found[0][2] is not but:
            return found[0][2] if found else None
        top = heappop(found)
        while found and not valid(found[0][2]):
            heappop(found)
        second = found[0][2] if found else None
        heappush(found, top)
        return second

    def _grow(self) -> None:
        one, other = self._groups
        had_one, had_other = self._seen
        if had_one < len(one):
            self._keep(one, had_one, other, len(other))
        if had_other < len(other):
            self._keep(other, had_other, one, had_one)
        self._seen = (len(one), len(other))

    def _keep(self, group: CallGroup, since: int, other: CallGroup, until: int) -> None:
        """Keep what has come into one group since, if it came into the other one before a rank."""
        fewer = len(group) - since <= len(other)
        for call in group.calls[since:] if fewer else other.calls:
            here, there = group.ranks.get(call.index, -1), other.ranks.get(call.index, -1)
            if here >= since and 0 <= there < until:
                heappush(self._found, (self._order(call), call.index, call))
