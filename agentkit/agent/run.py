"""One run: model → processor → answers → model, until the model makes no more calls or a limit is reached.

Knows a model, a processor and a journal by their interfaces; runs no tool and keeps no conversation itself. In a long
run, a late turn takes no more time than the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import urandom
from time import monotonic
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from agentkit.agent.again import hide_attempt
from agentkit.agent.cancellation import Brake, shield, watch
from agentkit.agent.final_reply import recognition
from agentkit.agent.hooks import Hooks
from agentkit.agent.journal import Journal, Response, StaysWaiting, UnansweredCalls, end_of
from agentkit.agent.lifecycle import RunEnded, RunStarted, TurnEnded, TurnStarted
from agentkit.agent.options import RunFinish
from agentkit.agent.outcome import OutputT, RunResult
from agentkit.agent.plan import Plan
from agentkit.agent.progress import Progress, cut_calls, without_a_turn
from agentkit.agent.requests import Requests
from agentkit.agent.run_budget import ask_model
from agentkit.agent.run_end import ending
from agentkit.agent.system import instructions_text
from agentkit.checks.spelling import methods_take
from agentkit.errors import AgentkitError, ProviderError
from agentkit.events import (
    ApprovalRequired,
    CallEnd,
    Event,
    Text,
    ToolCompleted,
    ToolEvent,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
)
from agentkit.foreign.absent import suggest_attributes, suggest_from
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models.base import ModelRequest
from agentkit.processor import EventStream, ResponseProcessor, Source, Turn, not_run
from agentkit.tool.result import ToolContext, ToolResult

if TYPE_CHECKING:
    from agentkit.agent.agent import Agent

_Said = TypeVar("_Said")
_TOOL_EVENTS = frozenset((ToolStarted, ToolCompleted, ToolFailed, ToolSkipped, ApprovalRequired))
_FIRST = frozenset((ToolStarted, ApprovalRequired))  # before these, the call is to be in the journal

UNREAD: Final = 1.0
"""Seconds after which a run that is ended from outside no longer waits for its consumer."""

_EARLY: Final = (
    "it exists once the run is over: write `await` first, as in `(await threads.run_thread(…)).{0}`; or iterate "
    "over the run with `async for`, and then read .result.{0}"
)


@suggest_from({name: _EARLY.format(name) for name in (*RunResult.__annotations__, "new_messages", "output")})
@suggest_attributes
@methods_take
class RunStream(EventStream[Event], Generic[OutputT]):
    """One run as it happens. Iterate over it once; then `result` has its outcome, even if it ended early or failed.

    Each response ends with a `Finish`; tool events that follow it belong to its calls. Then the next response starts,
    and its calls are again counted from 0.
    """

    def __init__(self, plan: Plan, journal: Journal, call: str = "") -> None:
        self.plan = plan
        self.journal = journal
        self.id = urandom(8).hex()  # as `secrets` does, which would load OpenSSL's hashes
        """Identifies the run in traces and in its thread."""
        self.error: BaseException | None = None
        """The exception that ended it, if any."""
        self._hooks = Hooks(plan.hooks, self)
        self._brake = Brake()
        self._progress = Progress(plan, len(journal.all()), journal.left_open)
        self._requests = Requests(plan, journal)
        self._turn: Turn | None = None
        self._processor: ResponseProcessor | None = None
        call = call or ("agent.stream(…)" if journal.thread_id is None else "threads.run_thread(…)")
        self._unread = (
            f"{call} was never awaited or iterated over, so nothing was run: write `await {call}` for its "
            f"result, or `async for event in {call}`"
        )

    @property
    def result(self) -> RunResult[OutputT]:
        """How the run ended.

        Raises:
            RuntimeError: it has not ended yet.
        """
        if not self.over:
            raise RuntimeError(
                "the run is not over: iterate over the stream to its end, or leave its `async with` block"
            )
        return self._progress.result(self.journal.all())

    @property
    def agent(self) -> Agent[Any, Any]:
        """The agent that runs. A sub-agent's run has its own; that of `run_thread` has one with the call's options."""
        return self.plan.agent

    @property
    def thread_id(self) -> str | None:
        """The thread that the run belongs to; None without a store."""
        return self.journal.thread_id

    def __await__(self) -> Generator[Any, None, RunResult[OutputT]]:
        """`await run`: the same as `await run.complete()`."""
        return self.complete().__await__()

    async def complete(self) -> RunResult[OutputT]:
        """Run to the end and return the result."""
        async with self:
            async for _ in self:
                pass
        return self.result

    async def text_stream(self) -> AsyncGenerator[str, None]:
        """Only the text, as it is written: `async for text in agent.stream("…").text_stream()`.

        Use it instead of iterating over the events; everything else is in `result`, and hooks get all events. Leaving
        the loop ends the run.
        """
        async with self:
            async for event in self:
                if type(event) is Text:
                    yield event.text

    async def partial_output(self) -> AsyncGenerator[Any, None]:
        """The output so far, as JSON data: `async for city in agent.stream("…", output_type=City).partial_output()`.

        Keys are only added, strings and lists only grow, and any other value is complete. None says that the values so
        far do not count: another reply begins, or the output contradicts them. The last one is the output. A value is
        made when the reply has grown by 2 % or more. Leaving the loop ends the run.

        Raises:
            ConfigError: the run has no `output_type`.
        """
        from agentkit.agent.partial_output import partial_values

        async with self:
            async for value in partial_values(self):
                yield value

    def cancel(self) -> None:
        """End the run soon: running tools are cancelled and answered, and the iteration ends without an error.

        It can be called at any time from code on the same event loop.
        """
        self._unread = None
        self._stop("cancelled")

    async def end(self) -> None:
        """End it, as `cancel` does, and wait for the end, whichever task iterates over it.

        If the consumer does not take the remaining events within a second, the iteration ends for it. Returns
        immediately if it was not started, or if the run belongs to another event loop.
        """
        while self._begun and not self.over and self._loop is asyncio.get_running_loop():
            self.cancel()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wait_for_end(), UNREAD)
            iterator = None if self._iterator is None else self._iterator()
            if isinstance(iterator, AsyncGeneratorType) and not iterator.ag_running:  # it waits for its consumer
                await iterator.aclose()

    def _stop(self, reason: RunFinish) -> None:
        self._brake.pull(reason)
        self._hooks.hurry()
        if self._turn is not None:
            self._turn.cancel()

    # -------------------------------------------------------------- its turns

    async def _events(self) -> AsyncGenerator[Event, None]:
        self._begun = True
        watching = watch(self._stop, self.plan.cancel, self.plan.spending.seconds_left)
        hooked, journal = self._hooks.any, self.journal
        try:
            await self._hooks.notify(RunStarted())
            turn, ended = await self._opened()
            for event in ended:
                yield event
            turn = await self._next() if turn is None else turn
            while turn is not None:
                self._begin(turn)
                since = monotonic()
                try:
                    async for event in turn:
                        recorded = type(event) not in _TOOL_EVENTS or journal.settled  # before anyone sees it
                        if not (recorded or await self._record(turn, event, since)):  # type: ignore[arg-type]
                            continue
                        if hooked:
                            await self._hooks.notify(event)
                        yield event
                except BaseException as e:
                    if not await self._shortened(turn, e):
                        self.error = e
                        raise
                finally:
                    await self._end(turn, since)
                turn = await self._next()
        except BaseException as e:
            self._failed(e)
            raise
        finally:
            try:
                await self._conclude()
            finally:
                for stop in watching:  # only now: the clock also limits what hooks do at the end
                    stop()

    async def _opened(self) -> tuple[Turn | None, Sequence[Event]]:
        """A turn for the calls that an earlier run left, and the events for hooks of those answered since."""
        if self._brake.reason is not None:
            return None, ()
        turn, unsettled = await self._open()
        ended = list(unsettled.ends())
        if ended and self._hooks.any:
            for event in ended:
                await self._hooks.notify(event)
            if turn is None:
                await self._hooks.notify(without_a_turn(unsettled))
        return turn, ended

    def _failed(self, error: BaseException) -> None:
        self.error = error
        if isinstance(error, Exception):
            self._progress.finish = "error"

    async def _conclude(self) -> None:
        if self._left:
            return
        if self._turn is not None:
            self._turn.cancel()  # it was not started if the run is left before that; otherwise it is over
        self._requests.settle()
        try:
            await shield(self.journal.close(), again=self.journal.close)
        finally:
            self._is_over()
            if isinstance(self.error, AgentkitError):
                self.error.result = self.result
            await self._hooks.notify(RunEnded(self.result, self.error))

    def _begin(self, turn: Turn) -> None:
        self._turn = turn
        if self._brake.reason is not None:  # while it was being created
            turn.cancel()

    async def _shortened(self, turn: Turn, error: BaseException) -> bool:
        """Return True if the request was refused as too long and can be repeated, once, with a shorter conversation."""
        if not isinstance(error, Exception):  # cancelled, or abandoned
            self._hooks.hurry()
        refused = isinstance(error, ProviderError) and error.kind == "too_long" and not turn.message.content
        if not refused or self._requests.shrunk or not await self.journal.shrink():
            return False
        self._requests.shrunk, self._turn = True, None
        return True

    async def _next(self) -> Turn | None:
        """The next turn; None when the run is over."""
        turn, progress, brake = self._turn, self._progress, self._brake
        if turn is not None:
            choice = self._requests.choice
            answered = {result.name for result in turn.results}
            self._requests.see(turn.refusal, calls=turn.message.calls, answered=answered)
            progress.see(turn, choice)
            if turn.fault is not None:
                raise turn.fault
        reason = await self._end_reason()
        if self.plan.guards.has("reply") and brake.reason is None and (reply := progress.final(reason)) is not None:
            await self._obey(self.plan.guards.check_reply(reply, self))
            reason = await self._end_reason()
        if reason is None:
            if (turn := await self._ask()) is not None:
                return turn
            reason = ending(progress.state(brake.reason))
        progress.finish = reason or "cancelled"
        return None

    async def _end_reason(self) -> RunFinish | None:
        """Why the run ends now; None if it continues, as when a user wrote while the model or a guard was at work."""
        reason = ending(self._progress.state(self._brake.reason))
        news = reason == "stop" and await self.journal.news()
        return ending(self._progress.state(self._brake.reason, news=news)) if reason == "stop" else reason

    async def _open(self) -> tuple[Turn | None, UnansweredCalls]:
        """Start; the turn that answers calls that an earlier run left open, if there are any, and what was open."""
        journal, plan = self.journal, self.plan
        self._requests.check()
        if not await self._instruct():
            return None, UnansweredCalls()
        unsettled = await journal.open(plan.registry, plan.guards.asking(partial(ask_model, plan.spending), self))
        plan.guards.unsettled = unsettled
        self._progress.take_over(unsettled, journal.all())
        taken = set(journal.call_ids) - {call.id for call in unsettled.calls}  # these keep their ids
        left = plan.spending.calls_left
        output, rule = recognition(plan)
        self._processor = ResponseProcessor(
            plan.registry,
            replace(plan.config, max_calls=left or None),  # the response's calls were counted when it was written
            taken=taken,
            new_context=self._context,
            untrusted=journal.messages_read,
            taught=plan.model.format is not None,
            scope=self._hooks.scope if self._hooks.any else None,
            gate=self._gate,
            judge=plan.guards.judge if plan.guards.judges(unsettled.calls) else None,
            output=output,
            output_rule=rule,
        )
        if not unsettled.calls or left == 0 or self._brake.reason is not None:
            return None, unsettled
        calls = [CallEnd(index, call) for index, call in enumerate(unsettled.calls)]
        self._turn = self._processor.process(calls, approved=unsettled.approved, allows=journal.allows)
        return self._turn, unsettled

    async def _obey(self, asked: Coroutine[Any, Any, _Said]) -> _Said | None:
        """Return what the guards said; None if that ends the run, or if it was stopped in the meantime."""
        said, brake = await self._brake.unless_pulled(asked), self._brake
        if brake.reason is None and said is not None and not self._progress.guarded(said):
            brake.pull("refused_by_guard")
        return said if brake.reason is None else None

    async def _instruct(self) -> bool:
        """Pass the instructions to the journal; False if the run was stopped before they were known."""
        system = self.plan.system
        if system is None:
            return True
        asked = self._brake.unless_pulled
        text = system if isinstance(system, str) else await asked(instructions_text(system, self.plan.context))
        if text:
            self.journal.instruct(text)
        return text is not None

    async def _ask(self) -> Turn | None:
        """Ask the model; None if the run was stopped before that, or if nothing is left of its budget."""
        requests, progress, processor = self._requests, self._progress, self._processor
        assert processor is not None
        again, is_kept = progress.asking(repeated=requests.shrunk)
        if again is not None and is_kept:
            self.journal.add(again)
        prepared = requests.prepare(None if is_kept else again)
        if not await (prepared if requests.never_waits else self._brake.unless_pulled(prepared)):
            return None
        if self.plan.guards.has("request"):
            checked = await self._obey(self.plan.guards.check_request(requests.next, self))
            if not isinstance(checked, ModelRequest):
                return None
            self.plan.guards.offered = None if checked is requests.next else {tool.name for tool in checked.tools}
            requests.next = checked
        if self.plan.spending.counts and not await self._brake.unless_pulled(requests.reserve()):
            return None
        self.plan.guards.unsettled = UnansweredCalls()
        request = requests.begin()
        progress.turns += 1
        if self._hooks.any:
            await self._hooks.notify(TurnStarted(progress.turns, replace(request, messages=tuple(request.messages))))
        processor.config = self.plan.config  # a call beyond the budget is read, and refused by the gate
        return processor.process(
            requests.stream(request),
            offered=requests.native_tools,
            readable=requests.readable,
            barred=requests.barred,
            allows=self.journal.allows,
            more=self._more,
            already_run=cut_calls(self._turn),
        )

    def _more(self, partial: AssistantMessage) -> Source | None:
        return None if self._brake.reason is not None else self._requests.more(partial)

    def _gate(self, call: ToolCall) -> ToolResult | None:
        """Count a call that is about to start; return its answer if it may not start."""
        if (wrong := self._requests.wrong_tool(call)) is not None:
            return wrong
        tool = self.plan.output_tool
        if (tool is not None and call.name == tool.name) or self.plan.spending.take_call():
            return None
        return not_run.NO_BUDGET.result()

    def _context(self, call: ToolCall) -> ToolContext:
        context = self.journal.context(call)
        if context is None:
            return ToolContext(call.id, call.name, self.plan.context, f"{self.id}/{call.id}", 1, self)
        return replace(context, state=self.plan.context, run=self)

    # -------------------------------------------------------------- what is recorded

    async def _record(self, turn: Turn, event: ToolEvent, since: float) -> bool:
        """Record a tool event in the journal. False if it does not happen: someone else has answered, or decided."""
        response = self._response(turn, since) if turn.complete else None
        said = turn.message if response is not None or type(event) in _FIRST else None
        given = await self.journal.record(event, said, turn.answer(event.index), response)
        if isinstance(given, StaysWaiting):
            turn.wait_on({event.call.id})
        elif given is not None:
            ran = event.seconds if isinstance(event, (ToolCompleted, ToolFailed)) else None
            turn.replace_answer(end_of(event.index, event.call, given, ran), given)
        return given is None

    async def _end(self, turn: Turn, since: float) -> None:
        """End a turn for whatever reason: record it, and then notify the hooks.

        The task may be cancelled in the meantime; work that has to wait is therefore done in a separate task. A
        coroutine that does not wait cannot be cancelled, and creating a task would take longer than its work.
        """
        if self._left:
            return
        number = self._progress.turns if self._requests.under_way else 0
        keeping = self._keep(turn, since)
        try:
            await (keeping if turn.over and self.journal.settled else shield(keeping))
        finally:
            if self._hooks.any:
                seconds = monotonic() - since
                await self._hooks.notify(
                    TurnEnded(number, turn.message, turn.results, turn.usage, turn.finish.reason, seconds)
                )

    async def _keep(self, turn: Turn, since: float) -> None:
        if not turn.over:
            await turn.aclose()
        response = self._response(turn, since)
        asked = self._requests.end(turn.usage)
        said = hide_attempt(turn.message, response.finish if response is not None else None)
        try:
            turn.wait_on(await self.journal.respond(said, turn.results, response, turn.skipped_ids))
        finally:
            self._progress.end_turn(turn, said, asked=asked)

    def _response(self, turn: Turn, since: float) -> Response | None:
        """The facts about a turn's response; None if the turn only answers the calls of an earlier response."""
        if not self._requests.under_way:
            return None
        finish = self._progress.finish_of(turn, self._requests.choice)
        return Response(self.id, turn.model or self.plan.model.name, turn.usage, finish, monotonic() - since)
