"""The checks that every thread store must pass, for its author to run.

    import asyncio, pytest
    from agentkit.testing import STORE_CHECKS

    @pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
    def test_my_store(check):
        asyncio.run(check(MyStore()))

Each check needs its own store, empty and open, and closes it at the end. It raises AssertionError with what it found
and what it expected. No check sleeps or needs pytest.
"""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutinefunction
from typing import Final

from agentkit.testing import body_checks, lease_checks, thread_checks
from agentkit.testing.assertions import StoreCheck
from agentkit.threads.store import Store


def _closing(check: StoreCheck) -> StoreCheck:
    @wraps(check)
    async def closing(store: Store) -> None:
        try:
            await check(store)
        finally:
            await store.aclose()

    return closing


STORE_CHECKS: Final[tuple[StoreCheck, ...]] = tuple(
    _closing(check)
    for module in (thread_checks, lease_checks, body_checks)
    for check in vars(module).values()
    if iscoroutinefunction(check) and check.__module__ == module.__name__
)
"""All checks, in the order in which they are written; a check's `__name__` says what it checks."""
