"""Calls of a chat completion that were incomplete when another one started in their place. Pure.

A piece that names no call may then belong to any of them.
"""

from __future__ import annotations

from heapq import heappop, heappush

from agentkit.models.call_groups import CallGroup
from agentkit.models.chat_doubts import MIXED
from agentkit.models.chat_known import KnownCalls
from agentkit.models.native import NativeCall


class Rivals:
    """The calls that started while others were incomplete, and those others, at all places.

    Args:
        known: what is known of the calls.
    """

    def __init__(self, known: KnownCalls) -> None:
        self._known = known
        self._races: dict[int | None, _Race] = {}  # by the index of the place; None are all calls
        self._log: list[NativeCall] = []  # of which call each piece was
        self._second: dict[int, tuple[_Race, int]] = {}  # calls that started where an incomplete one was
        self._expected: _Race | None = None  # where the next call starts, if another one is there

    def touch(self, call: NativeCall) -> None:
        """A piece has come for a call."""
        self._log.append(call)

    def expect(self, index: int | None) -> None:
        """Another call is about to start at this place."""
        race = self._races.get(index)
        if race is None:
            group = self._known.all if index is None else self._known.placed[index]
            race = self._races[index] = _Race(group, self._log)
        race.expect()
        self._expected = race

    def started(self, call: NativeCall) -> None:
        """A piece comes for this call: it is the one that was expected, if one was."""
        race, self._expected = self._expected, None
        if race is not None:
            start, rivals = race.begin(call)
            if rivals:
                self._second[call.index] = race, start

    def has(self, call: NativeCall) -> bool:
        """Whether a call started where an incomplete one was."""
        return call.index in self._second

    def unnamed(self, call: NativeCall) -> list[NativeCall]:
        """Arguments came that name no call; returns the calls that are doubtful because of that."""
        doubtful: list[NativeCall] = []
        own = self._second.get(call.index)
        if own is not None:
            race, start = own
            doubtful += race.before(start)
        if self._races and call.values is None and not call.ended:
            for index in (None, *self._known.places(call)):
                if found := self._races.get(index):
                    doubtful += found.after(call)
        for one in doubtful:
            one.doubt = MIXED
        return doubtful

    def judge(self) -> None:
        """Mark the calls that stayed incomplete, and those that may contain the rest of them."""
        for race in self._races.values():
            race.judge()


class _Race:
    """One place in which calls started while others were incomplete.

    Args:
        group: the calls there.
        log: of which call each piece was.
    """

    def __init__(self, group: CallGroup, log: list[NativeCall]) -> None:
        self._group, self._log = group, log
        self._seen = 0  # pieces
        self._contested = False  # whether another call is incomplete when the next one starts
        self._starts: list[NativeCall] = []  # the calls that started here
        self._unmarked: list[int] = []  # which of them have not been marked
        self._open: dict[int, int] = {}  # incomplete calls by their ranks: at which start they were found to be so
        self._since: dict[int, int] = {}  # the same of all that ever were, the first time
        self._closed: list[tuple[NativeCall, int, int]] = []  # calls, and from which start to which they were open
        self._lowest: list[tuple[int, int]] = []  # since when each open call was, and some that are not: a heap
        self._fresh: list[tuple[int, int]] = []  # the same of those that have not been marked

    def look(self) -> None:
        """Find out which calls are incomplete now."""
        new = len(self._log) - self._seen
        calls = self._log[self._seen :] if new < len(self._group) else self._group.calls
        self._seen = len(self._log)
        for call in calls:
            if (rank := self._group.ranks.get(call.index)) is None:
                continue
            is_open = not call.ended and call.values is None
            if is_open and rank not in self._open:
                self._open[rank] = len(self._starts)
                since = self._since.setdefault(rank, len(self._starts))
                heappush(self._lowest, (since, rank))
                heappush(self._fresh, (since, rank))
            elif not is_open and rank in self._open:
                self._close(rank)

    def _close(self, rank: int) -> None:
        self._closed.append((self._group.calls[rank], self._open.pop(rank), len(self._starts)))

    def _first(self) -> int | None:
        """Since which start the first call has been incomplete that is incomplete now."""
        while self._lowest:
            since, rank = self._lowest[0]
            if rank in self._open and self._group.calls[rank].ended:
                self._close(rank)
            if rank in self._open:
                return since
            heappop(self._lowest)
        return None

    def expect(self) -> None:
        """A call is about to start."""
        self.look()
        self._contested = self._first() is not None

    def begin(self, call: NativeCall) -> tuple[int, bool]:
        """It starts; the number of this start, and whether another call is incomplete."""
        self._unmarked.append(len(self._starts))
        self._starts.append(call)
        return len(self._starts) - 1, self._contested

    def before(self, start: int) -> list[NativeCall]:
        """The call that started then, if others are incomplete that were so then; and those that were not marked."""
        self.look()
        first = self._first()
        if first is None or first > start:
            return []
        found = [self._starts[start]]
        while self._fresh and self._fresh[0][0] <= start:
            rank = heappop(self._fresh)[1]
            if rank in self._open and not self._group.calls[rank].ended:
                found.append(self._group.calls[rank])
        return found

    def after(self, call: NativeCall) -> list[NativeCall]:
        """This call, if others started since it has been incomplete; and those of them that were not marked."""
        since = self._since.get(self._group.ranks[call.index], len(self._starts))
        if since == len(self._starts):
            return []
        found = [call]
        while self._unmarked and self._unmarked[-1] >= since:
            found.append(self._starts[self._unmarked.pop()])
        return found

    def judge(self) -> None:
        """Mark the calls that stayed incomplete, and those that started while they were."""
        self.look()
        last = len(self._starts)
        open_ = [(self._group.calls[rank], since, last) for rank, since in self._open.items()]
        change = [0] * (last + 1)
        for call, since, until in [*self._closed, *open_]:
            if since == until or call.values is not None:
                continue
            call.doubt = call.doubt or MIXED
            if not call.pieces.blank:
                change[since] += 1
                change[until] -= 1
        held = 0
        for more, call in zip(change, self._starts, strict=False):
            held += more
            if held:
                call.doubt = call.doubt or MIXED
