"""The final reply of a run, checked against the output type. Calls no model: it returns the message to send."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from agentkit.agent.again import Asking
from agentkit.agent.options import RunFinish
from agentkit.agent.plan import Plan
from agentkit.messages import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, UserMessage, user
from agentkit.processor.maybe_output import IsOutput, OutputRule
from agentkit.schemas.typed import values
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.reply import InvalidOutput, Output

_CALL_IT: Final = "Give the whole answer as the arguments of a call of {name}."
_UNFIT: Final = ("invalid_arguments", "invalid_json", "truncated_call", "ambiguous_call")
_NO_REPLY: frozenset[RunFinish] = frozenset(("content_filter", "refusal", "error", "cancelled", "approval"))


class FinalReply:
    """The output of a run.

    Args:
        expected: the type of the final reply; None for any text.
        tool: the tool whose call is the output; None if it is the reply.
        retries: how often the model is asked again after a reply that does not fit.
        asking: how often after one that is not an answer.
        guarded: whether a reply must be accepted by guards.
    """

    def __init__(
        self,
        expected: Output | None,
        retries: int,
        asking: int = 0,
        tool: BoundTool | None = None,
        *,
        guarded: bool = False,
    ) -> None:
        self.asking = Asking(asking)
        """How often the model may still be asked for an answer."""
        self.retries = retries
        """How many retries are left."""
        self._expected = expected
        self._tool = tool
        self._guarded = guarded
        self._correction: str | None = None
        self.forget()

    def forget(self) -> None:
        """Forget the last reply: there is another one."""
        self.value: tuple[Any, ...] | None = None if self._expected is None else ()
        """The output, in a tuple of one; an empty tuple before there is one; None if the output is the text."""
        self.called = ""
        """The arguments of the call that is the output, as JSON; empty if there is none."""
        self.error: str | None = None
        """The mistake in the last reply."""
        self.accepted = not self._guarded
        """Whether the last reply may be shown as the result."""
        self.guard_reason: str | None = None
        """Why a guard did not accept the last request or reply."""

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
            self.error = str(e)
            self._correction = e.request if self._tool is None else f"{e}\n{_CALL_IT.format(name=self._tool.name)}"
            return True
        return False

    def read_call(self, answered: Iterable[tuple[ToolCall, ToolMessage]]) -> bool | None:
        """Read the output from a call of its tool. False if each was refused, None if there is none."""
        found = None
        for call, answer in answered:
            if self._tool is None or call.name != self._tool.name:
                continue
            if answer.error is None and self._take(call):
                return True
            if answer.error in _UNFIT:
                found, self.error, self._correction = False, answer.text, ""  # its answer asks again
        return found

    def read_last(self, last: AssistantMessage, messages: Iterable[Message]) -> bool:
        """Read the output from a call in the last response of a conversation; False if there is none."""
        answers = {message.call_id: message for message in messages if isinstance(message, ToolMessage)}
        return self.read_call((call, answers[call.id]) for call in last.calls if call.id in answers) is True

    def _take(self, call: ToolCall) -> bool:
        assert self._expected is not None
        try:
            self.value, self.error = (self._expected.read_call(call.arguments, lenient=True),), None
        except InvalidArguments:  # of an earlier run, which expected another type
            return False
        self.called = values.dump(dict(call.arguments))
        return True

    def correction(self) -> UserMessage | None:
        """The message that asks for another reply after one that does not fit; returned once, otherwise None."""
        text, self._correction = self._correction, None
        if text is None:
            return None
        self.retries -= 1
        return user(text) if text else None


def as_shown(reply: AssistantMessage, text: str) -> AssistantMessage:
    """Return a reply with the text that the result shows of it."""
    if reply.text == text:
        return reply
    return AssistantMessage((*(part for part in reply.content if not isinstance(part, TextPart)), TextPart(text)))


def fits(output: Output, text: str) -> bool:
    """Return True if a text is a value of the output's type."""
    try:
        output.read(text)
    except InvalidOutput:
        return False
    return True


def recognition(plan: Plan) -> tuple[IsOutput | None, OutputRule | None]:
    """How a processor recognizes the output of a run: in text that can be read as calls, and together with calls."""
    output, tool = plan.output, plan.output_tool
    if output is None:
        return None, None
    rule = OutputRule(tool, plan.limits.calls_with_output == "skip", partial(fits, output))
    return output.meant if tool is None else None, rule
