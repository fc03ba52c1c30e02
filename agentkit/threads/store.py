"""The interface of a store and its guarantees. Knows no message, no tool and no model: a body is JSON.

A thread is a sequence of entries, and of the calls that belong to an entry. All changes are made in one transaction
(`commit`), either all of them or none. A run on a thread holds its lease; the lease's fence, a number that increases
with every new holder, is passed to each commit, so that a run that lost the lease can no longer write.

A result is stored with its call, not as a separate entry: the answer to a call cannot be in the wrong place, and a
user's message that arrives while tools run cannot come between a call and its answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from agentkit.checks.spelling import ByAttribute
from agentkit.errors import StoreError
from agentkit.foreign.absent import suggest_attributes

Body = Mapping[str, Any]
"""A JSON object. Its meaning is defined by the code that writes it."""

EntryKind = Literal["message", "partial", "compaction"]
"""`partial`: a response that is still being written, the only kind that can be revised."""

CallStatus = Literal["planned", "waiting", "approved", "started", "answered"]
"""The state of a call. `waiting` for a person's approval; `started` means that its effects may have happened."""


@suggest_attributes
@dataclass(frozen=True, slots=True)
class Thread(ByAttribute):
    """A thread as a list of threads shows it.

    Args:
        id: its id.
        metadata: the application's data.
        entries: how many entries it has.
        created: seconds since the epoch.
        updated: the time of the last commit, in seconds since the epoch; never decreases, even if the clock does.
        version: increases with every commit that changes something; equal versions mean that nothing changed.
        damage: a description of the damage, if its data in the store cannot be read; unknown values are then empty
            or 0. None for an undamaged thread. Only a list has damaged ones.
    """

    id: str
    metadata: Body
    entries: int
    created: float
    updated: float
    version: int
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a thread.

    Args:
        seq: its position, from 0 without gaps.
        kind: its kind.
        body: its content.
        key: the client's id for it, unique in its thread; None without one.
        created: seconds since the epoch.
    """

    seq: int
    kind: EntryKind
    body: Body
    key: str | None
    created: float


@dataclass(frozen=True, slots=True)
class Call:
    """A call that belongs to an entry.

    Args:
        seq: the entry.
        ordinal: its position among the entry's calls, from 0.
        id: the call's id; an earlier call of the thread may have the same one, because some servers restart the count
            in each response.
        status: its state.
        body: what to do.
        note: the decision about it, such as an approval; empty for most.
        answer: the result, once `answered`; otherwise None.
        attempts: how often it was started.
        started: the time of the last start, in seconds since the epoch; None before.
        ended: the time of its answer, in seconds since the epoch; None before.
    """

    seq: int
    ordinal: int
    id: str
    status: CallStatus
    body: Body
    note: Body = field(default_factory=dict)
    answer: Body | None = None
    attempts: int = 0
    started: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Log(ByAttribute):
    """Entries with their calls, both in order. `version` is the thread's."""

    entries: tuple[Entry, ...]
    calls: tuple[Call, ...]
    version: int


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call to be written with its entry, `planned` by default (`answered` requires an `answer`)."""

    id: str
    body: Body
    status: CallStatus = "planned"
    answer: Body | None = None

    def __post_init__(self) -> None:
        _check_answer(self.status, self.answer)


@dataclass(frozen=True, slots=True)
class Append:
    """Add an entry at the end, with its calls.

    If the thread already has an entry with this `key`, nothing is added: sending a message again changes nothing.
    """

    body: Body
    kind: EntryKind = "message"
    key: str | None = None
    calls: Sequence[NewCall] = ()


@dataclass(frozen=True, slots=True)
class Revise:
    """Replace the body of a `partial` entry; `calls` are added after its existing ones."""

    seq: int
    body: Body
    kind: EntryKind = "message"
    calls: Sequence[NewCall] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """Change the status of a call. An answer is final: a call that has one is not changed any more.

    Args:
        seq: its entry.
        ordinal: its position there.
        to: the new status. `started` counts an attempt and records the time, `answered` records the time.
        expect: the statuses that the call may have, without `answered`; with any other the commit is refused.
        body: a new body, such as edited arguments; None keeps it.
        note: a new note; None keeps it.
        answer: the result; required for `answered`, and allowed only then.
    """

    seq: int
    ordinal: int
    to: CallStatus
    expect: tuple[CallStatus, ...]
    body: Body | None = None
    note: Body | None = None
    answer: Body | None = None

    def __post_init__(self) -> None:
        _check_answer(self.to, self.answer)
        if "answered" in self.expect:
            raise ValueError(f"expect={self.expect!r}: an answer is final, so a call that has one cannot be changed")


def _check_answer(status: CallStatus, answer: Body | None) -> None:
    """Raise ValueError if there is an answer without the status `answered`, or the other way round."""
    if (status == "answered") != (answer is not None):
        raise ValueError(f"a {status!r} call has the answer {answer!r}; 'answered' requires one, others have none")


Change = Append | Revise | Move

_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")


async def ask_store(method: Callable[_P, Awaitable[_Answer]], *args: _P.args, **named: _P.kwargs) -> _Answer:
    """Await a store's answer; any exception that a store may not raise, such as a driver's, becomes a `StoreError`."""
    try:
        return await method(*args, **named)
    except StoreError:
        raise
    except Exception as e:
        raise StoreError(f"the store failed: {type(e).__name__}: {e}") from e


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a thread.

    Args:
        thread_id: the thread.
        owner: who holds it, as described by the holder.
        fence: a number higher than that of any earlier lease of this thread.
        until: when another may acquire it, in seconds since the epoch by the store's clock.
    """

    thread_id: str
    owner: str
    fence: int
    until: float


