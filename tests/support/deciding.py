"""A person who decides about calls, the tools that wait for it, and a store in which someone is faster than a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

from agentkit import ThreadManager, openapi_schema
from agentkit.messages import TextPart, ToolMessage
from agentkit.threads import SQLiteStore
from agentkit.threads.store import Change, Move

Decide = Literal["approve", "edit", "deny"]
EDITED = 7
"""What a person who edits a call of `pay` pays instead."""


class Till:
    """Tools that remember what they did."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.slept = 0

    @openapi_schema(requires_approval=True)
    async def pay(self, n: int) -> str:
        """Pay."""
        self.paid.append(n)
        return f"paid {n}"

    @openapi_schema
    async def slow(self) -> str:
        """Take some time."""
        self.slept += 1
        await asyncio.sleep(0)
        return "slept"


async def decide(threads: ThreadManager, what: Decide, id: str = "c1", *, thread: str = "t") -> None:
    if what == "deny":
        await threads.deny(thread, id, "no")
    else:
        await threads.approve(thread, id, arguments={"n": EDITED} if what == "edit" else None)


def late(id: str, name: str) -> ToolMessage:
    """An answer that does not come from a run."""
    return ToolMessage(id, name, (TextPart("from outside"),))


class Overtaken(SQLiteStore):
    """A store in which someone else is faster: `act` happens right before a commit that makes a chosen change."""

    _chosen: Callable[[Change], bool] | None = None
    _act: Callable[[], Any]

    def when(self, chosen: Callable[[Change], bool], act: Callable[[], Any]) -> None:
        self._chosen = chosen
        self._act = act

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        chosen = self._chosen
        if fence is not None and chosen is not None and any(map(chosen, changes)):
            self._chosen = None
            await self._act()
        return await super().commit(thread_id, changes, fence=fence)


def moves(to: str) -> Callable[[Change], bool]:
    """Whether a change moves a call to this state."""
    return lambda change: isinstance(change, Move) and change.to == to
