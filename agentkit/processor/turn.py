"""One model response from its events to its message and results.

The source is read in a separate task and tools run concurrently; the events of both reach the consumer through one
inbox. Reads no text itself (`response`) and runs no tool itself (`call_runner`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from agentkit import formats
from agentkit.errors import ProviderError
from agentkit.events import (
    TAKEN_BACK,
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallError,
    Event,
    Finish,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    Usage,
)
from agentkit.foreign.absent import suggest_attributes
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ResultContent,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.processor.call_runner import CallRunner
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.inbox import Inbox, Source, SourceEnd
from agentkit.processor.maybe_output import OutputRule
from agentkit.processor.response import ResponseReader
from agentkit.processor.sources import More, Sources
from agentkit.processor.streams import EventStream
from agentkit.processor.tooltask import GRACE
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import ToolSpec

_ENDS = frozenset((CallEnd, CallError))
_CANCELLED = Finish("cancelled")
_OF_TOOLS = frozenset((ToolStarted, ToolCompleted, ToolFailed, ToolSkipped, ApprovalRequired))

_UNREAD = (
    "processor.process(…) was never iterated, so nothing of the response was read and no call was run: write "
    "`async for event in processor.process(…)`"
)


@suggest_attributes
class Turn(EventStream[Event]):
    """One model response: iterate it once for its events, then read its `message` and `results`.

    A `ToolStarted` is yielded before its tool starts. If the consumer leaves early or is cancelled, running tools are
    cancelled and every call is still answered; `cancel` does the same to a turn that is still being iterated. If the
    source raises, the calls that were complete still run to their end, and then the error is raised, once; the message
    and the results are kept.
    """

    _reports_tool = False  # whether the item that is handled is a tool's event
    _finish: Finish | None = None  # once it is cancelled, or over

    def __init__(
        self,
        registry: ToolRegistry,
        config: ProcessorConfig,
        reader: ResponseReader,
        runner: CallRunner,
        inbox: Inbox,
        source: Source,
        more: More | None = None,
    ) -> None:
        self.results: tuple[ToolMessage, ...] = ()
        """The answers in call order, one per call except the `pending` ones; available when the turn is over."""
        self._registry = registry
        self._config = config
        self._reader = reader
        self._runner = runner
        self._inbox = inbox
        self._sources = Sources(inbox, source, more)
        self._unconsumed: Iterator[Event] = iter(())
        self._unread = _UNREAD

    # -------------------------------------------------------------- what it brought

    @property
    def message(self) -> AssistantMessage:
        """The response: complete once the turn is over, until then as far as its events were yielded."""
        return self._reader.record.draft.message()

    @property
    def refusal(self) -> ProviderError | None:
        """Why the response could not continue after its token limit, if that was requested and its provider refused."""
        return self._sources.refusal

    def answered_calls(self) -> list[tuple[ToolCall, ToolMessage]]:
        """The calls that have answers, in call order, each with its answer."""
        calls, answers = self._reader.record.calls, self._runner.answers
        return [(call, answers[index]) for index, call in enumerate(calls) if call is not None and index in answers]

    def answer(self, index: int) -> ToolMessage | None:
        """A call's answer, by its index, from the moment its event is yielded; None before that."""
        return self._runner.answers.get(index)

    @property
    def skipped_ids(self) -> frozenset[str]:
        """The ids of the calls that have answers although their tools never took a step."""
        calls = self._reader.record.calls
        return frozenset(call.id for index in self._runner.skipped if (call := calls[index]) is not None)

    @property
    def complete(self) -> bool:
        """Return whether the tool event that is yielded is the last one: the source is over, every call is answered."""
        runner = self._runner
        over = self._reports_tool and self._sources.ended is not None and not self._inbox.items
        return over and runner.idle and not runner.approvals.pending

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a person's approval, in call order; for one that waits inside, those inside it."""
        return self._runner.approvals.waiting()

    @property
    def suspended_states(self) -> Mapping[str, Any]:
        """The state of tools that wait for a decision on calls inside them, by the ids of their own calls."""
        approvals = self._runner.approvals
        pending = approvals.pending
        return {pending[index].id: waits.result for index, waits in approvals.suspended.items() if index in pending}

    @property
    def fault(self) -> Exception | None:
        """Why a call that is left to a later run could not continue, if that is an error of the program."""
        return next((one.error for one in self._runner.approvals.suspended.values() if one.error is not None), None)

    @property
    def odd(self) -> Mapping[type, Any]:
        """The last `InventedResult`, `UnreadCall` and `CallQuoted`; after the first two, the text is not an answer."""
        return self._reader.record.odd

    @property
    def terminated(self) -> bool:
        """Return whether the call of a terminating tool succeeded, so that the run is over."""
        return self._runner.terminated

    @property
    def text_is_output(self) -> bool:
        """Return whether the text is the run's output, so that the other calls did not run."""
        return self._runner.output == "text"

    @property
    def finish(self) -> Finish:
        """Why the response ended.

        `unknown` if the source did not say, `error` if it raised, `cancelled` if the turn was cancelled, or left before
        the source had said.
        """
        if self._finish is not None:
            return self._finish
        ended = self._sources.ended
        if ended is not None and ended.failure is not None:
            return Finish("error")
        if ended is None and self.over and self._reader.record.finish.reason == "unknown":
            return Finish("cancelled")  # the consumer left before the response was complete
        return self._reader.record.finish

    @property
    def model(self) -> str:
        """The model that answered, if the source was a chain of models; otherwise empty."""
        return self._reader.record.model

    @property
    def usage(self) -> Usage:
        """The token usage of the response."""
        return self._reader.record.usage

    @property
    def replies(self) -> tuple[Message, ...]:
        """The results as messages to send: a text call's in its own format, in the role `ProcessorConfig.result_role`.

        The result of a native or a recovered call is its `ToolMessage`. A model with a `format` of its own renders
        `results` itself; this is for programs that send the messages themselves.
        """
        specs = self._registry.specs()
        calls = {call.id: call.format for call in self.message.calls}
        return tuple(self._reply(result, calls[result.call_id], specs) for result in self.results)

    def _reply(self, result: ToolMessage, format: str | None, specs: tuple[ToolSpec, ...]) -> Message:
        named = {f.name: f for f in self._config.text_formats}.get(format or "")
        if named is None:
            return result
        text = formats.render_result(named, result.name, result.call_id, result.text, result.error, specs)
        content: ResultContent = (TextPart(text), *(p for p in result.content if isinstance(p, ImagePart)))
        if self._config.result_role == "user":
            return UserMessage(content)
        return ToolMessage(result.call_id, result.name, content, result.error)

    # -------------------------------------------------------------- its events

    async def _events(self) -> AsyncGenerator[Event, None]:
        self._begun = True
        sources, runner, inbox = self._sources, self._runner, self._inbox
        items, record, waiting = inbox.items, self._reader.record, runner.waiting.calls
        sources.begin(self._loop, read=self._finish is None)
        early = True
        try:
            while sources.ended is None or items or not runner.idle:
                while items:
                    self._unconsumed = iter(self._handle(inbox.take()))
                    for event in self._unconsumed:
                        yield event
                        for following in self._admit(event) if type(event) in _ENDS else ():
                            yield following
                    if record.full and sources.ended is None:
                        sources.drain()
                    for event in self._start_ready() if waiting else ():
                        yield event
                if sources.ended is None or not runner.idle:
                    await inbox.wait()
                    for event in () if items else self._start_ready():
                        yield event
            early = False
            if sources.ended.failure is not None:
                raise sources.ended.failure
        finally:
            await self._close(early=early)

    def _handle(self, item: Any) -> Iterable[Event]:
        """Read an item of the inbox: an event of a source or of a tool."""
        kind = type(item)
        if kind is ArgumentDelta and self._finish is None:  # as most: nothing follows from it
            return self._reader.record.keep_one(item, self._reader.native)
        self._reports_tool = kind in _OF_TOOLS
        if self._reports_tool:
            self._runner.unreported.discard(item.index)
            late = kind is ApprovalRequired and item.index not in self._runner.approvals.pending  # it has its answer
            return () if late else (item,)
        if kind is SourceEnd:
            return chain(self._end(item), self._choose_output()) if self._sources.ended is None else ()
        if self._finish is not None:  # cancelled
            return ()
        if kind is not Finish:
            return self._reader.feed(item)
        if item.reason == "length":
            return self._sources.at_limit(item, self._reader)
        retracted = self._runner.retract(item.reason) if item.reason in TAKEN_BACK else []
        return chain(retracted, self._reader.feed(item))

    def _admit(self, event: Any) -> Iterator[Event]:
        """Admit a call that was read."""
        if answered := self._runner.admit(event):
            yield answered
        if self._config.execute == "stream":
            yield from self._start_ready()

    def _end(self, end: SourceEnd) -> Iterable[Event]:
        """Continue with a further source, or end the response: one is over."""
        cancelled = self._finish is not None
        if cancelled or self._reader.record.full:
            end = SourceEnd()  # the fate of the rest does not matter
        finish = self._sources.next(end, self._reader, wanted=not cancelled)
        if self._sources.ended is None:
            return ()
        if self._sources.ended.failure is not None:
            self._runner.interrupt()
            return self._reader.close(whole=False)
        return self._reader.feed(finish) if finish is not None else self._reader.close(whole=not cancelled)

    def _choose_output(self) -> Iterator[Event]:
        """Decide about the output, if the response is over. Lazy: its last calls are admitted before that."""
        runner, calls = self._runner, self._reader.record.calls
        if self._sources.ended is not None and isinstance(runner.output, OutputRule) and calls:
            yield from runner.choose_output(calls, self.message.text)

    def _start_ready(self) -> Iterator[Event]:
        """Start the calls that may. Lazy: a tool starts when the consumer, having seen `ToolStarted`, continues."""
        runner, over = self._runner, self._sources.ended is not None
        while runner.waiting.calls and (over or self._config.execute == "stream"):
            ready = runner.next()
            if ready is None:
                return
            yield ToolStarted(ready.index, ready.call)
            runner.start(ready)

    # -------------------------------------------------------------- its end

    def cancel(self) -> None:
        """End the turn from outside, while it is iterated: its tools are cancelled and answered, its source is closed.

        The iteration yields the answers and ends without an error; `finish` is `cancelled`. Calls that wait, for their
        start or for a person, are also answered. Once the turn is over, this does nothing. Call it in the event loop's
        own thread.
        """
        self._unread = None
        if self._finish is not None:
            return
        self._finish = _CANCELLED
        if self._begun:
            self._inbox.stop()
            self._runner.cancel()

    def replace_answer(self, end: ToolCompleted | ToolFailed | ToolSkipped, answer: ToolMessage) -> None:
        """Replace the tool event that is yielded by this `end`: its call was answered from outside."""
        self._runner.replace_answer(end, answer)

    def wait_on(self, ids: Collection[str]) -> None:
        """Leave withdrawn calls as they were, without an answer; those that are not approved are `pending`."""
        if not ids:
            return
        for index, call in enumerate(self._reader.record.calls):
            if call is not None and call.id in ids:
                self._runner.wait_on(index, call)
        self.results = tuple([answer for answer in self.results if answer.call_id not in ids])

    async def _close(self, *, early: bool) -> None:
        try:
            reading = self._inbox.reading
            if (early or (reading is not None and not reading.done())) and not self._left:
                await self._leave(early=early)
        finally:
            self._conclude(early=early)

    async def _leave(self, *, early: bool) -> None:
        """Stop what is still running, and wait for it, at most `GRACE`."""
        reading = self._inbox.reading
        at_work = self._runner.cancel() if early else []
        if reading is not None and not reading.done():
            self._inbox.stop()
            at_work.append(reading)
        if at_work:
            await asyncio.wait(at_work, timeout=GRACE)

    def _rest(self) -> Iterator[Event]:
        """The events that were read but not taken, and those that the end of the response then brings."""
        yield from self._unconsumed
        yield from self._reader.close(whole=False)

    def _conclude(self, *, early: bool) -> None:
        self._sources.close()
        try:
            for event in self._rest() if early else ():
                if isinstance(event, CallError):
                    self._runner.admit(event)
        finally:
            self.results = self._runner.finish(self._reader.record.calls)
            self._reader.record.draft.close()
            self._is_over()  # even after an error: `aclose` waits for this
            self._finish = self.finish
