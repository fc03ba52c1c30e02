"""Leases under a clock that jumps, on both stores: one rule says which of them hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_rows import execute

from agentkit.errors import ThreadBusy
from agentkit.testing import ScriptedModel
from agentkit.threads import Lease, SQLiteStore, ThreadManager
from agentkit.threads.sql.postgres import PostgresStore
from agentkit.threads.sql.rows import CLOCK_STEP

YEAR = 365 * 86_400.0


class Clocked:
    """A store whose clock is set by the test: by a function in SQLite, by a table in PostgreSQL."""

    def __init__(self, new_store: Callable[..., Any]) -> None:
        self.now = 1_900_000_000.0
        self.store: Any = new_store()
        if isinstance(self.store, SQLiteStore):
            self.store = SQLiteStore(":memory:", clock=lambda: self.now)

    async def start(self) -> None:
        if isinstance(self.store, PostgresStore):
            await self.store.list()  # makes the tables
            await execute(self.store, "CREATE TABLE {p}clock (now DOUBLE PRECISION)")
            await execute(self.store, "INSERT INTO {p}clock VALUES (0)")
            operations = self.store._operations
            operations.dialect = replace(operations.dialect, now=f'(SELECT now FROM "{self.store.schema}".clock)')
        await self.set(self.now)

    async def set(self, now: float) -> None:
        self.now = now
        if isinstance(self.store, PostgresStore):
            await execute(self.store, f"UPDATE {{p}}clock SET now = {now!r}")


LENGTHS = st.sampled_from([0.0, 10.0, 30.0, 600.0])
STEPS = st.one_of(
    st.tuples(st.just("acquire"), LENGTHS),
    st.tuples(st.just("renew"), LENGTHS),
    st.tuples(st.just("release"), st.just(0.0)),
    st.tuples(st.just("clock"), st.sampled_from([0.5, 5.0, 29.0, 31.0, 700.0, YEAR, -0.5, -5.0, -29.0, -31.0, -YEAR])),
)


def test_a_lease_holds_from_when_it_was_taken_to_its_end_whatever_the_clock_does(
    new_store: Callable[..., Any],
) -> None:
    """And nobody is ever kept out for longer than the lease that is in the way has."""
    clocked = Clocked(new_store)
    with asyncio.Runner() as loop:
        loop.run(clocked.start())
        names = iter(range(10**6))

        @settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(STEPS, max_size=12))
        def tell(steps: list[tuple[str, float]]) -> None:
            loop.run(lived(clocked, f"t{next(names)}", steps))

        tell()
        loop.run(clocked.store.aclose())


async def lived(clocked: Clocked, name: str, steps: list[tuple[str, float]]) -> None:
    """One thread's leases, held against the rule at each step."""
    store = clocked.store
    await store.create(name)
    held: tuple[Lease, float, float] | None = None  # the lease, when it was taken, its length
    for n, (step, value) in enumerate(steps):
        if step == "clock":
            await clocked.set(clocked.now + value)
        elif step == "release" and held is not None:
            await store.release(held[0])
            held = None
        elif step == "renew" and held is not None:
            held = (await store.renew(held[0], value), clocked.now, value)
        elif step == "acquire":
            taken, length = (clocked.now, value)
            holds = held is not None and held[1] - CLOCK_STEP <= clocked.now < held[1] + held[2]
            try:
                held = (await store.acquire(name, f"owner {n}", length), taken, length)
            except ThreadBusy:
                assert holds
            else:
                assert not holds
    try:
        await store.acquire(name, "whoever comes", 30)
    except ThreadBusy:
        assert held is not None
        await clocked.set(clocked.now + held[2] + CLOCK_STEP)
        await store.acquire(name, "whoever waited", 30)


@pytest.mark.parametrize("act", ["run", "delete"])
def test_a_lease_of_a_wrong_clock_keeps_nobody_out(new_store: Callable[..., Any], act: str) -> None:
    async def story() -> None:
        clocked = Clocked(new_store)
        await clocked.start()
        threads = ThreadManager(clocked.store)
        await threads.create_thread("t", messages="Hi")
        await clocked.store.acquire("t", "another-machine/boot/pids/1/2", 30)  # who then dies
        await clocked.set(clocked.now - YEAR)
        if act == "delete":
            await threads.delete_thread("t")
        else:
            assert (await threads.run_thread("t", model=ScriptedModel(["Hello."]))).text == "Hello."
        await threads.aclose()

    asyncio.run(story())


def test_a_holder_is_named_in_words() -> None:
    async def story() -> str:
        store = SQLiteStore(":memory:", clock=lambda: 100.0)
        await store.create("t")
        await store.acquire("t", "web-1/7d1f/pid:[402]/4711/88", 30)
        with pytest.raises(ThreadBusy) as e:
            await store.acquire("t", "other", 30)
        await store.aclose()
        return str(e.value)

    assert asyncio.run(story()) == (
        "thread 't': it is already being run; process 4711 on 'web-1' holds it for another 30.0 s"
    )
