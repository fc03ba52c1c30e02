"""One response as it is read: its events, the calls in its text, and calls that a native model wrote as text.

Pure: events in, events out. Knows no tool that could run, no clock and no event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from agentkit.events import CallEnd, CallError, CallStart, Finish, ProviderBlock, SourceEvent, Text, Thinking, Usage
from agentkit.messages import ToolCall
from agentkit.processor.intake import Intake, OpenCalls
from agentkit.processor.recovery import Recovery
from agentkit.processor.textcalls import TextCalls, TextOpenCalls


class ResponseReader:
    """Reads one response's events.

    Its output numbers native and text calls in one sequence, has an id for every call and, in place of the text, what
    was read from it. Thinking, a native call, a provider's block and the finish end the text before them: no text call
    reaches across. What was taken from it is in `intake`.

    Args:
        intake: receives what is read.
        text: reads the text for calls, and passes them to the same intake; None leaves text unchanged.
        recovery: finds the calls that a native model wrote as text; None leaves them as text.
    """

    def __init__(self, intake: Intake, text: TextCalls | None = None, recovery: Recovery | None = None) -> None:
        self.intake = intake
        self.text = text
        self._recovery = recovery
        self._native = OpenCalls()

    def feed(self, event: SourceEvent) -> Iterable[SourceEvent]:
        """Read one event. Once the response is full, only its usage is read."""
        intake = self.intake
        if intake.full:
            if isinstance(event, Usage):
                intake.take(event, self._native)
            return ()
        if isinstance(event, Text) and self.text is not None:
            return self.text.feed(event.text)
        if isinstance(event, Finish):
            return self._finished(event)
        if self._recovery is not None:
            certain = self._recovery.feed(event)
            if len(certain) != 1:
                return intake.keep(certain, self._native)
            return intake.keep_one(certain[0], self._native)
        if self.text is not None and self.text.begun and self._ends_text(event):
            return self._after_text(event, self.text)
        return intake.keep_one(event, self._native)

    def close(self, *, whole: bool = True, cut: bool = False) -> Iterable[SourceEvent]:
        """End the response: the text held back, and an error for each call that was left unfinished.

        Only a response that is `whole`, not interrupted, is known to have no native call: otherwise none is recovered.
        One that its token limit `cut` may have ended inside the first characters of a call.
        """
        text, recovery = self.text, self._recovery
        unread = (recovery is not None and recovery.open) or (text is not None and (text.begun or text.asked))
        return self._close(whole=whole, cut=cut) if (unread or self._native.by_number) and not self.intake.full else ()

    def _close(self, *, whole: bool, cut: bool) -> Iterator[SourceEvent]:
        if self._recovery is not None:
            yield from self.intake.keep(self._recovery.close(whole=whole), TextOpenCalls())
        elif self.text is not None:
            yield from self.text.end(cut=cut)
        for index, opened in list(self._native.by_number.items()):
            raw = opened.raw.text()
            message = f"the response ended after {len(raw)} characters of this call's arguments; call again, in full"
            call = ToolCall(opened.id, opened.name, raw=raw)
            error = CallError(index, "truncated_call", message, call, len(raw))
            yield from self.intake.keep([error], self._native)

    @property
    def open(self) -> bool:
        """Whether a further response can continue a text call that this one left unfinished."""
        return self.text is not None and not self._native.by_number and self.text.open

    def _ends_text(self, event: SourceEvent) -> bool:
        """Whether a part of the message begins here, so that the text before it is over."""
        match event:
            case CallStart() | CallEnd() | CallError():
                return event.index not in self._native.by_number
            case _:  # a further response may think before it continues the text
                return isinstance(event, (Thinking, ProviderBlock)) and not (self.text is not None and self.text.asked)

    def _after_text(self, event: SourceEvent, text: TextCalls) -> Iterator[SourceEvent]:
        yield from text.end()
        yield from self.intake.keep((event,), self._native)

    def _finished(self, event: Finish) -> Iterable[SourceEvent]:
        rest = self.close(cut=event.reason == "length")
        return (
            chain(rest, self.intake.keep((event,), self._native)) if rest else self.intake.keep_one(event, self._native)
        )
