"""One response as it is read: its events, the calls in its text, and calls that a native model wrote as text.

Pure: events in, events out. Knows no tool that could run, no clock and no event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from agentkit.events import (
    TAKEN_BACK,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallQuoted,
    CallStart,
    Finish,
    ModelSelected,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    UnreadCall,
    Usage,
)
from agentkit.messages import ToolCall
from agentkit.processor.lost_attempts import ends_with, find_attempt
from agentkit.processor.maybe_output import IsOutput
from agentkit.processor.response_record import CallRefusal, OpenCalls, ResponseRecord
from agentkit.processor.textcalls import TextCalls
from agentkit.toolspec import ToolSpec

_WHOLE = TAKEN_BACK | {"stop", "tool_calls"}  # after another end nobody knows what would have followed
_UNSAID = Finish("unknown")  # … but for a server that gives no reason, it is the usual one
_BESIDE = frozenset((ArgumentDelta, ModelSelected))  # they do not divide the text around them


class ResponseReader:
    """Reads one response's events.

    Its output numbers native and text calls in one sequence, has an id for every call and, in place of the text, what
    was read from it. Thinking, a native call, a provider's block and the finish end the text
    before them: no text call reaches across. What was taken from it is in `record`.

    Args:
        record: receives what is read.
        text: reads the text for calls, and passes them to the same record; None leaves text unchanged.
        blocks: receives the provider's blocks, as they are read: the text after them may quote them. None keeps none.
        offered: the tools whose calls the text may attempt in a way that cannot be read.
        asked: the calls that are only quotes, and the tools that a run's model was asked to call natively because their
            calls may be quotes: once.
        output: whether the text is meant as the run's output, and so no attempt. None: no text is.
    """

    def __init__(
        self,
        record: ResponseRecord,
        text: TextCalls | None = None,
        *,
        blocks: list[ProviderBlock] | None = None,
        offered: Sequence[ToolSpec] = (),
        asked: set[str] | None = None,
        output: IsOutput | None = None,
        refusal: CallRefusal | None = None,
    ) -> None:
        self.record = record
        self.text = text
        self.native = OpenCalls(refusal=refusal)
        self._blocks = [] if blocks is None else blocks
        self._offered, self._output = offered, output
        self._asked = set[str]() if asked is None else asked
        self._unread: list[SourceEvent] = []  # what the source could not read of it; it may be text that is read here

    def feed(self, event: SourceEvent) -> Iterable[SourceEvent]:
        """Read one event. Once the response is full, only its usage is read."""
        record, text, kind = self.record, self.text, type(event)
        if record.full:
            if kind is Usage:
                record.keep_one(event, self.native)
            return ()
        if kind is Text and text is not None:
            return text.feed(event.text)  # type: ignore[union-attr]  # it is a text
        if kind is Finish:
            return self._finished(event)  # type: ignore[arg-type]
        if kind is UnreadCall:
            self._unread.append(event)
            return ()
        if text is None or kind in _BESIDE:
            return record.keep_one(event, self.native)
        if isinstance(event, ProviderBlock):
            self._blocks.append(event)
        if text.unfinished and self._ends_text(event):
            return self._after_text(event, text)
        return text.feed_event(event, self.native)

    def close(self, *, whole: bool = True, cut: bool = False) -> Iterable[SourceEvent]:
        """End the response: the text held back, and an error for each call that was left unfinished.

        Only a response that is `whole`, not interrupted, is known to have no native call: otherwise none is recovered.
        One that its token limit `cut` may have ended inside the first characters of a call.
        """
        left = self._unread or self.native.by_number or (self.text is not None and self.text.unread)
        return self._close(whole=whole, cut=cut) if left and not self.record.full else ()

    def _close(self, *, whole: bool, cut: bool) -> Iterator[SourceEvent]:
        if self.text is not None:
            yield from self.text.close(whole=whole, cut=cut)
        for index, opened in list(self.native.by_number.items()):
            raw = opened.raw.text()
            message = f"the response ended after {len(raw)} characters of this call's arguments; call again, in full"
            call = ToolCall(opened.id, opened.name, raw=raw)
            error = CallError(index, "truncated_call", message, call, len(raw))
            yield from self.record.keep([error], self.native)
        if self._unread and not any(call is not None and call.format is not None for call in self.record.calls):
            yield from self.record.keep(self._unread, self.native)
        elif self._offered and not self.record.calls:
            quotes = self.text is not None and self.text.quotes
            unread = self._attempt(whole=whole and not quotes, cut=cut)
            if unread is not None:
                yield from self.record.keep((unread,), self.native)

    def _attempt(self, *, whole: bool, cut: bool) -> UnreadCall | None:
        """Return the call that a reply without calls attempts, so that it is not an answer.

        One that may be a quote, but not a copy, and with which a native model's reply ends, is one, once for each tool.
        """
        text = self.record.draft.message().text
        unread: UnreadCall | None = None
        if (quoted := self.record.odd.get(CallQuoted)) is not None:
            name, raw = quoted.call.name, quoted.call.raw
            asks = self.text is not None and self.text.native and not self._asked & {name, raw}
            if whole and asks and ends_with(text, raw):
                self._asked.add(name)
                unread = UnreadCall(raw, name)
        elif whole or cut:
            said = ((text.rpartition("\n")[0] if cut else "") or text).strip()  # without the line that was cut
            unread = find_attempt(said, self._offered, alone=self._output is None)
            if cut and unread is not None and unread.text != said:  # it may only be described
                return None
        if unread is not None and self._output is not None and self._output(text, whole=False):
            return None
        return unread

    def _ends_text(self, event: SourceEvent) -> bool:
        """Return whether a part of the message begins here, so that the text before it is over."""
        match event:
            case CallStart() | CallEnd() | CallError():
                return event.index not in self.native.by_number
            case _:  # a further response may think before it continues the text
                return isinstance(event, (Thinking, ProviderBlock)) and not (self.text is not None and self.text.asked)

    def _after_text(self, event: SourceEvent, text: TextCalls) -> Iterator[SourceEvent]:
        yield from text.end()
        yield from text.feed_event(event, self.native)

    def _finished(self, event: Finish) -> Iterable[SourceEvent]:
        rest = self.close(whole=event.reason in _WHOLE or event == _UNSAID, cut=event.reason == "length")
        return (
            chain(rest, self.record.keep((event,), self.native)) if rest else self.record.keep_one(event, self.native)
        )
