"""Calls that a native model wrote as text: found while the text streams, accepted or not when the response is over.

Pure: source events in, source events out. The parser finds calls; this decides whether they count. It never loses a
character: what does not count stays the text that it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

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
)
from agentkit.formats.pieces import Pieces
from agentkit.messages import ToolCall
from agentkit.processor.marks import marks
from agentkit.processor.maybe_output import IsOutput, MaybeOutput
from agentkit.processor.standing import FILLER, Before, Standing, is_bare
from agentkit.processor.tags_of_thinking import ends_thinking, last_end_of_thinking
from agentkit.processor.textreader import NewReader, TextReader
from agentkit.toolspec import ToolSpec

_HEAD: Final = 300  # characters: longer than any opener with a tool's name

Quoted = Callable[[ToolCall], CallQuoted | None]


class _Wrapping(NamedTuple):
    """What the parser read as markup: it is, if it is next to a call that counts."""

    text: str


class _Balanced(NamedTuple):
    """Text that ends no thinking before it: thinking between tags, or a whole call that does not count."""

    text: str


class _Found(NamedTuple):
    """A call that counts if the response brings no native one."""

    lead: str
    events: tuple[SourceEvent, ...]
    call: ToolCall
    loose: bool
    marked: bool  # whether it has its own markup

    @property
    def text(self) -> str:
        """The call as it was written."""
        return self.lead + self.call.raw


_Waiting = SourceEvent | _Wrapping | _Balanced | _Found


class _Held:
    """What waits until it is known whether its calls count: everything from the first call on. `out` waits no more."""

    def __init__(self, reply: MaybeOutput | None = None) -> None:
        self.reply = reply  # the whole text, if it may be the run's output
        self.out: list[SourceEvent] = []
        self.loose: list[int] = []  # where in `_waits` the bare calls are
        self.quotes = False  # whether a call was found that is quoted, drafted or described
        self._waits: list[_Waiting] = []
        self._firm = 0
        self._doubtful: int | None = None  # where the first call is that is quoted if its quotation ends

    def is_output(self) -> bool:
        """Whether the calls that count so far are the run's output: with a call that has its own markup, if all is."""
        if self.reply is None or not (self._firm or self.loose):
            return False
        return self.reply.is_output(whole=any(isinstance(h, _Found) and h.marked for h in self._waits))

    def put(self, event: SourceEvent) -> None:
        """Text that is not a call."""
        if self._waits:
            self._waits.append(event)
        else:
            self.out.append(event)

    def put_balanced(self, text: str) -> None:
        """Text that ends no thinking."""
        if self._waits:
            self._waits.append(_Balanced(text))
        else:
            self.out.append(Text(text))

    def put_wrapping(self, text: str) -> bool:
        """What seems to belong to the calls before it; False if there are none."""
        if self._waits:
            self._waits.append(_Wrapping(text))
        return bool(self._waits)

    def hold(self, found: _Found, *, doubtful: bool) -> None:
        """A call that counts so far; `doubtful` if it does not once a quotation around it ends."""
        if not doubtful:
            self._doubtful = None
        elif self._doubtful is None:
            self._doubtful = len(self._waits)
        if found.loose:
            self.loose.append(len(self._waits))
        else:
            self._firm += 1
        self._waits.append(found)

    def give_up_loose(self) -> None:
        """Something is said after bare calls: they are examples in prose."""
        first = self.loose[0]
        self.loose, self.quotes = [], True
        if self._firm:
            self._waits[first:] = [_as_example(h) for h in self._waits[first:]]
        else:
            self.release(calls=False)

    def not_quoted(self) -> None:
        """No quotation around the last calls ended: they are not quoted."""
        self._doubtful = None

    def give_up_quoted(self) -> None:
        """The quotation around the last calls ended: they are text."""
        if (first := self._doubtful) is None:
            return
        self._doubtful, self.quotes = None, True
        rest = self._waits[first:]
        self._firm -= sum(isinstance(h, _Found) and not h.loose for h in rest)
        self.loose = [at for at in self.loose if at < first]
        if self._firm or self.loose:
            self._waits[first:] = [_as_example(h, firm=True) for h in rest]
        else:
            self.release(calls=False)

    def release(self, *, calls: bool) -> None:
        """Nothing waits any more: the calls in it count, or stay the text that they were."""
        waits, self._waits, self._doubtful = self._waits, [], None
        self.out += _with_calls(waits) if calls else _as_text(waits)

    def taken(self) -> Sequence[SourceEvent]:
        """The output; a piece of text that came as one leaves as one, wherever the parser stopped in it."""
        out, self.out = self.out, []
        if len(out) < 2:
            return out
        whole: list[SourceEvent] = []
        for _, run in groupby(out, lambda event: isinstance(event, Text)):
            events = list(run)
            texts = [event.text for event in events if isinstance(event, Text)]
            whole += [Text("".join(texts))] if texts else events
        return whole


