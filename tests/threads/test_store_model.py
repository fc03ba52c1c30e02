"""Any sequence of operations does to a store what it does to lists and dictionaries."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from list_store import ListStore

from agentkit.errors import StoreError
from agentkit.threads.store import Append, Call, Change, Entry, Lease, Move, NewCall, Revise, Store

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "0"))

STATUSES = ("planned", "waiting", "approved", "started", "answered")
IDS = st.sampled_from(["a", "b", "ü\0"])
VALUES = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.booleans())
BODIES = st.dictionaries(st.text(max_size=3), VALUES, max_size=2)
KEYS = st.none() | st.sampled_from(["k", "l", "\ud800"])
KINDS = st.sampled_from(["message", "partial", "compaction"])
STATUS = st.sampled_from(STATUSES)
OPEN = STATUS.filter(lambda status: status != "answered")
CALLS = st.lists(st.builds(NewCall, st.sampled_from(["c", "d"]), BODIES), max_size=2)
ANSWERS = {status: BODIES if status == "answered" else st.none() for status in STATUSES}
BORN = STATUS.flatmap(lambda status: st.builds(NewCall, st.just("e"), BODIES, st.just(status), ANSWERS[status]))
APPENDS = st.builds(Append, BODIES, KINDS, KEYS, CALLS | st.lists(BORN, max_size=1))
SEQS = st.integers(0, 3)
REVISIONS = st.builds(Revise, SEQS, BODIES, KINDS, CALLS)
MOVES = STATUS.flatmap(
    lambda to: st.builds(
        Move,
        SEQS,
        st.integers(0, 2),
        st.just(to),
        st.lists(OPEN, min_size=2, unique=True).map(tuple),
        st.none() | BODIES,
        st.none() | BODIES,
        ANSWERS[to],
    )
)
CHANGES = st.lists(APPENDS | REVISIONS | MOVES, max_size=4)
SECONDS = st.sampled_from([0.0, 3600.0])
WHICH = st.integers(0, 2)


def timeless(value: Entry | Call) -> Entry | Call:
    """Without its times, which lists do not have."""
    return replace(value, created=0) if isinstance(value, Entry) else replace(value, started=None, ended=None)


class Twins(RuleBasedStateMachine):
    """The store and the lists, side by side."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.lists = ListStore()
        self.runner = asyncio.Runner()
        self.versions: dict[str, int] = {}
        self.fences: dict[str, list[int]] = {}

    def fence(self, name: str, which: int | None) -> int | None:
        """A fence that this thread, or an earlier one of its name, has had, the last first; or one that none had."""
        had = self.fences.get(name, [])
        return None if which is None else had[-1 - which] if which < len(had) else 10**6

    def both(self, real: Coroutine[Any, Any, Any], lists: Callable[[], Any]) -> Any:
        """Both do it, or both refuse for the same reason; what the store returned, None after a refusal."""
        try:
            wanted = lists()
        except StoreError as e:
            with pytest.raises(type(e)):
                self.runner.run(real)
            return None
        found = self.runner.run(real)
        if isinstance(wanted, tuple):
            assert found == wanted
        return found

    @rule(name=IDS, metadata=BODIES, changes=st.lists(APPENDS, max_size=2))
    def create(self, name: str, metadata: dict[str, Any], changes: list[Append]) -> None:
        self.both(self.store.create(name, metadata, changes), lambda: self.lists.create(name, metadata, changes))

    @rule(name=IDS, metadata=BODIES)
    def update(self, name: str, metadata: dict[str, Any]) -> None:
        self.both(self.store.update(name, metadata), lambda: self.lists.update(name, metadata))

    @rule(name=IDS)
    def delete(self, name: str) -> None:
        self.both(self.store.delete(name), lambda: self.lists.delete(name))

    @rule(name=IDS, changes=CHANGES, fence=st.none() | WHICH)
    def commit(self, name: str, changes: list[Change], fence: int | None) -> None:
        held = self.fence(name, fence)
        self.both(self.store.commit(name, changes, fence=held), lambda: self.lists.commit(name, changes, held))

    @rule(name=IDS, owner=st.sampled_from(["x", "y"]), seconds=SECONDS, dead=st.none() | WHICH)
    def acquire(self, name: str, owner: str, seconds: float, dead: int | None) -> None:
        gone = self.fence(name, dead)

        def lists() -> None:
            self.lists.acquire(name, owner, seconds > 0, gone)

        lease = self.both(self.store.acquire(name, owner, seconds, dead=gone), lists)
        if lease is not None:
            had = self.fences.setdefault(name, [])
            assert all(lease.fence > fence for fence in had)
            had.append(lease.fence)
            self.lists.threads[name].fence = lease.fence

    @rule(name=IDS, fence=WHICH, seconds=SECONDS)
    def renew(self, name: str, fence: int, seconds: float) -> None:
        lease = Lease(name, "x", self.fence(name, fence) or 0, 0.0)
        self.both(self.store.renew(lease, seconds), lambda: self.lists.renew(name, lease.fence, seconds > 0))

    @rule(name=IDS, fence=WHICH)
    def release(self, name: str, fence: int) -> None:
        lease = Lease(name, "x", self.fence(name, fence) or 0, 0.0)
        self.both(self.store.release(lease), lambda: self.lists.release(name, lease.fence))

    @rule(name=IDS, after=st.integers(-2, 4))
    def load_after(self, name: str, after: int) -> None:
        def lists() -> None:
            self.lists.find(name)

        log = self.both(self.store.load(name, after=after), lists)
        if log is not None:
            held = self.lists.threads[name]
            assert [e.seq for e in log.entries] == [e.seq for e in held.entries if e.seq > after]
            assert [(c.seq, c.ordinal) for c in log.calls] == [(c.seq, c.ordinal) for c in held.calls if c.seq > after]

    @invariant()
    def they_are_the_same(self) -> None:
        threads = self.runner.run(self.store.list())
        assert {t.id for t in threads} == self.lists.threads.keys()
        assert threads == tuple(sorted(threads, key=lambda t: (-t.updated, t.id)))
        for thread in threads:
            held = self.lists.threads[thread.id]
            log = self.runner.run(self.store.load(thread.id))
            assert (thread.metadata, thread.entries, thread.version) == (held.metadata, len(held.entries), log.version)
            assert [timeless(e) for e in log.entries] == held.entries
            assert [timeless(c) for c in log.calls] == held.calls
            assert all((c.ended is not None) == (c.status == "answered") for c in log.calls)
            assert all((c.started is not None) == (c.attempts > 0) for c in log.calls)
            assert thread.version >= self.versions.get(thread.id, 0)
            self.versions[thread.id] = thread.version

    def teardown(self) -> None:
        self.runner.run(self.store.aclose())
        self.runner.close()


def test_a_store_does_what_lists_do(new_store: Callable[..., Store], request: pytest.FixtureRequest) -> None:
    examples = EXAMPLES or (6 if "postgres" in request.node.name else 12)
    run_state_machine_as_test(
        lambda: Twins(new_store()), settings=settings(max_examples=examples, stateful_step_count=25)
    )
