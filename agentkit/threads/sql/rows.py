"""The rows of a SQL store's tables as values. A row that agentkit did not write raises a `StoreError` that says where.

SQLite stores any value in any column, and a body is text that anyone may have changed, so everything is checked. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, get_args

from agentkit.errors import StoreError, ThreadBusy
from agentkit.threads.owner import in_words
from agentkit.threads.sql.encoding import decode, decode_id
from agentkit.threads.store import Call, CallStatus, Entry, EntryKind, Log, Thread

THREAD: Final = "id, metadata, entries, created, updated, version"
HEAD: Final = "entries, version, updated, lease_owner, lease_fence, lease_until, lease_seconds"
ENTRY: Final = "seq, kind, body, key, created"
CALL: Final = "seq, ordinal, id, status, body, note, answer, attempts, started, ended"

_TIME: Final = (int, float)
_TIME_OR_NONE: Final = (int, float, NoneType)
_TEXT_OR_NONE: Final = (str, NoneType)
_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    THREAD: (str, str, int, _TIME, _TIME, int),
    f"{HEAD}, now": (int, int, _TIME, _TEXT_OR_NONE, int, _TIME, _TIME, _TIME),
    ENTRY: (int, str, str, _TEXT_OR_NONE, _TIME),
    CALL: (int, int, str, str, str, str, _TEXT_OR_NONE, int, _TIME_OR_NONE, _TIME_OR_NONE),
}
"""The types of the columns, in their order."""

MOST: Final = 2**53
"""The largest valid count. A larger number is damage, which must not spread: no count may overflow."""

_LATEST: Final = 1e15
"""The limit for times in seconds since the epoch, which excludes infinity."""

_COUNTS: Final[dict[str, tuple[int, ...]]] = {THREAD: (2, 5), f"{HEAD}, now": (0, 1, 4), ENTRY: (0,), CALL: (0, 1, 7)}
_TIMES: Final[dict[str, tuple[int, ...]]] = {THREAD: (3, 4), f"{HEAD}, now": (2, 5, 6), ENTRY: (4,), CALL: (8, 9)}
"""The positions of the columns that contain counts, and of those that contain times."""

_KINDS: Final = frozenset(get_args(EntryKind))
_STATUSES: Final = frozenset(get_args(CallStatus))

CLOCK_STEP: Final = 30.0
"""How many seconds a clock may be set back, or be slow compared with another one, without voiding a lease in use."""


@dataclass(frozen=True, slots=True)
class Head:
    """A thread's locked row, and the time."""

    entries: int
    version: int
    updated: float
    owner: str | None
    fence: int
    until: float
    seconds: float
    now: float

    @property
    def held(self) -> bool:
        """True if the lease is held now.

        A lease that ends later than its own length from now was acquired before the clock was set back: it would last
        for as long as that clock was wrong. It is void; a living holder soon renews it.
        """
        return self.owner is not None and self.now < self.until <= self.now + self.seconds + CLOCK_STEP

    def busy(self, thread_id: str, what: str) -> ThreadBusy:
        """The error that names the holder, if there is one."""
        if self.owner is None:
            return ThreadBusy(f"thread {thread_id!r}: {what}; no one holds it now")
        left = min(max(self.until - self.now, 0), self.seconds)
        return ThreadBusy(
            f"thread {thread_id!r}: {what}; {in_words(self.owner)} holds it for another {left:.1f} s",
            owner=self.owner,
            fence=self.fence,
        )


def head_of(thread_id: str, row: Sequence[Any]) -> Head:
    """A thread's row as it is locked."""
    where = f"thread {thread_id!r}"
    _check(where, f"{HEAD}, now", row)
    entries, version, updated, owner, *lease = row
    return Head(entries, version, updated, None if owner is None else _id(where, "lease_owner", owner), *lease)


def thread_of(row: Sequence[Any]) -> Thread:
    """A thread's data."""
    id = decode_or_unchanged(row[0])
    where = f"thread {id!r}"
    _check(where, THREAD, row)
    _, metadata, entries, created, updated, version = row
    return Thread(id, _body(where, "metadata", metadata), entries, created, updated, version)


def listed_thread(row: Sequence[Any]) -> Thread:
    """Return a thread's data for a list, which a damaged row must not break: then the damage and the valid values.

    An `updated` that is not a number sorts before all numbers in a database, as infinity does.
    """
    try:
        return thread_of(row)
    except StoreError as e:
        _, _, entries, created, updated, version = row
        counts = (n if isinstance(n, int) else 0 for n in (entries, version))
        times = (float(t) if isinstance(t, _TIME) else absent for t, absent in ((created, 0.0), (updated, math.inf)))
        (count, number), (made, changed) = counts, times
        return Thread(decode_or_unchanged(row[0]), {}, count, made, changed, number, str(e))


