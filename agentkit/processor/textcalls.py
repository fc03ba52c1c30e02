"""The text of one response: read for calls, and continued after the token limit by a further response.

Pure: text in, events out. The parser is passed as an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agentkit.events import CallEnd, CallError, SourceEvent, Text
from agentkit.messages import AssistantMessage, AssistantPart, ProviderPart, TextPart, ThinkingPart, ToolCall
from agentkit.processor import not_run
from agentkit.processor.continuation import WrittenText
from agentkit.processor.maybe_output import IsOutput, MaybeOutput
from agentkit.processor.not_run import NotRun
from agentkit.processor.recovery import NewReader, Quoted, Recovery
from agentkit.processor.response_record import CallRefusal, OpenCalls, ResponseRecord

if TYPE_CHECKING:
    from agentkit.formats import Parser


def refusal_of(already_run: Iterable[ToolCall], quoted: Quoted | None = None) -> CallRefusal:
    """Return the function that says why a call must not run: it already ran, or, in text, is a quote."""
    ran = [(call.name, call.arguments) for call in already_run]

    def refusal(call: ToolCall) -> NotRun | None:
        if (call.name, call.arguments) in ran:
            return not_run.ALREADY_RUN
        return not_run.QUOTED if quoted is not None and quoted(call) is not None else None

    return refusal


class TextCalls:
    """Reads one response's text for calls; those of tools that untrusted input names are answered with an error.

    Args:
        record: receives what is read.
        new_parser: creates a parser; None for a native model, whose text is only read by `recovery`.
        written: keeps the text as it was written, so that a further response may continue it; None keeps nothing.
        quoted: see `Recovery`.
        already_run: the calls that ran in the previous response, if its token limit cut it.
        output: see `MaybeOutput`.
        recovery: finds calls in other formats, which count if there is none in these. None leaves them as text.
    """

    def __init__(
        self,
        record: ResponseRecord,
        new_parser: NewReader | None,
        *,
        written: WrittenText | None = None,
        quoted: Quoted | None = None,
        already_run: Iterable[ToolCall] = (),
        output: IsOutput | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        self._record = record
        self._recovery = recovery
        self.quotes = False
        """True if a call was found that is quoted, drafted or described."""
        self.native = new_parser is None
        self._new_parser = new_parser
        self._written = written
        in_text = new_parser is not None  # in a native model's text, calls count only from `close` on
        self._calls = OpenCalls(textual=in_text, restores=in_text, refusal=refusal_of(already_run, quoted))
        self._reply = None if output is None else MaybeOutput(output)
        self._parser: Parser | None = None
        self._after: Parser | None = None  # the closed parser that read the text before, in the same response
        self._first = False  # whether the parser reads the very beginning
        self._further: list[str] | None = None  # the text of a further response, while that is not complete

    def feed(self, text: str) -> Iterable[SourceEvent]:
        """Read a piece of text."""
        if self._further is not None:
            self._further.append(text)
            return ()
        return self._keep(self._read(text))

    def feed_event(self, event: SourceEvent, opened: OpenCalls) -> Iterable[SourceEvent]:
        """Take an event that is not text."""
        recovery = self._recovery
        if recovery is None or not recovery.open:
            return self._record.keep_one(event, opened)
        return self._record.keep_all(recovery.feed(event), opened)

    def close(self, *, whole: bool, cut: bool) -> Iterator[SourceEvent]:
        """Read the rest of the response; calls in other formats count only if it is `whole`."""
        yield from self.end(cut=cut)
        recovery, self._recovery = self._recovery, None
        if recovery is not None:
            self._calls.textual = True
            yield from self._record.keep(recovery.close(whole=whole), self._calls)
            self.quotes = recovery.quotes

    @property
    def unread(self) -> bool:
        """Return whether the end of the response may bring something."""
        return self.unfinished or self.asked or (self._recovery is not None and self._recovery.open)

    def _keep(self, events: Sequence[SourceEvent]) -> Iterable[SourceEvent]:
        if (recovery := self._recovery) is not None and recovery.open:
            events = [certain for event in events for certain in recovery.feed(event)]
        return self._record.keep_all(events, self._calls)

    def end(self, *, cut: bool = False) -> Iterator[SourceEvent]:
        """Read the rest; the token limit may have `cut` it."""
        yield from self.join(cut=cut)
        if self._parser is not None:
            self._after = self._parser
            yield from self._end(self._parser.close(), cut=cut)

    def _end(self, last: Sequence[SourceEvent], *, cut: bool) -> Iterator[SourceEvent]:
        """End the parser, of which these are the last events."""
        self._parser = None
        if self._written is not None:
            self._written.report(last)
            self._written.end()
            last = self._written.as_cut(last) if cut else last
        if self._reply is not None:
            last = [*self._reply.certain(last), *self._reply.release()]
        yield from self._keep(last)
        self._calls.by_number.clear()

    def _read(self, text: str) -> Sequence[SourceEvent]:
        if self._new_parser is None:
            return (Text(text),)
        if self._parser is None:
            self._first = not self._record.draft
            self._parser = self._new_parser(self._first, self._after)
        events: Sequence[SourceEvent] = self._parser.feed(text)
        if self._written is not None:
            self._written.feed(text)
            self._written.report(events)
        if self._reply is not None:
            events = self._reply.certain(events)
        return events

    @property
    def unfinished(self) -> bool:
        """Return whether there is text whose end was not read yet."""
        return self._parser is not None

    # -------------------------------------------------------------- continuing in a further response

    @property
    def open(self) -> bool:
        """Return whether a further response can continue a call that is left unfinished here."""
        if self._written is None or self._parser is None or self._record.full:
            return False
        native = any(call is not None and call.format is None for call in self._record.calls)
        return not native and self._written.open

    @property
    def asked(self) -> bool:
        """Return whether a further response was requested and is not complete yet."""
        return self._further is not None

    @property
    def waits(self) -> bool:
        """Return whether a further response was requested and has said nothing yet."""
        return self._further is not None and not self._further

    def partial(self) -> AssistantMessage:
        """Return the reply so far, for a model that is to continue: its thinking, and all its text as written."""
        written = self._written
        in_text = written is not None and written.thought
        content: list[AssistantPart] = [
            part
            for part in self._record.draft.message().content
            if (isinstance(part, ProviderPart) and part.call_id is None)
            or (isinstance(part, ThinkingPart) and (part.data is not None or not in_text))
        ]
        return AssistantMessage((*content, TextPart(written.text if written is not None else "")))

    def resume(self) -> None:
        """Let a further response continue the open call. Nothing of its text is read before `join`."""
        self._further = []
        self._record.add_further_response()

    def join(self, *, cut: bool) -> Iterator[SourceEvent]:
        """Read a further response, now that it is complete: as more of the open call, or as mere text."""
        if self._further is None or self._written is None:
            return
        text, self._further = "".join(self._further), None
        new_parser = self._new_parser
        if self._record.full or new_parser is None or self._parser is None:
            return
        if self._written.continues(text, lambda same: new_parser(same and self._first, None), cut=cut):
            yield from self._keep(self._read(text))
        else:
            yield from self._end([*map(_unfinished, self._parser.close())], cut=True)
            yield from self._keep([Text(text)])


def _unfinished(event: SourceEvent) -> SourceEvent:
    """Return the call as one that was cut, even if a parser can complete it."""
    if not isinstance(event, CallEnd):
        return event
    message = "the response reached its token limit inside this call, and was not continued there; call again, in full"
    return CallError(event.index, "truncated_call", message, event.call, len(event.call.raw))
