"""One model response from its events to its message and results, and the processor that makes such turns.

Knows the order of things: the source is read in a task of its own, tools run beside it, and what both bring reaches the
consumer through one inbox. Reads no text itself (`calls`) and runs no tool itself (`execution`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agentkit import formats
from agentkit.errors import ProviderError
from agentkit.events import (
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
from agentkit.formats.spec import ToolSpec
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ResultContent,
    TextPart,
    ToolMessage,
    UserMessage,
)
from agentkit.processor.calls import ResponseReader
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.execution import GRACE, Execution
from agentkit.processor.recovery import Recovery, TextReader
from agentkit.processor.streams import EventStream
from agentkit.registry import ToolRegistry

AHEAD = 64  # source events read before the consumer takes the first: a burst of one network packet, and a bound

Source = AsyncIterable[SourceEvent] | Iterable[SourceEvent]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def call_id() -> str:
    """An id for a call: nine letters and digits, which every provider accepts (Mistral accepts nothing else)."""
    return secrets.token_hex(5)[:9]


class ResponseProcessor:
    """Runs the calls of a model's responses, one `Turn` per response.

    Args:
        registry: the tools that may run.
        config: what calls may do.
        context: the application's values; tools that ask for a `ToolContext` find them in its `state`.
        new_id: makes the id of a call that came without one.
        taken: ids used earlier in the conversation, which no new call may have.

    >>> from agentkit.messages import ToolCall
    >>> async def shout(text: str) -> str:
    ...     "Say it louder."
    ...     return text.upper()
    >>> async def main() -> None:
    ...     turn = ResponseProcessor(ToolRegistry(shout)).process([CallEnd(0, ToolCall("x", "shout", {"text": "hi"}))])
    ...     print([type(event).__name__ async for event in turn], turn.results[0].text)
    >>> asyncio.run(main())
    ['CallEnd', 'ToolStarted', 'ToolCompleted'] HI
    """

    def __init__(
        self,
        registry: ToolRegistry,
        config: ProcessorConfig | None = None,
        *,
        context: Mapping[str, Any] = _NOTHING,
        new_id: Callable[[], str] = call_id,
        taken: Iterable[str] = (),
    ) -> None:
        self.registry = registry
        self.config = config or ProcessorConfig()
        self.context = context
        self._new_id = new_id
        self._taken = set(taken)

    def process(self, events: Source, *, offered: Sequence[ToolSpec] | None = None) -> Turn:
        """Take one response's events; iterate the turn to read them and to run the calls.

        Args:
            events: the response's.
            offered: the tools that the model could call, none with `tool_choice="none"`: only their calls are recovered
                from a native model's text. None stands for all of the registry's.
        """
        return Turn(self.registry, self.config, self.context, self._reader(offered), events)

    def _reader(self, offered: Sequence[ToolSpec] | None) -> ResponseReader:
        config = self.config
        specs = self.registry.specs()

        def new_parser(first: bool) -> TextReader:
            thinking = first and config.starts_thinking
            return formats.Parser(config.text_formats, specs, in_code=config.in_code, thinking=thinking)

        if config.text_formats:
            return ResponseReader(new_parser, self._new_id, self._taken)
        tools = specs if offered is None else offered

        def new_finder(first: bool) -> TextReader:
            thinking = first and config.starts_thinking
            return formats.Parser(formats.auto(), tools, in_code="reply", thinking=thinking)

        recovery = Recovery(new_finder, tools) if tools and config.recovers else None
        return ResponseReader(None, self._new_id, self._taken, recovery)


@dataclass(frozen=True, slots=True)
class _End:
    """The source is over; with the error that it raised, if any."""

    failure: Exception | None


class Turn(EventStream[Event]):
    """One model response: iterate it once for its events, then read `message` and `results` off it.

    A `ToolStarted` is yielded before its tool starts. If the consumer leaves early or is cancelled, tools at work are
    cancelled and every call is still answered. If the source raises, finished calls still run to their end (with
    `execute="stream"`), and then the error is raised, once; the message and the results are kept.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        config: ProcessorConfig,
        context: Mapping[str, Any],
        reader: ResponseReader,
        source: Source,
    ) -> None:
        super().__init__()
        self.results: tuple[ToolMessage, ...] = ()
        """The answers, one per call of the message, in call order; there when the turn is over."""
        self._registry = registry
        self._config = config
        self._reader = reader
        self._source = source
        self._execution = Execution(registry, config, context, self._post)
        self._message: AssistantMessage | None = None
        self._inbox: deque[SourceEvent | ToolEvent | _End] = deque()
        self._news: asyncio.Future[None] | None = None
        self._space: asyncio.Future[None] | None = None
        self._ended: _End | None = None
        self._leaving = False

    # -------------------------------------------------------------- what it brought

    @property
    def message(self) -> AssistantMessage:
        """The response: complete once the turn is over, until then as far as it was read."""
        return self._message or self._reader.message()

    @property
    def finish(self) -> Finish:
        """Why the model stopped; `unknown` where the source did not say, `error` where it raised."""
        if self._ended is not None and self._ended.failure is not None:
            return Finish("error")
        return self._reader.finish

    @property
    def usage(self) -> Usage:
        """The tokens of the response."""
        return self._reader.usage

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
        reading = asyncio.get_running_loop().create_task(self._read_source())
        try:
            while self._inbox or self._ended is None or not self._execution.idle:
                if not self._inbox:
                    await self._wait()
                for event in self._read(self._inbox.popleft()):
                    yield event
                    if isinstance(event, (CallEnd, CallError)):
                        for more in self._follow(event):
                            yield more
                if self._execution.waiting:
                    for event in self._started():
                        yield event
            if self._ended.failure is not None:
                raise self._ended.failure
        finally:
            try:
                if not (reading.done() and self._execution.idle):
                    await self._leave(reading)
            finally:
                self._conclude()

    def _follow(self, event: CallEnd | CallError) -> Iterator[Event]:
        """What becomes of a call now: an answer, or its start."""
        if answered := self._execution.admit(event):
            yield answered
        yield from self._started()

    def _read(self, item: SourceEvent | ToolEvent | _End) -> Sequence[Event]:
        if isinstance(item, (ToolCompleted, ToolFailed, ToolSkipped, ToolStarted)):
            return (item,)
        if not isinstance(item, _End):
            return self._reader.feed(item)
        self._ended = item
        if item.failure is None:
            return self._reader.close()
        return (*self._execution.interrupt(waiting=self._config.execute == "end"), *self._reader.close(whole=False))

    def _started(self) -> Iterator[Event]:
        """Start what may start. Lazy: a tool starts when the consumer, having seen `ToolStarted`, goes on."""
        while self._execution.waiting and (self._ended is not None or self._config.execute == "stream"):
            ready = self._execution.next()
            if ready is None:
                return
            yield ToolStarted(ready.index, ready.call)
            self._execution.start()

    # -------------------------------------------------------------- its inbox

    async def _read_source(self) -> None:
        """Put the source's events into the inbox; in one task from first to last, as generators expect."""
        failure: Exception | None = None
        try:
            if isinstance(self._source, AsyncIterable):
                async for event in self._source:
                    self._post(event)
                    if len(self._inbox) >= AHEAD:
                        await self._room()
            else:
                for event in self._source:
                    self._post(event)
                    if len(self._inbox) >= AHEAD:
                        await self._room()
        except asyncio.CancelledError:
            if not self._leaving:
                failure = ProviderError("the stream of events cancelled itself", kind="stream", provider="source")
        except Exception as e:  # noqa: BLE001 - raised by the turn when the finished calls have their answers
            failure = e
        finally:
            self._post(_End(failure))
            if self._leaving and hasattr(self._source, "aclose"):
                await self._source.aclose()

    def _post(self, item: SourceEvent | ToolEvent | _End) -> None:
        self._inbox.append(item)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _wait(self) -> None:
        """Until there is news."""
        if self._space is not None and not self._space.done():
            self._space.set_result(None)
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    async def _room(self) -> None:
        """Until the consumer has taken what was read."""
        self._space = asyncio.get_running_loop().create_future()
        await self._space

    # -------------------------------------------------------------- its end

    async def _leave(self, reading: asyncio.Task[None]) -> None:
        """Stop what still goes on, and wait for it, at most `GRACE`."""
        self._leaving = True
        at_work = self._execution.cancel()
        if not reading.done():
            reading.cancel()
            at_work.append(reading)
        if at_work:
            await asyncio.wait(at_work, timeout=GRACE)

    def _conclude(self) -> None:
        try:
            for event in self._reader.close(whole=False):
                if isinstance(event, CallError):
                    self._execution.admit(event)
        finally:
            self.results = self._execution.finish(self._reader.calls)
            self._message = self._reader.message()
            self._over.set()  # whatever went wrong: `aclose` waits for this
