"""The numbered events of a thread that clients can continue from. Pure.

A client's position is `<epoch>.<number>`: the epoch is that of this log, so that a position in the log of a server that
has ended is not taken for one in this.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Final

LogEvent = Mapping[str, Any]

_JOINED: Final = {
    "TEXT_MESSAGE_CONTENT": "messageId",
    "REASONING_MESSAGE_CONTENT": "messageId",
    "TOOL_CALL_ARGS": "toolCallId",
}
"""The kinds of events whose `delta` continues that of the event before, if both have the same id in this field."""


class EventLog:
    """Events with increasing numbers, of which the oldest are forgotten.

    Args:
        epoch: a name that no other log has.
    """

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        self.last = 0
        """The number of the last event."""
        self._before = 0  # the number before the first kept event
        self._numbers: list[int] = []
        self._events: list[LogEvent] = []

    def id_of(self, number: int) -> str:
        """The position after an event, as a client sends it back."""
        return f"{self.epoch}.{number}"

    def add(self, event: LogEvent) -> None:
        """Add an event at the end."""
        self.last += 1
        self._numbers.append(self.last)
        self._events.append(event)

    def position(self, id: str) -> int | None:
        """A client's position; None if it is not one in this log."""
        epoch, _, number = id.rpartition(".")
        return int(number) if epoch == self.epoch and number.isdecimal() and len(number) < 16 else None

    def after(self, number: int) -> list[tuple[int, LogEvent]] | None:
        """The events after this one, with their numbers; None if a client cannot continue there."""
        at = bisect_right(self._numbers, number)
        if number > self.last or (self._numbers[at - 1] if at else self._before) != number:
            return None
        return list(zip(self._numbers[at:], self._events[at:], strict=True))

    def forget(self, until: int) -> None:
        """Forget the events up to this number."""
        at = bisect_right(self._numbers, until)
        if at:
            self._before = self._numbers[at - 1]
            del self._numbers[:at], self._events[:at]

    def restart(self) -> None:
        """Forget all events, so that no client can continue from its position."""
        self.last += 1
        self._before = self.last
        self._numbers, self._events = [], []

    def join(self, since: int) -> int:
        """Join the adjacent deltas of each text after this number; returns the number of characters after it.

        A client that has received a part of a joined delta cannot continue there.
        """
        at = bisect_right(self._numbers, since)
        numbers, events, pieces = self._numbers[:at], self._events[:at], list[str]()
        key: tuple[Any, Any] | None = None
        for number, event in zip(self._numbers[at:], self._events[at:], strict=True):
            kind = event["type"]
            found = (kind, event[_JOINED[kind]]) if kind in _JOINED else None
            if found is not None and found == key:
                pieces.append(event["delta"])
                numbers[-1] = number
                continue
            _end(events, pieces)
            key, pieces = found, [event["delta"]] if found else []
            numbers.append(number)
            events.append(event)
        _end(events, pieces)
        self._numbers, self._events = numbers, events
        return _size(events[at:])


def _end(events: list[LogEvent], pieces: list[str]) -> None:
    if len(pieces) > 1:
        events[-1] = {**events[-1], "delta": "".join(pieces)}


def _size(events: Iterable[LogEvent]) -> int:
    return sum(len(str(event)) for event in events)
