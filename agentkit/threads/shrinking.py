"""When and how one run shortens its conversation: its policy, and the writer of its summaries. Writes nothing."""

from __future__ import annotations

from typing import Any

from agentkit.agent.journal import Ask
from agentkit.threads.compaction import LEAST_GAIN, Compaction, tighter
from agentkit.threads.shortening import READ_RESULT
from agentkit.threads.store import Log
from agentkit.threads.summary import AskSummary, Writer, compacted
from agentkit.tool.registry import ToolRegistry


class Shrinking:
    """The compactions of one run.

    Args:
        policy: when and how; None never shortens it.
        writer: writes the summaries; None for no summaries.
    """

    def __init__(self, policy: Compaction | None, writer: Writer | None) -> None:
        self.policy = policy
        self.writer = writer
        self._write: AskSummary | None = None  # asks the writer, at the run's expense
        self._readable = False  # whether the model can read stored results again
        self._due = 0  # tokens below which no further compaction is tried

    def open(self, registry: ToolRegistry, ask: Ask) -> None:
        """The run starts, with these tools; `ask` asks a model for a summary."""
        self._write = None if self.writer is None else self.writer.asked_by(ask, registry)
        self._readable = READ_RESULT in registry.tools

    def due(self, tokens: int) -> Compaction | None:
        """How to shorten a conversation of this many tokens; None to leave it unchanged."""
        policy = self.policy
        return policy if policy is not None and tokens >= max(self._due, policy.threshold_tokens) else None

    def refused(self, tokens: int) -> Compaction | None:
        """Return how to shorten a conversation that its provider refused as too long; None if that is not possible."""
        return None if self.policy is None else tighter(self.policy, tokens)

    async def compacted(self, log: Log, policy: Compaction, tokens: int) -> dict[str, Any] | None:
        """The compaction that a thread needs, as the body of its entry; None if there is nothing to gain."""
        return await compacted(log, policy, tokens, write=self._write, readable=self._readable)

    def tried(self, policy: Compaction, tokens: int) -> None:
        """It was tried, and this many tokens are left."""
        self._due = tokens + int(policy.window * LEAST_GAIN)
