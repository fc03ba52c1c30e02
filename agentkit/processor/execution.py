"""From finished calls to answers: what may run, when it starts, and exactly one answer per call.

Knows the registry and the event loop; knows no text, no format's syntax and no model.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Final

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
from agentkit.messages import ResultContent, ToolCall, ToolMessage
from agentkit.processor import lines
from agentkit.processor.approval import Approval, decide, decision_of
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.faults import Faults
from agentkit.processor.inbox import Inbox
from agentkit.processor.replies import capped, crashed, failed, unknown_tool
from agentkit.processor.running import Outcome, outcome, run_tool
from agentkit.processor.workers import WORKERS, Claim
from agentkit.tool.policy import Keep
from agentkit.tool.registry import BoundTool, InvalidArguments, ToolRegistry
from agentkit.tool.result import ToolContext, ToolResult

GRACE = 1.0  # seconds that a cancelled tool has to clean up before its call is answered without it

_LOG: Final = logging.getLogger("agentkit.processor")
_LATE = 0.1  # seconds by which a timer may be late on a busy machine
_BLOCKED = (
    "%s took %.3g s, although its timeout is %.3g s: it blocked the event loop, and nothing could stop it; write it "
    "with `def`, to run in a thread, or let it wait with `await`, as in `await asyncio.to_thread(…)`"
)
_CANCELLED = "cancelled while it ran: what it had done by then may stand"
_NOT_BEGUN = "not run: the run was cancelled before this call began"
_INTERRUPTED = "not run: the response broke off with an error"

Scope = Callable[[ToolCall], AbstractContextManager[Any]]
"""Entered while a call's task is made: what it sets in context variables holds inside the tool. (None sets nothing.)"""

Gate = Callable[[ToolCall], str | None]
"""Asked once when a call is about to start: None lets it, words keep it from starting. (No gate lets every call.)"""

_ABANDONED: set[asyncio.Task[Any]] = set()  # tools that ignore their cancellation; held so that the loop can end them


@dataclass(frozen=True, slots=True, eq=False)
class Admitted:
    """A call that may run, with the arguments as its tool takes them."""

    index: int
    call: ToolCall
    tool: BoundTool
    arguments: Mapping[str, Any]


@dataclass(eq=False, slots=True)
class _Running:
    """A tool at work."""

    admitted: Admitted
    since: float
    task: asyncio.Task[Any] = field(init=False)
    timer: asyncio.TimerHandle | None = None
    timeout: float | None = None
    place: lines.LinePlace | None = None  # in the line of calls that must not run beside each other
    begun: bool = False  # its task has
    claim: Claim | None = None  # on a plain function, which may have to wait for a thread
    stopped: ToolResult | None = None  # the answer it gets because it was stopped, by its timeout or by the caller

    def keep_out(self) -> bool:
        """Keep the tool's own code from beginning; False where it has begun."""
        return not self.begun if self.claim is None else self.claim.take()


def _leave(place: lines.LinePlace, claim: Claim | None, _: asyncio.Task[Any]) -> None:
    """A task that held a place in line is over."""
    place.task_over(claim)


