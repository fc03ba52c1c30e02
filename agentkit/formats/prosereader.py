"""What is written outside calls: visible text, thinking, answers and asides, up to what may open a call.

Knows the reader and the openers; reads no call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from typing import Final

from agentkit.events import Markup, Text, Thinking
from agentkit.formats.asides import SAID_ON, Aside, end_of
from agentkit.formats.format import Shape
from agentkit.formats.inert import COMMENT, OTHER_JSON, OtherJson, UpTo, begins_inert, up_to, wraps_calls
from agentkit.formats.openers import TAG, LineStart, Opener, Openers
from agentkit.formats.quoting import Quoting
from agentkit.formats.reader import Delimiter, Reader, Search, Wait, may_begin, token

_LANGUAGE: Final = Delimiter(r"[\w+#.-]{0,23}[\w+#][ \t]{0,8}\r?\n", r"[\w+#.-]{0,24}[ \t]{0,8}\r?")
"""The name of a language after a fence: it does not end with a full stop, as a sentence does."""
_EDGES: Final = ("<", "[")  # what an aside begins with
_MARKS: Final = ("`", "~")
_UNDECIDED: Final = re.compile(r".\s{0,64}\Z", re.DOTALL).match
_SPAN: Final = 2048  # characters in which the end of a code span is looked for
_new = tuple.__new__
_SPACE_RUN: Final = 1024  # white space after a call that is held back until it is known whether another call follows


class ProseReader:
    """Reads what is written outside calls.

    `silent` means that nothing visible was emitted yet; `opening_fence` is the fence that may be the wrapping of the
    calls of a whole reply; `block`, the indentation of the line that starts a block of Python; `blocked`, whether this
    place is in that block; `line_tried`, where a call was last looked for at the start of a line; `within`, what reads
    the rest of a region or an aside that is open; `refused`, whether the call before was, so that its rest may follow;
    `inert`, in what a call does not count that nothing marks as one, if this place is in such text.
    """

    __slots__ = (
        "block",
        "blocked",
        "inert",
        "line_tried",
        "openers",
        "opening_fence",
        "quoting",
        "r",
        "refused",
        "silent",
        "within",
    )

    def __init__(self, r: Reader, openers: Openers, quoting: Quoting, opening_fence: Opener | None) -> None:
        self.r, self.openers, self.quoting, self.opening_fence = r, openers, quoting, opening_fence
        self.silent = True
        self.refused = False
        self.line_tried = -1
        self.block: int | None = None
        self.blocked = False
        self.within: Callable[[ProseReader], Wait] | None = None
        self.inert: OtherJson | UpTo | None = None

    def follow(self, before: ProseReader) -> None:
        """Be where the reader of the text before was at its end: in its line, its code, its thinking or aside."""
        self.quoting = deepcopy(before.quoting)  # several may follow it
        self.within, self.silent = before.within, before.silent
        self.block, self.blocked = before.block, before.blocked
        self.inert = deepcopy(before.inert)

    def plain(self, end: int) -> None:
        """Consume up to `end` as visible text."""
        r = self.r
        if text := r.buf[r.at : end]:
            self.silent = self.silent and text.isspace()
            self._note(text)
            r.out.append(_new(Text, (text,)))
            r.at = end

    def _note(self, text: str) -> None:
        """Plain prose, without backticks, went by."""
        self.quoting.note(text)
        self._follow_inert(text)

    def _follow_inert(self, text: str) -> None:
        if self.inert is not None and not self.inert.feed(text):
            self.inert = None

    def to_opener(self) -> Generator[None, None, list[Opener] | None]:
        """Visible text up to something that may open; None at the text's end."""
        while True:
            if self.openers.line is not None and (entries := (yield from self._at_line_start(self.openers.line))):
                return entries
            c = self._say_to_stop()
            if not c and self.r.ended:
                return None
            if not c:
                yield
            if c in ("", "\n"):
                continue
            if c in self.openers.stops.marks and self.inert is None and not (self.quoting.off or self.quoting.quoted):
                self.inert = yield from begins_inert(self.r, blank=self.quoting.blank)
            entries = yield from self.entries()
            if c == "`" and self.silent and self.opening_fence and self.quoting.blank:
                return [*entries, self.opening_fence]
            if entries:
                return entries
            if c in _MARKS:
                yield from self.ticks(self.quoting)
            else:
                yield from self.opens_nothing()

    def _say_to_stop(self) -> str:
        """Emit visible text up to the next place that needs a decision.

        Returns the character there; a line end, already emitted; or nothing if more text is needed.
        """
        r = self.r
        inside = self.quoting.inside
        found = (self.openers.stops.within if inside else self.openers.stops.search)(r.buf, r.at)
        c = found[0] if found else ""
        if found is None or c == "\\":  # a backslash may escape what comes next
            self.plain(len(r.buf))
            if not c and not r.ended and self.quoting.calm and self.inert is None:
                r.heat(self.openers.stops.within if self.quoting.inside else self.openers.stops.search, Text)
            return ""
        if c == "\n":  # the first line's end may need no decision once the line has been emitted
            self.plain(found.end() if inside or found.start() == r.at else found.start())
            return "\n"
        self.plain(found.start())
        if c != "`" and not r.ended and _UNDECIDED(r.buf, r.at):
            return ""  # what follows it may show that it opens nothing
        return c

    def _at_line_start(self, line: LineStart) -> Generator[None, None, list[Opener]]:
        """The calls that may open with a bare tool name at the start of a line."""
        r = self.r
        if not self.quoting.blank or self.quoting.quoted or self.inert is not None:
            return []
        while len(held := (yield from self.over_space())) >= _SPACE_RUN:
            self.show(held)  # more is never held back; a call may still open after it
        named = r.at < len(r.buf) and (yield from r.sees(line.opens)) is not None
        if line.block is not None:
            yield from self._note_block(line.block, len(held) - held.rfind("\n") - 1, named=named)
        if named and self.line_tried != r.offset:
            self.line_tried = r.offset
            self.show(held)
            return [] if self._may_be_quoted() and (yield from self._is_in_span()) else line.entries
        lines = held.rfind("\n") + 1  # whole lines of white space: not examined again
        self.show(held[:lines])
        r.unread(held[lines:])
        return []

    def _note_block(self, block: Delimiter, indent: int, *, named: bool) -> Wait:
        """Note at the start of a line whether a block of Python starts there, or the line is in one."""
        r = self.r
        if named:
            self.blocked = self.block is not None and indent > self.block
            self.block = self.block if self.blocked else None
        elif r.at < len(r.buf) and (yield from r.sees(block)) is not None:
            self.block = indent

    def show(self, taken: str) -> None:
        """What was consumed without an event is visible text."""
        if taken:
            self.r.out.append(Text(taken))
            self._note(taken)

    def ticks(self, quoting: Quoting) -> Wait:
        """Emit a run of backticks or tildes, which may begin or end what is quoted."""
        r = self.r
        run, mark = 0, r.buf[r.at]
        while True:
            end = r.at
            while r.buf.startswith(mark, end):
                end += 1
            run += end - r.at
            self.silent = False
            self._follow_inert(r.buf[r.at : end])
            r.say(Text, end)
            if end < len(r.buf) or r.ended:
                break
            yield
        depends = quoting.may_close(mark, run) or quoting.may_be_late(mark, run)
        named = depends and (yield from r.sees(_LANGUAGE)) is not None
        quoting.ticks(mark, run, opens=named)

    def entries(self) -> Generator[None, None, list[Opener]]:
        """What may open at exactly this place, unless it is quoted."""
        r = self.r
        if self.quoting.boxes and (said := r.buf[r.at : r.at + 1]) not in _MARKS:
            self.quoting.look(said)
        if self._may_be_quoted() and (yield from self._is_quoted()):
            return []
        entries: list[Opener] = []
        aside = r.buf[r.at : r.at + 1] in _EDGES and not self.quoting.off
        if aside and (found := (yield from r.sees(self.openers.asides.opens))):
            if worn := (yield from self._worn(aside=True)):
                return [worn]
            worn_token = self.openers.worn()[0]
            section = yield from r.sees(worn_token.before)
            if section is None or not worn_token.opens_section(section):
                return [Opener("aside", self.openers.formats[0], Shape(()), aside=self.openers.asides.at(found))]
        while not r.ended and self.openers.literal.part.match(r.buf, r.at):
            yield  # this may be the beginning of a longer opener
        if found := self.openers.literal.match(r.buf, r.at):
            entries += self.openers.table.at_literal(found[0])
        if r.buf.startswith("<", r.at) and self._tag_may_open(entries) and (found := (yield from r.sees(TAG))):
            entries += self.openers.table.at_tag(found, loose=not entries)
        may_be = aside and not entries and self.openers.worn()[0].may_be(r.buf, r.at)
        if may_be and (worn := (yield from self._worn(aside=False))):
            return [worn]
        return entries if self.inert is None else self._that_count(entries, self.inert)

    def _that_count(self, entries: list[Opener], inert: OtherJson | UpTo) -> list[Opener]:
        """Those of these openers that count in such text; in damaged JSON also calls, which are errors there."""
        place = inert.place(self.r.buf[self.r.at]) if any(map(_is_bare, entries)) else "inside"
        if place == "over":
            self.inert = None
            return entries
        return [e for e in entries if not _is_bare(e) or (place == "damaged" and e.kind == "call")]

    def begins_comment(self) -> Wait:
        """What is here follows a call in its line: note whether a comment of code begins."""
        if not self.quoting.off and self.inert is None and (yield from self.r.sees(COMMENT)) is not None:
            self.inert = up_to("//")

    def opens_nothing(self) -> Wait:
        """The character here opens no call: it is text; it may begin other JSON, in which none counts."""
        r = self.r
        may_be = self.openers.stops.marks and self.inert is None and r.buf[r.at] in "{[" and not self.quoting.quoted
        if may_be and (found := (yield from r.sees(OTHER_JSON))) is not None:
            self.inert = None if wraps_calls(found["key"]) else OtherJson()
        self.plain(r.at + 1)

    def _may_be_quoted(self) -> bool:
        """Whether this is quoted, or in a span of an earlier line if that is ever closed."""
        quoting = self.quoting
        return quoting.quoted or (quoting.spans.paragraph.waiting != [] and not quoting.off)

    def _worn(self, *, aside: bool) -> Generator[None, None, Opener | None]:
        """The call that follows what has the place of an opening token here; what else begins here may be an aside."""
        worn, openers = self.openers.worn()
        found = yield from self.r.sees(worn.opens)
        place = worn.at(found, aside=aside) if found else -1
        return openers[place] if place >= 0 else None

    def _is_quoted(self) -> Generator[None, None, bool]:
        """Whether what is here is quoted, if a call may open here in what may be a code span."""
        r, quoting = self.r, self.quoting
        if quoting.fence or quoting.spans.closing:
            return True
        while not r.ended and self.openers.literal.part.match(r.buf, r.at):
            yield
        if self.openers.literal.match(r.buf, r.at) is None and (yield from r.sees(TAG)) is None:
            return quoting.quoted
        return (yield from self._is_in_span())

    def _is_in_span(self) -> Generator[None, None, bool]:
        """Whether the code span in which this may be is ever closed; otherwise its backticks are only characters.

        If the text ends first, or long text follows, it counts as closed if it opens in this line.
        """
        r, quoting, spans = self.r, self.quoting, self.quoting.spans
        in_line = quoting.quoted
        lengths = "|".join(f"`{{{n}}}" for n in sorted(spans.closers if in_line else spans.paragraph.waiting))
        over = re.compile(rf"(?<!`)(?P<run>{lengths})(?!`)|\n[ \t\r]{{0,64}}\n")
        while True:
            limit = r.at + _SPAN
            found = over.search(r.buf, r.at, limit)
            if found and (found.end() < min(len(r.buf), limit) or (r.ended and len(r.buf) < limit)):
                break
            if r.ended or len(r.buf) >= limit:
                if in_line:
                    spans.closing = max(spans.closers) if r.ended else 0  # to the text's last line
                else:
                    quoting.no_span()
                return in_line
            yield
        if found["run"] is None:
            quoting.no_span()
            return False
        if in_line:
            spans.closing = len(found["run"])
        else:
            quoting.continues(len(found["run"]))
        return True

    def _tag_may_open(self, entries: Sequence[Opener]) -> bool:
        """Whether the tag here may open something other than what its exact letters open."""
        if self.openers.table.tags or entries or self.openers.may_be_loose is None:
            return bool(self.openers.table.tags)
        return self.openers.may_be_loose(self.r.buf, self.r.at) is not None

    def over_space(self) -> Generator[None, None, str]:
        """Consume a bounded run of white space; returns it."""
        r = self.r
        if r.at < len(r.buf) and not r.buf[r.at].isspace():
            return ""
        taken = ""
        while True:
            taken += self.consume(r.space_end(_SPACE_RUN - len(taken)))
            if r.at < len(r.buf) or r.ended or len(taken) >= _SPACE_RUN:
                return taken
            yield

    def consume(self, end: int) -> str:
        """Consume up to `end` without an event; returns what was consumed."""
        r = self.r
        taken, r.at = r.buf[r.at : end], end
        return taken

    def region(self, kind: type[Text] | type[Thinking], close: str) -> Wait:
        """Thinking, or an answer, up to its closing token or the text's end; nothing in it is a call."""
        r = self.r
        close = close.rstrip()  # white space after it would be markup or text, depending on the chunks
        delimiter = token(close)
        stop = re.compile(may_begin(close)).search
        self.within = lambda reader: reader.region(kind, close)
        while True:
            found = stop(r.buf, r.at)
            r.say(kind, found.start() if found else len(r.buf))
            if found is None:
                if r.ended:
                    return
                r.heat(stop, kind)
                yield
            elif end := (yield from r.sees(delimiter)):
                r.say(Markup, end.end())
                self.within = None
                return
            else:
                r.say(kind, r.at + 1)

    def aside(self, aside: Aside | None) -> Generator[None, None, bool]:
        """An aside, with its edges, as visible text; nothing in it is a call."""
        found = yield from self.r.sees(self.openers.asides.opens)
        if aside is not None and found is not None:
            margin = self.quoting.margin
            self.plain(found.end())
            said = not aside.paragraph and margin is not None and (yield from self.r.sees(SAID_ON)) is not None
            others = self.openers.asides.opens if said else None
            yield from self._in_aside(*end_of(aside.closes, margin if said or aside.paragraph else None, others))
        return True

    def _in_aside(self, end: Delimiter, stop: Search) -> Wait:
        """The rest of an aside, up to its end or the text's."""
        r = self.r
        self.within = lambda reader: reader._in_aside(end, stop)
        while True:
            found = stop(r.buf, r.at)
            self.plain(found.start() if found else len(r.buf))
            if found is None and r.ended:
                return
            if found is None:
                if self.inert is None:
                    r.heat(stop, Text)
                yield
            elif closed := (yield from r.sees(end)):
                self.within = None
                size = len(closed[0])
                opens = yield from self.entries()
                if not any(entry.kind in ("call", "section") for entry in opens):  # what ends it may begin a call
                    self.plain(r.at + size)
                return
            else:
                self.plain(r.at + 1)


def _is_bare(entry: Opener) -> bool:
    """Whether this opens calls that other JSON, or code, may also contain."""
    section = entry.shape.section if entry.kind == "section" else None
    in_object = section is not None and isinstance(section.open, str) and section.open.startswith("{")
    return entry.kind in ("call", "section") and (entry.weak or in_object)
