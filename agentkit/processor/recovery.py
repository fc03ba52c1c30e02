"""Calls that a native model wrote as text: found while the text streams, decided when the response is over.

Pure: source events in, source events out. The parser finds calls; this decides whether they count. It never loses a
character: what does not count is the text that it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

from agentkit import formats
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallQuoted,
    CallStart,
    Markup,
    SourceEvent,
    Text,
    Thinking,
    Usage,
)
from agentkit.formats.asides import REASONING
from agentkit.formats.format import ToolElement
from agentkit.messages import ToolCall
from agentkit.processor.textreader import TextReader
from agentkit.toolspec import ToolSpec

_TAGS: Final = [pair for f in formats.recoverable() for pair in f.thinking]
_THINKING: Final = frozenset("".join(tag.split()) for pair in _TAGS for tag in pair)
_CLOSES: Final = tuple(sorted({tag for _, tag in _TAGS if "think" in tag.lower() or tag[2:-1] in REASONING}))
_BY_TAG: Final = frozenset(f.name for f in formats.auto() if any(isinstance(s.call[0], ToolElement) for s in f.shapes))
"""The formats in which a tool's own tag is all there is of a call."""

_QUOTES: Final = frozenset("\"'\u201c\u2018\u201e\u00ab")
_FILLER: Final = " \t\r\n;,"  # what stands between bare calls and says nothing
_HEAD: Final = 300  # characters: longer than any opener with a tool's name

Quoted = Callable[[ToolCall], CallQuoted | None]

_Standing = Literal["firm", "loose", "quoted"]
"""How a call stands in the text: with markup of its own; bare or fenced, so that more must speak for it; as a quote."""


class _Wrapping(NamedTuple):
    """What the parser took for markup: it is, beside a call that counts."""

    text: str


class _Thought(NamedTuple):
    """Thinking between tags in the text. A native model's text keeps it, as text."""

    text: str


class _Found(NamedTuple):
    """A call that counts if the response brings no native one."""

    lead: str
    events: tuple[SourceEvent, ...]
    call: ToolCall
    loose: bool

    @property
    def text(self) -> str:
        """The call as it was written."""
        return self.lead + self.call.raw


_MARKER: Final = re.compile(r"(?:[-+*]|\d{1,9}[.)])\s")
_INDENT: Final = 4  # columns; a tab is as much
_START: Final = 80  # characters of a line that tell what it is


class _Line:
    """Whether the current line is indented code, as Markdown has it. Fed what is said, in any pieces."""

    __slots__ = ("_blank", "_block", "_listed", "_start")

    def __init__(self) -> None:
        self._start = ""
        self._blank = True  # whether nothing stands in the line before, or before it
        self._block = False  # whether the last line with anything in it was indented code
        self._listed = False  # whether a list's items, and what belongs to them, go on

    def said(self, text: str) -> None:
        """This much more was said."""
        line, *more = text.split("\n")
        self._start = (self._start + line)[:_START]
        for line in more:
            self._over()
            self._start = line[:_START]

    def _over(self) -> None:
        said = self._start.strip()
        if said:
            self._block = self.code
            self._listed = _MARKER.match(f"{said} ") is not None or (self._listed and self._start[0].isspace())
        self._blank = not said

    @property
    def code(self) -> bool:
        """Whether what stands here is."""
        said = self._start.lstrip()
        indent = len(self._start.removesuffix(said).expandtabs(_INDENT))
        return indent >= _INDENT and (self._blank or self._block) and not self._listed


