"""From calls that were read to their answers: admission, approval, the lock, the tool, one answer per call.

The one way in which calls are run: by a turn, a rollout and an export. Knows no text, no format's syntax, no model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, Literal

from agentkit.events import (
    ApprovalRequired,
    CallEnd,
    CallError,
    FinishReason,
    ToolCompleted,
    ToolEvent,
    ToolFailed,
    ToolSkipped,
)
from agentkit.messages import TextPart, ToolCall, ToolMessage, answer_as_made
from agentkit.processor import not_run
from agentkit.processor.admission import Added, Admission, AdmittedCall, Judge, KnownTools, Ruling
from agentkit.processor.approval import Allows, Approvals
from agentkit.processor.author_errors import AuthorErrors
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.eager_tasks import start_now
from agentkit.processor.error_results import cap, error_result
from agentkit.processor.inbox import Inbox
from agentkit.processor.maybe_output import OutputRule
from agentkit.processor.start_queue import Gate, StartQueue
from agentkit.processor.tool_run import Outcome
from agentkit.processor.tooltask import GRACE, ToolTask
from agentkit.tool.policy import needs_no_decision
from agentkit.tool.result import ToolContext, ToolResult
from agentkit.tool.suspension import SuspendedCall

_WITHDRAWN = "cancelled while it waited for the user's approval: what it had done by then may have taken effect"

CHANGED: Final = "The arguments were changed before the call was run: "
"""Begins the note in the answer to a call that was run with a guard's arguments."""

Scope = Callable[[ToolCall], AbstractContextManager[Any]]
"""Entered while a call's task is created: the tool sees the context variables that it sets. (None sets nothing.)"""


CallAnswered = ToolCompleted | ToolFailed | ToolSkipped
"""The end of a call."""


