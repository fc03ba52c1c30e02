"""The text of one response: it becomes calls, and a further response may continue it after the token limit.

Pure: text in, events out. The parser is passed as an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, Literal

from agentkit.events import CallEnd, CallError, Markup, SourceEvent, Text, Thinking
from agentkit.messages import AssistantMessage, AssistantPart, ProviderPart, TextPart, ThinkingPart, ToolCall
from agentkit.processor.continuing import Made, Record
from agentkit.processor.intake import Intake, OpenCalls
from agentkit.processor.maybe_output import IsOutput, MaybeOutput
from agentkit.processor.recovery import Quoted, Recovery
from agentkit.processor.textreader import NewReader, TextReader

MADE: Final = (
    "the reply that was cut by the token limit has this very call, with its answer; it was not run a second time. To "
    "run it once more, call it again in your next reply"
)

QUOTED: Final = (
    "the same call occurs in a tool result, a user message or an earlier reply, so it may be a quote and was not run. "
    "To make it, call the tool natively"
)

_Further = Literal["none", "asked", "silent", "joined", "anew"]
"""The state of a further response: none was requested; it is being read; it said nothing; it continues the text; it is
a separate reply, so that nothing can continue any more."""


class TextOpenCalls(OpenCalls):
    """The calls of a text that have started but not ended.

    Args:
        made: the calls that ran before and may be repeated; they are not run a second time.
        quoted: whether a call already occurs in what the model has read: it is not run. None skips this check.
        restores: whether the model reads results quarantined, so that its arguments may pass on what was cut there.
    """

    textual = True

    def __init__(self, made: Made | None = None, quoted: Quoted | None = None, *, restores: bool = False) -> None:
        super().__init__()
        self.restores = restores
        self.made = made or Made()
        self._quoted = quoted

    def refused(self, call: ToolCall) -> str | None:
        """Why it must not run, as a message for the model: it already ran, or is quoted."""
        if self.made.again(call):
            return MADE
        return QUOTED if self._quoted is not None and self._quoted(call) is not None else None

    def ended(self, call: ToolCall) -> None:
        """It is to be run."""
        self.made.add(call)


class TextCalls:
    """Reads one response's text for calls.

    Args:
        intake: receives what is read.
        new_parser: creates a parser.
        record: keeps the text as it was written, so that a further response may continue it; None keeps nothing.
        quoted: whether a call already occurs in what a native model has read: it is answered with an error. None skips
            this check.
        made: the calls that ran in the previous response, if its token limit cut it.
        output: whether the whole text is meant as the run's output, and so no call. None: any text may be the output.
        recovery: finds calls in other formats, as in a native model's text; they count if there is none in these. None
            leaves them as text.
    """

    def __init__(
        self,
        intake: Intake,
        new_parser: NewReader,
        *,
        record: Record | None = None,
        quoted: Quoted | None = None,
        made: Made | None = None,
        output: IsOutput | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        self._intake = intake
        self._recovery = recovery
        self.quotes = False
        """Whether a call was found that is quoted, drafted or described."""
        self._new_parser = new_parser
        self._record = record
        self._calls = TextOpenCalls(made, quoted, restores=True)
        self._reply = None if output is None else MaybeOutput(output)
        self._parser: TextReader | None = None
        self._after: TextReader | None = None  # read the text before, in the same response
        self._first = False  # whether the parser reads the very beginning
        self._further: _Further = "none"
        self._waiting: list[str] = []  # the text of a further response, until it is complete

    def feed(self, text: str) -> Iterator[SourceEvent] | tuple[()]:
        """Read a piece of text."""
        if self._further == "asked":
            self._waiting.append(text)
            return ()
        return self._keep(self._read(text))

    def pass_by(self, event: SourceEvent, opened: OpenCalls, *, wordless: bool) -> Iterable[SourceEvent]:
        """Take an event that is not text; `wordless` if it does not divide the text around it."""
        if not self.recovers or self._recovery is None:
            return self._intake.keep_one(event, opened)
        take = self._recovery.pass_by if wordless and self._recovery.begun else self._recovery.feed
        return self._intake.keep(take(event), opened)

    def close(self, *, whole: bool, cut: bool) -> Iterator[SourceEvent]:
        """The response is over: read the rest; calls in other formats count only if it is `whole`."""
        yield from self.end(cut=cut)
        recovery, self._recovery = self._recovery, None
        if recovery is not None:
            yield from self._intake.keep(recovery.close(whole=whole), self._calls)
            self.quotes = recovery.quotes

    @property
    def recovers(self) -> bool:
        """Whether calls in other formats may still count."""
        return self._recovery is not None and self._recovery.open

    def _keep(self, events: Sequence[SourceEvent]) -> Iterator[SourceEvent]:
        if self.recovers and self._recovery is not None:
            return self._intake.keep(chain.from_iterable(map(self._recovery.feed, events)), self._calls)
        return self._intake.keep(events, self._calls)

    def end(self, *, again: bool = False, cut: bool = False) -> Iterator[SourceEvent]:
        """Read the rest. A call that may be started `again` does not run here, even if a parser can complete it."""
        yield from self.join(cut=cut)
        if self._parser is None:
            return
        parser, self._parser = self._parser, None
        last = parser.close()
        self._after = None if again else parser
        if again:
            last = [*map(_unfinished, last)]
        if self._record is not None:
            told = _as_cut(last, self._record) if cut or again or self._further == "silent" else last
            self._record.told(last)
            self._record.ended()
            last = told
        if self._reply is not None:
            last = [*self._reply.certain(last), *self._reply.settled()]
        yield from self._keep(last)
        self._calls.by_number.clear()

    def _read(self, text: str) -> Sequence[SourceEvent]:
        if self._parser is None:
            self._first = self._intake.draft.empty
            self._parser = self._new_parser(self._first, self._after)
        events = self._parser.feed(text)
        if self._record is not None:
            self._record.fed(text)
            self._record.told(events)
        if self._reply is not None:
            self._reply.add(text)
            events = self._reply.certain(events)
        return events

    @property
    def begun(self) -> bool:
        """Whether there is text whose end was not read yet."""
        return self._parser is not None

    # -------------------------------------------------------------- continuing in a further response

    @property
    def open(self) -> bool:
        """Whether a further response can continue a call that is left unfinished here."""
        if self._record is None or self._parser is None or self._intake.full or self._further == "anew":
            return False
        native = any(call is not None and call.format is None for call in self._intake.calls)
        return not native and self._record.may_be_call

    @property
    def asked(self) -> bool:
        """Whether a further response was requested and is not complete yet."""
        return self._further == "asked"

    @property
    def waits(self) -> bool:
        """Whether a further response was requested and has said nothing yet."""
        return self.asked and not self._waiting

    def partial(self) -> AssistantMessage:
        """What was written so far, for a model that is to continue: its thinking, and all its text as written."""
        record = self._record
        in_text = record is not None and record.thought
        content: list[AssistantPart] = [
            part
            for part in self._intake.draft.message().content
            if (isinstance(part, ProviderPart) and part.call_id is None)
            or (isinstance(part, ThinkingPart) and (part.data is not None or not in_text))
        ]
        return AssistantMessage((*content, TextPart(record.text if record is not None else "")))

    def resume(self) -> None:
        """A further response may continue the open call. Nothing of its text is read before `join`."""
        self._further, self._waiting = "asked", []
        self._calls.made.resumed()
        self._intake.goes_on()

    def join(self, *, cut: bool) -> Iterator[SourceEvent]:
        """Read what a further response brought, now that it is complete: as more of the call, or as a separate reply.

        Args:
            cut: whether it also reached its token limit.
        """
        if self._further != "asked" or self._record is None:
            return
        text = "".join(self._waiting)
        self._further = "joined" if text else "silent"
        if not text or self._intake.full:
            return
        rest = self._record.rest(text, lambda same: self._new_parser(same and self._first, None), cut=cut)
        self._calls.made.may_begin_again()
        if rest is None:
            self._further = "anew"
            yield from self.end(again=True)
        if not self._intake.full:
            yield from self._keep(self._read(text if rest is None else rest))


def _unfinished(event: SourceEvent) -> SourceEvent:
    """The call as one that was cut."""
    if not isinstance(event, CallEnd):
        return event
    message = "the response ended inside this call, and what followed is read as a separate reply; call again, in full"
    return CallError(event.index, "truncated_call", message, event.call, len(event.call.raw))


def _as_cut(last: Sequence[SourceEvent], record: Record) -> Sequence[SourceEvent]:
    """The last events of a text that was cut, if its end may be the first characters of a call."""
    place = max((i + 1 for i, event in enumerate(last) if isinstance(event, CallEnd | CallError)), default=0)
    follows = place > 0 or record.behind_call
    begun = "".join(event.text for event in last[place:] if isinstance(event, Text | Markup | Thinking))
    if isinstance(last[place - 1], CallError) if place else not last:
        return last
    if record.begins_call(begun, follows=follows):
        where = "in what may be a call"
    elif record.may_begin_either(begun):
        where = "in the end of the calls, or in what may be a further call"
    else:
        return last
    space = begun[: len(begun) - len(begun.lstrip())]
    raw = begun[len(space) :]
    message = f"the response reached its token limit {where}, at {raw!r:.80}; write it again, in full"
    call = ToolCall("", "", format=record.format, raw=raw)
    return [*last[:place], *([Text(space)] if space else []), CallError(-1, "truncated_call", message, call, len(raw))]