class _Open:
    """The events of a call that continues, the deltas of one argument joined: none of them is told before its end."""

    def __init__(self) -> None:
        self._events: list[SourceEvent] = []
        self._last: ArgumentDelta | None = None
        self._text = Pieces()

    def add(self, event: CallStart | ArgumentDelta) -> None:
        """One more."""
        if isinstance(event, CallStart):
            self._events.append(event)
            return
        if self._last is not None and event.key != self._last.key:
            self.settle()
        self._last = event
        self._text.add(event.text)

    def settle(self) -> list[SourceEvent]:
        """All of them, now that this argument is over."""
        if self._last is not None:
            self._events.append(self._last._replace(text=self._text.text()))
            self._last, self._text = None, Pieces()
        return self._events


class Recovery:
    """Reads one response of a model that should call natively.

    Text passes through as it comes, except what may be a call. From the first call that counts, everything waits until
    the response ends, or a native call makes it text.

    A call counts if it can be read without damage, names an offered tool, has all required arguments, and is not
    quoted: not in thinking, code or quotation marks (`Before`), nor in what the model has read from others.
    A call without its own markup (bare JSON, `name(…)`) must begin a line, and one in a code fence must begin the
    reply; only calls may follow either. A tag that the tool's author did not declare must contain an argument.

    Args:
        new_parser: creates a parser for every format.
        tools: the offered tools.
        quoted: whether a call already occurs in what the model has read, and so is a quote. None skips this check.
        output: whether the whole text is meant as the run's output, and so no call. None: any text may be the output.
    """

    def __init__(
        self,
        new_parser: NewReader,
        tools: Sequence[ToolSpec],
        quoted: Quoted | None = None,
        output: IsOutput | None = None,
    ) -> None:
        self._new_parser = new_parser
        self._quoted = quoted
        self._tools = tools
        self._parser: TextReader | None = None
        self._after: TextReader | None = None  # read the text before
        self._begun = self._over = False
        self._before = Before()
        self._held = _Held(None if output is None else MaybeOutput(output))
        self._lead = ""  # markup that seems to lead to a call
        self._led_to_text = False  # whether it led to the last call, which does not count
        self._open = _Open()

    @property
    def begun(self) -> bool:
        """Whether there is text whose end was not read yet."""
        return self._parser is not None

    @property
    def quotes(self) -> bool:
        """Whether a call was found that is quoted, drafted or described."""
        return self._held.quotes

    @property
    def open(self) -> bool:
        """Whether more of it may come."""
        return not self._over

    def feed(self, event: SourceEvent) -> Sequence[SourceEvent]:
        """The events that are certain now; their calls are native ones."""
        if self._over or isinstance(event, Usage):
            return (event,)
        if isinstance(event, Text):
            if self._held.reply is not None:
                self._held.reply.add(event.text)
            self._read(event.text)
        elif isinstance(event, CallStart | ArgumentDelta | CallEnd | CallError):
            if not self._begun:  # nothing was said before it
                self._over = True
                return (event,)
            self._end(calls=False)
            self._held.out.append(event)
        else:
            self._end_text()
            self._held.put(event)
        self._begun = True
        return self._held.taken()

    def pass_by(self, event: SourceEvent) -> Sequence[SourceEvent]:
        """The events that are certain now, with one that does not divide the text around it."""
        self._held.put(event)
        return self._held.taken()

    def close(self, *, whole: bool) -> Sequence[SourceEvent]:
        """The response is over: its remaining events, with recovered calls only if it is `whole`."""
        if not self._over:
            self._end(calls=whole)
        return self._held.taken()

    def _end(self, *, calls: bool) -> None:
        self._end_text()
        self._held.release(calls=calls and not self._held.is_output())
        self._over = True

    # -------------------------------------------------------------- what the parser read

    def _read(self, text: str) -> None:
        if self._parser is None:
            self._parser = self._new_parser(not self._begun, self._after)
        for event in self._parser.feed(text):
            self._sort(event)

    def _end_text(self) -> None:
        if self._parser is not None:
            parser, self._parser = self._parser, None
            self._after = parser
            for event in parser.close():
                self._sort(event)
        self._end_lead()
        if self._before.pause():
            self._held.give_up_quoted()
        self._before.calls_over()

    def _sort(self, event: SourceEvent) -> None:
        match event:
            case Text(text):
                self._end_lead()
                self._say(text)
            case ArgumentDelta() | CallStart():
                self._open.add(event)
            case InventedResult():
                self._end_lead()
                self._held.put(event)
            case Thinking(text):
                self._think(text)
            case Markup(text) if "".join(text.split()) in marks().thinking:
                self._think(text)
            case Markup(text) if _closes(text):
                self._close_section(text)
            case Markup(text):
                self._lead += text
            case CallEnd(_, call):
                self._judge(event, call)
            case CallError(_, _, _, call):
                self._held.quotes |= self._standing(call) == "quoted"
                self._refuse(call, whole=False)

    def _say(self, text: str) -> None:
        self._follow(text)
        if self._before.said(text):
            self._held.give_up_quoted()
        elif not self._before.in_quotation:
            self._held.not_quoted()
        self._held.put(Text(text))

    def _follow(self, text: str) -> None:
        if self._held.loose and text.strip(FILLER):
            self._held.give_up_loose()

    def _think(self, text: str) -> None:
        self._end_lead()
        self._before.thought()
        self._held.put_balanced(text)

    def _end_lead(self) -> None:
        """What seemed to lead to a call does not."""
        if self._lead:
            lead, self._lead = self._lead, ""
            if self._led_to_text or not self._held.put_wrapping(lead):
                self._say(lead)
            else:
                self._before.wrapped(lead)

    def _close_section(self, closing: str) -> None:
        """The end of the calls before: what they are, markup or text, it is too."""
        lead, self._lead = self._lead + closing, ""
        if self._led_to_text or not self._held.put_wrapping(lead):
            self._follow(lead)
            self._before.call_was_text(lead)
            self._held.put(Text(lead))
        else:
            self._before.wrapped(lead)
        self._before.section_over()

    # -------------------------------------------------------------- whether a call counts

    def _judge(self, end: CallEnd, call: ToolCall) -> None:
        standing = self._standing(call)
        self._held.quotes |= standing == "quoted"
        if standing == "quoted" or not self._counts(call):
            self._refuse(call, whole=True)
            return
        if self._quoted is not None and (quote := self._quoted(call)) is not None:
            self._held.put(quote)
            self._refuse(call, whole=True)
            return
        marked = standing == "firm" and not is_bare(self._lead + call.raw[:_HEAD], call.name)
        found = _Found(self._lead, (*self._open.settle(), end), call, standing == "loose", marked)
        self._held.hold(found, doubtful=self._before.may_be_quoted())
        self._before.call_counts()
        self._lead, self._open, self._led_to_text = "", _Open(), False

    def _refuse(self, call: ToolCall, *, whole: bool) -> None:
        """It is text. One that is damaged may extend beyond the end of the thinking that it is in."""
        text, self._led_to_text = self._lead + call.raw, bool(self._lead)
        self._lead, self._open = "", _Open()
        self._follow(text)
        self._before.call_was_text(text)
        if whole and not ends_thinking(text):
            self._held.put_balanced(text)
        else:
            self._held.put(Text(text))

    def _standing(self, call: ToolCall) -> Standing:
        if self._before.meets_call():
            self._held.give_up_quoted()
        return self._before.standing(self._lead, call.raw[:_HEAD], call.name)

    def _counts(self, call: ToolCall) -> bool:
        tool = next((tool for tool in self._tools if tool.name == call.name), None)
        if tool is None or any(name not in call.arguments for name in tool.parameters.get("required", ())):
            return False
        return bool(call.arguments) or tool.element is not None or call.format not in marks().by_tag


