"""One run: model → processor → answers → model, until the model calls nothing more or a limit is reached.

Knows a model, a processor and a journal by their interfaces; runs no tool and keeps no conversation itself. A turn of
a long run costs what its first one did.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from agentkit.agent.hooks import Hook, Hooks
from agentkit.agent.journal import Journal, Response
from agentkit.agent.lifecycle import RunEnded, RunStarted, TurnEnded, TurnStarted
from agentkit.agent.limits import Repeats
from agentkit.agent.options import RunFinish
from agentkit.agent.outcome import OutputT, RunResult
from agentkit.agent.spending import Meter, Prompts, Spending, asked
from agentkit.agent.system import System, written
from agentkit.checks.spelling import did_you_mean
from agentkit.errors import AgentkitError, ConfigError, ProviderError
from agentkit.events import (
    ApprovalRequired,
    CallEnd,
    Event,
    SourceEvent,
    Text,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
)
from agentkit.foreign.absent import explain_with, explained
from agentkit.foreign.renamed import TOOL_CHOICE
from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, user
from agentkit.models.base import Model, ModelRequest, continues
from agentkit.processor import EventStream, ProcessorConfig, ResponseProcessor, Source, Turn
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import InvalidOutput, Output
from agentkit.tool.result import ToolContext

_TOOL_EVENTS = frozenset((ToolStarted, ToolCompleted, ToolFailed, ToolSkipped, ApprovalRequired))
_NO_REPLY: frozenset[RunFinish] = frozenset(("content_filter", "refusal", "error", "cancelled", "approval"))

_LOG: Final = logging.getLogger("agentkit.agent")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Args:
        model: who is asked.
        registry: the tools.
        config: what the calls of a response may do.
        settings: what every request asks of the model; see `Settings`.
        context: the application's object, for `ToolContext.state`.
        spending: the budget and what was spent of it.
        max_turns: responses at most.
        max_repeats: the same call with the same answer at most, in a row; None for no bound.
        auto_continue: how often a model that `continues` is asked to go on with a response that its token limit cut
            inside a text call.
        hooks: called with each event.
        cancel: ends the run when it is set.
        name: of the agent, for traces.
        system: what the model is told before the conversation; None for nothing.
        output: what the final reply must be; None for text.
        output_retries: how often a reply that is something else is asked for again.
        depth: levels of sub-agents that may work below it.
    """

    model: Model
    registry: ToolRegistry
    config: ProcessorConfig
    settings: Mapping[str, Any]
    context: Any
    spending: Spending
    max_turns: int
    max_repeats: int | None
    auto_continue: int
    hooks: Sequence[Hook] = ()
    cancel: asyncio.Event | None = None
    name: str = "agent"
    system: System[Any] | None = None
    output: Output | None = None
    output_retries: int = 0
    depth: int = 0


_EARLY: Final = (
    "it is there when the run is over: write `await` before it, as in `(await threads.run_thread(…)).{0}`; or iterate "
    "it with `async for`, and then read .result.{0}"
)


