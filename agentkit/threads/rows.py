"""The rows of a SQL store's tables as values. A row that agentkit did not write so is a `StoreError` that says where.

SQLite holds any value in any column, and a body is text that anybody may have changed: nothing is taken on trust. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, get_args

from agentkit.errors import StoreError, ThreadBusy
from agentkit.threads.encoding import decode, decode_id
from agentkit.threads.owner import in_words
from agentkit.threads.store import Call, CallStatus, Entry, EntryKind, Thread

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
"""What each column holds, in the order of the columns."""

_KINDS: Final = frozenset(get_args(EntryKind))
_STATUSES: Final = frozenset(get_args(CallStatus))

CLOCK_STEP: Final = 1.0
"""Seconds that a clock may be put back while a lease that is in use still counts, such as to another server's clock."""


@dataclass(frozen=True, slots=True)
class Head:
    """A thread's row, locked, and the time."""

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
        """Whether somebody holds the lease now.

        A lease that ends later than now and its own length was taken under a clock that has been put back since: it
        would hold for as long as that clock was wrong. It is void; a holder who lives renews it before long.
        """
        return self.owner is not None and self.now < self.until <= self.now + self.seconds + CLOCK_STEP

    def busy(self, thread_id: str, what: str) -> ThreadBusy:
        """The error that names the holder, if there is one."""
        if self.owner is None:
            return ThreadBusy(f"thread {thread_id!r}: {what}; nobody holds it now")
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
    """A thread's own data."""
    id = decode_or_as_it_is(row[0])
    where = f"thread {id!r}"
    _check(where, THREAD, row)
    _, metadata, entries, created, updated, version = row
    return Thread(id, _body(where, "metadata", metadata), entries, created, updated, version)


def version_of(thread_id: str, row: Sequence[Any]) -> int:
    """A thread's version, the only column of the row."""
    version = row[0]
    if not isinstance(version, int):
        raise _damaged(f"thread {thread_id!r}", f"version is {version!r:.60}")
    return version


def entry_of(thread_id: str, row: Sequence[Any]) -> Entry:
    """An entry of a thread."""
    where = f"thread {thread_id!r}, entry {row[0]}"
    _check(where, ENTRY, row)
    seq, kind, body, key, created = row
    if kind not in _KINDS:
        raise _damaged(where, f"kind is {kind!r:.60}")
    return Entry(seq, kind, _body(where, "body", body), None if key is None else _id(where, "key", key), created)


def call_of(thread_id: str, row: Sequence[Any]) -> Call:
    """A call of a thread."""
    where = f"thread {thread_id!r}, entry {row[0]}, call {row[1]}"
    _check(where, CALL, row)
    seq, ordinal, key, status, body, note, answer, *times = row
    if status not in _STATUSES or (status == "answered") != (answer is not None):
        raise _damaged(where, f"status is {status!r:.60}, with{'out' if answer is None else ''} an answer")
    said = None if answer is None else _body(where, "answer", answer)
    id = _id(where, "id", key)
    return Call(seq, ordinal, id, status, _body(where, "body", body), _body(where, "note", note), said, *times)


def decode_or_as_it_is(key: Any) -> str:
    """A stored id; where it cannot be read, what stands there."""
    try:
        return decode_id(key)
    except (TypeError, ValueError, AttributeError):
        return str(key)


def _check(where: str, columns: str, row: Sequence[Any]) -> None:
    """Raise `StoreError` for a value of a wrong type."""
    if all(map(isinstance, row, _TYPES[columns])):
        return
    for name, value, types in zip(columns.split(", "), row, _TYPES[columns], strict=True):
        if not isinstance(value, types):
            raise _damaged(where, f"{name} is {value!r:.60}")


def _body(where: str, column: str, text: str) -> dict[str, Any]:
    try:
        body = decode(text)
    except (ValueError, RecursionError) as e:
        raise _damaged(where, f"{column} is no JSON ({type(e).__name__}: {e}): {text[:60]!r}") from e
    if not isinstance(body, dict):
        raise _damaged(where, f"{column} is no JSON object: {text[:60]!r}")
    return body


def _id(where: str, column: str, text: str) -> str:
    try:
        return decode_id(text)
    except ValueError as e:
        raise _damaged(where, f"{column} is {text[:60]!r}") from e


def _damaged(where: str, what: str) -> StoreError:
    return StoreError(f"{where} is damaged in the store: {what}")
