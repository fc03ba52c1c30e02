"""A thread store as lists and dictionaries, without time: what the real ones are compared to."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.errors import StoreConflict, ThreadBusy, ThreadExists, ThreadNotFound
from agentkit.threads.store import Append, Call, Change, Entry, Move, NewCall, Revise


@dataclass
class Held:
    """One thread."""

    metadata: dict[str, Any]
    entries: list[Entry] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    owner: str | None = None
    live: bool = False
    fence: int = 0  # how a store counts is its own affair: the test takes over what it said


class ListStore:
    """The operations of `Store`, sync; a lease is either live or has run out."""

    def __init__(self) -> None:
        self.threads: dict[str, Held] = {}

    def find(self, thread_id: str) -> Held:
        if thread_id not in self.threads:
            raise ThreadNotFound
        return self.threads[thread_id]

    def create(self, thread_id: str, metadata: dict[str, Any], changes: Sequence[Append]) -> None:
        if thread_id in self.threads:
            raise ThreadExists
        thread = Held(metadata)
        self.change(thread, changes)
        self.threads[thread_id] = thread

    def update(self, thread_id: str, metadata: dict[str, Any]) -> None:
        self.find(thread_id).metadata = metadata

    def delete(self, thread_id: str) -> None:
        if self.find(thread_id).live:
            raise ThreadBusy("")
        del self.threads[thread_id]

    def commit(self, thread_id: str, changes: Sequence[Change], fence: int | None) -> tuple[int, ...]:
        thread = self.find(thread_id)
        if fence is not None and (thread.owner is None or thread.fence != fence):
            raise ThreadBusy("")
        changed = deepcopy(thread)
        seqs = self.change(changed, changes)
        self.threads[thread_id] = changed
        return seqs

    def change(self, thread: Held, changes: Sequence[Change]) -> tuple[int, ...]:
        made = {Append: self.append, Revise: self.revise, Move: self.move}
        found = [made[type(change)](thread, change) for change in changes]
        return tuple(seq for seq in found if seq is not None)

    def append(self, thread: Held, change: Append) -> int:
        for entry in thread.entries:
            if change.key is not None and entry.key == change.key:
                return entry.seq
        seq = len(thread.entries)
        thread.entries.append(Entry(seq, change.kind, change.body, change.key, 0))
        self.add(thread, seq, change.calls)
        return seq

    def revise(self, thread: Held, change: Revise) -> int:
        if change.seq >= len(thread.entries) or thread.entries[change.seq].kind != "partial":
            raise StoreConflict
        thread.entries[change.seq] = replace(thread.entries[change.seq], body=change.body, kind=change.kind)
        self.add(thread, change.seq, change.calls)
        return change.seq

    def add(self, thread: Held, seq: int, calls: Sequence[NewCall]) -> None:
        for call in calls:
            ordinal = sum(c.seq == seq for c in thread.calls)
            attempts = int(call.status == "started")
            thread.calls.append(Call(seq, ordinal, call.id, call.status, call.body, {}, call.answer, attempts))
        thread.calls.sort(key=lambda c: (c.seq, c.ordinal))

    def move(self, thread: Held, change: Move) -> None:
        for i, call in enumerate(thread.calls):
            if (call.seq, call.ordinal) == (change.seq, change.ordinal) and call.status in change.expect:
                thread.calls[i] = replace(
                    call,
                    status=change.to,
                    body=call.body if change.body is None else change.body,
                    note=call.note if change.note is None else change.note,
                    answer=change.answer,
                    attempts=call.attempts + (change.to == "started"),
                )
                return
        raise StoreConflict

    def acquire(self, thread_id: str, owner: str, live: bool, dead: int | None) -> None:
        thread = self.find(thread_id)
        if thread.live and thread.fence != dead:
            raise ThreadBusy("")
        thread.owner, thread.live = owner, live

    def renew(self, thread_id: str, fence: int, live: bool) -> None:
        thread = self.find(thread_id)
        if thread.owner is None or thread.fence != fence:
            raise ThreadBusy("")
        thread.live = live

    def release(self, thread_id: str, fence: int) -> None:
        thread = self.threads.get(thread_id)
        if thread is not None and thread.fence == fence:
            thread.owner, thread.live = None, False