@explain_with({name: _EARLY.format(name) for name in (*RunResult.__annotations__, "new_messages", "output")})
@explained
class RunStream(EventStream[Event], Generic[OutputT]):
    """One run as it happens. Iterate it once; then `result` says how it ended, be it early or with an error.

    Each response ends with a `Finish`; the tool events that still follow it belong to its calls. Then the next response
    begins, and its calls are counted from 0 again.
    """

    def __init__(self, plan: Plan, journal: Journal) -> None:
        super().__init__()
        self.plan = plan
        self.journal = journal
        self.id = secrets.token_hex(8)
        """Names the run in traces and in its thread."""
        self.error: BaseException | None = None
        """What it raised, once it did."""
        self._start = len(journal.all())
        self._hooks = Hooks(plan.hooks, self)
        self._hooked = bool(plan.hooks)  # none is added later
        self._meters: list[Meter] = []  # of the turn's responses
        self._prompts: Prompts | None = None
        self._text = ""
        self._turns = 0
        self._finish: RunFinish = "cancelled"
        self._pending: tuple[ToolCall, ...] = ()
        self._shrunk = False  # the last request was refused as too long
        self._waiting: tuple[ToolCall, ...] = ()  # those of earlier runs
        self._stopped: RunFinish | None = None
        self._turn: Turn | None = None
        self._continued = 0
        self._continues = continues(plan.model)
        self._repeats = Repeats(plan.max_repeats)
        self._over_with: RunFinish | None = None
        self._asked = False
        self._preparing: asyncio.Task[Any] | None = None  # the request, or the instructions
        self._processor: ResponseProcessor | None = None
        self._output: tuple[Any, ...] | None = None if plan.output is None else ()
        self._output_error: str | None = None
        self._corrections = 0
        self._correction: Message | None = None
        wanted = None if plan.output is None else plan.output.schema
        self._request = ModelRequest(
            (), plan.registry.offered(plan.model.format), output_schema=wanted, **plan.settings
        )
        begun = "agent.stream(…)" if journal.thread_id is None else "threads.run_thread(…)"
        self._unread = (
            f"{begun} was never awaited or iterated, so nothing was run: write `await {begun}` for its result, or "
            f"`async for event in {begun}`"
        )

    @property
    def result(self) -> RunResult[OutputT]:
        """How the run ended.

        Raises:
            RuntimeError: it has not ended yet.
        """
        if not self._over.is_set():
            raise RuntimeError("the run is not over: iterate the stream to its end, or leave its `async with` block")
        spent = self.plan.spending
        return RunResult(
            self._text,
            self.journal.all(),
            spent.usage,
            self._turns,
            self._finish,
            self._start,
            self._pending,
            self._output_error,
            spent.estimated,
            self._output,
        )

    @property
    def thread_id(self) -> str | None:
        """The thread that the run belongs to; None without a store."""
        return self.journal.thread_id

    def __await__(self) -> Generator[Any, None, RunResult[OutputT]]:
        """`await run`: the same as `await run.finished()`."""
        return self.finished().__await__()

    async def finished(self) -> RunResult[OutputT]:
        """Run to the end and give the result."""
        async with self:
            async for _ in self:
                pass
        return self.result

    async def text_stream(self) -> AsyncGenerator[str, None]:
        """The text alone, as it is written: `async for text in agent.stream("…").text_stream()`.

        In place of iterating the events; what is left out is in `result`, and hooks hear of it. Leaving the loop ends
        the run.
        """
        async with self:
            async for event in self:
                if type(event) is Text:
                    yield event.text

    def cancel(self) -> None:
        """End the run soon: tools at work are cancelled and answered, and the iteration ends without an error.

        May be called at any time, from code on the same event loop.
        """
        self._unread = None
        self._stop("cancelled")

    def _stop(self, reason: RunFinish) -> None:
        if self._stopped is None:
            self._stopped = reason
        self._hooks.hurry()
        if self._turn is not None:
            self._turn.cancel()
        if self._preparing is not None:
            self._preparing.cancel()

    # -------------------------------------------------------------- its turns

    async def _events(self) -> AsyncGenerator[Event, None]:
        self._begun = True
        watching = self._watch()
        hooked = self._hooked
        try:
            await self._hooks.tell(RunStarted())
            while (turn := await self._next()) is not None:
                self._begin(turn)
                since = monotonic()
                try:
                    async for event in turn:
                        if type(event) in _TOOL_EVENTS:  # written down before anybody hears of it
                            response = self._response(turn, since) if turn.complete else None
                            await self.journal.record(turn, event, response)  # type: ignore[arg-type]
                        if hooked:
                            await self._hooks.tell(event)
                        yield event
                except BaseException as e:
                    if not await self._shortened(turn, e):
                        self.error = e
                        raise
                finally:
                    await self._end(turn, since)
        except BaseException as e:
            self.error = e
            if isinstance(e, Exception):
                self._finish = "error"
            raise
        finally:
            try:
                await self._conclude()
            finally:
                for stop in watching:  # only now: the clock bounds what hooks do at the end, too
                    stop()

    async def _conclude(self) -> None:
        if self._left:
            return
        self._settle()
        try:
            await uncancelled(self.journal.close(), again=self.journal.close)
        finally:
            self._over.set()
            if isinstance(self.error, AgentkitError):
                self.error.result = self.result
            await self._hooks.tell(RunEnded(self.result, self.error))

    def _begin(self, turn: Turn) -> None:
        self._turn = turn
        if self._stopped is not None:  # while it was made
            turn.cancel()

    async def _shortened(self, turn: Turn, error: BaseException) -> bool:
        """Whether the request was refused as too long and can be made again, once, with a shorter conversation."""
        if not isinstance(error, Exception):  # cancelled, or left
            self._hooks.hurry()
        refused = isinstance(error, ProviderError) and error.kind == "too_long" and not turn.message.content
        if not refused or self._shrunk or not await self.journal.shrink():
            return False
        self._shrunk, self._turn = True, None
        return True

    async def _next(self) -> Turn | None:
        """The turn to take now; None when the run is over."""
        turn = self._turn
        if self._processor is None and self._stopped is None:
            turn = await self._open()
            if turn is not None:
                return turn
        elif turn is not None:
            self._shrunk = False
            self._finish_after(turn)
        if self._over_with == "stop" and self._stopped is None and await self.journal.news():
            self._over_with = None  # a user wrote while the model was answering
        reason = self._stopped or self._over_with or self.plan.spending.exhausted
        if reason is None and self._turns >= self.plan.max_turns:
            reason = "max_turns"
        if reason is not None:
            self._finish = reason
            return None
        turn = await self._ask()
        if turn is None:
            self._finish = self._stopped or self.plan.spending.exhausted or "cancelled"
        return turn

    async def _open(self) -> Turn | None:
        """Begin; the turn that answers what an earlier run left open, if there is such."""
        request = self._request
        choices = ["auto", "required", "none", *(tool.name for tool in request.tools)]
        if request.tool_choice not in choices:
            raise ConfigError(
                f"tool_choice={request.tool_choice!r} is no tool of this agent; wanted one of {', '.join(choices)}"
                f"{did_you_mean(request.tool_choice, choices, TOOL_CHOICE)}"
            )
        journal, plan = self.journal, self.plan
        if not await self._instruct():
            return None
        unsettled = await journal.open(plan.registry, self._ask_for)
        self._start = len(journal.all())
        self._over_with = unsettled.finish
        self._pending = self._waiting = unsettled.waiting
        if unsettled.finish is not None and (last := _last_response(journal.all())) is not None:
            self._text = last.text
            if not last.calls:
                self._over_with = self._judged(last.text, unsettled.finish)
        taken = set(journal.taken) - {call.id for call in unsettled.calls}  # these keep their ids
        left = plan.spending.calls_left
        config = replace(plan.config, max_calls=left or None)  # what a response may call was counted when it was made
        heard = journal.heard if plan.model.format is None else None
        self._processor = ResponseProcessor(
            plan.registry,
            config,
            taken=taken,
            new_context=self._context,
            heard=heard,
            scope=self._hooks.scope if self._hooked else None,
            gate=self._gate,
        )
        if not unsettled.calls or left == 0 or self._stopped is not None:
            return None
        calls = [CallEnd(index, call) for index, call in enumerate(unsettled.calls)]
        return self._processor.process(calls, approved=unsettled.approved)

    async def _ask(self) -> Turn | None:
        """Ask the model; None when the run was stopped before that, or nothing is left of its budget."""
        plan, processor = self.plan, self._processor
        assert processor is not None
        if self._correction is not None:
            self.journal.add(self._correction)
            self._correction = None
        if not await self._ready():
            return None
        request = self._request
        self._turns += 1
        self._continued = 0
        self._asked = True
        if self._hooked:
            await self._hooks.tell(TurnStarted(self._turns, request))
        processor.config = plan.config
        if (left := plan.spending.calls_left) is not None and left < (plan.config.max_calls or left + 1):
            processor.config = replace(plan.config, max_calls=left or None)  # taken by others: the gate refuses them
        natively = plan.model.format is None and request.tool_choice != "none"
        offered = request.tools if natively else ()
        made = _made(self._turn)
        return processor.process(self._stream(request), offered=offered, more=self._more, made=made)

    def _stream(self, request: ModelRequest) -> Source:
        """Ask the model, with what was set aside for it last; where nothing is counted, nothing stands between."""
        model = self.plan.model
        return self._meters[-1].read(model, request) if self.plan.spending.counts else model.stream(request)

    async def _ready(self) -> bool:
        """Make the request, and what its response is counted with; False when nothing is left, or the run was stopped.

        It may wait for a store, for a summary, and for other responses that are paid from the same budget.
        """
        if self.journal.thread_id is None and not self.plan.spending.counts:  # nothing to wait for
            return await self._prepare()
        return bool(await self._unless_stopped(self._prepare()))

    async def _instruct(self) -> bool:
        """Tell the journal what the model is told first; False when the run was stopped before that was known."""
        system = self.plan.system
        if system is None:
            return True
        said = system if isinstance(system, str) else await self._unless_stopped(written(system, self.plan.context))
        if said:
            self.journal.instruct(said)
        return said is not None

    async def _unless_stopped(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Do this in a task of its own, which stopping the run cancels; None then."""
        self._preparing = task = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            if self._stopped is None or asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            return None
        finally:
            self._preparing = None

    async def _prepare(self) -> bool:
        messages = await self.journal.messages()
        if messages is not self._request.messages:  # a journal may give the same list again, with more in it
            self._request = replace(self._request, messages=messages)
        spending = self.plan.spending
        if not spending.counts:  # then the turn's own sum does
            return spending.exhausted is None
        self._prompts = self._prompts or Prompts(self._request)
        prompt = self._prompts.size(messages)
        meter = await spending.set_aside(self.plan.model.name, prompt, self._request.max_tokens)
        self._meters = [] if meter is None else [meter]
        return meter is not None

    def _ask_for(self, model: Model, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Ask a model at the run's expense, for a summary, say."""
        return asked(self.plan.spending, model, request)

    def _gate(self, call: ToolCall) -> str | None:
        """Count a call that is about to start; what keeps it from that."""
        if self.plan.spending.take_call():
            return None
        return "not run: nothing is left of the run's budget of calls"

    def _more(self, partial: AssistantMessage) -> Source | None:
        """The rest of a response that its token limit cut inside a call."""
        spending = self.plan.spending
        if not self._continues or self._continued >= self.plan.auto_continue or self._stopped is not None:
            return None
        if spending.exhausted is not None:
            return None
        self._continued += 1
        request = replace(self._request, messages=[*self._request.messages, partial])
        if spending.counts:
            self._meters.append(spending.set_aside_now(self.plan.model.name, request))
        return self._stream(request)

    async def _end(self, turn: Turn, since: float) -> None:
        """End a turn, whatever ended it: write it down, and then say so.

        The task may be cancelled meanwhile; what has to wait is therefore done in a task of its own. A coroutine that
        does not wait cannot be cancelled, and a task takes longer than all that it would do.
        """
        if self._left:
            return
        number = self._turns if self._asked else 0
        waits = not turn.over or not self.journal.settled
        try:
            await (uncancelled(self._keep(turn, since)) if waits else self._keep(turn, since))
        finally:
            if self._hooked:
                seconds = monotonic() - since
                await self._hooks.tell(
                    TurnEnded(number, turn.message, turn.results, turn.usage, turn.finish.reason, seconds)
                )

    async def _keep(self, turn: Turn, since: float) -> None:
        await turn.aclose()
        self._settle()
        if not self.plan.spending.counts:
            self.plan.spending.count(self.plan.model.name, turn.usage)
        response = self._response(turn, since)
        asked, self._asked = self._asked, False
        finish = turn.finish.reason
        if asked:
            self._text = turn.message.text
        if finish == "error":
            self._finish = "error"
        await self.journal.respond(turn, response)

    def _settle(self) -> None:
        """Count what was asked for; most is counted already, but not a response that nobody read."""
        for meter in self._meters:
            meter.settle()
        self._meters = []

    def _response(self, turn: Turn, since: float) -> Response | None:
        """What is known of a turn's response; None where it only answers the calls of an earlier one."""
        if not self._asked:
            return None
        return Response(self.id, self.plan.model.name, turn.usage, turn.finish.reason, monotonic() - since)

    def _finish_after(self, turn: Turn) -> None:
        """Whether the run is over after this turn, and why."""
        if turn.refused is not None:
            self._continues = False
            _LOG.warning("%s does not go on with a reply that was cut: %s", self.plan.model.name, turn.refused)
        reason, pending = turn.finish.reason, turn.pending
        self._pending = (*self._waiting, *pending)
        if pending:
            self._over_with = "approval"
        elif turn.terminated:
            self._over_with = "agent_terminated"
        elif self._repeats.see_all(_answered(turn)):
            self._over_with = "loop_detected"
        elif not turn.results and reason != "pause":
            self._over_with = self._judged(turn.message.text, reason)
        if turn.results and self._request.tool_choice not in ("auto", "none"):
            self._request = replace(self._request, tool_choice="auto")

    def _judged(self, reply: str, reason: RunFinish) -> RunFinish | None:
        """Why the run is over after this final reply; None where it must be another one, which is then asked for."""
        output = self.plan.output
        if output is None or reason in _NO_REPLY:
            return reason
        if reason == "length":
            self._output_error = "the reply was cut at its limit of tokens"
            return reason
        try:
            self._output, self._output_error = (output.read(reply),), None
        except InvalidOutput as e:
            self._output_error = str(e)
            if self._corrections >= self.plan.output_retries:
                return "invalid_output"
            self._corrections += 1
            self._correction = user(e.request)
            return None
        return reason

    # -------------------------------------------------------------- what ends it early, and who hears of it

    def _watch(self) -> list[Callable[[], object]]:
        """Start the clock and watch the token; what it returns stops that again."""
        stops: list[Callable[[], object]] = []
        if self.plan.cancel is not None and self.plan.cancel.is_set():
            self.cancel()
        if (left := self.plan.spending.seconds_left) is not None:
            stops.append(asyncio.get_running_loop().call_later(max(left, 0), self._stop, "time_budget").cancel)
        if self.plan.cancel is not None:
            stops.append(asyncio.get_running_loop().create_task(self._obey(self.plan.cancel)).cancel)
        return stops

    async def _obey(self, token: asyncio.Event) -> None:
        await token.wait()
        self.cancel()

    def _context(self, call: ToolCall) -> ToolContext:
        context = self.journal.context(call)
        if context is None:
            return ToolContext(call.id, call.name, self.plan.context, f"{self.id}/{call.id}", 1, self)
        return replace(context, state=self.plan.context, run=self)


def _last_response(messages: Sequence[Message]) -> AssistantMessage | None:
    """The response at the conversation's end, with the answers to its calls behind it or without."""
    return next((m for m in reversed(messages) if isinstance(m, AssistantMessage)), None)


def _made(turn: Turn | None) -> list[ToolCall]:
    """The text calls that a response before made which its token limit cut: the next one may begin it again."""
    if turn is None or turn.finish.reason != "length":
        return []
    had = (None, "ambiguous_call")  # the latter: made even before that, and begun again
    return [call for call, answer in _answered(turn) if call.format is not None and answer.error in had]


def _answered(turn: Turn) -> list[tuple[ToolCall, ToolMessage]]:
    calls = {call.id: call for call in turn.message.calls}
    return [(calls[answer.call_id], answer) for answer in turn.results]


async def uncancelled(
    work: Coroutine[Any, Any, None], again: Callable[[], Coroutine[Any, Any, None]] | None = None
) -> None:
    """Do this to its end although the task may be cancelled meanwhile; then the cancellation goes on.

    Args:
        work: what is to be done.
        again: makes it anew. An event loop that ends cancels all tasks that there are, the one that does this work,
            too, perhaps before its first step; it is then done once more, in a task that no longer is among them.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        task = asyncio.ensure_future(work)
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError as e:
                cancelled = e
        if again is None or not task.cancelled():
            break
        work, again = again(), None
    task.result()
    if cancelled is not None:
        raise cancelled
