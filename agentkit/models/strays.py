"""What came of a response and fits none of its calls, and of which calls it may be a part. Pure.

A call that was complete when it came lacks nothing. One whose arguments went on after it may lack it in their middle;
and one without arguments, of which nothing has come since then, may lack all of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Protocol

from agentkit.models.growing_arguments import GrowingArguments
from agentkit.models.native_arguments import readable

UNREAD: Final = "a part of it came in a form that cannot be read, or at no place of a call"


class _Growing(Protocol):
    """What is known of a call here."""

    index: int
    pieces: GrowingArguments


@dataclass(slots=True, eq=False)
class LatePieces:
    """What came for a call after it had ended.

    Attributes:
        told: at a place, or with an id, that no other call has.
        untold: where it may also be another call's.
    """

    told: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)

    def say_more(self, text: str) -> bool:
        """Whether what came there is more than a repetition of its arguments, or than an empty object."""
        late = "".join(self.told)
        return late.strip() not in text and readable(late) != {}

    def hold_others(self, text: str) -> bool:
        """Whether any of them may belong to another call."""
        return "".join(self.untold).strip() not in text or self.say_more(text)


class Strays:
    """The strays of one response, numbered as they came.

    Attributes:
        came: how many have come.
        reported: whether one was logged.
    """

    def __init__(self) -> None:
        self.came = 0
        self.reported = False
        self._lost: list[int] | None = []
        self._at: dict[Hashable, list[int]] = {}  # those that belong to no call yet, by their places
        self._seen: dict[int, int] = {}  # by the calls' indexes: how many had come when the call last grew
        self._gaps: dict[int, tuple[int, int]] = {}  # the first and the last that came inside a call

    def add(self, place: Hashable = None) -> None:
        """One more has come.

        Args:
            place: where; a call may still begin there. None if that is unknown.
        """
        self.came += 1
        self._lost = None
        self._at.setdefault(place, []).append(self.came)

    def claim(self, place: Hashable) -> None:
        """What came at a place is a part of the call that has started there."""
        if self._at.pop(place, None):
            self._lost = None

    def begins(self, call: _Growing) -> None:
        """A call begins."""
        self._seen[call.index] = self.came

    def grows(self, call: _Growing) -> None:
        """More of a call's arguments comes."""
        seen = self._seen.get(call.index, 0)
        if seen < self.came and not call.pieces.blank and call.pieces.values is None:
            first, _ = self._gaps.get(call.index, (seen + 1, 0))
            self._gaps[call.index] = first, self.came
        self._seen[call.index] = self.came

    def told(self, call: _Growing) -> None:
        """All of a call's arguments are known, whatever came before."""
        self._gaps.pop(call.index, None)
        self._seen[call.index] = self.came

    def may_be_inside(self, call: _Growing) -> bool:
        """Whether one came inside a call and may still turn out to be another one's."""
        return bool(self._at) and call.index in self._gaps

    def lost(self) -> list[int]:
        """The numbers of those that belong to no call, in order."""
        if self._lost is None:
            self._lost = sorted(number for numbers in self._at.values() for number in numbers)
        return self._lost

    def lacks(self, call: _Growing, *, silent: bool) -> bool:
        """Whether one of those that are lost may be a part of a call.

        Args:
            call: the call.
            silent: whether it has no arguments, as it is.
        """
        first, last = self._gaps.get(call.index, (self.came + 1, 0))
        if silent:
            first, last = min(first, self._seen.get(call.index, 0) + 1), self.came
        lost = self.lost()
        return bisect_left(lost, first) < bisect_left(lost, last + 1)
