"""The final reply of a run, checked against the output type. Calls no model: it returns the message to send."""

from __future__ import annotations

from typing import Any

from agentkit.agent.again import Asking
from agentkit.agent.options import RunFinish
from agentkit.messages import UserMessage, user
from agentkit.tool.reply import InvalidOutput, Output

_NO_REPLY: frozenset[RunFinish] = frozenset(("content_filter", "refusal", "error", "cancelled", "approval"))


class FinalReply:
    """The output of a run.

    Args:
        expected: the type of the final reply; None for any text.
        retries: how often the model is asked again after a reply that does not fit.
        asking: how often after one that is not an answer.
        guarded: whether a reply must be accepted by guards.
    """

    def __init__(self, expected: Output | None, retries: int, asking: int = 0, *, guarded: bool = False) -> None:
        self.asking = Asking(asking)
        """How often the model may still be asked for an answer."""
        self.value: tuple[Any, ...] | None = None if expected is None else ()
        """The output, in a tuple of one; an empty tuple before there is one; None if the output is the text."""
        self.error: str | None = None
        """The mistake in the last reply."""
        self.accepted = not guarded
        """Whether the last reply may be shown as the result."""
        self.guard_reason: str | None = None
        """Why a guard did not accept the last request or reply."""
        self.retries = retries
        """How many retries are left."""
        self._expected = expected
        self._correction: str | None = None

    def misfits(self, reply: str, reason: RunFinish) -> bool:
        """Return True if this reply is complete and does not fit the output type."""
        if self._expected is None or reason in _NO_REPLY:
            return False
        if reason == "length":
            self.error = "the reply was cut off at its token limit"
            return False
        try:
            self.value, self.error = (self._expected.read(reply),), None
        except InvalidOutput as e:
            self.error, self._correction = str(e), e.request
            return True
        return False

    def correction(self) -> UserMessage | None:
        """The message that asks for another reply after one that does not fit; returned once, otherwise None."""
        text, self._correction = self._correction, None
        if text is None:
            return None
        self.retries -= 1
        return user(text)