class CallRunner:
    """Runs the calls of one response.

    Args:
        registry: the tools.
        config: limits, timeout, order.
        contexts: creates a call's context.
        inbox: receives the event of each tool that ends; None if `run` runs the calls.
        approved: the ids of the calls that a person has approved.
        scope: entered while a call's task is created; None enters nothing.
        gate: called when a call is about to start; None lets every call start.
        faults: logs what the tools' authors must fix.
        attended: whether a person can approve calls. If not, a call that needs approval is refused, and a function that
            decides whether one does has as much time as a call.
        added: returns the arguments that a tool gets besides the model's; None adds none.
        judge: decides about each call before it may start; None lets every call start.
        output: how the run's output is recognized; None if it has no certain type.
        allows: whether a person has already allowed a call that needs approval; None: she has allowed none.
    """

    terminated = False

    def __init__(
        self,
        registry: KnownTools,
        config: ProcessorConfig,
        contexts: Callable[[ToolCall], ToolContext],
        inbox: Inbox | None = None,
        approved: Collection[str] = (),
        scope: Scope | None = None,
        gate: Gate | None = None,
        faults: AuthorErrors | None = None,
        *,
        attended: bool = True,
        added: Added | None = None,
        judge: Judge | None = None,
        output: OutputRule | None = None,
        allows: Allows | None = None,
    ) -> None:
        self.answers: dict[int, ToolMessage] = {}
        self.unreported: set[int] = set()  # calls that have ended, but whose event was not yielded yet
        self.skipped: set[int] = set()  # calls that have answers, and whose tools never took a step
        self._inbox = Inbox() if inbox is None else inbox
        self.waiting = StartQueue(gate, self._inbox.wake, sequential=config.strategy == "sequential")
        self._contexts = contexts
        self._scope = scope
        self._admission = Admission(registry, config, AuthorErrors() if faults is None else faults, added, judge)
        faults = self._admission.faults
        attended = attended and config.attended
        self.approvals = Approvals(config, contexts, faults, approved, attended=attended, allows=allows)
        self._running: set[ToolTask] = set()
        self.output: OutputRule | Literal["text"] | None = output
        """How the run's output is recognized; "text" if the response's text turned out to be it; else None."""

    @property
    def idle(self) -> bool:
        """Return whether no call is running or waiting to start."""
        return not self.waiting.calls and not self._running

    # -------------------------------------------------------------- admission

    def admit(self, event: CallEnd | CallError) -> ToolEvent | None:
        """Let a call wait for its start or its approval, or answer it immediately with what is wrong with it."""
        admitted = self._admission.admit(event)
        if type(admitted) is not AdmittedCall:
            return self._answer(admitted)  # type: ignore[arg-type]
        answered = None if self._busy or self._delays_more() else self._decide(admitted)
        if answered is None:
            self.waiting.calls.append(admitted)
        return answered

    def _delays_more(self) -> bool:
        """Return True if the last call that waits delays those after it, or is itself delayed."""
        if not self.waiting.calls:
            return False
        last = self.waiting.calls[-1]
        return self.waiting.delays(last) or not (last.decided or last.index in self.approvals.asking)

    def _decide(self, admitted: AdmittedCall) -> ToolEvent | None:
        """Begin to decide about a call; None if it may start, or if that is not decided yet."""
        if admitted.tool.policy.requires_approval is needs_no_decision:
            admitted.decided = True
            return None
        if (judge := self._admission.judge) is None:
            return self._consider(admitted)
        work = judge(admitted, self._contexts(admitted.call))
        judging = start_now(work, asyncio.get_running_loop())
        if judging.done():
            return self._rule(admitted, judging)
        self.approvals.asking[admitted.index] = judging
        judging.add_done_callback(partial(self._on_ruling, admitted))
        return None

    def _on_ruling(self, admitted: AdmittedCall, judging: asyncio.Task[Ruling]) -> None:
        """Act on the decision about a call that has waited for it; nothing if it was answered in the meantime."""
        if self.approvals.asking.get(admitted.index) is judging:
            del self.approvals.asking[admitted.index]
            self._act(admitted, self._rule(admitted, judging))

    def _rule(self, admitted: AdmittedCall, judging: asyncio.Task[Ruling]) -> ToolEvent | None:
        """Act on the decision about a call; None if it may start, or waits for a further one."""
        if judging.cancelled() or (error := judging.exception()) is not None:
            why = "the decision was cancelled" if judging.cancelled() else f"the decision raised {type(error).__name__}"
            return self._skip(admitted.index, admitted.call, not_run.GUARDED.result(reason=why))
        call, ask = judging.result()
        if isinstance(call, ToolResult):
            return self._skip(admitted.index, admitted.call, call)
        admitted.become(call)
        return (
            self._consider(admitted) if ask is None else self._settle(admitted, self.approvals.require(admitted, ask))
        )

    def _consider(self, admitted: AdmittedCall) -> ToolEvent | None:
        """Let a call wait for a person if it must, or answer it; None if it may start, or that is not decided yet."""
        if admitted.tool.policy.requires_approval is False and self._admission.config.requires_approval is None:
            return self._settle(admitted, None)
        required = self.approvals.ask(admitted, self._on_decision)
        return None if admitted.index in self.approvals.asking else self._settle(admitted, required)

    def _on_decision(self, admitted: AdmittedCall, required: ApprovalRequired | None) -> None:
        """Take a function's decision on whether a waiting call must wait for a person."""
        self._act(admitted, self._settle(admitted, required))

    def _settle(self, admitted: AdmittedCall, required: ApprovalRequired | None) -> ToolEvent | None:
        """Let a call start, or wait for a person; answer it if there is none."""
        if required is not None and not self.approvals.attended:
            self.approvals.pending.pop(required.index)
            why = required.reason and f" ({required.reason})"
            return self._skip(
                required.index, required.call, not_run.UNATTENDED.result(name=required.call.name, reason=why)
            )
        admitted.decided = True
        if admitted.tool.policy.terminates:
            self._terminate(admitted)
        return required

    def _act(self, admitted: AdmittedCall, event: ToolEvent | None) -> None:
        """Remove a call that waits for its start if it has its answer now, or waits for a person."""
        if event is not None:
            self.waiting.drop(admitted)
            self._inbox.put(event)
        self._inbox.wake()

    @property
    def _outputs(self) -> list[AdmittedCall]:
        """The calls of the output's tool, until the response is over: then `choose_output` decides."""
        tool = self.output.tool if isinstance(self.output, OutputRule) else None
        return [] if tool is None else [one for one in self.waiting.calls if one.tool is tool]

    def choose_output(self, calls: Sequence[ToolCall | None], text: str) -> Iterator[ToolEvent]:
        """Decide, once the response is over, if it has the output, and if so what happens to the other calls.

        Args:
            calls: the calls of the response.
            text: its text.
        """
        rule, held, self.output = self.output, self._outputs, None
        if not isinstance(rule, OutputRule) or not (held or (rule.skips and calls and rule.fits(text))):
            return
        name = held[0].call.name if held else ""
        refused = {one.index: one.call for one in held}
        for one in held:
            self.waiting.drop(one)
        if any(one.call.arguments != held[0].call.arguments for one in held):
            answer = not_run.SEVERAL_OUTPUTS.result(count=len(held), name=name)
        elif held and not rule.skips and any(call is not None and call.name != name for call in calls):
            answer = not_run.NOT_FINAL.result(name=name)
        else:
            answer, refused = not_run.WITH_OUTPUT.result(), refused | dict(self._withdraw())
            if not held:
                self.output = "text"
            else:
                self.waiting.calls.append(held[0])
                del refused[held[0].index]
        for index, call in refused.items():
            yield self._skip(index, call, answer)

    def _terminate(self, last: AdmittedCall) -> None:
        """Skip the calls after this one that have not started: some native ones may have been read before it."""
        skipped = self._admission.terminate(last)
        for index, call in self._withdraw(after=last.index):
            self._inbox.put(self._skip(index, call, skipped))

    def _withdraw(self, after: int = -1) -> list[tuple[int, ToolCall]]:
        """Remove and return the calls that wait, for their start or for a person, in call order."""
        return sorted((self.waiting.drop_all(after) | self.approvals.withdraw(after)).items())

    # -------------------------------------------------------------- running

    @property
    def _busy(self) -> bool:
        """True if the calls are run one after another, and one has not ended, or its end was not seen."""
        return self.waiting.sequential and bool(self._running or self.unreported)

    def next(self) -> AdmittedCall | None:
        """Return the call that may start now; it keeps its lock until `start`. Calls that may never start are answered.

        With `sequential`, a call delays those after it while it is decided whether it may start, or needs approval, but
        not while it waits for a person.
        """
        waiting = self.waiting
        while waiting.calls and not self._busy:
            ready = waiting.ready({*self.approvals.asking, *(held.index for held in self._outputs)})
            if ready is None:
                return None
            if not ready.decided:
                self._act(ready, self._decide(ready))
                continue
            refused = waiting.kept_back(ready)
            if refused is None:
                return ready
            self._act(ready, self._skip(ready.index, ready.call, refused))
        return None

    def start(self, admitted: AdmittedCall) -> None:
        """Start a call, unless it was answered since `next`; it may be over when this returns."""
        if not self.waiting.take(admitted):
            return
        try:
            context = self._contexts(admitted.call) if admitted.tool.takes_context else None
            with nullcontext() if self._scope is None else self._scope(admitted.call):
                task = ToolTask(admitted, self._admission.config, self._admission.faults, self._on_end)
                self._running.add(task)  # only now: an exception before this would leave the call there for good
                task.start(context)
        except BaseException:
            admitted.unlock()
            raise

    def _on_end(self, task: ToolTask, done: Outcome, took: float) -> None:
        """Answer a call whose tool has ended, or waits for a person, or was stopped."""
        admitted, result = task.admitted, done.result
        index, call = admitted.index, admitted.call
        self._running.discard(task)
        self.unreported.add(index)
        if done.suspended is not None:
            self._suspend(admitted, done.suspended, quietly=task.stopped or not done.suspended.calls)
            return
        if task.kept_out:
            self._inbox.put(self._skip(index, call, result))
            return
        succeeded = result.error is None
        if succeeded and admitted.tool.policy.terminates:
            self.terminated = True
        note = (TextPart(f"{CHANGED}{json.dumps(call.arguments, default=str)}\n"),) if admitted.changed else ()
        self.answers[index] = answer_as_made(call.id, call.name, (*note, *done.parts), result.code)
        self._inbox.put((ToolCompleted if succeeded else ToolFailed)(index, call, result, took))

    def _suspend(self, admitted: AdmittedCall, suspended: SuspendedCall, *, quietly: bool) -> None:
        """Leave a call that has started to a later run; `quietly` if it was withdrawn: then nobody is asked."""
        required = self.approvals.suspend(admitted, suspended)
        if quietly or not self.approvals.attended:
            self.approvals.pending.pop(admitted.index)
            self._inbox.put(self._skip(admitted.index, admitted.call, error_result("cancelled", _WITHDRAWN)))
        else:
            self._inbox.put(required)

    def replace_answer(self, end: CallAnswered, answer: ToolMessage) -> None:
        """Take the answer that a call got from outside before it started, waited for a person or was answered."""
        index = end.index
        self._inbox.drop_end(index)  # cancelled in the meantime, it may have another one
        for admitted in [a for a in self.waiting.calls if a.index == index]:
            self.waiting.drop(admitted)
        self.approvals.pending.pop(index, None)
        self.approvals.suspended.pop(index, None)
        self.answers[index] = answer
        self.unreported.add(index)
        self._inbox.put(end)

    def wait_on(self, index: int, call: ToolCall) -> None:
        """Leave a withdrawn call as it was: it waits for a person, or for the next run if it is approved."""
        if self.answers.pop(index, None) is not None:
            self.approvals.ask_again(index, call)

    # -------------------------------------------------------------- without a turn

    async def run(self, calls: Iterable[CallEnd | CallError], report: Callable[[CallAnswered], None]) -> None:
        """Run calls of which no more will come; when this returns or is cancelled, each was answered.

        The event of each answer is reported as soon as there is one; nobody is asked for approval.
        """
        whole = False
        try:
            for event in calls:
                if (answered := self.admit(event)) is not None:
                    self._inbox.put(answered)
            self._advance(report)
            while not self.idle:
                await self._inbox.wait()
                self._advance(report)
            whole = True
        finally:
            if not whole:
                try:
                    if running := self.cancel():
                        await asyncio.wait(running, timeout=GRACE)
                finally:
                    self.finish(())
                    self._report(report)

    def _advance(self, report: Callable[[CallAnswered], None]) -> None:
        """Start the calls that may start, each at once."""
        self._report(report)
        while (ready := self.next()) is not None:
            self.start(ready)
            self._report(report)
        self._report(report)

    def _report(self, report: Callable[[CallAnswered], None]) -> None:
        while self._inbox.items:
            event: Any = self._inbox.items.popleft()
            self.unreported.discard(event.index)
            report(event)

    def expire(self, seconds: float, of: str) -> None:
        """Stop the calls that run, and start no more: the time `of` all of them is up, as in ` of this turn`."""
        for skipped in self._close(not_run.TIME_UP.result(seconds=seconds, of=of)):
            self._inbox.put(skipped)
        for task in list(self._running):
            task.expire(seconds, of)

    # -------------------------------------------------------------- the end

    def interrupt(self) -> None:
        """Refuse the calls that the response still brings: it was interrupted."""
        self._admission.close(not_run.BROKEN_OFF.result())

    def turn_off(self) -> None:
        """Refuse each call that the response brings."""
        self._admission.close(not_run.NO_TOOLS_NOW.result())

    def retract(self, finish: FinishReason) -> list[ToolEvent]:
        """Refuse the calls that wait, even for a person, and those to come: the response's own end retracts it."""
        return self._close(not_run.RETRACTED.result(finish=finish))

    def _close(self, answer: ToolResult) -> list[ToolEvent]:
        self._admission.close(answer)
        return [self._skip(*held, answer) for held in self._withdraw()]

    def cancel(self) -> list[asyncio.Task[Any]]:
        """Stop the calls that run and skip those that wait, even for a person; return the tasks to wait for."""
        for skipped in self._close(not_run.CANCELLED.result()):
            self._inbox.put(skipped)
        running = list(self._running)
        for one in running:
            one.cancel()
        return [one.own_task for one in running]

    def finish(self, calls: Sequence[ToolCall | None]) -> tuple[ToolMessage, ...]:
        """Return the answers in call order; a call that has none and waits for no person is answered as cancelled."""
        for one in list(self._running):
            one.abandon()
        self.waiting.drop_all()
        answers = self.answers
        if len(answers) == len(calls):
            return tuple([answers[index] for index in range(len(calls))])
        for index, call in enumerate(calls):
            if call is not None and index not in self.answers and index not in self.approvals.pending:
                self._skip(index, call, not_run.CANCELLED.result())
        return tuple([self.answers[index] for index in range(len(calls)) if index in self.answers])

    def _skip(self, index: int, call: ToolCall, answer: ToolResult) -> ToolEvent:
        if index in self.approvals.suspended:
            answer = error_result("cancelled", _WITHDRAWN)
        else:
            self.skipped.add(index)
        return self._answer(ToolSkipped(index, call, answer))

    def _answer(self, event: ToolFailed | ToolSkipped) -> ToolEvent:
        call, result = event.call, event.result
        shown = cap(result.parts, self._admission.config.max_output, self._admission.config.keep)
        self.answers[event.index] = answer_as_made(call.id, call.name, shown, result.code)
        return event
