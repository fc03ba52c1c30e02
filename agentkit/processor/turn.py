"""One model response from its events to its message and results.

Knows the order of things: the source is read in a task of its own, tools run beside it, and what both bring reaches the
consumer through one inbox. Reads no text itself (`calls`) and runs no tool itself (`execution`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from itertools import chain

from agentkit import formats
from agentkit.errors import ProviderError
from agentkit.events import (
    TAKEN_BACK,
    ApprovalRequired,
    CallEnd,
    CallError,
    Event,
    Finish,
    SourceEvent,
    ToolCompleted,
    ToolEvent,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    Usage,
)
from agentkit.foreign.absent import explained
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
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.execution import GRACE, Execution
from agentkit.processor.inbox import Inbox, Source, SourceEnd
from agentkit.processor.response import ResponseReader
from agentkit.processor.streams import EventStream
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import ToolSpec

More = Callable[[AssistantMessage], Source | None]
"""Asks for a further response that goes on with what was written so far; None lets it be cut."""

DRAIN = 100  # events read behind the last call, for the usage that stands at a stream's end
DRAIN_SECONDS = 2.0

_OF_TOOLS = frozenset((ToolStarted, ToolCompleted, ToolFailed, ToolSkipped, ApprovalRequired))


_UNREAD = (
    "processor.process(…) was never iterated, so nothing of the response was read and no call was run: write "
    "`async for event in processor.process(…)`"
)


@explained
class Turn(EventStream[Event]):
    """One model response: iterate it once for its events, then read `message` and `results` off it.

    A `ToolStarted` is yielded before its tool starts. If the consumer leaves early or is cancelled, tools at work are
    cancelled and every call is still answered; `cancel` does the same to a turn that goes on being iterated. If the
    source raises, finished calls still run to their end (with `execute="stream"`), and then the error is raised, once;
    the message and the results are kept.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        config: ProcessorConfig,
        reader: ResponseReader,
        execution: Execution,
        inbox: Inbox,
        source: Source,
        more: More | None = None,
    ) -> None:
        super().__init__()
        self.results: tuple[ToolMessage, ...] = ()
        """The answers in call order, one per call but for the `pending` ones; there when the turn is over."""
        self._registry = registry
        self._config = config
        self._reader = reader
        self._execution = execution
        self._inbox = inbox
        self._source = source
        self._more = more
        self._message: AssistantMessage | None = None
        self._fresh: Iterator[Event] = iter(())
        self.refused: ProviderError | None = None
        """Why the response could not go on behind its token limit, where it was asked to and its provider refused."""
        self._cut: Finish | None = None  # at the token limit, inside a call that may go on
        self._limit: Finish | None = None  # the one behind which it was asked to go on
        self._ended: SourceEnd | None = None
        self._drained = 0
        self._drain_timer: asyncio.TimerHandle | None = None
        self._cancelled = False
        self._complete = False
        self._unread = _UNREAD

    # -------------------------------------------------------------- what it brought

    @property
    def message(self) -> AssistantMessage:
        """The response: complete once the turn is over, until then as far as its events were yielded."""
        return self._message or self._reader.intake.message()

    def answer(self, index: int) -> ToolMessage | None:
        """A call's answer, from the moment at which its event is yielded; None before that.

        Args:
            index: the call's, as in its events.
        """
        return self._execution.answers.get(index)

    @property
    def complete(self) -> bool:
        """Whether the tool event that is being yielded is the last one: the source is over, every call is answered."""
        return self._complete

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a person's approval and have no answer, in call order."""
        return tuple(call for _, call in sorted(self._execution.pending.items()))

    @property
    def terminated(self) -> bool:
        """Whether the call of a terminating tool succeeded, so that the run is over."""
        return self._execution.terminated

    @property
    def finish(self) -> Finish:
        """Why the response ended.

        `unknown` where the source did not say, `error` where it raised, `cancelled` where the turn was cancelled, or
        left before the source had said.
        """
        if self._cancelled:
            return Finish("cancelled")
        if self._ended is not None and self._ended.failure is not None:
            return Finish("error")
        if self._ended is None and self._over.is_set() and self._reader.intake.finish.reason == "unknown":
            return Finish("cancelled")  # the consumer left before the response was whole
        return self._reader.intake.finish

    @property
    def usage(self) -> Usage:
        """The tokens of the response."""
        return self._reader.intake.usage

    @property
    def replies(self) -> tuple[Message, ...]:
        """The results as messages to send: a text call's in its own format, spoken by `ProcessorConfig.result_role`.

        The result of a native or a recovered call is its `ToolMessage`. A model with a `format` of its own renders
        `results` itself; this is for whoever sends the messages on.
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
        if self._cancelled:
            self._ended = SourceEnd()
        else:
            self._inbox.read(self._source)
        items = self._inbox.items
        early = True
        try:
            while items or self._ended is None or not self._execution.idle:
                if not items:
                    await self._inbox.wait()
                for event in self._step():
                    yield event
            early = False
            if self._ended.failure is not None:
                raise self._ended.failure
        finally:
            try:
                reading = self._inbox.reading
                if (early or (reading is not None and not reading.done())) and not self._left:
                    await self._leave(early=early)
            finally:
                self._conclude()

    def _step(self) -> Iterator[Event]:
        """One item of the inbox, and what follows from it."""
        if self._inbox.items:
            self._fresh = iter(self._read(self._inbox.items.popleft()))
            for event in self._fresh:
                yield event
                if isinstance(event, (CallEnd, CallError)):
                    yield from self._follow(event)
        if self._reader.intake.full and self._drain_timer is None:
            self._drain_timer = asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._inbox.stop)
        if self._execution.waiting:
            yield from self._started()

    def _read(self, item: SourceEvent | ToolEvent | SourceEnd) -> Iterable[Event]:
        kind = type(item)
        if kind in _OF_TOOLS:
            execution = self._execution
            execution.untold.discard(item.index)  # type: ignore[union-attr]
            over = self._ended is not None and not self._inbox.items
            self._complete = over and execution.idle and not execution.pending
            return (item,)  # type: ignore[return-value]
        if isinstance(item, SourceEnd):
            return self._end(item) if self._ended is None else ()
        if self._cancelled:
            return ()
        if self._reader.intake.full:
            self._drained += 1
            if self._drained == DRAIN:
                self._inbox.stop()
        if isinstance(item, Finish) and item.reason == "length" and self._more is not None:
            return self._at_limit(item)
        if isinstance(item, Finish) and item.reason in TAKEN_BACK:
            return chain(self._execution.take_back(item.reason), self._reader.feed(item))
        return self._reader.feed(item)  # type: ignore[arg-type]

    def _at_limit(self, item: Finish) -> Iterator[Event]:
        """The token limit: the response may go on, if it ended inside a call."""
        if self._reader.text is not None:
            yield from self._reader.text.join(cut=True)
        if self._reader.open:
            self._cut = item
        else:
            yield from self._reader.feed(item)

    def _end(self, end: SourceEnd) -> Iterable[Event]:
        """The source is over: go on with a further one, or bring the response to its end."""
        cut, self._cut = self._cut, None
        if self._cancelled or self._reader.intake.full:
            end = SourceEnd()  # what becomes of the rest does not matter
        text = self._reader.text
        if isinstance(end.failure, ProviderError) and self._limit is not None and text is not None and text.waits:
            self.refused, end, cut = end.failure, SourceEnd(), self._limit
        if (
            cut is not None
            and text is not None
            and self._more is not None
            and end.failure is None
            and not self._cancelled
        ):
            source = None if self.refused is not None else self._more(text.partial())
            if source is not None:
                self._limit = cut
                text.resume()
                self._inbox.read(source)
                return ()
        self._ended = end
        if end.failure is not None:
            refused = self._execution.interrupt(waiting=self._config.execute == "end")
            return chain(refused, self._reader.close(whole=False))
        return self._reader.feed(cut) if cut is not None else self._reader.close(whole=not self._cancelled)

    def _follow(self, event: CallEnd | CallError) -> Iterator[Event]:
        """What becomes of a call now: an answer, or its start."""
        if answered := self._execution.admit(event):
            yield answered
        yield from self._started()

    def _started(self) -> Iterator[Event]:
        """Start what may start. Lazy: a tool starts when the consumer, having seen `ToolStarted`, goes on."""
        over = self._config.execute == "stream" or self._ended is not None or self._reader.intake.full
        while over and self._execution.waiting:
            ready = self._execution.next()
            if ready is None:
                return
            yield ToolStarted(ready.index, ready.call)
            self._execution.start(ready)

    # -------------------------------------------------------------- its end

    def cancel(self) -> None:
        """End the turn from outside, while it is iterated: its tools are cancelled and answered, its source is closed.

        The iteration yields the answers and ends without an error; `finish` is `cancelled`. Calls that wait, for their
        start or for a person, are answered too. Once the turn is over this does nothing. Call it in the event loop's
        own thread.
        """
        self._unread = None
        if self._cancelled or self._over.is_set():
            return
        self._cancelled = True
        if self._begun:
            self._inbox.stop()
            self._execution.cancel()

    async def _leave(self, *, early: bool) -> None:
        """Stop what still goes on, and wait for it, at most `GRACE`."""
        reading = self._inbox.reading
        at_work = self._execution.cancel() if early else []
        if reading is not None and not reading.done():
            self._inbox.stop()
            at_work.append(reading)
        if at_work:
            await asyncio.wait(at_work, timeout=GRACE)

    def _rest(self) -> Iterator[Event]:
        """What was read and not taken, and what the end of the response then brings."""
        yield from self._fresh
        yield from self._reader.close(whole=False)

    def _conclude(self) -> None:
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        try:
            for event in self._rest():
                if isinstance(event, CallError):
                    self._execution.admit(event)
        finally:
            self.results = self._execution.finish(self._reader.intake.calls)
            self._message = self._reader.intake.message()
            self._over.set()  # whatever went wrong: `aclose` waits for this