def _closes(markup: str) -> bool:
    """Whether it is what closes a section, or a code fence, whose opening has a line end."""
    return "".join(markup.split()).lower() in marks().ends or not markup.strip("`~")


def _as_example(held: _Waiting, *, firm: bool = False) -> _Waiting:
    """Itself; what belongs to a bare call, or with `firm` to any, is the text that it was."""
    if isinstance(held, _Wrapping):
        return Text(held.text)
    if isinstance(held, _Found) and (held.loose or firm):
        return Text(held.text) if ends_thinking(held.text) else _Balanced(held.text)
    return held


def _as_text(held: Sequence[_Waiting]) -> list[SourceEvent]:
    """What was held back, with its calls as the text that they were."""
    return [Text(h.text) if isinstance(h, _Wrapping | _Balanced | _Found) else h for h in held]


def _with_calls(held: Sequence[_Waiting]) -> list[SourceEvent]:
    """What was held back, with its calls."""
    thought = _end_of_thought(held)
    out: list[SourceEvent] = _as_text(held[:thought])
    gap: int | None = None  # where in `out` what follows a call begins, while it says nothing
    counted = False  # whether there was a call: what wraps none is text
    for one in held[thought:]:
        match one:
            case _Found(lead, events):
                if gap is not None:
                    out[gap:] = [Markup(e.text) if isinstance(e, Text) else e for e in out[gap:]]
                out += [Markup(lead), *events] if lead else events
                gap, counted = len(out), True
            case _Wrapping(text):
                out.append(Markup(text) if counted else Text(text))
            case _Balanced(text):
                out.append(Text(text))
                gap = None
            case _:
                out.append(one)
                gap = None if isinstance(one, Text) and one.text.strip(FILLER) else gap
    return out


def _end_of_thought(held: Sequence[_Waiting]) -> int:
    """The place after a closing thinking tag without an opening one: all before it was thinking."""
    said = [one.text if isinstance(one, Text) else "\0" for one in held]
    at, place = last_end_of_thinking("".join(said)), 0
    while at >= 0:
        at -= len(said[place])
        place += 1
    return place
