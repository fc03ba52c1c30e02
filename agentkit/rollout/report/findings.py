"""The content of a rollout's report, gathered record by record in little memory. Draws nothing."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    MarkupPart,
    Message,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
)
from agentkit.rollout.records.measures import Measures
from agentkit.rollout.records.record import CallRecord, TrajectoryRecord
from agentkit.rollout.records.trajectory import TrajectoryEnd
from agentkit.rollout.report.sample_groups import SampleGroups
from agentkit.rollout.report.series import Averages, SomeOf
from agentkit.tool.output import json_text, label

TEXT: Final = 4_000  # characters shown of a text; the file has all of it
MESSAGES: Final = 60  # messages and calls shown of a trajectory
IMAGE: Final = 100_000  # bytes of an image that is shown
TRUNCATED: Final[frozenset[TrajectoryEnd]] = frozenset(
    ("max_assistant_turns", "max_user_turns", "response_length", "deadline")
)
"""The ends of trajectories that a limit cut off."""


class Length(NamedTuple):
    """A point of the chart of lengths: what the policy wrote, the reward, and whether a limit ended it."""

    written: int
    reward: float
    truncated: bool


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


class ShownTrajectory(NamedTuple):
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
        HighestTrajectories("Ended by an error", 5, lambda record: 0.0 if record.failed else None),
        HighestTrajectories("Highest reward", 3, lambda record: None if record.failed else record.reward),
        HighestTrajectories("Lowest reward", 3, lambda record: None if record.failed else -record.reward),
        HighestTrajectories("Most failed calls", 3, lambda record: failed_calls(record).total() or None),
        HighestTrajectories("Slowest", 3, lambda record: record.seconds or None),
        HighestTrajectories("First", 3, lambda record: 0.0),
    )


def failed_calls(record: TrajectoryRecord) -> Counter[str]:
    """The failed calls of a trajectory by the error's code."""
    return Counter(call.error for call in record.calls if call.error is not None)


def written_by_policy(record: TrajectoryRecord) -> int:
    """How much the policy wrote: tokens, or without a tokenizer characters."""
    if record.tokens is not None:
        return sum(record.tokens.response_mask)
    parts = [part for message in record.messages if isinstance(message, AssistantMessage) for part in message.content]
    return sum(len(_call_text(part) if isinstance(part, ToolCall) else getattr(part, "text", "")) for part in parts)


class Findings:
    """All that a report shows.

    Args:
        success: the least reward of a success, for pass@k.
    """

    def __init__(self, *, success: float = 1.0) -> None:
        self.measures = Measures()
        self.curve = Averages(64)
        """The rewards in the order in which the trajectories ended."""
        self.turns: Counter[int] = Counter()
        """How many trajectories have how many responses."""
        self.groups = SampleGroups(success)
        self.failures = Averages()
        """The errors per call by code, in the order in which the trajectories ended."""
        self.lengths: SomeOf[Length] = SomeOf()
        self.tokenized = False
        """Whether lengths are tokens, not characters."""
        self._picks = _picks()

    def add(self, record: TrajectoryRecord) -> None:
        """Take one record into account."""
        number = self.measures.trajectories
        self.measures.add(record)
        self.failures.add(len(record.calls), failed_calls(record))
        if not record.failed and abs(record.reward) < float("inf"):  # neither infinite nor NaN
            self.curve.add(1, {"reward": record.reward})
            self.groups.add(record.sample_id, record.reward)
            self.lengths.add(Length(written_by_policy(record), record.reward, record.end in TRUNCATED))
            self.tokenized = record.tokens is not None
        self.turns[min(record.assistant_turns, 1_000)] += 1
        for pick in self._picks:
            pick.offer(record, number)

    @property
    def truncated_trajectories(self) -> int:
        """How many trajectories a limit ended."""
        return sum(self.measures.ends[end] for end in TRUNCATED)

    def selection(self) -> list[tuple[str, list[tuple[ShownTrajectory, str]]]]:
        """A few trajectories under headings, each once; with it, the other headings under which it would be."""
        titles: dict[str, list[str]] = {}
        for pick in self._picks:
            for one in pick.trajectories:
                titles.setdefault(one.id, []).append(pick.title)
        selected = []
        for pick in self._picks:
            own = [one for one in pick.trajectories if titles[one.id][0] == pick.title]
            selected.append((pick.title, [(one, ", ".join(titles[one.id][1:]).lower()) for one in own]))
        return [(title, own) for title, own in selected if own]


def findings(records: Iterable[TrajectoryRecord], *, success: float = 1.0) -> Findings:
    """Return the findings of all records.

    Args:
        records: the records.
        success: the least reward of a success, for pass@k.
    """
    found = Findings(success=success)
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
        case ToolCall():
            return Piece("call", shorten(_call_text(part)))
        case ImagePart(data=bytes(data)) if len(data) <= IMAGE:
            return Piece("image", part.data_url)
        case ImagePart(data=bytes(data)):
            return Piece("note", f"an image of {len(data):,} bytes")
        case FilePart():
            return Piece("note", label(part))
        case ImagePart():
            return Piece("note", f"an image at {shorten(part.url or '', 200)}")
        case _:
            return Piece("note", f"a part of type {type(part).__name__}")


def _call_text(call: ToolCall) -> str:
    return call.raw or f"{call.name} {json_text(call.arguments)}"


def shorten(text: str, most: int = TEXT) -> str:
    """Return the first `most` characters of a text, with a note of how many follow."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
