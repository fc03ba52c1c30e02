"""Calls that a native model wrote as text: found while the text streams, accepted or not when the response is over.

Pure: source events in, source events out. The parser finds calls; this decides whether they count. It never loses a
character: what does not count stays the text that it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallQuoted,
    CallStart,
    InventedResult,
    Markup,
    SourceEvent,
    Text,
    Thinking,
    Usage,
    merge,
)
from agentkit.formats.pieces import Pieces
from agentkit.messages import ToolCall
from agentkit.processor.call_position import FILLER, CallPosition, TextBefore, has_no_markup
from agentkit.processor.format_tokens import format_tokens, last_end_of_thinking
from agentkit.processor.maybe_output import IsOutput
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from agentkit.formats import Parser

_HEAD: Final = 300  # characters: longer than any opener with a tool's name

Quoted = Callable[[ToolCall], CallQuoted | None]

NewReader = Callable[[bool, "Parser | None"], "Parser"]
"""Creates a parser; called with whether it reads the very beginning of a response, and with the closed one that read
the text before, if something other than text came in between."""


class _Wrapping(NamedTuple):
    """Text that the parser read as markup. It stays markup only after a call that counts; otherwise it is text."""

    text: str


class _Thought(NamedTuple):
    """Text between tags of thinking, with the tags: it says nothing, and ends no thinking before it."""

    text: str


class _Found(NamedTuple):
    """A call that counts if the response brings no native one; a `loose` one only if also nothing is said after it."""

    lead: str
    end: CallEnd
    loose: bool

    @property
    def text(self) -> str:
        """The call as it was written."""
        return self.lead + self.end.call.raw


_Waiting = SourceEvent | _Wrapping | _Thought | _Found


class Recovery:
    """Reads one response of a model that should call natively.

    Text passes through as it comes, except what may be a call. From the first call that may count, everything waits
    until the response ends, or a native call makes it text.

    A call counts if it can be read without damage, names an offered tool, has all required arguments, and is not
    quoted: it is not in thinking, code or quotation marks (`position`), and nothing the model has read names its tool.
    A call without its own markup (bare JSON, `name(…)`) must begin a line, and one in a code fence must begin the
    reply; only calls may follow either. A tag that the tool's author did not declare must contain an argument.

    Args:
        new_parser: creates a parser for every format.
        tools: the offered tools.
        quoted: whether what the model has read names a call's tool, so that it may be a quote. None skips this check.
        output: whether a text is meant as the run's output, and so not as calls. Then bare JSON and `name(…)` are not
            calls either. None: no output of a certain type is expected.
    """

    def __init__(
        self,
        new_parser: NewReader,
        tools: Sequence[ToolSpec],
        quoted: Quoted | None = None,
        output: IsOutput | None = None,
    ) -> None:
        self.quotes = False
        """True if a call was found that is quoted, drafted or described."""
        self._new_parser: NewReader | None = new_parser  # None once it is over
        self._quoted = quoted
        self._tools = {tool.name: tool for tool in tools}
        self._output = output
        self._parser: Parser | None = None
        self._after: Parser | None = None  # the closed parser that read the text before
        self._said: Pieces | None = None  # None before the first event; the whole text if `output` has to judge it
        self._before = TextBefore()
        self._lead = ""  # markup that seems to lead to a call
        self._out: list[SourceEvent] = []
        self._waits: list[_Waiting] = []  # everything from the first call on that may count

    @property
    def open(self) -> bool:
        """Return whether more of the response may come."""
        return self._new_parser is not None

    def feed(self, event: SourceEvent) -> Sequence[SourceEvent]:
        """Return the events that are certain now; their calls are native ones."""
        if self._new_parser is None or isinstance(event, Usage):
            return (event,)
        if isinstance(event, CallStart | ArgumentDelta | CallEnd | CallError):
            if self._said is None:  # nothing was said before it
                self._new_parser = None
                return (event,)
            self._end(calls=False)
            self._out.append(event)
        elif isinstance(event, Text):
            self._read(event.text, self._new_parser)
        else:
            self._end_text()
            self._put(event)
        self._said = self._said or Pieces()
        return self._take()

    def close(self, *, whole: bool) -> Sequence[SourceEvent]:
        """Return the remaining events of the response, with recovered calls only if it is `whole`."""
        if self._new_parser is not None:
            self._end(calls=whole)
        return self._take()

    def _end(self, *, calls: bool) -> None:
        self._end_text()
        self._new_parser = None
        waits, self._waits = self._waits, []
        if calls and self._output is not None and self._said is not None:
            calls = not self._output(self._said.text(), whole=True)
        self._out += self._with_calls(waits) if calls else _as_text(waits)

    def _put(self, event: SourceEvent | _Thought) -> None:
        """Add text that is not a call, or an event."""
        if self._waits:
            self._waits.append(event)
        else:
            self._out += _as_text([event])

    def _take(self) -> Sequence[SourceEvent]:
        """Return the output; a piece of text that came as one leaves as one, wherever the parser stopped in it."""
        out, self._out = self._out, []
        return out if len(out) < 2 else merge(out)  # type: ignore[return-value]  # these are source events

    # -------------------------------------------------------------- what the parser read

    def _read(self, text: str, new_parser: NewReader) -> None:
        if self._parser is None:
            self._parser = new_parser(self._said is None, self._after)
        self._said = self._said or Pieces()
        if self._output is not None:
            self._said.add(text)
        for event in self._parser.feed(text):
            self._handle(event)

    def _end_text(self) -> None:
        if self._parser is not None:
            parser, self._parser = self._parser, None
            self._after = parser
            for event in parser.close():
                self._handle(event)
        self._end_lead()
        self._before.end_calls()

    def _handle(self, event: SourceEvent) -> None:
        match event:
            case Text(text):
                self._end_lead()
                self._say(text)
            case InventedResult():
                self._end_lead()
                self._put(event)
            case Thinking(text):
                self._think(text)
            case Markup(text) if "".join(text.split()) in format_tokens().thinking:
                self._think(text)
            case Markup(text) if _closes(text):
                self._close_section(text)
            case Markup(text):
                self._lead += text
            case CallEnd(_, call):
                self._judge(event, call)
            case CallError(_, _, _, call):
                self.quotes |= self._position(call) == "quoted"
                self._refuse(call)
            case _:  # the start and the deltas of a call: nobody sees them before its end
                pass

    def _say(self, text: str) -> None:
        self._before.say(text)
        self._put(Text(text))
        if self._waits and not self._before.firm and text.strip(FILLER):  # the bare calls before it are examples
            self._out += _as_text(self._waits)
            self._waits, self.quotes = [], True

    def _think(self, text: str) -> None:
        self._end_lead()
        self._before.end_thought()
        self._put(_Thought(text))

    def _end_lead(self) -> None:
        """Read markup that seemed to lead to a call as text."""
        if self._lead:
            lead, self._lead = self._lead, ""
            if self._before.led_to_text or not self._waits:
                self._say(lead)
            else:
                self._waits.append(_Wrapping(lead))
                self._before.pass_over(lead)

    def _close_section(self, closing: str) -> None:
        """Read the end of the calls before: as markup if they count, else as text."""
        lead, self._lead = self._lead + closing, ""
        if self._before.led_to_text or not self._waits:
            self._before.add_refused(lead)
            self._put(Text(lead))
        else:
            self._waits.append(_Wrapping(lead))
            self._before.pass_over(lead)
        self._before.end_section()

    # -------------------------------------------------------------- whether a call counts

    def _judge(self, end: CallEnd, call: ToolCall) -> None:
        position = self._position(call)
        self.quotes |= position == "quoted"
        is_bare = self._output is not None and has_no_markup(self._lead + call.raw[:_HEAD], call.name)
        if position == "quoted" or is_bare or not self._counts(call):
            self._refuse(call)
            return
        if self._quoted is not None and (quote := self._quoted(call)) is not None:
            self._put(quote)
            self._refuse(call)
            return
        self._waits.append(_Found(self._lead, end, position == "loose"))
        self._before.add_call(firm=position == "firm")
        self._lead = ""

    def _refuse(self, call: ToolCall) -> None:
        """Read a call as text."""
        text, self._lead, self._before.led_to_text = self._lead + call.raw, "", bool(self._lead)
        self._before.add_refused(text)
        self._put(Text(text))

    def _position(self, call: ToolCall) -> CallPosition:
        return self._before.position(self._lead, call.raw[:_HEAD], call.name)

    def _counts(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        if tool is None or any(name not in call.arguments for name in tool.parameters.get("required", ())):
            return False
        return bool(call.arguments) or tool.element is not None or call.format not in format_tokens().by_tag

    def _with_calls(self, waits: Sequence[_Waiting]) -> list[SourceEvent]:
        """Return the events that waited, with their calls; bare ones are examples in prose if text follows them."""
        thought, said = _end_of_thought(waits), _last_said(waits)
        self.quotes |= any(isinstance(one, _Found) and one.loose for one in waits[: max(said, 0)])
        out: list[SourceEvent] = _as_text(waits[:thought])
        gap: int | None = None  # where in `out` the text after the last call begins; None once it says something
        counted = False  # whether the last call counts: what wraps another one is text
        for at, one in enumerate(waits[thought:], thought):
            if isinstance(one, _Found) and not (one.loose and at < said):
                if gap is not None:
                    out[gap:] = [Markup(e.text) if isinstance(e, Text) else e for e in out[gap:]]
                out += [*([Markup(one.lead)] if one.lead else []), *_events(one.end)]
                gap, counted = len(out), True
            elif isinstance(one, _Wrapping) and counted:
                out.append(Markup(one.text))
            else:
                out += _as_text([one])
                counted &= not isinstance(one, _Found)
                gap = gap if _says_nothing(one) else None
        return out


def _closes(markup: str) -> bool:
    """Return True if it closes a section, or a code fence, whose opening has a line end."""
    return "".join(markup.split()).lower() in format_tokens().ends or not markup.strip("`~")


def _events(end: CallEnd) -> list[SourceEvent]:
    arguments = json.dumps(dict(end.call.arguments), ensure_ascii=False, default=str)
    return [CallStart(end.index, end.call.name), ArgumentDelta(end.index, arguments), end]


def _as_text(held: Sequence[_Waiting]) -> list[SourceEvent]:
    """Return the events that were held back, with calls as the text that they were."""
    return [Text(h.text) if isinstance(h, _Wrapping | _Thought | _Found) else h for h in held]


def _says_nothing(one: _Waiting) -> bool:
    return not (isinstance(one, _Thought | _Found) or (isinstance(one, Text) and one.text.strip(FILLER)))


def _last_said(waits: Sequence[_Waiting]) -> int:
    """Return the place of the last piece of text that says something; -1 if nothing does."""
    return max((at for at, one in enumerate(waits) if isinstance(one, Text) and one.text.strip(FILLER)), default=-1)


def _end_of_thought(held: Sequence[_Waiting]) -> int:
    """Return the place after a closing thinking tag without an opening one: all before it was thinking."""
    said = [one.text if isinstance(one, Text) else "\0" for one in held]
    at, place = last_end_of_thinking("".join(said)), 0
    while at >= 0:
        at -= len(said[place])
        place += 1
    return place
