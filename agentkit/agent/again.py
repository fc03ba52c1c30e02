"""Replies that are not answers: what such a reply lacks, and the message that asks the model again.

Knows a finished turn; asks no model. The words were tried on live models: see docs/prompts.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentkit.agent.options import Lacking, RunFinish
from agentkit.agent.run_end import TurnOutcome
from agentkit.events import Finish, InventedResult, UnreadCall
from agentkit.messages import AssistantMessage, MarkupPart, ProviderPart, TextPart, ThinkingPart, UserMessage, user
from agentkit.models.base import ABOUT_REPLY
from agentkit.tool.reply import Output
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from agentkit.formats.format import Format

LACKING: Final[frozenset[RunFinish]] = frozenset(("invented_result", "unread_call", "no_call", "empty"))

_COMPLETE: Final = frozenset(("stop", "tool_calls", "unknown"))
"""The finishes after which nothing more would have come."""

_SAYS: Final[dict[str, str]] = {
    "invented_result": "No tool has run yet: only the next message can bring a result. Call the tool and stop.",
    "empty": "Your reply was empty. Answer, or call a tool.",
    "no_call": "You must call {wanted}. Reply with the call only.",
    "unread_call": "Your call of {name} could not be read, and no tool ran. {how}",
    "unnamed": "A call of yours could not be read, and did not run. Call the tool by its name, with JSON as arguments.",
}
NOT_ACCEPTED: Final = "Your reply was not accepted: {reason}\nWrite the whole reply again."
_NATIVELY: Final = "Call {name} as a tool, not in the text of your reply."


class ReadReply(Protocol):
    """A reply that was read to its end: a `Turn`, or what the gateway keeps of one."""

    @property
    def message(self) -> AssistantMessage:
        """Its parts."""
        ...

    @property
    def odd(self) -> Mapping[type, Any]:
        """Its last `InventedResult` and `UnreadCall`."""
        ...

    @property
    def finish(self) -> Finish:
        """Why it ended."""
        ...


def lacking(turn: ReadReply, choice: str, output: Output | None) -> Lacking | None:
    """Return why a turn's reply is not an answer; None if it is one, or if the turn made calls.

    Args:
        turn: it is over, or its source is.
        choice: the `tool_choice` of its request.
        output: the type of the final reply: one that fits it is an answer.
    """
    if turn.message.calls or (output is not None and output.meant(turn.message.text, whole=False)):
        return None
    if InventedResult in turn.odd:
        return "invented_result"
    if UnreadCall in turn.odd:
        return "unread_call"
    if turn.finish.reason not in _COMPLETE:
        return None
    if choice not in ("auto", "none"):
        return "no_call"
    return "empty" if all(map(_says_nothing, turn.message.content)) else None


def hide_attempt(said: AssistantMessage, lacks: RunFinish | None) -> AssistantMessage:
    """Hide an unread call, and the text before a made-up result, which is neither displayed nor sent again.

    Models repeat what they see of both.
    """
    if lacks not in ("unread_call", "invented_result"):
        return said
    return AssistantMessage([MarkupPart(part.text) if type(part) is TextPart else part for part in said.content])


def _says_nothing(part: object) -> bool:
    if isinstance(part, ProviderPart):
        return not part.data.keys().isdisjoint(ABOUT_REPLY)
    return isinstance(part, ThinkingPart | MarkupPart) or (isinstance(part, TextPart) and not part.text.strip())


def request(
    what: RunFinish, name: str, choice: str, format: str | Format | None, tools: Sequence[ToolSpec]
) -> UserMessage:
    """The message that asks again.

    Args:
        what: what the reply lacks.
        name: the tool of a call that could not be read; empty if it is unknown.
        choice: the `tool_choice` of its request.
        format: how the model calls; None natively.
        tools: the offered tools.
    """
    if what == "unread_call" and not name:
        return user(_SAYS["unnamed"])
    how = _NATIVELY.format(name=name)
    tool = next((tool for tool in tools if tool.name == name), None)
    if format is not None and tool is not None:
        from agentkit.formats.teach import how_to_write

        how = how_to_write(format, tool, tools)
    wanted = "a tool" if choice == "required" else choice
    return user(_SAYS[what].format(name=name, how=how, wanted=wanted))


class Asking:
    """How often a run may still ask again.

    Args:
        retries: how often in all.
    """

    def __init__(self, retries: int) -> None:
        self.message: UserMessage | None = None
        """The message that asks again."""
        self.with_answers: UserMessage | None = None
        """The words about a call that could not be read, together with the answers to the reply's other calls."""
        self._retries = retries
        self._emptied = False  # whether it was asked again after an empty reply

    def retries_left(self, outcome: TurnOutcome | None) -> int:
        """How often it may ask again after this."""
        return 0 if self._emptied and outcome is not None and outcome.lacks == "empty" else self._retries

    def ask(self, lacks: RunFinish) -> tuple[UserMessage | None, bool]:
        """Return the message, which is sent now, and whether the conversation keeps it: then it is not sent again."""
        self._retries -= 1
        self._emptied = self._emptied or lacks == "empty"
        is_kept, message = lacks == "refused_by_guard", self.message
        self.message = None if is_kept else message
        return message, is_kept
