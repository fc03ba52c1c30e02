"""One tool in its own task: its time, its end, and the answer for one that does not end.

Knows the event loop and how a tool is run; knows no response, no order and no event.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from agentkit.processor import not_run
from agentkit.processor.admission import AdmittedCall
from agentkit.processor.author_errors import AuthorErrors
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.eager_tasks import interrupt, start_now
from agentkit.processor.error_results import error_result, exception_result
from agentkit.processor.tool_run import Outcome, outcome, run_tool
from agentkit.processor.workers import WORKERS, Claim
from agentkit.tool.policy import Keep
from agentkit.tool.result import ToolContext, ToolResult

GRACE = 1.0  # seconds that a cancelled tool has to clean up before its call is answered without it

_LOG: Final = logging.getLogger("agentkit.processor")
_LATE = 0.1  # seconds by which a timer may be late on a busy machine
_BLOCKED = (
    "%s took %.3g s, although its timeout is %.3g s: it blocked the event loop, and nothing could stop it; write it "
    "with `def`, to run in a thread, or let it wait with `await`, as in `await asyncio.to_thread(…)`"
)
_CANCELLED = "cancelled while it ran: what it had done by then may have taken effect"
_NOT_BEGUN = not_run.CANCELLED.text()

_ABANDONED: set[asyncio.Task[Any]] = set()  # tools that ignore their cancellation; kept so that the loop can end them


class ToolTask:
    """A running tool; `on_end` is called once, with its result and the seconds that it took."""

    task: asyncio.Task[Any] | None = None
    _claim: Claim | None = None  # a plain function may have to wait for a thread
    _begun = 0.0  # when its task began; 0 before that
    _timer: asyncio.TimerHandle | None = None
    _stopped: ToolResult | None = None  # the answer it gets because it was stopped: timed out, or cancelled

    def __init__(
        self,
        admitted: AdmittedCall,
        config: ProcessorConfig,
        faults: AuthorErrors,
        on_end: Callable[[ToolTask, Outcome, float], None],
    ) -> None:
        self.admitted = admitted
        self._faults = faults
        self._on_end: Callable[[ToolTask, Outcome, float], None] | None = on_end
        self._lock = admitted.lock
        if not admitted.tool.is_async:
            self._claim = Claim()
        self._since = perf_counter()
        own = admitted.tool.policy
        self._timeout = config.timeout if own.timeout is None else own.timeout
        self._cap: tuple[int, Keep] = (own.max_output or config.max_output, own.keep or config.keep)

    # -------------------------------------------------------------- running

    def start(self, context: ToolContext | None) -> None:
        """Start its task, whose first step is taken now; context variables that are set are visible to the tool."""
        loop, timeout = asyncio.get_running_loop(), self._timeout
        task = self.task = start_now(self._run(context), loop)
        if timeout is not None and self._on_end is not None:
            self._timer = loop.call_later(timeout, self.expire, timeout)
        if (lock := self._lock) is not None:
            if task.done():
                lock.task_over(self._claim)
            else:
                claim = self._claim
                task.add_done_callback(lambda _: lock.task_over(claim))

    @property
    def own_task(self) -> asyncio.Task[Any]:
        """Its task; while that takes its first step at once, nothing else can ask for it."""
        task = self.task or asyncio.current_task()
        assert task is not None
        return task

    async def _run(self, context: ToolContext | None) -> None:
        self._begun = perf_counter()
        tool = self.admitted.tool
        done: Outcome | None = None
        try:
            if (lock := self._lock) is not None:
                lock.begin()
            ended = None if lock is None else lock.function_over
            added, (limit, keep) = self.admitted.added, self._cap
            arguments = {**self.admitted.arguments, **added} if added else self.admitted.arguments
            done = await run_tool(tool, arguments, context, limit, keep, self._claim, ended, self._faults)
        except asyncio.CancelledError as e:  # stopped by us, or by the end of the loop, or raised by the tool itself
            if not self.own_task.cancelling():
                self._faults.report_error(tool.where, e)
                done = outcome(exception_result(e), *self._cap)
        except KeyboardInterrupt as e:
            await interrupt(e)
        finally:
            if done is None or (self._stopped is not None and done.suspended is None):
                done = outcome(self._stopped or error_result("cancelled", _CANCELLED), *self._cap)
            self._report(done)

    def _report(self, done: Outcome) -> None:
        """Report the outcome, unless one was reported."""
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        now, timeout, tool = perf_counter(), self._timeout, self.admitted.tool
        took = now - self._since
        if timeout is not None and took > timeout + _LATE and tool.is_async and self._stopped is None:
            _LOG.warning(_BLOCKED, tool.where, took, timeout)
        started = self._begun if self._claim is None else self._claim.taken  # 0 if the tool's own code never did
        on_end(self, done, now - started if started else 0.0)

    @property
    def kept_out(self) -> bool:
        """Return whether it was cancelled before the tool's own code started, which it then never does."""
        return self._stopped is not None and self._stopped.error == _NOT_BEGUN

    @property
    def stopped(self) -> bool:
        """Return whether it was stopped: its time was up, or it was cancelled."""
        return self._stopped is not None

    # -------------------------------------------------------------- its end

    def cancel(self) -> None:
        """Stop it, because its run was."""
        self._stop(not_run.CANCELLED.result() if self._keep_out() else error_result("cancelled", _CANCELLED))

    def abandon(self) -> None:
        """Answer for a tool that continues although it was cancelled."""
        call = self.admitted.call
        task = self.own_task
        task.set_name(f"tool {call.name!r}, call {call.id!r}")
        if self._lock is not None:
            self._lock.give_up()
        _ABANDONED.add(task)
        task.add_done_callback(_ABANDONED.discard)
        self._report(outcome(self._stopped or error_result("cancelled", _CANCELLED), *self._cap))

    def _keep_out(self) -> bool:
        """Keep the tool's own code from starting; False if it has started."""
        claim = self._claim
        if claim is None:
            return not self._begun
        if kept_out := claim.take():
            claim.taken = 0.0  # by nobody who starts it
        return kept_out

    def expire(self, timeout: float, of: str = "") -> None:
        """Stop it at its time limit, or at that `of` something else, such as ` of this turn`."""
        if self._keep_out():  # it waits for a thread, and now gets none
            self._stop(not_run.NO_FREE_THREAD.result(seconds=timeout, of=of, threads=WORKERS.state()))
            return
        effects = "" if self.admitted.tool.is_async else "; it may still be running, and its effects may yet appear"
        self._stop(error_result("timeout", f"no result after {timeout:g} s{of}: the tool was stopped{effects}"))

    def _stop(self, answer: ToolResult) -> None:
        """Cancel it, and answer for it if it does not end soon."""
        if self._stopped is not None:
            return
        self._stopped = answer
        self.own_task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._begun:
            self._timer = asyncio.get_running_loop().call_later(GRACE, self.abandon)
        else:  # its task ends without having started
            self._report(outcome(answer, *self._cap))
