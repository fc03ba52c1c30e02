"""When and how one run makes its conversation shorter: its policy, and who writes its summaries. Writes nothing."""

from __future__ import annotations

from typing import Any

from agentkit.agent.journal import Ask
from agentkit.threads.compaction import LEAST_GAIN, Compaction, tighter
from agentkit.threads.shortening import READ_RESULT
from agentkit.threads.store import Log
from agentkit.threads.summary import Writer, compacted
from agentkit.tool.registry import ToolRegistry


class Shrinking:
    """The compactions of one run.

    Args:
        policy: when and how; None never does it.
        writer: who writes the summaries; None for none.
    """

    def __init__(self, policy: Compaction | None, writer: Writer | None) -> None:
        self.policy = policy
        self.writer = writer
        self._ask: Ask | None = None  # how the writer is asked, at the run's expense
        self._readable = False  # whether the model can read stored results again
        self._due = 0  # tokens below which no further compaction is tried

    def open(self, registry: ToolRegistry, ask: Ask) -> None:
        """The run begins, with these tools; `ask` is how a model is asked for a summary."""
        self._ask = ask
        self._readable = READ_RESULT in registry.tools

    def due(self, tokens: int) -> Compaction | None:
        """How a conversation of so many tokens is to be made shorter; None to leave it as it is."""
        policy = self.policy
        return policy if policy is not None and tokens >= max(self._due, policy.threshold_tokens) else None

    def refused(self, tokens: int) -> Compaction | None:
        """The same for one that its provider refused as too long; None where that is not possible."""
        return None if self.policy is None else tighter(self.policy, tokens)

    async def compacted(self, log: Log, policy: Compaction, tokens: int) -> dict[str, Any] | None:
        """The compaction that a thread needs, as the body of its entry; None when there is nothing to gain."""
        write = None if self.writer is None or self._ask is None else self.writer.asked_by(self._ask)
        return await compacted(log, policy, tokens, write=write, readable=self._readable)

    def tried(self, policy: Compaction, tokens: int) -> None:
        """It was tried, and so many tokens are left."""
        self._due = tokens + int(policy.window * LEAST_GAIN)
