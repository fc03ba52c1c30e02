"""The state of a thread that is watched or run: its run, its trouble, its sums. Values only."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from agentkit.agent import RunStream
from agentkit.events import Usage
from agentkit.gateway.events.ag_ui import AgUiRun
from agentkit.threads import Entry
from agentkit.threads.owner import in_words


@dataclass(slots=True)
class ThreadSums:
    """The tokens and the cost of a thread's responses, added up to an entry."""

    until: int = -1
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


@dataclass(slots=True)
class ThreadTrouble:
    """The reasons why a thread is not answered here.

    Args:
        owner: another process that runs it, as its lease names it; None for none.
        damage: what of it cannot be read; empty for nothing.
        gone: whether it was deleted.
    """

    owner: str | None = None
    damage: str = ""
    gone: bool = False

    def in_words(self) -> str:
        """The trouble for a person; empty for none."""
        if self.owner is None:
            return self.damage
        return f"{in_words(self.owner)} is running this thread" if self.owner else "another program runs this thread"


@dataclass(slots=True, eq=False)
class LiveRun:
    """A run that is live here.

    Args:
        run: the run.
        encoder: writes its events.
        base: the number before its first event that a snapshot is followed by.
        before: the last entry that a snapshot has.
        known: the last entry up to which clients know the messages of users.
        said: the messages that were added here and are queued, by their number.
        task: follows it to its end; None before it is started.
        begun: whether its first event was written.
        shortened: whether its first events are forgotten.
        stopped: whether a person stopped it.
        over: whether it has ended.
    """

    run: RunStream[Any]
    encoder: AgUiRun
    base: int
    before: int
    known: int
    said: dict[int, Entry] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    begun: bool = False
    shortened: bool = False
    stopped: bool = False
    over: bool = False
