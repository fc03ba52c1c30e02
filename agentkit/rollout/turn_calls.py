"""The calls of one turn: run at once, timed, each with exactly one answer.

Knows a rollout's limits; leaves each call to the processor's `CallRunner`; knows no policy, no trajectory, no reward.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

from agentkit.events import CallEnd, CallError, ToolSkipped
from agentkit.messages import ResultContent, ToolCall
from agentkit.processor import ProcessorConfig
from agentkit.processor.author_errors import AuthorErrors
from agentkit.processor.call_runner import CallAnswered, CallRunner
from agentkit.processor.error_results import cap
from agentkit.processor.not_run import TOO_MANY, NotRun
from agentkit.rollout.rollout_limits import RolloutLimits
from agentkit.rollout.tools.offered_tools import OfferedTools
from agentkit.tool.result import ToolResult


class CallAnswer(NamedTuple):
    """A call's answer.

    Attributes:
        call: the call.
        result: its result.
        parts: the parts that the model reads.
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

    __slots__ = ("_deadline", "_generated", "_limits", "_runner", "_tools", "answers")

    def __init__(
        self,
        tools: OfferedTools,
        config: ProcessorConfig,
        limits: RolloutLimits,
        deadline: float | None,
        faults: AuthorErrors,
    ) -> None:
        self.answers: dict[int, CallAnswer] = {}
        self._tools, self._limits, self._deadline = tools, limits, deadline
        self._runner = CallRunner(
            tools, config, tools.context, faults=faults, attended=False, added=tools.hidden_arguments
        )
        self._generated = perf_counter()

    @property
    def ends(self) -> bool:
        """Return whether a tool that ends the trajectory has succeeded."""
        return self._runner.terminated

    async def run(self, calls: Sequence[CallEnd | CallError]) -> None:
        """Answer the calls; when this returns or is cancelled, each has its answer in `answers`."""
        most = self._limits.max_parallel_calls
        if most is not None:
            self.refuse([event for event in calls if event.index >= most], TOO_MANY, most=most)
            calls = [event for event in calls if event.index < most]
        timers = self._timers(asyncio.get_running_loop())
        try:
            await self._runner.run(calls, self._keep)
        finally:
            for timer in timers:
                timer.cancel()

    def refuse(self, calls: Sequence[CallEnd | CallError], why: NotRun, **values: object) -> None:
        """Answer all of them with an error."""
        for event in calls:
            result = why.result(**values)
            parts = cap(result.parts, self._limits.max_tool_response, self._limits.keep)
            self.answers[event.index] = CallAnswer(event.call, result, parts, perf_counter() - self._generated)

    def _timers(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.TimerHandle]:
        """Set timers that stop all that runs when the turn's or the trajectory's time is up; return them."""
        timers, expire = [], self._runner.expire
        turn, trajectory = self._limits.turn_timeout, self._limits.trajectory_timeout
        if turn is not None:
            timers.append(loop.call_later(turn, expire, turn, " of this turn"))
        if trajectory is not None and self._deadline is not None:
            timers.append(loop.call_at(self._deadline, expire, trajectory, " of this trajectory"))
        return timers

    def _keep(self, event: CallAnswered) -> None:
        """Keep the answer of a call."""
        parts, tool = self._runner.answers[event.index].content, self._tools.get_tool(event.call.name)
        if tool is not None and tool.policy.max_output is not None:  # else it was cut at this limit
            parts = cap(parts, self._limits.max_tool_response, tool.policy.keep or self._limits.keep)
        ran = 0.0 if isinstance(event, ToolSkipped) else event.seconds
        queued = perf_counter() - self._generated - ran
        self.answers[event.index] = CallAnswer(event.call, event.result, parts, queued, ran)
