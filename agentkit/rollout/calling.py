"""The calls of one turn: admitted, run at once, timed, each with exactly one answer.

Runs a call as the processor does (`Admission`, `ToolTask`); knows no policy, no trajectory and no reward.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import Final, NamedTuple

from agentkit.errors import ErrorCode
from agentkit.events import CallEnd, CallError
from agentkit.messages import ResultContent, ToolCall
from agentkit.processor.admission import Admission, Admitted
from agentkit.processor.approval import decide, decision_of
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.faults import Faults
from agentkit.processor.replies import capped, failed
from agentkit.processor.running import Outcome
from agentkit.processor.tooltask import ToolTask
from agentkit.processor.waiting import NeverItsTurn, place_in_line
from agentkit.rollout.rollout_limits import RolloutLimits
from agentkit.rollout.tools.offered_tools import OfferedTools
from agentkit.tool.result import ToolResult

_NO_ONE: Final = "not run: {} needs a person's approval, and nobody watches this rollout"


class CallAnswer(NamedTuple):
    """What became of a call.

    Attributes:
        call: the call.
        result: its answer.
        parts: what the model reads of it.
        queued: seconds from the end of the generation to the start of the tool, or to the answer if it did not run.
        ran: seconds that the tool ran.
    """

    call: ToolCall
    result: ToolResult
    parts: ResultContent
    queued: float = 0.0
    ran: float = 0.0


class TurnCalls:
    """Answers the calls of one turn.

    Args:
        tools: those of this trajectory.
        config: which calls run, and how.
        limits: of calls and time.
        deadline: when the trajectory's time is up, by the event loop's clock; None without such a limit.
        faults: logs what the tools' authors must fix.
    """

    __slots__ = (
        "_admission",
        "_config",
        "_deadline",
        "_faults",
        "_generated",
        "_late",
        "_limits",
        "_over",
        "_running",
        "_tools",
        "answers",
        "ends",
    )

    def __init__(
        self,
        tools: OfferedTools,
        config: ProcessorConfig,
        limits: RolloutLimits,
        deadline: float | None,
        faults: Faults,
    ) -> None:
        self.answers: dict[int, CallAnswer] = {}
        self.ends = False
        """Whether a tool that ends the trajectory has succeeded."""
        self._tools, self._config, self._limits, self._faults = tools, config, limits, faults
        self._admission = Admission(tools, config, faults)
        self._deadline = deadline
        self._late = ""  # why no further call may start
        self._generated = perf_counter()
        self._running: set[ToolTask] = set()
        self._over: asyncio.Future[None] | None = None

    async def run(self, calls: Sequence[CallEnd | CallError]) -> None:
        """Answer the calls; when this returns or is cancelled, each has its answer in `answers`."""
        ready: deque[Admitted] = deque()
        try:
            for event in calls:
                admitted = self._admit(event)
                if admitted is not None and (
                    admitted.tool.policy.requires_approval is False or await self._needs_no_one(admitted)
                ):
                    if admitted.tool.policy.terminates:
                        self._admission.terminate(admitted)
                    ready.append(self._tools.told(admitted))
            self._start(ready)
            if self._running or ready:  # else all have ended at once, as many do
                await self._wait(ready)
        finally:
            if len(self.answers) < len(calls):
                self._stop(calls)

    def refuse(self, calls: Sequence[CallEnd | CallError], code: ErrorCode, why: str) -> None:
        """Answer all of them with an error."""
        for event in calls:
            self._answer(event.index, event.call, failed(code, why))

    # -------------------------------------------------------------- before they run

    def _admit(self, event: CallEnd | CallError) -> Admitted | None:
        """A call that may run, unless a person must approve it; None if it has its answer."""
        most = self._limits.max_parallel_calls
        if most is not None and event.index >= most:
            why = f"not run: at most {most} calls run in one turn; call again in the next"
            self._answer(event.index, event.call, failed("limit", why))
            return None
        admitted = self._admission.admit(event)
        if isinstance(admitted, Admitted):
            return admitted
        self._answer(event.index, event.call, admitted.result)
        return None

    async def _needs_no_one(self, admitted: Admitted) -> bool:
        """Whether a call need not be approved by a person after all; otherwise it is answered."""
        unapproved = await self._unapproved(admitted)
        if unapproved is not None:
            self._answer(admitted.index, admitted.call, failed("denied", unapproved))
        return unapproved is None

    async def _unapproved(self, admitted: Admitted) -> str | None:
        """Why a call that a person must approve is not run; None if its tool decides that nobody must."""
        rule = admitted.tool.policy.requires_approval
        why = _NO_ONE.format(admitted.call.name)
        if isinstance(rule, bool):
            return why
        decided = decide(rule, admitted, self._tools.context(admitted), self._faults)
        if isinstance(decided, asyncio.Future):
            done, _ = await asyncio.wait([decided], timeout=self._limits.call_timeout)
            if not done:
                decided.cancel()
                return f"{why} (the function that decides did not answer)"
            decided = decision_of(decided, admitted, self._faults)
        return f"{why}{decided.reason and f' ({decided.reason})'}" if decided.needed else None

    # -------------------------------------------------------------- while they run

    async def _wait(self, ready: deque[Admitted]) -> None:
        """Wait for what runs, and start what had to wait for it."""
        loop = asyncio.get_running_loop()
        timers = self._timers(loop)
        try:
            while ready or self._running:
                self._over = loop.create_future()
                await self._over
                self._start(ready)
        finally:
            for timer in timers:
                timer.cancel()

    def _start(self, ready: deque[Admitted]) -> None:
        for _ in range(len(ready)):
            admitted = ready.popleft()
            if self._late:
                self._answer(admitted.index, admitted.call, failed("timeout", self._late))
                continue
            place = None
            if admitted.tool.policy.exclusive:
                try:
                    place = place_in_line(admitted.tool, self._wake)
                except NeverItsTurn as e:
                    self._answer(admitted.index, admitted.call, failed("limit", str(e)))
                    continue
                if place is None:
                    ready.append(admitted)
                    continue
            task = ToolTask(admitted, self._config, self._faults, self._settled, place)
            self._running.add(task)
            context = self._tools.context(admitted) if admitted.tool.takes_context else None
            task.start(context, at_once=True)

    def _wake(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def _settled(self, task: ToolTask, done: Outcome, took: float) -> None:
        """A tool has ended, or its call was answered as if it had."""
        self._running.discard(task)
        admitted, now, started = task.admitted, perf_counter(), task.started
        policy, parts = admitted.tool.policy, done.parts
        if done.suspended is not None or policy.max_output is not None:  # else it was cut at this limit
            parts = done.result.parts if done.suspended is not None else done.parts
            parts = capped(parts, self._limits.max_tool_response, policy.keep or self._limits.keep)
        self.ends = self.ends or (policy.terminates and done.result.error is None)
        queued = (now if started is None else started) - self._generated
        ran = 0.0 if started is None else now - started
        self.answers[admitted.index] = CallAnswer(admitted.call, done.result, parts, queued, ran)
        if not self._running:
            self._wake()

    # -------------------------------------------------------------- their end

    def _timers(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.TimerHandle]:
        """Stop all that runs when the turn's or the trajectory's time is up."""
        timers = []
        turn, trajectory = self._limits.turn_timeout, self._limits.trajectory_timeout
        if turn is not None:
            timers.append(loop.call_later(turn, self._expire, turn, " of this turn"))
        if trajectory is not None and self._deadline is not None:
            timers.append(loop.call_at(self._deadline, self._expire, trajectory, " of this trajectory"))
        return timers

    def _expire(self, timeout: float, of: str) -> None:
        self._late = f"not run: the {timeout:g} s{of} were up before the calls ahead of it had ended"
        for task in list(self._running):
            task.expire(timeout, of)
        self._wake()

    def _stop(self, calls: Sequence[CallEnd | CallError]) -> None:
        """Every call gets its answer: what still runs is cancelled, and runs on unobserved if it ignores that."""
        for task in list(self._running):
            task.cancel()
            if task in self._running:
                task.abandon()
        for event in calls:
            if event.index not in self.answers:
                self._answer(event.index, event.call, failed("cancelled", "not run: the trajectory was cancelled"))

    def _answer(self, index: int, call: ToolCall, result: ToolResult) -> None:
        parts = capped(result.parts, self._limits.max_tool_response, self._limits.keep)
        self.answers[index] = CallAnswer(call, result, parts, perf_counter() - self._generated)
