"""The final reply of a run, held against what it is to bring. Asks no model: it says what to ask for."""

from __future__ import annotations

from typing import Any

from agentkit.agent.options import RunFinish
from agentkit.messages import UserMessage, user
from agentkit.tool.reply import InvalidOutput, Output

_NO_REPLY: frozenset[RunFinish] = frozenset(("content_filter", "refusal", "error", "cancelled", "approval"))


class FinalReply:
    """What a run brings.

    Args:
        wanted: what the final reply must be; None for text, whatever it says.
        retries: how often a reply that is something else is asked for again.
    """

    def __init__(self, wanted: Output | None, retries: int) -> None:
        self.value: tuple[Any, ...] | None = None if wanted is None else ()
        """What it brought, in a tuple of one; an empty one before that; None where that is the text."""
        self.error: str | None = None
        """What is wrong with the last reply."""
        self.retries = retries
        """How often it may still be asked for again."""
        self._wanted = wanted
        self._correction: str | None = None

    def misfits(self, reply: str, reason: RunFinish) -> bool:
        """Whether this reply is not what is wanted, though the model ended it itself."""
        if self._wanted is None or reason in _NO_REPLY:
            return False
        if reason == "length":
            self.error = "the reply was cut at its limit of tokens"
            return False
        try:
            self.value, self.error = (self._wanted.read(reply),), None
        except InvalidOutput as e:
            self.error, self._correction = str(e), e.request
            return True
        return False

    def correction(self) -> UserMessage | None:
        """What asks for another reply in place of one that misfits; given once. None where there was none."""
        said, self._correction = self._correction, None
        if said is None:
            return None
        self.retries -= 1
        return user(said)
