"""Where a response's events come from, and when that is over: its own source and, at the token limit, further ones.

Knows the inbox and what a source may raise; knows no tool. Of the reader it asks what could go on, and no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from agentkit.errors import ProviderError
from agentkit.events import Finish, SourceEvent
from agentkit.messages import AssistantMessage
from agentkit.processor.inbox import Inbox, Source, SourceEnd
from agentkit.processor.response import ResponseReader

More = Callable[[AssistantMessage], Source | None]
"""Asks for a further response that goes on with what was written so far; None lets it be cut."""

DRAIN = 100  # events read behind the last call, for the usage that stands at a stream's end
DRAIN_SECONDS = 2.0


class Drain:
    """What is still read of a source although its response is full: so many events, for so long.

    Args:
        stop: ends the source.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._read = 0
        self.timer = asyncio.get_running_loop().call_later(DRAIN_SECONDS, stop)

    def one_more(self) -> None:
        """An event was read behind the response's end."""
        self._read += 1
        if self._read == DRAIN:
            self._stop()


class Sources:
    """The sources of one response.

    Args:
        inbox: takes what they bring.
        first: the response's own.
        more: asked at the token limit for one that goes on; None lets the response be cut.
    """

    def __init__(self, inbox: Inbox, first: Source, more: More | None = None) -> None:
        self.ended: SourceEnd | None = None
        """The last of them is over; None until then."""
        self.refused: ProviderError | None = None
        """Why the response could not go on behind its token limit, where it was asked to and its provider refused."""
        self._inbox = inbox
        self._first = first
        self._more = more
        self._drain: Drain | None = None
        self._cut: Finish | None = None  # at the token limit, inside a call that may go on
        self._limit: Finish | None = None  # the one behind which it was asked to go on

    def begin(self) -> None:
        """Read the first."""
        self._inbox.read(self._first)

    def leave(self) -> None:
        """None of them is read."""
        self.ended = SourceEnd()

    def drain(self) -> Drain:
        """The response is full: what is still read, from now on."""
        if self._drain is None:
            self._drain = Drain(self._inbox.stop)
        return self._drain

    def over(self) -> None:
        """Nothing is read any more."""
        if self._drain is not None:
            self._drain.timer.cancel()

    def may_go_on(self, finish: Finish) -> bool:
        """Whether this is the token limit, behind which there may be more."""
        return self._more is not None and finish.reason == "length"

    def at_limit(self, limit: Finish, reader: ResponseReader) -> Iterator[SourceEvent]:
        """The token limit: the response may go on, if it ended inside a call."""
        if reader.text is not None:
            yield from reader.text.join(cut=True)
        if reader.open:
            self._cut = limit
        else:
            yield from reader.feed(limit)

    def next(self, end: SourceEnd, reader: ResponseReader, *, wanted: bool) -> Finish | None:
        """One is over. Go on with a further one, unless this was the last; then `ended` is set.

        Args:
            end: with the error that it raised, if any; none where what becomes of the rest does not matter.
            reader: of the response.
            wanted: whether more of it is.

        Returns:
            The finish that the response now meets after all, because nothing goes on behind it.
        """
        text = reader.text
        if text is None:  # nothing of it can go on
            self.ended = end
            return None
        cut, self._cut = self._cut, None
        if isinstance(end.failure, ProviderError) and self._limit is not None and text.waits:
            self.refused, end, cut = end.failure, SourceEnd(), self._limit
        elif wanted and cut is not None and self._more is not None and end.failure is None:
            source = self._more(text.partial())
            if source is not None:
                self._limit = cut
                text.resume()
                self._inbox.read(source)
                return None
        self.ended = end
        return cut