class Store(Protocol):
    """Stores threads. Every method is one transaction; when it returns, its writes are safe.

    All raise `StoreError` if the store cannot do its work (disk full, read-only, locked, not reachable, a body that
    JSON cannot represent), without changing anything, and `ThreadNotFound` for an unknown thread. A caller that is
    cancelled while waiting for a method does not know whether it was done: it is done completely or not at all. One
    store serves any number of tasks, and several event loops sequentially. `agentkit.testing` has the checks that any
    store must pass.
    """

    async def create(self, thread_id: str, metadata: Body = ..., changes: Sequence[Append] = ...) -> Thread:
        """Create a thread, with its first entries.

        Raises:
            ThreadExists: there is one with this id.
        """
        ...

    async def get(self, thread_id: str) -> Thread:
        """A thread's data, without its entries."""
        ...

    async def update(self, thread_id: str, metadata: Body, *, expect: Body | None = None) -> Thread:
        """Replace a thread's metadata.

        Args:
            thread_id: the thread.
            metadata: the new one.
            expect: the metadata that it must have; None replaces any.

        Raises:
            StoreConflict: someone else has changed it: it is not as expected.
        """
        ...

    async def list(self, *, limit: int = 100, before: Thread | None = None) -> tuple[Thread, ...]:
        """Threads, the last updated first (then by id); `before` is the last one of the previous page.

        Damaged threads are included, with their `damage`.
        """
        ...

    async def delete(self, thread_id: str) -> None:
        """Remove a thread and everything that belongs to it, even if it is damaged.

        A later thread with the same id starts with higher fences and versions.

        Raises:
            ThreadBusy: it is being run.
        """
        ...

    async def load(self, thread_id: str, *, after: int = -1, limit: int | None = None) -> Log:
        """The entries with a higher `seq` than `after`, and their calls, as of one moment.

        Args:
            thread_id: the thread.
            after: the entry before the first one.
            limit: the maximum number of entries, 1 or more; None for no limit.
        """
        ...

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        """Make all of the changes, or none.

        Args:
            thread_id: the thread.
            changes: in the order in which they are made.
            fence: the fence of the lease under which they are made; None if they need none, such as a new message.

        Returns:
            The `seq` of each `Append` and `Revise`, in order; for an `Append` with an existing key, that entry's.

        Raises:
            ThreadBusy: the lease was lost to another holder, or released.
            StoreConflict: an entry to be revised is not `partial`, or a call does not have an expected status.
        """
        ...

    async def acquire(self, thread_id: str, owner: str, seconds: float, *, dead: int | None = None) -> Lease:
        """Acquire the lease for `seconds`.

        A lease that ends later than its own length from now was acquired before the clock was set back; it is void, so
        that no one waits for it longer than for any other.

        Args:
            thread_id: the thread.
            owner: who acquires it, shown to others while it is held.
            seconds: how long it is valid without renewal.
            dead: the fence of a lease whose holder is known to be gone; that lease may be replaced before it expires.

        Raises:
            ThreadBusy: it is held by another; the error describes that lease.
        """
        ...

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """Extend a lease to `seconds` from now.

        Raises:
            ThreadBusy: it was lost to another holder, or released.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Release a lease; does nothing if it was already lost, or if its thread is gone."""
        ...

    async def aclose(self) -> None:
        """Finish all operations and close the connections."""
        ...