class Recovery:
    """Reads one response of a model that should call natively.

    Text goes through as it comes, but for what may be a call. From the first call that counts everything waits until
    the response ends, or until a native call makes it text, since nothing may overtake it.

    A call counts when it can be read without damage, names an offered tool, has all required arguments, and is not
    quoted: not in thinking, code or quotation marks, nor in what the model has read of others. Code is, too, what is
    indented by four places behind a blank line, as in Markdown, unless a list goes on there. One without markup of
    its own (bare JSON, `name(…)`) must begin a line, and one in a code fence the reply; only calls may follow either. A
    tag that the tool's author did not declare must hold an argument.

    Args:
        new_parser: makes a parser for every format, given whether it reads the very beginning.
        tools: the offered tools.
        quoted: tells of a call that it stands already in what the model has read, and so is a quote. None asks nobody.
    """

    def __init__(
        self, new_parser: Callable[[bool], TextReader], tools: Sequence[ToolSpec], quoted: Quoted | None = None
    ) -> None:
        self._new_parser = new_parser
        self._quoted = quoted
        self._tools = {tool.name: tool for tool in tools}
        self._parser: TextReader | None = None
        self._begun = self._over = False
        self._out: list[SourceEvent] = []
        self._held: list[SourceEvent | _Wrapping | _Thought | _Found] = []
        self._loose: list[int] = []  # places in `_held`
        self._firm = 0
        self._lead = ""
        self._open: list[SourceEvent] = []
        self._run: _Standing | None = None  # how the call before stands, while nothing is said after it
        self._said = False  # whether anything visible was
        self._line = _Line()
        self._first = self._last = ""  # the line's first visible character, and the text's last

    @property
    def open(self) -> bool:
        """Whether more may come of it."""
        return not self._over

    def feed(self, event: SourceEvent) -> Sequence[SourceEvent]:
        """What is certain now; its calls are native ones."""
        if self._over or isinstance(event, Usage):
            return (event,)
        if isinstance(event, Text):
            self._read(event.text)
        elif isinstance(event, CallStart | ArgumentDelta | CallEnd | CallError):
            self._end(calls=False)
            self._out.append(event)
        else:
            self._end_text()
            self._put(event)
        self._begun = True
        return self._taken()

    def close(self, *, whole: bool) -> Sequence[SourceEvent]:
        """The response is over: the rest of it. Its calls are recovered ones; none unless it is `whole`."""
        if not self._over:
            self._end(calls=whole)
        return self._taken()

    def _taken(self) -> Sequence[SourceEvent]:
        """What goes out; a piece of text that came as one goes as one, wherever the parser stopped in it."""
        out, self._out = self._out, []
        if len(out) < 2:
            return out
        whole: list[SourceEvent] = []
        for _, run in groupby(out, lambda event: isinstance(event, Text)):
            events = list(run)
            texts = [event.text for event in events if isinstance(event, Text)]
            whole += [Text("".join(texts))] if texts else events
        return whole

    def _end(self, *, calls: bool) -> None:
        self._end_text()
        self._out += self._released() if calls else _as_text(self._held)
        self._held = []
        self._over = True

    # -------------------------------------------------------------- what the parser read

    def _read(self, text: str) -> None:
        if self._parser is None:
            self._parser = self._new_parser(not self._begun)
        for event in self._parser.feed(text):
            self._sort(event)

    def _end_text(self) -> None:
        if self._parser is not None:
            parser, self._parser = self._parser, None
            for event in parser.close():
                self._sort(event)
        self._end_lead()
        self._run = None

    def _sort(self, event: SourceEvent) -> None:
        match event:
            case Text(text):
                self._end_lead()
                self._say(text)
            case ArgumentDelta() | CallStart():
                self._open.append(event)
            case Thinking(text):
                self._think(text)
            case Markup(text) if "".join(text.split()) in _THINKING:
                self._think(text)
            case Markup(text):
                self._lead += text
            case CallEnd(_, call):
                self._judge(event, call)
            case CallError(_, _, _, call):
                self._refuse(call)

    def _say(self, text: str) -> None:
        if text.strip(_FILLER):
            self._run, self._said = None, True
            if self._loose:
                self._give_up()
        self._line.said(text)
        line = text.rpartition("\n")
        if line[1]:
            self._first = ""
        self._first = self._first or line[2].lstrip()[:1]
        self._last = text[-1:] or self._last
        self._put(Text(text))

    def _think(self, text: str) -> None:
        self._end_lead()
        self._first = self._last = ""
        self._line = _Line()
        self._put(_Thought(text) if self._held else Text(text))

    def _end_lead(self) -> None:
        """What seemed to lead to a call leads to none."""
        if self._lead:
            lead, self._lead = self._lead, ""
            if self._held:
                self._held.append(_Wrapping(lead))
            else:
                self._say(lead)

    def _put(self, event: SourceEvent | _Thought) -> None:
        if self._held:
            self._held.append(event)
        elif not isinstance(event, _Thought):
            self._out.append(event)

    # -------------------------------------------------------------- whether a call counts

    def _judge(self, end: CallEnd, call: ToolCall) -> None:
        standing = self._run = self._standing(call)
        if standing == "quoted" or not self._counts(call):
            self._refuse(call)
            return
        if self._quoted is not None and (quote := self._quoted(call)) is not None:
            self._put(quote)
            self._refuse(call)
            return
        loose = standing == "loose"
        if loose:
            self._loose.append(len(self._held))
        else:
            self._firm += 1
        self._held.append(_Found(self._lead, (*self._open, end), call, loose))
        self._lead, self._open = "", []

    def _refuse(self, call: ToolCall) -> None:
        """It is text. The calls beside it still stand as it does."""
        standing = self._run = self._standing(call)
        text, self._lead, self._open = self._lead + call.raw, "", []
        self._say(text)
        self._run = standing

    def _standing(self, call: ToolCall) -> _Standing:
        if self._run is not None:
            return self._run
        head = (self._lead + call.raw[:_HEAD]).lstrip()
        if self._last in _QUOTES or self._first == ">" or self._line.code:
            return "quoted"
        if head.startswith("`"):
            return "quoted" if self._said else "loose"
        if head.lstrip("[ \t\r\n").startswith(("{", call.name or "{", "functions.")):
            return "quoted" if self._first else "loose"
        return "firm"

    def _counts(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        if tool is None or any(name not in call.arguments for name in tool.parameters.get("required", ())):
            return False
        return bool(call.arguments) or tool.element is not None or call.format not in _BY_TAG

    def _give_up(self) -> None:
        """Something is said behind bare calls: they are examples in prose."""
        first = self._loose[0]
        self._loose = []
        if self._firm:
            self._held[first:] = [
                Text(h.text) if isinstance(h, _Wrapping) or (isinstance(h, _Found) and h.loose) else h
                for h in self._held[first:]
            ]
        else:
            held, self._held = self._held, []
            self._out += _as_text(held)

    # -------------------------------------------------------------- the end

    def _released(self) -> list[SourceEvent]:
        """What was held, with its calls."""
        thought = self._end_of_thought()
        out: list[SourceEvent] = list(_as_text(self._held[:thought]))
        gap: int | None = None  # where in `out` what follows a call begins, while it says nothing
        for held in self._held[thought:]:
            match held:
                case _Found(lead, events):
                    if gap is not None:
                        out[gap:] = [Markup(e.text) if isinstance(e, Text) else e for e in out[gap:]]
                    out += [Markup(lead), *events] if lead else events
                    gap = len(out)
                case _Wrapping(text):
                    out.append(Markup(text))
                case _Thought(text):
                    out.append(Text(text))
                    gap = None
                case _:
                    out.append(held)
                    gap = None if isinstance(held, Text) and held.text.strip(_FILLER) else gap
        return out

    def _end_of_thought(self) -> int:
        """The place in `_held` behind a closing thinking tag without an opening one: all before it was thinking."""
        said = [held.text if isinstance(held, Text) else "\0" for held in self._held]
        whole = "".join(said)
        at = max(whole.rfind(tag) for tag in _CLOSES)
        place = 0
        while at >= 0:
            at -= len(said[place])
            place += 1
        return place


def _as_text(held: Sequence[SourceEvent | _Wrapping | _Thought | _Found]) -> list[SourceEvent]:
    """What was held, with its calls as the text that they were."""
    return [Text(h.text) if isinstance(h, _Wrapping | _Thought | _Found) else h for h in held]
