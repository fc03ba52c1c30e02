"""What a store keeps of a thread, and what it promises. Knows no message, no tool and no model: a body is JSON.

A thread is a sequence of entries, and of the calls that belong to an entry. Whatever changes, changes in one
transaction (`commit`), all of it or nothing. Who runs a thread holds its lease; the lease's fence, a number that grows
with every new holder, goes with each commit, so that a runner who lost the lease can write nothing any more.

A result is kept with its call, not as an entry of its own: the answer to a call cannot be in the wrong place, and a
user's message that arrives while tools run cannot come between a call and its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agentkit.checks.spelling import ByAttribute
from agentkit.foreign.absent import explained

Body = Mapping[str, Any]
"""A JSON object. What it says is the business of whoever wrote it."""

EntryKind = Literal["message", "partial", "compaction"]
"""`partial`: a response that is still being written, the only kind that may be revised."""

CallStatus = Literal["planned", "waiting", "approved", "started", "answered"]
"""How far a call has come. `waiting` for a person's approval; `started` means that its effects may have happened."""


@explained
@dataclass(frozen=True, slots=True)
class Thread(ByAttribute):
    """A thread as a list of threads shows it.

    Args:
        id: its id.
        metadata: the application's.
        entries: how many entries it has.
        created: seconds since the epoch.
        updated: seconds since the epoch, of the last commit; never goes back, also when the clock does.
        version: grows with every commit that changes something; equal versions mean that nothing changed.
        damage: what is wrong with it in the store, in words, where its own data cannot be read; what is not known of
            them is then empty or 0. None for a sound one. Only a list has damaged ones.
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
        seq: its place, from 0 without gaps.
        kind: what it is.
        body: its content.
        key: the client's id of it, unique in its thread; None without one.
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
        ordinal: its place among the entry's calls, from 0.
        id: the call's id; may be that of an earlier call of the thread, since some servers count anew in each response.
        status: how far it has come.
        body: what is to be done.
        note: what was decided about it, such as an approval; empty for most.
        answer: the result, once `answered`; else None.
        attempts: how often it was started.
        started: seconds since the epoch, of the last start; None before.
        ended: seconds since the epoch of its answer; None before.
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
    """A call to be written with its entry, `planned` unless said otherwise (with `answered` goes its `answer`)."""

    id: str
    body: Body
    status: CallStatus = "planned"
    answer: Body | None = None

    def __post_init__(self) -> None:
        _check_answer(self.status, self.answer)


@dataclass(frozen=True, slots=True)
class Append:
    """Add an entry at the end, with its calls.

    If the thread has an entry with this `key` already, nothing is added: sending a message again changes nothing.
    """

    body: Body
    kind: EntryKind = "message"
    key: str | None = None
    calls: Sequence[NewCall] = ()


@dataclass(frozen=True, slots=True)
class Revise:
    """Replace the body of a `partial` entry; `calls` are those to be added after the ones it has."""

    seq: int
    body: Body
    kind: EntryKind = "message"
    calls: Sequence[NewCall] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """Bring a call to another status.

    Args:
        seq: its entry.
        ordinal: its place there.
        to: the new status. `started` counts an attempt and notes the time, `answered` notes the time.
        expect: the statuses in which it may be found; in any other the commit is refused.
        body: a new body, such as edited arguments; None keeps it.
        note: a new note; None keeps it.
        answer: the result; with `answered` only, and always then. A call that leaves `answered` loses its own.
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


def _check_answer(status: CallStatus, answer: Body | None) -> None:
    """Raise ValueError where an answer and the status `answered` do not go together."""
    if (status == "answered") != (answer is not None):
        raise ValueError(f"a {status!r} call has the answer {answer!r}; 'answered' needs one, no other may have one")


Change = Append | Revise | Move


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a thread.

    Args:
        thread_id: the thread.
        owner: who holds it, in the holder's own words.
        fence: a number higher than that of any lease of this thread before.
        until: seconds since the epoch by the store's clock, after which another may take it.
    """

    thread_id: str
    owner: str
    fence: int
    until: float


class Store(Protocol):
    """Where threads live. Every method is one transaction; when it returns, what it wrote is safe.

    All raise `StoreError` when the store cannot do its work (disk full, read-only, locked, not reachable, a body that
    JSON cannot hold), having changed nothing; `ThreadNotFound` for a thread that is not there. Who is cancelled while
    waiting for a method does not know whether it was done: it is done whole or not at all. One store serves any number
    of tasks, and several event loops one after the other. `agentkit.testing` has the checks that any store must pass.
    """

    async def create(self, thread_id: str, metadata: Body = ..., changes: Sequence[Append] = ...) -> Thread:
        """Make a thread, with its first entries.

        Raises:
            ThreadExists: there is one with this id.
        """
        ...

    async def get(self, thread_id: str) -> Thread:
        """A thread's own data, without its entries."""
        ...

    async def update(self, thread_id: str, metadata: Body) -> Thread:
        """Replace a thread's metadata."""
        ...

    async def list(self, *, limit: int = 100, before: Thread | None = None) -> tuple[Thread, ...]:
        """Threads, the last updated first (then by id); `before` is the last one of the page before.

        One that is damaged is among them, with its `damage`.
        """
        ...

    async def delete(self, thread_id: str) -> None:
        """Remove a thread and all that belongs to it, be it damaged.

        A later thread of the same id starts with higher fences and versions.

        Raises:
            ThreadBusy: somebody runs it.
        """
        ...

    async def load(self, thread_id: str, *, after: int = -1) -> Log:
        """The entries with a higher `seq` than `after`, and their calls, as of one moment."""
        ...

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        """Make changes, all or none.

        Args:
            thread_id: the thread.
            changes: in the order in which they are made.
            fence: of the lease under which they are made; None for a change that needs none, such as a new message.

        Returns:
            The `seq` of each `Append` and `Revise`, in order; for an `Append` whose key was there, that entry's.

        Raises:
            ThreadBusy: the lease was lost to another holder, or released.
            StoreConflict: an entry to be revised is not `partial`, or a call is in none of the expected statuses.
        """
        ...

    async def acquire(self, thread_id: str, owner: str, seconds: float, *, dead: int | None = None) -> Lease:
        """Take the lease for `seconds`.

        A lease that ends later than now and its own length was taken under a clock that has been put back since; it is
        void, so that nobody waits for it longer than for any other.

        Args:
            thread_id: the thread.
            owner: who asks, shown to those who come too late.
            seconds: how long it holds, unless renewed.
            dead: the fence of a lease whose holder is known to be gone; that one may be taken before its time.

        Raises:
            ThreadBusy: another holds it; the error carries that lease.
        """
        ...

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """Hold a lease for `seconds` from now.

        Raises:
            ThreadBusy: it was lost to another holder, or released.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give a lease back; one that was lost already, or whose thread is gone, is not missed."""
        ...

    async def aclose(self) -> None:
        """Finish what was begun and close the connections."""
        ...