class Execution:
    """The calls of one response: admitted or refused, approved, run, answered.

    Args:
        registry: the tools.
        config: limits, timeout, order.
        contexts: makes a call's context.
        inbox: takes the event of each tool that ends.
        approved: the ids of the calls that a person has approved.
        scope: entered while a call's task is made; None enters nothing.
        gate: asked when a call is about to start; None lets every call start.
        faults: told what the tools' authors must mend.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        config: ProcessorConfig,
        contexts: Callable[[ToolCall], ToolContext],
        inbox: Inbox,
        approved: Collection[str] = (),
        scope: Scope | None = None,
        gate: Gate | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.answers: dict[int, ToolMessage] = {}
        self.waiting: deque[Admitted] = deque()
        self.pending: dict[int, ToolCall] = {}
        self.terminated = False
        self.untold: set[int] = set()  # calls that have ended and whose event was not yielded yet
        self._registry = registry
        self._config = config
        self._contexts = contexts
        self._inbox = inbox
        self._approved = approved
        self._scope = scope
        self._gate = gate
        self._faults = Faults() if faults is None else faults
        self._asking: dict[int, asyncio.Future[Any]] = {}  # calls in `waiting` whose approval is not decided yet
        self._places: dict[int, lines.LinePlace] = {}  # calls in `waiting` that hold the head of their line
        self._blocked: dict[int, str] = {}  # calls in `waiting` that will never get it, and why
        self._running: set[_Running] = set()
        self._last: Admitted | None = None  # the terminating call: those behind it do not run
        self._closed: ToolResult | None = None  # the answer to every further call

    @property
    def idle(self) -> bool:
        """Whether no call waits or runs."""
        return not self.waiting and not self._running

    # -------------------------------------------------------------- admission

    def admit(self, event: CallEnd | CallError) -> ToolEvent | None:
        """Let a call wait for its start or for its approval, or answer it at once with what is wrong with it."""
        index, call = event.index, event.call
        if self._last is not None and index > self._last.index:
            return self._skip(index, call, self._terminating(self._last))
        if isinstance(event, CallError):
            return self._answer(ToolFailed(index, call, self._misread(event), 0.0))
        if refused := self._closed or self._refusal(call):
            return self._skip(index, call, refused)
        checked = self._check(index, call)
        if isinstance(checked, ToolResult):
            return self._answer(ToolFailed(index, call, checked, 0.0))
        if checked.tool.policy.terminates:
            self._terminate(checked)
        return self._approve(checked)

    def _refusal(self, call: ToolCall) -> ToolResult | None:
        if call.format is None and not self._config.native:
            names = ", ".join(f.name for f in self._config.text_formats) or "no format"
            return failed("denied", f"not run: native calls are turned off; write the call in your text, as {names}")
        return None

    def _names(self, call: ToolCall) -> tuple[str, ...]:
        """The tools that a call of this format might have meant."""
        if self._config.is_tagged(call.format):
            return tuple(spec.name for spec in self._registry.specs())
        return tuple(self._registry.tools)

    def _misread(self, event: CallError) -> ToolResult:
        if event.code == "unknown_tool":
            return failed("unknown_tool", unknown_tool(event.call.name, self._names(event.call)))
        return failed(event.code, event.message, position=event.position)

    def _check(self, index: int, call: ToolCall) -> Admitted | ToolResult:
        tool = self._registry.get_tool(call.name)
        if tool is None or (tool.xml_only and not self._config.is_tagged(call.format)):
            return failed("unknown_tool", unknown_tool(call.name, self._names(call)))
        textual = call.format is not None and self._config.is_textual(call.format)
        try:
            arguments = tool.validate(call.arguments, lenient=textual or self._config.lenient_native)
        except InvalidArguments as e:
            return failed("invalid_arguments", str(e), problems=e.problems)
        except Exception as e:  # noqa: BLE001 - a validator that the tool's author wrote
            self._faults.raised(tool.where, e)
            return crashed(e)
        return Admitted(index, call, tool, arguments)

    def _terminate(self, last: Admitted) -> None:
        """Skip the calls behind this one that have not started; a native one may have ended before it."""
        self._last = last
        for index, call in self._held(after=last.index):
            self._inbox.put(self._skip(index, call, self._terminating(last)))

    def _terminating(self, last: Admitted) -> ToolResult:
        return failed("skipped", f"skipped: terminated by the call of {last.call.name} before it; it was not run")

    # -------------------------------------------------------------- approval

    def _approve(self, admitted: Admitted) -> ToolEvent | None:
        """Let a call wait for its start, or for a person."""
        rule = self._config.requires_approval
        if rule is None:
            rule = admitted.tool.policy.requires_approval
        if rule is False or admitted.call.id in self._approved:
            self.waiting.append(admitted)
            return None
        decided = Approval(True) if rule is True else decide(rule, admitted.call, self._contexts(admitted.call))
        if isinstance(decided, Approval):
            if decided.needed:
                return self._leave_open(admitted, decided)
        else:
            self._asking[admitted.index] = decided
            decided.add_done_callback(lambda answer: self._decided(admitted, answer))
        self.waiting.append(admitted)
        return None

    def _decided(self, admitted: Admitted, answer: asyncio.Future[Any]) -> None:
        if self._asking.pop(admitted.index, None) is None:
            return  # it was answered meanwhile
        decision = decision_of(answer)
        if decision.needed:
            self.waiting.remove(admitted)
            self._inbox.put(self._leave_open(admitted, decision))
        self._inbox.wake()

    def _leave_open(self, admitted: Admitted, decision: Approval) -> ToolEvent:
        self.pending[admitted.index] = admitted.call
        return ApprovalRequired(admitted.index, admitted.call, decision.reason)

    def _held(self, after: int = -1) -> list[tuple[int, ToolCall]]:
        """Take out the calls that wait, for their start or for a person, in call order."""
        held = {a.index: a.call for a in self.waiting if a.index > after}
        held |= {index: call for index, call in self.pending.items() if index > after}
        self.waiting = deque(a for a in self.waiting if a.index not in held)
        for index in held:
            self._leave_line(index)
            self.pending.pop(index, None)
            if (asked := self._asking.pop(index, None)) is not None:
                asked.cancel()
        return sorted(held.items())

    # -------------------------------------------------------------- running

    def next(self) -> Admitted | None:
        """The call that may start now; it stays in line until `start`. Those that the gate keeps back are answered.

        With `sequential`, one whose approval is being decided holds up those behind it; one that waits for a person
        does not.
        """
        while (ready := self._ready()) is not None:
            blocked = self._blocked.pop(ready.index, None) if self._blocked else None
            refused = blocked or (None if self._gate is None else self._gate(ready.call))
            if refused is None:
                return ready
            self.waiting.remove(ready)
            self._leave_line(ready.index)
            self._inbox.put(self._skip(ready.index, ready.call, failed("limit", refused)))
        return None

    def _ready(self) -> Admitted | None:
        sequential = self._config.strategy == "sequential"
        if not self.waiting or (sequential and (self._running or self.untold)):
            return None
        for admitted in self.waiting:
            if admitted.index not in self._asking and (not admitted.tool.policy.exclusive or self._free(admitted)):
                return admitted
            if sequential:
                return None
        return None

    def _free(self, admitted: Admitted) -> bool:
        """Whether no other call keeps this one of an exclusive tool waiting; it then holds its place in line."""
        tool = admitted.tool
        if admitted.index in self._places:
            return True
        try:
            key = tool.method if tool.instance is None else tool.instance
            place = lines.take(key, self._inbox.wake, threaded=not tool.is_async)
        except lines.Stuck as e:
            self._blocked[admitted.index] = f"not run: {tool.name} runs one call at a time, and {e}"
            return True
        if place is not None:
            self._places[admitted.index] = place
        return place is not None

    def _leave_line(self, index: int) -> None:
        """A call that holds a place is not going to start."""
        if (place := self._places.pop(index, None)) is not None:
            place.task_over()

    def start(self, admitted: Admitted) -> None:
        """Start a call, unless it was answered since `next`."""
        if self.waiting and self.waiting[0] is admitted:
            self.waiting.popleft()
        elif admitted in self.waiting:
            self.waiting.remove(admitted)
        else:
            return
        try:
            self._begin(admitted)
        except BaseException:
            self._leave_line(admitted.index)
            raise

    def _begin(self, admitted: Admitted) -> None:
        running = _Running(admitted, perf_counter())
        if not admitted.tool.is_async:
            running.claim = Claim()
        context = self._contexts(admitted.call)
        if self._scope is None:
            self._make_task(running, context)
        else:
            with self._scope(admitted.call):
                self._make_task(running, context)
        timeout = admitted.tool.policy.timeout
        if timeout is None:
            timeout = self._config.timeout
        running.timeout = timeout
        if timeout is not None and running in self._running:  # an eager task may be done by now
            running.timer = asyncio.get_running_loop().call_later(timeout, self._expire, running, timeout)

    def _make_task(self, running: _Running, context: ToolContext) -> None:
        self._running.add(running)  # only now: what raised before would leave it there for good
        running.place = place = self._places.pop(running.admitted.index, None)
        running.task = asyncio.get_running_loop().create_task(self._run(running, context))
        if place is not None:
            running.task.add_done_callback(partial(_leave, place, running.claim))

    async def _run(self, running: _Running, context: ToolContext) -> None:
        running.begun = True
        if (task := asyncio.current_task()) is not None:
            running.task = task  # an eager one is here before `start` has it
        admitted = running.admitted
        done: Outcome | None = None
        try:
            ended = None
            if running.place is not None:
                running.place.begin()
                ended = running.place.function_over
            limit, keep = self._cap(admitted.tool)
            done = await run_tool(
                admitted.tool, admitted.arguments, context, limit, keep, running.claim, ended, self._faults
            )
        except asyncio.CancelledError as e:  # stopped by us, or by the end of the loop, or raised by the tool itself
            if task is not None and not task.cancelling():
                self._faults.raised(admitted.tool.where, e)
                done = self._outcome(running, crashed(e))
        except KeyboardInterrupt:  # it ends the event loop, and asyncio need not complain of it a second time
            if task is not None:
                task.add_done_callback(asyncio.Task.exception)
            raise
        finally:
            if running.stopped is not None or done is None:
                done = self._outcome(running, running.stopped or failed("cancelled", _CANCELLED))
            self._settle(running, done)

    def _cap(self, tool: BoundTool) -> tuple[int, Keep]:
        """How much of its result the model reads, and of which end."""
        policy, config = tool.policy, self._config
        return (policy.max_output or config.max_output, policy.keep or config.keep)

    def _expire(self, running: _Running, timeout: float) -> None:
        if running.keep_out():  # it waits for a thread, and now gets none
            why = f"not run: no thread was free for it within {timeout:g} s: {WORKERS.state()}"
        else:
            effects = "; it may still be at work, and its effects may yet appear"
            why = f"no result after {timeout:g} s: the tool was stopped"
            why += "" if running.admitted.tool.is_async else effects
        self._stop(running, failed("timeout", why))

    def _stop(self, running: _Running, answer: ToolResult) -> None:
        """Cancel a tool, and answer for it if it does not end soon."""
        if running.stopped is not None:
            return
        running.stopped = answer
        running.task.cancel()
        if running.timer is not None:
            running.timer.cancel()
        if running.begun:
            running.timer = asyncio.get_running_loop().call_later(GRACE, self._abandon, running)
        else:  # its task ends without having begun
            self._settle(running, self._outcome(running, answer))

    def _abandon(self, running: _Running) -> None:
        """Answer for a tool that goes on although it was cancelled."""
        running.task.set_name(f"tool {running.admitted.call.name!r}, call {running.admitted.call.id!r}")
        if running.place is not None:
            running.place.give_up()
        _ABANDONED.add(running.task)
        running.task.add_done_callback(_ABANDONED.discard)
        self._settle(running, self._outcome(running, running.stopped or failed("cancelled", _CANCELLED)))

    def _outcome(self, running: _Running, result: ToolResult) -> Outcome:
        return outcome(result, *self._cap(running.admitted.tool))

    def _settle(self, running: _Running, done: Outcome) -> None:
        """Answer for a tool, unless it was answered for already."""
        if running not in self._running:
            return
        self._running.remove(running)
        if running.timer is not None:
            running.timer.cancel()
        took = perf_counter() - running.since
        tool = running.admitted.tool
        late = running.timeout is not None and took > running.timeout + _LATE
        if late and tool.is_async and running.stopped is None:
            _LOG.warning(_BLOCKED, tool.where, took, running.timeout)
        index, call = running.admitted.index, running.admitted.call
        succeeded = done.result.error is None
        if succeeded and tool.policy.terminates:
            self.terminated = True
        event = ToolCompleted if succeeded else ToolFailed
        ended = event(index, call, done.result, took)
        self.untold.add(index)
        self._inbox.put(self._answer(ended, done.parts))

    # -------------------------------------------------------------- the end

    def interrupt(self, *, waiting: bool) -> list[ToolEvent]:
        """The response broke off: refuse what it still brings and, if so asked, what waits."""
        self._closed = failed("interrupted", _INTERRUPTED)
        return [self._skip(*held, self._closed) for held in (self._held() if waiting else ())]

    def take_back(self, finish: FinishReason) -> list[ToolEvent]:
        """The response's own end takes it back: refuse what waits, also for a person, and what it still brings."""
        self._closed = failed("denied", f"not run: the response finished with {finish}, and its calls with it")
        return [self._skip(*held, self._closed) for held in self._held()]

    def cancel(self) -> list[asyncio.Task[Any]]:
        """Stop what runs, skip what waits, be it for a person; what it returns are the tasks to wait for."""
        self._closed = failed("cancelled", _NOT_BEGUN)
        for held in self._held():
            self._inbox.put(self._skip(*held, self._closed))
        running = list(self._running)
        for one in running:
            self._stop(one, failed("cancelled", _NOT_BEGUN if one.keep_out() else _CANCELLED))
        return [one.task for one in running]

    def finish(self, calls: Sequence[ToolCall | None]) -> tuple[ToolMessage, ...]:
        """The answers in call order; a call that has none by now, and waits for no person, is answered as cancelled.

        Args:
            calls: the response's calls by index.
        """
        for running in list(self._running):
            self._abandon(running)
        for index in list(self._places):
            self._leave_line(index)
        for index, call in enumerate(calls):
            if call is not None and index not in self.answers and index not in self.pending:
                self._skip(index, call, failed("cancelled", _NOT_BEGUN))
        return tuple([self.answers[index] for index in range(len(calls)) if index in self.answers])

    def _skip(self, index: int, call: ToolCall, answer: ToolResult) -> ToolEvent:
        return self._answer(ToolSkipped(index, call, answer))

    def _answer(self, event: ToolCompleted | ToolFailed | ToolSkipped, parts: ResultContent | None = None) -> ToolEvent:
        call, result = event.call, event.result
        said = capped(result.parts, self._config.max_output, self._config.keep) if parts is None else parts
        self.answers[event.index] = ToolMessage(call.id, call.name, said, result.code)
        return event
