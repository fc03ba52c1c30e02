"""When and how one run shortens its conversation: its policy, and the writer of its summaries. Writes nothing."""

from __future__ import annotations

from typing import Any

from agentkit.agent.journal import Ask
from agentkit.threads.compaction import LEAST_GAIN, Compaction, tighter
from agentkit.threads.excerpts import READ_RESULT
from agentkit.threads.store import Log
from agentkit.threads.summary import AskSummary, Writer, compaction_body
from agentkit.tool.registry import ToolRegistry


class RunCompaction:
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
        """Start with the run's tools; `ask` asks a model for a summary."""
        self._write = None if self.writer is None else self.writer.asked_by(ask, registry)
        self._readable = READ_RESULT in registry.tools

    def due(self, tokens: int) -> Compaction | None:
        """Return how to shorten a conversation of this many tokens; None to leave it unchanged."""
        policy = self.policy
        return policy if policy is not None and tokens >= max(self._due, policy.threshold_tokens) else None

    def after_refusal(self, tokens: int) -> Compaction | None:
        """Return how to shorten a conversation that its provider refused as too long; None if that is not possible."""
        return None if self.policy is None else tighter(self.policy, tokens)

    async def body(self, log: Log, policy: Compaction, tokens: int) -> dict[str, Any] | None:
        """Return the compaction that a thread needs, as the body of its entry; None if there is nothing to gain."""
        return await compaction_body(log, policy, tokens, write=self._write, readable=self._readable)

    def note_attempt(self, policy: Compaction, tokens: int) -> None:
        """Postpone the next compaction after an attempt that left this many tokens."""
        self._due = tokens + int(policy.window * LEAST_GAIN)
