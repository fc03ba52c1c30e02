"""The content of a rollout's report, gathered record by record in little memory. Draws nothing."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agentkit.messages import ImagePart, MarkupPart, Message, SystemMessage, TextPart, ThinkingPart, ToolCall
from agentkit.rollout.records.measures import Measures
from agentkit.rollout.records.record import CallRecord, TrajectoryRecord
from agentkit.tool.output import json_text

TEXT: Final = 4_000  # characters shown of a text; the file has all of it
MESSAGES: Final = 60  # messages and calls shown of a trajectory
IMAGE: Final = 100_000  # bytes of an image that is shown


class Piece(NamedTuple):
    """A part of a message: its kind (`text`, `thinking`, `call`, `image`, `note`), and its text or data URL."""

    kind: str
    text: str


class ShownMessage(NamedTuple):
    """A message as it is shown."""

    role: str
    name: str
    error: str | None
    pieces: tuple[Piece, ...]


class ShownCall(NamedTuple):
    """A call as it is shown."""

    turn: int
    name: str
    arguments: str
    error: str | None
    reward: float | None
    queued: float
    ran: float


@dataclass(frozen=True, slots=True)
class ShownTrajectory:
    """A trajectory as it is shown: its long texts are cut."""

    id: str
    end: str
    error: str | None
    reward: float
    seconds: float
    messages: tuple[ShownMessage, ...]
    calls: tuple[ShownCall, ...]
    all_calls: int
    final_rewards: tuple[tuple[str, float], ...]
    failed: tuple[str, ...]


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


class HighestTrajectories:
    """The few trajectories that are highest by some measure."""

    def __init__(self, title: str, most: int, rank: Callable[[TrajectoryRecord], float | None]) -> None:
        self.title: Final = title
        self._most = most
        self._rank = rank
        self._heap: list[tuple[float, int, ShownTrajectory]] = []

    def offer(self, record: TrajectoryRecord, number: int) -> None:
        """Keep it if it is one of the highest; of equal ones the first."""
        rank = self._rank(record)
        if rank is None or rank != rank:  # NaN
            return
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, (rank, -number, shorten_record(record)))
        elif (rank, -number) > self._heap[0][:2]:
            heapq.heapreplace(self._heap, (rank, -number, shorten_record(record)))

    @property
    def trajectories(self) -> list[ShownTrajectory]:
        """The highest first."""
        return [one for *_, one in sorted(self._heap, key=lambda item: item[:2], reverse=True)]


def _picks() -> tuple[HighestTrajectories, ...]:
    return (
        HighestTrajectories("First", 3, lambda record: 0.0),
        HighestTrajectories("Highest reward", 3, lambda record: None if record.failed else record.reward),
        HighestTrajectories("Lowest reward", 3, lambda record: None if record.failed else -record.reward),
        HighestTrajectories("Ended by an error", 5, lambda record: 0.0 if record.failed else None),
        HighestTrajectories("Most failed calls", 3, lambda record: _failed(record) or None),
        HighestTrajectories("Slowest", 3, lambda record: record.seconds or None),
    )


def _failed(record: TrajectoryRecord) -> int:
    return sum(call.error is not None for call in record.calls)


@dataclass(slots=True)
class Findings:
    """All that a report shows."""

    measures: Measures = field(default_factory=Measures)
    curve: Curve = field(default_factory=Curve)
    turns: Counter[int] = field(default_factory=Counter)
    picks: tuple[HighestTrajectories, ...] = field(default_factory=_picks)

    def add(self, record: TrajectoryRecord) -> None:
        """Take one record into account."""
        number = self.measures.trajectories
        self.measures.add(record)
        if not record.failed and abs(record.reward) < float("inf"):  # neither infinite nor NaN
            self.curve.add(record.reward)
        self.turns[min(record.assistant_turns, 1_000)] += 1
        for pick in self.picks:
            pick.offer(record, number)


def findings(records: Iterable[TrajectoryRecord]) -> Findings:
    """Return the findings of all records."""
    found = Findings()
    for record in records:
        found.add(record)
    return found


# ---------------------------------------------------------------- one trajectory


def shorten_record(record: TrajectoryRecord) -> ShownTrajectory:
    """Return a trajectory with its long texts cut."""
    messages = [_message(message) for message in record.messages[:MESSAGES]]
    if (left := len(record.messages) - MESSAGES) > 0:
        messages.append(ShownMessage("note", "", None, (Piece("note", f"{left} more messages"),)))
    return ShownTrajectory(
        shorten(record.id, 200),
        record.end,
        None if record.error is None else shorten(record.error),
        record.reward,
        record.seconds,
        tuple(messages),
        tuple(_call(call) for call in record.calls[:MESSAGES]),
        len(record.calls),
        tuple((shorten(name, 100), reward) for name, reward in list(record.final_rewards.items())[:MESSAGES]),
        tuple(
            f"{shorten(name, 100)} {what}: {shorten(why, 500)}"
            for what, reasons in (("was not scored", record.unscored), ("was not released", record.unreleased))
            for name, why in list(reasons.items())[:MESSAGES]
        ),
    )


def _call(call: CallRecord) -> ShownCall:
    arguments = shorten(json_text(call.arguments), 400)
    return ShownCall(call.turn, shorten(call.name, 100), arguments, call.error, call.reward, call.queued, call.ran)


def _message(message: Message) -> ShownMessage:
    match message:
        case SystemMessage(content):
            return ShownMessage("system", "", None, (Piece("text", shorten(content)),))
        case _:
            role = type(message).__name__.removesuffix("Message").lower()
            pieces = tuple(_piece(part) for part in message.content[:MESSAGES] if not _is_blank(part))
            name = shorten(getattr(message, "name", ""), 100)
            return ShownMessage(role, name, getattr(message, "error", None), pieces)


def _is_blank(part: object) -> bool:
    """Return True if a part has no visible text."""
    return isinstance(part, (TextPart, MarkupPart)) and not part.text.strip()


def _piece(part: object) -> Piece:
    match part:
        case TextPart(text):
            return Piece("text", shorten(text))
        case ThinkingPart(text) | MarkupPart(text):
            return Piece("thinking", shorten(text))
        case ToolCall(name=name, arguments=arguments, raw=raw):
            return Piece("call", shorten(raw or f"{name} {json_text(arguments)}"))
        case ImagePart(data=bytes(data)) if len(data) <= IMAGE:
            return Piece("image", part.data_url)
        case ImagePart(data=bytes(data)):
            return Piece("note", f"an image of {len(data):,} bytes")
        case ImagePart():
            return Piece("note", f"an image at {shorten(part.url or '', 200)}")
        case _:
            return Piece("note", f"a part of type {type(part).__name__}")


def shorten(text: str, most: int = TEXT) -> str:
    """Return the first `most` characters of a text, with a note of how many follow."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