def log_of(
    thread_id: str,
    head: Sequence[Any],
    entries: Sequence[Sequence[Any]],
    calls: Sequence[Sequence[Any]],
    between: tuple[int, int],
) -> Log:
    """A thread's rows after an entry, up to another one; none of them may be missing.

    Args:
        thread_id: the thread.
        head: its version, and its number of entries.
        entries: their rows in order.
        calls: their calls' rows in order.
        between: the entry before the first one, and the last one that was asked for.
    """
    after, last = between
    version, count = head
    for name, value in (("version", version), ("entries", count)):
        if not isinstance(value, int) or not 0 <= value <= MOST:
            raise damage(f"thread {thread_id!r}", f"{name} is {value!r:.60}")
    read = tuple(entry_of(thread_id, row) for row in entries)
    expected = first = max(after + 1, 0)
    for entry in read:
        if entry.seq != expected:
            raise damage(f"thread {thread_id!r}, entry {expected}", f"it is missing, but entry {entry.seq} follows")
        expected += 1
    if expected != max(min(count, last + 1), first):
        found = f"{expected} exist" if expected > count else "it is missing"
        raise damage(f"thread {thread_id!r}, entry {min(expected, count)}", f"{found}, but the thread counts {count}")
    return Log(read, tuple(_calls(thread_id, calls, count)), version)


def _calls(thread_id: str, rows: Sequence[Sequence[Any]], count: int) -> Iterator[Call]:
    """The calls, which belong to one of this many entries, and are numbered from 0 in each."""
    before, ordinal = -1, 0
    for row in rows:
        call = call_of(thread_id, row)
        ordinal = ordinal + 1 if call.seq == before else 0
        before = call.seq
        if before >= count:
            raise damage(f"thread {thread_id!r}, entry {before}", f"it is missing, but its call {call.ordinal} exists")
        if call.ordinal != ordinal:
            raise damage(f"thread {thread_id!r}, entry {before}, call {ordinal}", "it is missing")
        yield call


def entry_of(thread_id: str, row: Sequence[Any]) -> Entry:
    """An entry of a thread."""
    where = f"thread {thread_id!r}, entry {row[0]}"
    _check(where, ENTRY, row)
    seq, kind, body, key, created = row
    if kind not in _KINDS:
        raise damage(where, f"kind is {kind!r:.60}")
    return Entry(seq, kind, _body(where, "body", body), None if key is None else _id(where, "key", key), created)


def call_of(thread_id: str, row: Sequence[Any]) -> Call:
    """A call of a thread."""
    where = f"thread {thread_id!r}, entry {row[0]}, call {row[1]}"
    _check(where, CALL, row)
    seq, ordinal, key, status, body, note, answer, *times = row
    if status not in _STATUSES or (status == "answered") != (answer is not None):
        raise damage(where, f"status is {status!r:.60}, with{'out' if answer is None else ''} an answer")
    if status == "started" and (times[0] < 1 or times[1] is None):
        raise damage(where, f"status is 'started', with {times[0]} attempts and started {times[1]!r}")
    said = None if answer is None else _body(where, "answer", answer)
    id = _id(where, "id", key)
    return Call(seq, ordinal, id, status, _body(where, "body", body), _body(where, "note", note), said, *times)


def decode_or_unchanged(key: Any) -> str:
    """A stored id; unchanged if it cannot be decoded."""
    try:
        return decode_id(key)
    except (TypeError, ValueError, AttributeError):
        return str(key)


def _check(where: str, columns: str, row: Sequence[Any]) -> None:
    """Raise `StoreError` for a value of a wrong type, and for a number that is not a valid count or time."""
    if not all(map(isinstance, row, _TYPES[columns])):
        for name, value, types in zip(columns.split(", "), row, _TYPES[columns], strict=True):
            if not isinstance(value, types):
                raise damage(where, f"{name} is {value!r:.60}")
    for place in _COUNTS[columns]:
        if not 0 <= row[place] <= MOST:
            raise damage(where, f"{columns.split(', ')[place]} is {row[place]}")
    for place in _TIMES[columns]:
        if not (row[place] is None or -_LATEST < row[place] < _LATEST):
            raise damage(where, f"{columns.split(', ')[place]} is {row[place]!r}")


def _body(where: str, column: str, text: str) -> dict[str, Any]:
    try:
        body = decode(text)
    except (ValueError, RecursionError) as e:
        raise damage(where, f"{column} is not JSON ({type(e).__name__}: {e}): {text[:60]!r}") from e
    if not isinstance(body, dict):
        raise damage(where, f"{column} is not a JSON object: {text[:60]!r}")
    return body


def _id(where: str, column: str, text: str) -> str:
    try:
        return decode_id(text)
    except ValueError as e:
        raise damage(where, f"{column} is {text[:60]!r}") from e


def damage(where: str, what: str) -> StoreError:
    """Return the error for data that agentkit did not write."""
    return StoreError(f"{where} is damaged in the store: {what}")
