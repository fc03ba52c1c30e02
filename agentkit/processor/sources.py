"""The sources of a response's events: its own and, at the token limit, those that continue it.

Knows the inbox and what a source may raise; knows no tool. It only asks the reader what could be continued.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from agentkit.errors import ProviderError
from agentkit.events import Finish, SourceEvent
from agentkit.messages import AssistantMessage
from agentkit.processor.inbox import Inbox, Source, SourceEnd
from agentkit.processor.response import ResponseReader

More = Callable[[AssistantMessage], Source | None]
"""Requests a further response that continues what was written so far; None lets it be cut."""

DRAIN = 2.0  # seconds for which a source is read after the last call, for the usage at its end


class Sources:
    """The sources of one response: the first one, and those that `more` returns at the token limit."""

    ended: SourceEnd | None = None
    """The last source is over; None until then."""
    refusal: ProviderError | None = None
    """Why the response could not continue after its token limit, if that was requested and its provider refused."""
    _timer: asyncio.TimerHandle | None = None
    _cut: Finish | None = None  # at the token limit, inside a call that may continue
    _limit: Finish | None = None  # the one after which a continuation was requested

    def __init__(self, inbox: Inbox, first: Source, more: More | None = None) -> None:
        self._inbox = inbox
        self._first = first
        self._more = more

    def begin(self, loop: asyncio.AbstractEventLoop | None, *, read: bool) -> None:
        """Read the first source, if there is one, in the running event loop."""
        if read:
            self._inbox.read(self._first, loop)
        else:
            self.ended = SourceEnd()

    def drain(self) -> None:
        """Read on for a limited time: the response is full."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DRAIN, self._inbox.stop)

    def close(self) -> None:
        """Stop the clock: nothing is read any more."""
        if self._timer is not None:
            self._timer.cancel()

    def at_limit(self, limit: Finish, reader: ResponseReader) -> Iterable[SourceEvent]:
        """End at the token limit; the response may continue if it ended inside a call."""
        if self._more is not None and reader.text is not None:
            yield from reader.text.join(cut=True)
            if reader.text.open and not reader.native.by_number:
                self._cut = limit
                return
        yield from reader.feed(limit)

    def next(self, end: SourceEnd, reader: ResponseReader, *, wanted: bool) -> Finish | None:
        """Continue with a further source if one is `wanted`, unless this was the last; then `ended` is set.

        Returns the finish that now applies to the response after all, because nothing continues it.
        """
        text, cut, self._cut = reader.text, self._cut, None
        if isinstance(end.failure, ProviderError) and self._limit is not None and text is not None and text.waits:
            self.refusal, end, cut = end.failure, SourceEnd(), self._limit
        elif wanted and cut is not None and self._more is not None and text is not None and end.failure is None:
            source = self._more(text.partial())
            if source is not None:
                self._limit = cut
                text.resume()
                self._inbox.read(source)
                return None
        self.ended = end
        return cut
