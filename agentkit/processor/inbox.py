"""One queue for the events of a turn's source and of its tools. Knows the event loop; only joins text.

The source is read in a single separate task, as generators expect.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass

from agentkit.errors import ProviderError
from agentkit.events import SourceEvent, Text, ToolCompleted, ToolEvent, ToolFailed, ToolSkipped
from agentkit.processor.eager_tasks import interrupt, start_now

PIECE = 1_000
"""Characters of text that are read at once: other tasks run in between. A reply may come as one event."""
AHEAD = 64  # source events read before the consumer takes the first: a burst of one network packet, and a bound

Source = AsyncIterable[SourceEvent] | Iterable[SourceEvent]


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The source is over; has the error that it raised, if any."""

    failure: Exception | None = None


class Inbox:
    """The events that have arrived and have not been taken yet, in `items`."""

    reading: asyncio.Task[None] | None = None
    _stopped = False
    _news: asyncio.Future[None] | None = None
    _space: asyncio.Future[None] | None = None

    def __init__(self) -> None:
        self.items: deque[SourceEvent | ToolEvent | SourceEnd] = deque()

    def put(self, item: SourceEvent | ToolEvent | SourceEnd) -> None:
        """Add an event."""
        self.items.append(item)
        if self._news is not None:
            self.wake()

    def drop_end(self, index: int) -> None:
        """Drop the event of this call's end, if it is here."""
        for item in [i for i in self.items if isinstance(i, ToolCompleted | ToolFailed | ToolSkipped)]:
            if item.index == index:
                self.items.remove(item)

    def take(self) -> SourceEvent | ToolEvent | SourceEnd:
        """Return the next event, which must exist; text that arrived together is one piece, read in one step."""
        items, item = self.items, self.items.popleft()
        if type(item) is not Text or not items or type(items[0]) is not Text:
            return item
        pieces, size = [item.text], len(item.text)
        while items and type(items[0]) is Text and size < PIECE:
            pieces.append(items.popleft().text)  # type: ignore[union-attr]  # it is a text
            size += len(pieces[-1])
        return Text("".join(pieces))

    def wake(self) -> None:
        """Make `wait` return without an event."""
        news, self._news = self._news, None
        if news is not None and not news.done():
            try:
                news.set_result(None)
            except RuntimeError:  # its loop was closed: nothing wakes up there any more
                return

    async def wait(self) -> None:
        """Wait for an event."""
        if self._space is not None and not self._space.done():
            self._space.set_result(None)
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def read(self, source: Source, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Start to read a source; a `SourceEnd` follows its last event."""
        self.reading = start_now(self._read(source), loop or asyncio.get_running_loop())

    def stop(self) -> None:
        """Stop reading, and close the source. It counts as ended, however long it takes to close."""
        self.put(SourceEnd())
        self._stopped = True
        if self.reading is not None:
            self.reading.cancel()

    async def _read(self, source: Source) -> None:
        failure: Exception | None = None
        try:
            await self._take(source if isinstance(source, AsyncIterable) else _each(source))
        except asyncio.CancelledError:
            if not self._stopped:
                failure = ProviderError("the stream of events cancelled itself", kind="stream", provider="source")
        except KeyboardInterrupt as e:
            await interrupt(e)
        except Exception as e:  # noqa: BLE001 - raised by the turn when the finished calls have their answers
            failure = e
        finally:
            self.put(SourceEnd(failure))
            if self._stopped and hasattr(source, "aclose"):
                await source.aclose()

    async def _take(self, source: AsyncIterable[SourceEvent]) -> None:
        items = self.items
        async for event in source:
            long = type(event) is Text and len(event.text) > PIECE
            for piece in _cut(event.text) if long else (event,):  # type: ignore[union-attr]  # it is a text
                items.append(piece)
                if self._news is not None:
                    self.wake()
                if long or len(items) >= AHEAD:  # until the consumer has taken them
                    self._space = asyncio.get_running_loop().create_future()
                    await self._space


def _cut(text: str) -> Iterator[Text]:
    return (Text(text[at : at + PIECE]) for at in range(0, len(text), PIECE))


async def _each(source: Iterable[SourceEvent]) -> AsyncIterator[SourceEvent]:
    for event in source:
        yield event
