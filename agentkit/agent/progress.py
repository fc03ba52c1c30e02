"""The progress of a run: its turns, its text, its waiting calls. Calls no model and never waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentkit.agent.again import LACKING, NOT_ACCEPTED, lacking, request
from agentkit.agent.decisions import call_hash
from agentkit.agent.final_reply import FinalReply, as_shown, fits
from agentkit.agent.guards import AskAgain, Refused
from agentkit.agent.journal import LeftOpen, UnansweredCalls
from agentkit.agent.lifecycle import TurnEnded
from agentkit.agent.limits import Repeats
from agentkit.agent.options import RunFinish
from agentkit.agent.outcome import AskedFor, RunResult
from agentkit.agent.plan import Plan
from agentkit.agent.run_end import RunState, TurnOutcome
from agentkit.events import UnreadCall, Usage
from agentkit.messages import AssistantMessage, MarkupPart, Message, ToolCall, UserMessage, user
from agentkit.processor import Turn
from agentkit.processor.lost_attempts import find_attempt


class Progress:
    """The progress of a run.

    Args:
        plan: the run's plan.
        start: how many messages there were before it.
        left: what waits before it has started.
    """

    def __init__(self, plan: Plan, start: int, left: LeftOpen) -> None:
        self.turns = 0
        self.finish: RunFinish = "cancelled"
        """Why it ended; while it is running, the reason if it is abandoned now."""
        self._plan = plan
        self._start = start
        self._last: AssistantMessage | None = None
        limits, guarded = plan.limits, plan.guards.has("reply")
        retries = (limits.output_retries, limits.reply_retries)
        self._reply = FinalReply(plan.output, *retries, plan.output_tool, guarded=guarded)
        self._repeats = Repeats(plan.limits.max_repeats)
        self._outcome: TurnOutcome | None = None
        self._earlier = UnansweredCalls()
        self._wait(left, (), {})

    def _wait(self, left: LeftOpen, pending: Sequence[ToolCall], suspended: Mapping[str, Any]) -> None:
        """These calls wait: those of the last turn, and those of an earlier run on which nobody has acted."""
        self._left = left
        untouched = (call for calls in left.waiting.values() for call in calls)
        self._pending = (*self._earlier.waiting, *pending, *untouched)
        self._delegated = {**{id: result for id, result in suspended.items() if result is not None}, **left.delegated}

    def take_over(self, unsettled: UnansweredCalls, messages: Sequence[Message]) -> None:
        """Take over the calls that an earlier run left open."""
        self._start = len(messages)
        self._earlier = unsettled
        self._wait(self._left.only({call.id for call in unsettled.calls}), (), {})
        finish = unsettled.finish
        if unsettled.calls or finish is not None:
            self._last = _last_response(messages)
        if finish is None:
            return
        misfits, lacks = False, None
        if (last := self._last) is not None:
            if finish == "agent_terminated" and self._ended_with_output(last, messages):
                finish = "stop"
            misfits = not last.calls and self._reply.misfits(last.text, finish)
            if finish in LACKING:
                lacks = finish
                self._ask_again(finish, find_attempt(_written(last), self._plan.registry.specs()), "required")
        self._outcome = TurnOutcome(finish, misfits=misfits, lacks=lacks)

    def _ended_with_output(self, last: AssistantMessage, messages: Sequence[Message]) -> bool:
        """Read the output of a finished run from its last reply; False if there is none."""
        if self._reply.read_last(last, messages):
            return True
        output = self._plan.output
        return output is not None and fits(output, last.text) and not self._reply.misfits(last.text, "stop")

    def has_output(self, turn: Turn) -> bool:
        """Return True if a reply with calls has the output: in one of them, or next to them."""
        return turn.text_is_output or self._reply.read_call(turn.answered_calls()) is True

    def finish_of(self, turn: Turn, choice: str) -> RunFinish:
        """Return why a response ended, as it is stored: a response with the output leaves later runs nothing to do."""
        if self.has_output(turn):
            return "agent_terminated"
        return lacking(turn, choice, self._plan.output) or turn.finish.reason

    def asking(self, *, repeated: bool) -> tuple[UserMessage | None, bool]:
        """The model is about to be asked: the message to send first, and whether the conversation keeps it.

        It keeps a request for other output, or by a guard, as it keeps the reply; not what asks again after a reply
        that is not an answer. `repeated` says that this repeats the last request, with a shorter conversation.
        """
        last, self._outcome = self._outcome, None
        if self._earlier.finish is not None:
            self._earlier = self._earlier._replace(finish=None)
        asking = self._reply.asking
        if last is not None and last.lacks is not None:
            return asking.ask(last.lacks)
        if repeated and asking.message is not None:
            return asking.message, False
        if asking.with_answers is not None:
            asking.message, asking.with_answers = asking.with_answers, None
            return asking.message, False
        asking.message = None
        return (self._reply.correction() if last is not None and last.misfits else None), True

    def end_turn(self, turn: Turn, said: AssistantMessage, *, asked: bool) -> None:
        """A turn is over, possibly early; without being `asked` it only answered an earlier run's calls.

        Args:
            turn: the turn.
            said: its response, as it is kept.
            asked: whether the model was asked for it.
        """
        if asked:
            self._last = said
            self._reply.forget()
        self.finish = "error" if turn.finish.reason == "error" else "cancelled"
        left, pending = self._left, turn.pending
        if not (pending or left.waiting or left.delegated or self._earlier.waiting):  # as after most turns
            self._pending, self._delegated = (), {}
            return
        suspended = turn.suspended_states
        if left.waiting:
            told = {answer.call_id for answer in turn.results} | {call.id for call in pending} | suspended.keys()
            left = left.only(left.waiting.keys() - told)
        self._wait(left, pending, suspended)

    def see(self, turn: Turn, choice: str) -> None:
        """Record the outcome of a turn; `choice` is the `tool_choice` of its request."""
        called = self._reply.read_call(turn.answered_calls())
        has_output = turn.text_is_output or called is True
        waits, reason = bool(turn.pending), "stop" if has_output else turn.finish.reason
        answers = bool(turn.results) or (not waits and bool(turn.message.calls))  # some may be left to the next run
        answers = answers and not has_output
        final = not answers and not waits and reason != "pause"
        circles = answers and self._repeats.limit is not None and self._repeats.see_all(turn.answered_calls())
        lacks = lacking(turn, choice, self._plan.output) if final else None
        if lacks is not None:
            self._ask_again(lacks, turn.odd.get(UnreadCall), choice)
        elif answers and UnreadCall in turn.odd:
            self._reply.asking.with_answers = request("unread_call", "", choice, None, ())
        misfits = final and lacks is None and not called and self._reply.misfits(turn.message.text, reason)
        refused = called is False and not waits
        inside: Iterator[RunFinish] = (
            "cancelled" if result is None else result.finish for result in turn.suspended_states.values()
        )
        left = self._earlier.finish or next(inside, None)
        ended = turn.terminated and not has_output
        self._outcome = TurnOutcome(
            reason, answers and not refused, waits, ended, circles, misfits or refused, lacks, left
        )

    def final(self, reason: RunFinish | None) -> AssistantMessage | None:
        """Return the reply with which the run would end for this reason, as the result would show it; None for none."""
        last, reply = self._outcome, self._last
        if last is None or last.lacks is not None or last.misfits or reason in ("cancelled", "error", "approval"):
            return None
        if reply is None or reason not in ("agent_terminated", last.finish):
            return None
        return as_shown(reply, self._text)

    @property
    def _text(self) -> str:
        """The text of the last response; of an output that is a call, its arguments."""
        return self._reply.called or ("" if self._last is None else self._last.text)

    def guarded(self, said: object) -> bool:
        """Take what the guards said about a request or about the final reply; False if it ends the run."""
        if isinstance(said, AskAgain | Refused):
            self._reply.guard_reason = said.reason
        elif isinstance(said, AssistantMessage):
            self._reply.accepted, self._reply.guard_reason = True, None
        if isinstance(said, AskAgain) and self._outcome is not None:
            self._outcome = self._outcome._replace(lacks="refused_by_guard", terminated=False, answered=False)
            self._reply.asking.message = user(NOT_ACCEPTED.format(reason=said.reason))
        return not isinstance(said, Refused)

    def _ask_again(self, what: RunFinish, unread: UnreadCall | None, choice: str) -> None:
        """Keep the message that asks again after a reply that is not an answer."""
        model, name = self._plan.model, unread.name if unread is not None else ""
        self._reply.asking.message = request(
            what, name, choice, model.format, self._plan.registry.offered_specs(model.format)
        )

    def state(self, stopped: RunFinish | None, *, news: bool = False) -> RunState:
        """Everything that determines whether the run continues."""
        left = self._plan.limits.max_turns - self.turns
        retries, again = self._reply.retries, self._reply.asking.retries_left(self._outcome)
        return RunState(self._outcome, stopped, news, self._plan.spending.reached_limit, left, retries, again)

    def result(self, messages: tuple[Message, ...]) -> RunResult[Any]:
        """The result so far, with the current conversation."""
        spent, reply = self._plan.spending, self._reply
        asked = {
            c.id: (tool.digest, call_hash(c)) for c in self._pending if (tool := self._plan.registry.get_tool(c.name))
        }
        why = {id: one.reason for id, one in self._left.asked_for.items()} | self._plan.guards.asked
        return RunResult(
            self._text if reply.accepted else "",
            messages,
            spent.usage,
            self.turns,
            self.finish,
            self._start,
            self._pending,
            reply.error,
            reply.guard_reason,
            spent.estimated,
            spent.cost if spent.budget.prices else None,
            self._delegated,
            reply.value if reply.accepted or reply.value is None else (),
            {id: AskedFor(*seen, why.get(id, "")) for id, seen in asked.items()},
        )


def _written(message: AssistantMessage) -> str:
    """A reply as it was written, whose text is an unread call."""
    return "".join(part.text for part in message.content if isinstance(part, MarkupPart))


def _last_response(messages: Sequence[Message]) -> AssistantMessage | None:
    """The newest response of the conversation, whether or not answers to its calls follow it."""
    return next((m for m in reversed(messages) if isinstance(m, AssistantMessage)), None)


def without_a_turn(unsettled: UnansweredCalls) -> TurnEnded:
    """The event for the calls of an earlier run that have their answers, if none is left to run."""
    calls, answers = zip(*unsettled.answered, strict=True)
    return TurnEnded(0, AssistantMessage(calls), answers, Usage(), "stop", 0.0)


def cut_calls(turn: Turn | None) -> list[ToolCall]:
    """Return the calls of a previous response that its token limit cut off: the next response may repeat them."""
    if turn is None or turn.finish.reason != "length":
        return []
    had = (None, "ambiguous_call")  # the latter: already made in an earlier response, and repeated
    return [call for call, answer in turn.answered_calls() if answer.error in had]
