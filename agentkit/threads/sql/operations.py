"""Every operation of a SQL store, shared by all databases. Knows SQL and JSON; does no I/O and has no clock.

An operation is a generator: it yields a statement with its parameters and is sent the rows; its return value is the
operation's result, and an exception makes the driver roll back. A driver runs each operation in one transaction,
defines its database's SQL (`SqlDialect`), and throws `Duplicate` into it if a row violated a uniqueness rule.

A body is stored as JSON in ASCII, an id likewise without its quotes, so that characters which a database's text type
cannot store (NUL in PostgreSQL, lone surrogates in both) are read back unchanged. One exception: two adjacent
surrogates, high then low, are read back as the one character that they represent.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, assert_never

from agentkit.errors import StoreConflict, StoreError, ThreadExists, ThreadNotFound
from agentkit.threads.sql.encoding import decode, encode, encode_id
from agentkit.threads.sql.rows import (
    CALL,
    ENTRY,
    HEAD,
    MOST,
    THREAD,
    Head,
    damage,
    decode_or_unchanged,
    head_of,
    listed_thread,
    log_of,
    thread_of,
)
from agentkit.threads.store import Append, Body, Change, Lease, Log, Move, NewCall, Revise, Thread

T = TypeVar("T")
Rows = Sequence[Sequence[Any]]
Steps = Generator[tuple[str, tuple[Any, ...]], Rows, T]
"""A running operation: yields (SQL with `?` for each parameter, parameters), is sent rows, returns its result."""

SCHEMA_VERSION: Final = 2
"""The version of the tables below. A store with another one was written by another agentkit, and is refused."""

CALLS_PER_INSERT: Final = 50
"""The number of calls in one statement: 550 parameters, below the 999 that an old SQLite allows."""

LARGEST: Final = 2**63 - 1
"""The largest number that a database accepts: more than it has rows."""

LEAP: Final = 2**32
"""Added to the floor when a thread whose fence cannot be read is deleted: more than it can have had leases."""

_NEW_THREAD: Final = f"{THREAD}, lease_owner, lease_fence, lease_until, lease_seconds"
MOVED: Final = (
    "status = ?, body = COALESCE(?, body), note = COALESCE(?, note), answer = ?,"
    " attempts = attempts + ?, started = COALESCE(?, started), ended = ?"
)


class Duplicate(StoreError):
    """A row violated a rule of its table, such as uniqueness; thrown into an operation by its driver."""


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """The parts of SQL that differ between databases.

    Args:
        tables: a query for the names of the existing tables.
        now: an expression for the current time, in seconds since the epoch, by the store's clock.
        prefix: put before the name of each table.
        lock: the end of a query whose rows no one else may change before the transaction ends.
        text: the type for text that is compared byte by byte.
        before_install: statements to run before the tables are created, such as one that keeps others from doing so.
    """

    tables: str
    now: str
    prefix: str = ""
    lock: str = ""
    text: str = "TEXT"
    before_install: tuple[str, ...] = ()


class Operations:
    """The operations of `Store`, for one database."""

    def __init__(self, dialect: SqlDialect) -> None:
        self.dialect = dialect
        prefix = dialect.prefix
        self.threads, self.entries, self.calls = (f"{prefix}{name}" for name in ("threads", "entries", "calls"))
        self.facts = f"{prefix}agentkit"

    # the tables

    def ready(self, reads: bool = False) -> Steps[bool]:
        """Return True if there are tables. With `reads`, any table of another program is refused.

        Raises:
            StoreError: they belong to another version of agentkit, or to another program.
        """
        names = {row[0] for row in (yield self.dialect.tables, ())}
        if "agentkit" not in names:
            if others := names if reads else names & {"threads", "entries", "calls"}:
                raise StoreError(f"table {sorted(others)[0]!r} was not created by agentkit; choose another location")
            return False
        rows = yield f"SELECT value FROM {self.facts} WHERE name = ?", ("schema",)
        if (found := rows[0][0] if rows else None) != SCHEMA_VERSION:
            raise StoreError(
                f"the tables have version {found!r}, but this agentkit supports only {SCHEMA_VERSION}: they are of "
                "another agentkit, or damaged"
            )
        return True

    def install(self) -> Steps[None]:
        """Create the tables, unless another process was faster."""
        for statement in self.dialect.before_install:
            yield statement, ()
        if (yield from self.ready()):
            return
        text = self.dialect.text
        # `floor`: no thread starts with a lower fence or version, so that a lease of a deleted thread is not valid
        # in a later thread with the same id.
        yield f"CREATE TABLE {self.facts} (name {text} PRIMARY KEY, value BIGINT NOT NULL)", ()
        yield f"INSERT INTO {self.facts} VALUES (?, ?), (?, ?)", ("schema", SCHEMA_VERSION, "floor", 0)
        yield (
            (
                f"CREATE TABLE {self.threads} (id {text} PRIMARY KEY, metadata TEXT NOT NULL, entries BIGINT NOT NULL,"
                " created DOUBLE PRECISION NOT NULL, updated DOUBLE PRECISION NOT NULL, version BIGINT NOT NULL,"
                " lease_owner TEXT, lease_fence BIGINT NOT NULL, lease_until DOUBLE PRECISION NOT NULL,"
                " lease_seconds DOUBLE PRECISION NOT NULL)"
            ),
            (),
        )
        yield f"CREATE INDEX threads_updated ON {self.threads} (updated DESC, id)", ()
        yield (
            (
                f"CREATE TABLE {self.entries} (thread {text} NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL,"
                f" key {text}, body TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, PRIMARY KEY (thread, seq))"
            ),
            (),
        )
        yield f"CREATE UNIQUE INDEX entries_key ON {self.entries} (thread, key) WHERE key IS NOT NULL", ()
        yield (
            (
                f"CREATE TABLE {self.calls} (thread {text} NOT NULL, seq BIGINT NOT NULL, ordinal BIGINT NOT NULL,"
                " id TEXT NOT NULL, status TEXT NOT NULL, body TEXT NOT NULL, note TEXT NOT NULL, answer TEXT,"
                " attempts BIGINT NOT NULL, started DOUBLE PRECISION, ended DOUBLE PRECISION,"
                " PRIMARY KEY (thread, seq, ordinal))"
            ),
            (),
        )

    # threads

    def create(self, thread_id: str, metadata: Body, changes: Sequence[Append]) -> Steps[Thread]:
        """See `Store.create`."""
        ((now,),) = yield f"SELECT {self.dialect.now}", ()
        key = encode_id(thread_id)
        values = (key, encode(metadata, "metadata"), 0, now, now, 1, None, 0, 0.0, 0.0)
        places = ", ".join("?" * len(values))
        try:
            yield f"INSERT INTO {self.threads} ({_NEW_THREAD}) VALUES ({places})", values
        except Duplicate:
            raise ThreadExists(f"there is already a thread {thread_id!r}") from None
        # After the insert, because that waits for a transaction that deletes the same id, which may raise the floor.
        floor = yield from self._floor()
        seqs = yield from self._change(key, 0, now, changes)
        entries = max(seqs, default=-1) + 1
        yield (
            f"UPDATE {self.threads} SET entries = ?, version = ?, lease_fence = ? WHERE id = ?",
            (entries, floor + 1, floor, key),
        )
        return Thread(thread_id, decode(values[1]), entries, now, now, floor + 1)

    def _floor(self) -> Steps[int]:
        rows = yield f"SELECT value FROM {self.facts} WHERE name = ?", ("floor",)
        found = rows[0][0] if rows else None
        if not isinstance(found, int) or not 0 <= found < LARGEST // 2:
            expected = "expected a number no lower than any version of a thread"
            raise StoreError(f"the row 'floor' of the table agentkit is damaged: {found!r:.60}, {expected}")
        return found

    def get(self, thread_id: str) -> Steps[Thread]:
        """See `Store.get`."""
        return thread_of((yield from self._row(thread_id, f"SELECT {THREAD} FROM {self.threads} WHERE id = ?")))

    def update(self, thread_id: str, metadata: Body, expect: Body | None = None) -> Steps[Thread]:
        """See `Store.update`."""
        head = yield from self._lock(thread_id)
        if expect is not None:
            found = (yield from self.get(thread_id)).metadata
            if encode(found, "metadata") != encode(expect, "metadata"):
                raise StoreConflict(f"the metadata of thread {thread_id!r} was changed in the meantime")
        yield (
            f"UPDATE {self.threads} SET metadata = ?, updated = ?, version = ? WHERE id = ?",
            (encode(metadata, "metadata"), max(head.now, head.updated), head.version + 1, encode_id(thread_id)),
        )
        return (yield from self.get(thread_id))

    def list(self, limit: int, before: Thread | None) -> Steps[tuple[Thread, ...]]:
        """See `Store.list`."""
        after, values = "", ()  # type: tuple[str, tuple[Any, ...]]
        if before is not None:
            after = "WHERE updated < ? OR (updated = ? AND id > ?)"
            values = (before.updated, before.updated, encode_id(before.id))
        rows = yield (
            f"SELECT {THREAD} FROM {self.threads} {after} ORDER BY updated DESC, id LIMIT ?",
            (*values, min(max(limit, 0), LARGEST)),
        )
        return tuple(map(listed_thread, rows))

    def delete(self, thread_id: str) -> Steps[None]:
        """See `Store.delete`."""
        try:
            head = yield from self._lock(thread_id)
        except ThreadNotFound:
            raise
        except StoreError:  # its row: the thread cannot be run, and its last fence is unknown
            yield f"UPDATE {self.facts} SET value = value + {LEAP} WHERE name = ? AND value < ?", ("floor", MOST)
        else:
            if head.held:
                raise head.busy(thread_id, "not deleted while it runs")
            floor = max(head.fence, head.version)
            yield f"UPDATE {self.facts} SET value = ? WHERE name = ? AND value < ?", (floor, "floor", floor)
        for table, column in ((self.calls, "thread"), (self.entries, "thread"), (self.threads, "id")):
            yield f"DELETE FROM {table} WHERE {column} = ?", (encode_id(thread_id),)

    # entries and calls

    def load(self, thread_id: str, after: int, limit: int | None = None) -> Steps[Log]:
        """See `Store.load`."""
        key = encode_id(thread_id)
        last = LARGEST if limit is None else min(max(after, -1) + limit, LARGEST)  # places have no gaps
        head = yield from self._row(thread_id, f"SELECT version, entries FROM {self.threads} WHERE id = ?")
        entries = yield (
            f"SELECT {ENTRY} FROM {self.entries} WHERE thread = ? AND seq > ? AND seq <= ? ORDER BY seq",
            (key, min(after, LARGEST), last),
        )
        calls = yield (
            f"SELECT {CALL} FROM {self.calls} WHERE thread = ? AND seq > ? AND seq <= ? ORDER BY seq, ordinal",
            (key, min(after, LARGEST), last),
        )
        return log_of(thread_id, head, entries, calls, (after, last))

    def commit(self, thread_id: str, changes: Sequence[Change], fence: int | None) -> Steps[tuple[int, ...]]:
        """See `Store.commit`."""
        head = yield from self._lock(thread_id)
        if fence is not None and (head.owner is None or head.fence != fence):
            raise head.busy(thread_id, f"lease {fence} was lost, so nothing was written")
        now = max(head.now, head.updated)  # a clock that is set back does not move a thread into its past
        key = encode_id(thread_id)
        seqs = yield from self._change(key, head.entries, now, changes)
        entries = max(head.entries, max(seqs, default=-1) + 1)
        if entries > head.entries or any(not isinstance(change, Append) for change in changes):
            yield (
                f"UPDATE {self.threads} SET entries = ?, updated = ?, version = ? WHERE id = ?",
                (entries, now, head.version + 1, key),
            )
        return seqs

    def _change(self, key: str, entries: int, now: float, changes: Sequence[Change]) -> Steps[tuple[int, ...]]:
        """Make the changes; returns the `seq` of each entry added, found or revised."""
        seqs: list[int] = []
        for change in changes:
            match change:
                case Append():
                    seq = yield from self._append(key, entries, now, change)
                    entries = max(entries, seq + 1)
                    seqs.append(seq)
                case Revise():
                    yield from self._revise(key, now, change)
                    seqs.append(change.seq)
                case Move():
                    yield from self._move(key, now, change)
                case _:
                    assert_never(change)
        return tuple(seqs)

    def _append(self, key: str, entries: int, now: float, change: Append) -> Steps[int]:
        own = None if change.key is None else encode_id(change.key)
        if own is not None:
            found = yield f"SELECT seq FROM {self.entries} WHERE thread = ? AND key = ?", (key, own)
            if found:
                return int(found[0][0])
        # Its `seq` is NULL, which the column refuses, if the entry before it is missing.
        place = f"CAST(? AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM {self.entries} WHERE thread = ? AND seq = ?)"
        yield from self._insert(
            key,
            entries,
            f"INSERT INTO {self.entries} VALUES (?, CASE WHEN {place} THEN CAST(? AS BIGINT) END, ?, ?, ?, ?)",
            (key, entries, key, entries - 1, entries, change.kind, own, encode(change.body, "body"), now),
        )
        yield from self._add_calls(key, entries, 0, now, change.calls)
        return entries

    def _revise(self, key: str, now: float, change: Revise) -> Steps[None]:
        where = (key, change.seq)
        found = yield f"SELECT kind FROM {self.entries} WHERE thread = ? AND seq = ?", where
        if not found or found[0][0] != "partial":
            what = f"is a {found[0][0]!r}" if found else "does not exist"
            raise StoreConflict(f"entry {change.seq} {what}; only a 'partial' one can be revised")
        yield (
            f"UPDATE {self.entries} SET kind = ?, body = ? WHERE thread = ? AND seq = ?",
            (change.kind, encode(change.body, "body"), *where),
        )
        if change.calls:
            ((there,),) = yield f"SELECT count(*) FROM {self.calls} WHERE thread = ? AND seq = ?", where
            yield from self._add_calls(key, change.seq, there, now, change.calls)

    def _add_calls(self, key: str, seq: int, ordinal: int, now: float, calls: Sequence[NewCall]) -> Steps[None]:
        rows = [
            (
                *(key, seq, i, encode_id(call.id), call.status, encode(call.body, f"calls[{i}].body"), "{}"),
                None if call.answer is None else encode(call.answer, f"calls[{i}].answer"),
                *(int(call.status == "started"), now if call.status == "started" else None),
                now if call.status == "answered" else None,
            )
            for i, call in enumerate(calls, ordinal)
        ]
        for i in range(0, len(rows), CALLS_PER_INSERT):
            some = rows[i : i + CALLS_PER_INSERT]
            places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
            values = tuple(value for row in some for value in row)
            yield from self._insert(key, seq, f"INSERT INTO {self.calls} VALUES {places}", values)

    def _insert(self, key: str, seq: int, sql: str, values: tuple[Any, ...]) -> Steps[None]:
        """Add rows of an entry. They violate a rule only if other rows were lost, or were added by another program."""
        try:
            yield sql, values
        except Duplicate as e:
            where = f"thread {decode_or_unchanged(key)!r}, entry {seq}"
            what = "a row already exists, or the one before it is missing; nothing was added"
            raise damage(where, f"{what} ({e})") from e

    def _move(self, key: str, now: float, change: Move) -> Steps[None]:
        where = (key, change.seq, change.ordinal)
        condition = "WHERE thread = ? AND seq = ? AND ordinal = ?"
        found = yield f"SELECT status FROM {self.calls} {condition}", where
        if not found or found[0][0] not in change.expect:
            what = f"is {found[0][0]!r}" if found else "does not exist"
            expected = " or ".join(map(repr, change.expect)) or "nothing"
            raise StoreConflict(f"call {change.ordinal} of entry {change.seq} {what}, expected {expected}")
        yield (
            f"UPDATE {self.calls} SET {MOVED} {condition}",
            (
                change.to,
                None if change.body is None else encode(change.body, "body"),
                None if change.note is None else encode(change.note, "note"),
                None if change.answer is None else encode(change.answer, "answer"),
                int(change.to == "started"),
                now if change.to == "started" else None,
                now if change.to == "answered" else None,
                *where,
            ),
        )

    # leases

    def acquire(self, thread_id: str, owner: str, seconds: float, dead: int | None) -> Steps[Lease]:
        """See `Store.acquire`."""
        head = yield from self._lock(thread_id)
        if head.held and head.fence != dead:
            raise head.busy(thread_id, "it is already being run")
        lease = Lease(thread_id, owner, head.fence + 1, head.now + seconds)
        yield from self._lease(lease, encode_id(owner), seconds)
        return lease

    def renew(self, lease: Lease, seconds: float) -> Steps[Lease]:
        """See `Store.renew`."""
        head = yield from self._lock(lease.thread_id)
        if head.owner is None or head.fence != lease.fence:
            raise head.busy(lease.thread_id, f"lease {lease.fence} was lost")
        renewed = Lease(lease.thread_id, lease.owner, lease.fence, head.now + seconds)
        yield from self._lease(renewed, encode_id(head.owner), seconds)
        return renewed

    def release(self, lease: Lease) -> Steps[None]:
        """See `Store.release`."""
        try:
            head = yield from self._lock(lease.thread_id)
        except ThreadNotFound:
            return
        if head.owner is not None and head.fence == lease.fence:
            yield from self._lease(lease, None, 0.0)

    def _lease(self, lease: Lease, owner: str | None, seconds: float) -> Steps[None]:
        """Record who holds a thread; no one if `owner` is None."""
        until = 0.0 if owner is None else lease.until
        yield (
            (
                f"UPDATE {self.threads} SET lease_owner = ?, lease_fence = ?, lease_until = ?, lease_seconds = ?"
                " WHERE id = ?"
            ),
            (owner, lease.fence, until, seconds, encode_id(lease.thread_id)),
        )

    def _lock(self, thread_id: str) -> Steps[Head]:
        locked = f"SELECT {HEAD}, {self.dialect.now} FROM {self.threads} WHERE id = ?{self.dialect.lock}"
        return head_of(thread_id, (yield from self._row(thread_id, locked)))

    def _row(self, thread_id: str, sql: str) -> Steps[Sequence[Any]]:
        """A thread's row.

        Raises:
            ThreadNotFound: there is no such thread.
            StoreError: its row is missing, but it has entries.
        """
        key = encode_id(thread_id)
        rows = yield sql, (key,)
        if rows:
            return rows[0]
        missing = f"NOT EXISTS (SELECT 1 FROM {self.threads} WHERE id = ?)"  # still: it may just have been created
        ((left,),) = yield f"SELECT count(*) FROM {self.entries} WHERE thread = ? AND {missing}", (key, key)
        if left:
            raise damage(f"thread {thread_id!r}", f"its row is missing, but {left} of its entries exist")
        raise ThreadNotFound(
            f"there is no thread {thread_id!r}; `await threads.create_thread({thread_id!r})` creates one, as does say"
        )
