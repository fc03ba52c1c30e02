"""The thread that owns a connection to a SQLite file. Knows its transactions and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread
from typing import Any, Final

from agentkit.checks.forks import pause_around_forks
from agentkit.errors import StoreError
from agentkit.threads.sql.jobs import Job, answer
from agentkit.threads.sql.operations import Duplicate, Operations, Rows, Steps
from agentkit.threads.sql.store_bridge import Kind, OnStatement

MAX_GROUP: Final = 1000
"""The maximum number of jobs in one transaction, so that the first of many does not wait forever."""

WAL_RETRY: Final = 0.01
"""Seconds between two attempts to switch a new file to WAL, because SQLite does not wait for that itself."""

REASONS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file, or its folder, is read-only",
    sqlite3.SQLITE_IOERR: "the disk, a quota or a file size limit prevented it",
    sqlite3.SQLITE_NOTADB: "the file is not a SQLite database",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
}
"""The meaning of SQLite's errors, by their primary codes."""

NO_ROOM: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
"""Errors that make SQLite abort a whole transaction although only one of its jobs may have been too large."""

RESTING: Final = 10.0
"""Seconds that a fork waits for a transaction in progress; then the child has a copy of its connection."""

_ABANDONED: Final[list[sqlite3.Connection]] = []
"""Connections to files that were removed or replaced. Closing one would remove the new file's log."""


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """The file, and how it is opened; see `SQLiteStore`."""

    path: str
    synchronous: str
    busy_timeout: float
    clock: Callable[[], float]
    on_statement: OnStatement | None
    operations: Operations

    def execute(self, connection: sqlite3.Connection, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run one statement and fetch all its rows."""
        if self.on_statement is None:
            return connection.execute(sql, values).fetchall()
        self.on_statement("before", sql)
        rows = connection.execute(sql, values).fetchall()
        self.on_statement("after", sql)
        return rows

    def drive(self, connection: sqlite3.Connection, steps: Steps[Any]) -> Any:
        """Run an operation's statements to its result."""
        try:
            sql, values = next(steps)
            while True:
                try:
                    rows = self.execute(connection, sql, values)
                except sqlite3.IntegrityError as e:
                    sql, values = steps.throw(Duplicate(str(e)))
                else:
                    sql, values = steps.send(rows)
        except StopIteration as e:
            return e.value

    @property
    def absent(self) -> bool:
        """True if there is no file, or an empty one, where one can be created: for readers, a store without threads."""
        if not os.path.exists(self.path):
            return os.access(os.path.dirname(self.path), os.W_OK)
        return os.path.isfile(self.path) and os.path.getsize(self.path) == 0

    def open(self, writes: bool) -> sqlite3.Connection:
        """A connection to the file, with its tables created; only for a writer in another program's file.

        Raises:
            StoreError: the file cannot be opened, or belongs to another program.
        """
        connection = None
        try:
            if self.path != ":memory:" and not self.read_only:
                with suppress(OSError):  # which SQLite says better; its log gets the mode of the file
                    os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            connection = sqlite3.connect(
                self._only_read() if self.read_only else self.path,
                uri=self.read_only,
                timeout=self.busy_timeout,
                isolation_level=None,
                check_same_thread=False,  # a thread that forks closes it, while its own does nothing
            )
            self._prepare(connection, writes)
        except BaseException as e:
            if connection is not None:
                connection.close()
            raise self.explain(e) from e
        return connection

    @property
    def read_only(self) -> bool:
        """True if the file or its folder cannot be written, as on a read-only file system."""
        places = (self.path, os.path.dirname(self.path))
        return os.path.isfile(self.path) and not all(os.access(place, os.W_OK) for place in places)

    def _only_read(self) -> str:
        """The file's address, for reading alone. Without a log nobody writes it now, and none can be created here."""
        quiet = "" if _has_log(self.path) else "&immutable=1"
        return f"{Path(self.path).as_uri()}?mode=ro{quiet}"

    def _prepare(self, connection: sqlite3.Connection, writes: bool) -> None:
        connection.create_function("agentkit_clock", 0, lambda: float(self.clock()))
        ready = self.drive(connection, self.operations.ready(not writes))  # before any change to a file of others
        if ready and self.read_only:
            return
        self._use_wal(connection)
        self.execute(connection, f"PRAGMA synchronous = {self.synchronous}")
        self.execute(connection, "PRAGMA fullfsync = ON")  # macOS: there fsync alone does not reach the disk
        if not ready:
            self.execute(connection, "BEGIN IMMEDIATE")
            self.drive(connection, self.operations.install())
            self.execute(connection, "COMMIT")

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        give_up = time.monotonic() + self.busy_timeout
        mode = ""
        while not mode:
            try:
                ((mode,),) = self.execute(connection, "PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as e:
                if _code(e) != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(WAL_RETRY)
        if mode not in ("wal", "memory"):
            raise StoreError(f"no write-ahead log is possible here (journal mode {mode!r}): a network file system?")

    def explain(self, e: BaseException) -> BaseException:
        """Return an error with agentkit's message and the file's path. Only SQLite's errors are changed."""
        if isinstance(e, StoreError):
            return type(e)(f"thread store {self.path}: {e}") if type(e) is StoreError else e
        if isinstance(e, OverflowError):
            return StoreError(f"thread store {self.path}: a number is too large; nothing was changed ({e})")
        if not isinstance(e, sqlite3.Error):
            return e
        code = _code(e)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            reason = f"another process kept it locked for {self.busy_timeout:g} s"
        elif code == sqlite3.SQLITE_CANTOPEN:
            reason = _why_not_opened(self.path)
        else:
            reason = REASONS.get(code, "SQLite error")
        return StoreError(f"thread store {self.path}: {reason}; nothing was changed (SQLite: {e})")


def _code(e: sqlite3.Error) -> int:
    """The primary code; 0 for an error that Python's module raised itself."""
    return int(getattr(e, "sqlite_errorcode", 0)) & 0xFF


def _has_log(path: str) -> bool:
    return os.path.exists(log := f"{path}-wal") and os.path.getsize(log) > 0


def _why_not_opened(path: str) -> str:
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        return "expected a file, found a folder"
    try:
        os.stat(folder)
    except FileNotFoundError:
        return f"there is no folder {folder}; create it first"
    except OSError:
        return f"no permission to access {folder}"
    if _has_log(path) and not os.access(folder, os.W_OK):
        return f"it has a log ({path}-wal), for which its folder must be writable; copy both files to one that is"
    if not os.access(path if os.path.exists(path) else folder, os.R_OK | os.W_OK):
        return "no permission to read and write there"
    return "the file cannot be opened"


class Worker:
    """A thread with its connection, opened with the first job and again after a failure to open.

    During a fork there is no connection: SQLite would use it in the child although the file's locks are the parent's,
    and the child's writes would be lost when the parent closes the file.

    Args:
        place: the file.
        writes: whether its transactions write.
    """

    def __init__(self, place: DatabaseFile, writes: bool) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._place = place
        self._writes = writes
        self._begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._at_work = Lock()  # held while the connection is used, and during a fork
        self._rests = False
        name = f"agentkit-{'writer' if writes else 'reader'}"
        # A daemon: a process that ends does not wait for it, and work that was not answered was not guaranteed.
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        if place.path != ":memory:":  # that would be gone with its connection, and no child can use it
            pause_around_forks(self)

    def rest(self) -> None:
        """Before a fork: close the connection, after a transaction in progress."""
        if current_thread() is not self._thread:  # a hook may fork
            self._rests = self._at_work.acquire(timeout=RESTING)
        if self._rests:
            self._close()

    def resume(self) -> None:
        """After a fork: the next job opens another connection."""
        if self._rests:
            self._rests = False
            self._at_work.release()

    def submit(self, job: Job, kind: Kind) -> None:
        """Start a job; one without steps ends the worker, after all earlier jobs."""
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            group, end = self._take()
            if group:
                answer(group, self._answers(group))
            if end is not None:
                with self._at_work:
                    self._close()
                answer([end], [(None, None)])
                return
            del group  # the last job's loop and answer are not kept while waiting

    def _take(self) -> tuple[list[Job], Job | None]:
        """All waiting jobs, at least one; and the end if it has been requested."""
        group: list[Job] = []
        job = self._jobs.get()
        while job.steps is not None:
            group.append(job)
            if len(group) == MAX_GROUP:
                return group, None
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return group, None
        return group, job

    def _answers(self, group: list[Job]) -> list[tuple[Any, BaseException | None]]:
        with self._at_work:
            return self._run_group(group)

    def _run_group(self, group: list[Job]) -> list[tuple[Any, BaseException | None]]:
        """Each job's result or error; the jobs of a group that does not fit are retried one by one."""
        try:
            return self._transaction(group)
        except sqlite3.Error as e:
            self._roll_back()
            if len(group) == 1 or _code(e) not in NO_ROOM:
                return [(None, self._place.explain(e))] * len(group)
            return [one for job in group for one in self._run_group([job])]
        except BaseException as e:  # noqa: BLE001 (whatever it is, the tasks that wait must get it)
            self._roll_back()
            return [(None, e)] * len(group)

    def _transaction(self, group: list[Job]) -> list[tuple[Any, BaseException | None]]:
        connection = self._connected()
        self._place.execute(connection, self._begin)
        answers = [self._job(connection, job) for job in group]
        self._place.execute(connection, "COMMIT")
        return answers

    def _job(self, connection: sqlite3.Connection, job: Job) -> tuple[Any, BaseException | None]:
        """One job between its savepoints.

        Raises:
            sqlite3.Error: SQLite aborted the whole transaction, as it may if the disk is full.
        """
        assert job.steps is not None
        if job.future is not None and job.future.cancelled():
            return None, None
        self._mark(connection, "SAVEPOINT job")
        try:
            result = self._place.drive(connection, job.steps())
            self._mark(connection, "RELEASE job")
        except Exception as e:
            if not connection.in_transaction:
                raise
            self._mark(connection, "ROLLBACK TO job")
            self._mark(connection, "RELEASE job")
            return None, self._place.explain(e)
        return result, None

    def _mark(self, connection: sqlite3.Connection, sql: str) -> None:
        """A statement about a savepoint, which a job that only reads does not need."""
        if self._writes:
            self._place.execute(connection, sql)

    def _connected(self) -> sqlite3.Connection:
        path = self._place.path
        if self._connection is not None and (self._place.read_only or (not self._writes and self._file == (0, 0))):
            self._close()  # others may write it since, and a connection without a log does not see that
        if self._connection is not None and path != ":memory:" and _identity(path) != self._file:
            _ABANDONED.append(self._connection)  # anything written there would be lost silently
            self._connection = None
            if not os.path.exists(path):
                raise StoreError(f"thread store {path}: the file was removed while in use; nothing was changed")
        if self._connection is None:
            absent = not self._writes and self._place.absent
            place = replace(self._place, path=":memory:") if absent else self._place
            self._connection = place.open(self._writes or absent)
            self._file = _identity(place.path)
        return self._connection

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            try:
                self._place.execute(self._connection, "ROLLBACK")
            except sqlite3.Error:
                self._close()  # closing also rolls back

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _identity(path: str) -> tuple[int, int]:
    """The file that a path names now; zeros if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
