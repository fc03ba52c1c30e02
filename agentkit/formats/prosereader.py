"""The reader of text outside calls: visible text, thinking, answers and asides, up to a possible call.

Knows the reader and the openers; reads no call.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from agentkit.events import Text
from agentkit.formats.edges import closers_of
from agentkit.formats.format import Shape, edge
from agentkit.formats.openers import TAG, LineStart, Opener, Openers
from agentkit.formats.other_json import BARE_LIST, JSON_REPLY, OTHER_JSON, OtherJson, wraps_calls
from agentkit.formats.prose_state import ProseState
from agentkit.formats.quoting import Quoting
from agentkit.formats.reader import Delimiter, Reader, Wait

_LANGUAGE: Final = Delimiter(r"[\w+#.-]{0,23}[\w+#][ \t]{0,8}\r?\n", r"[\w+#.-]{0,24}[ \t]{0,8}\r?")
"""The name of a language after a fence: it does not end with a full stop, as a sentence does."""
_ASIDE_STARTS: Final = ("<", "[")  # first characters of asides
_MARKS: Final = ("`", "~")
_NO_CALLS: Final = ("aside", "thinking", "answer", "markup")  # these may continue after an interruption
_UNDECIDED: Final = re.compile(r".\s{0,64}\Z", re.DOTALL).match
_LONGEST: Final = 128  # characters; the longest literal that opens something in a known format has 65
_MARGIN: Final = 64  # characters of white space that may precede a reply that is JSON
_SPAN: Final = 2048  # characters in which the end of a code span is looked for
_new = tuple.__new__
_SPACE_RUN: Final = 1024  # white space after a call that waits until it is known whether another call follows


class ProseReader(ProseState):
    """Reads text outside calls.

    `opening_fence` is the fence that may wrap calls; `line_tried`, the offset at which a call was last looked for at
    the start of a line; `resume_state`, the state at the first place after all calls that more text might change.
    """

    __slots__ = ("line_tried", "openers", "opening_fence", "r", "resume_state")

    def __init__(self, r: Reader, openers: Openers, quoting: Quoting, opening_fence: Opener | None) -> None:
        super().__init__(quoting)
        self.r, self.openers, self.opening_fence = r, openers, opening_fence
        self.line_tried = -1
        self.resume_state: ProseState | None = None

    def note_undecided(self, taken: str = "") -> None:
        """Note that more text might have changed this place, after white space that was consumed without an event."""
        if self.resume_state is None:
            self.resume_state = self.with_tail(taken + self.r.buf[self.r.at :])

    def note_cut(self) -> None:
        """Note that the text's end may have cut off an opener that was looked for here."""
        r = self.r
        if not r.ended:
            return
        near = len(r.buf) - r.at < _LONGEST
        if r.cut == r.offset or (near and self.openers.literal.part.match(r.buf, r.at)):
            self.note_undecided()

    def emit_text(self, end: int) -> None:
        """Consume up to `end` as visible text."""
        r = self.r
        if text := r.buf[r.at : end]:
            self.silent = self.silent and text.isspace()
            self._note(text)
            r.out.append(_new(Text, (text,)))
            r.at = end

    def _note(self, text: str) -> None:
        self.quoting.note(text)
        if self.other is not None and not self.other.feed(text):
            self.other = None

    def to_opener(self) -> Generator[None, None, list[Opener] | None]:
        """Emit visible text up to a possible opener, and return the openers there; None at the text's end."""
        if self.silent and self.other is None and not (self.openers.stops.bare or self.quoting.off):
            found = yield from self.r.sees(JSON_REPLY)
            self.other = OtherJson(reply=True) if found is not None and not wraps_calls(found["key"]) else None
        while True:
            if self.openers.line is not None and (entries := (yield from self._at_line_start(self.openers.line))):
                return entries
            c = self._emit_to_stop()
            if not c and self.r.ended:
                return None
            if not c:
                yield
            if c in ("", "\n"):
                continue
            if entries := self._to_try((yield from self.entries()), c):
                return entries
            yield from self.ticks(c) if c in _MARKS else self.opens_nothing()

    def _to_try(self, entries: list[Opener], c: str) -> list[Opener]:
        """Return the openers to try at this character: no call opens where the text is read a second time."""
        if self.r.ended:
            self.note_cut()
        if self.r.offset < 0:
            return [entry for entry in entries if entry.kind in _NO_CALLS]
        if c == "`" and self.silent and self.opening_fence and self.quoting.blank:
            return [*entries, self.opening_fence]
        return entries

    def _emit_to_stop(self) -> str:
        """Emit visible text up to the next place that needs a decision.

        Returns the character there; a line end, already emitted; or nothing if more text is needed.
        """
        r = self.r
        inside = self.quoting.inside
        found = (self.openers.stops.in_line if inside else self.openers.stops.search)(r.buf, r.at)
        c = found[0] if found else ""
        if found is None or c == "\\":  # a backslash may escape the next character
            self.emit_text(len(r.buf))
            if not c and not r.ended and self.quoting.calm and self.other is None:
                r.set_fast_path(self.openers.stops.in_line if self.quoting.inside else self.openers.stops.search, Text)
            return ""
        if c == "\n":  # the first line's end may need no decision once the line has been emitted
            self.emit_text(found.end() if inside or found.start() == r.at else found.start())
            return "\n"
        self.emit_text(found.start())
        if c != "`" and not r.ended and _UNDECIDED(r.buf, r.at):
            return ""  # the next characters may show that it opens nothing
        return c

    def _at_line_start(self, line: LineStart) -> Generator[None, None, list[Opener]]:
        """Return the openers that may be at the start of a line only, such as a bare tool name."""
        r = self.r
        if not self.quoting.blank or self.quoting.quoted or self.other is not None:
            return []
        while r.at >= len(r.buf) and not r.ended:
            yield
        if line.block is None and (c := r.buf[r.at : r.at + 1]).strip() and c not in line.firsts:
            return []
        while len(space := (yield from self.take_space())) >= _SPACE_RUN:
            self.emit_taken(space)  # more never waits; a call may still open after it
        named = r.at < len(r.buf) and (yield from r.sees(line.opens)) is not None
        if line.block is not None:
            yield from self._note_block(line.block, len(space) - space.rfind("\n") - 1, named=named)
        if r.ended and (r.cut == r.offset if r.at < len(r.buf) else space):
            self.note_undecided(space)
        if named and self.line_tried != r.offset:
            self.line_tried = r.offset
            self.emit_taken(space)
            shown = r.offset < 0 or (yield from self._is_in_span(line.entries))
            return [] if shown else line.entries
        lines = space.rfind("\n") + 1  # whole lines of white space: not examined again
        self.emit_taken(space[:lines])
        r.unread(space[lines:])
        return []

    def _note_block(self, block: Delimiter, indent: int, *, named: bool) -> Wait:
        """Note at the start of a line that a block of Python starts there, or that the line is in one."""
        r = self.r
        if named:
            self.blocked = self.block is not None and indent > self.block
            self.block = self.block if self.blocked else None
        elif r.at < len(r.buf) and r.buf[r.at].isalpha() and (yield from r.sees(block)) is not None:
            self.block = indent

    def emit_taken(self, taken: str) -> None:
        """Emit visible text that was consumed without an event."""
        if taken:
            self.r.out.append(Text(taken))
            self._note(taken)

    def ticks(self, mark: str, run: int = 0) -> Wait:
        """Emit a run of backticks or tildes, which may begin or end quoted text; `run` of it have been emitted."""
        r, quoting = self.r, self.quoting
        while True:
            end = r.at
            while r.buf.startswith(mark, end):
                end += 1
            run += end - r.at
            self.silent = False
            if self.other is not None and not self.other.feed(r.buf[r.at : end]):
                self.other = None
            r.emit(Text, end)
            if end < len(r.buf) or r.ended:
                break
            yield
        depends = quoting.may_close(mark, run) or quoting.may_be_late(mark, run)
        named = depends and (yield from r.sees(_LANGUAGE)) is not None
        if r.ended and (r.at >= len(r.buf) or (depends and r.cut == r.offset)):
            self.continuation = lambda reader: reader.ticks(mark, run)
            self.note_undecided()
        self.continuation = None
        quoting.ticks(mark, run, opens=named)

    def entries(self) -> Generator[None, None, list[Opener]]:
        """Return the openers at exactly this place, unless it is quoted."""
        r, quoting, table = self.r, self.quoting, self.openers.table
        if quoting.boxes and (said := r.buf[r.at : r.at + 1]) not in _MARKS:
            quoting.look(said)
        shown = not quoting.off and (quoting.fence or quoting.spans.closing)
        if shown or (self.other is not None and self.other.quotes):
            return []
        while not r.ended and self.openers.literal.part.match(r.buf, r.at):
            yield  # this may be the beginning of a longer opener
        entries: list[Opener] = []
        may_be_aside = r.buf[r.at : r.at + 1] in _ASIDE_STARTS and not quoting.off
        aside = (yield from r.sees(self.openers.asides.opens)) if may_be_aside else None
        if aside:
            entries = [Opener("aside", self.openers.formats[0], Shape(()), aside=self.openers.asides.at(aside))]
        elif found := self.openers.literal.match(r.buf, r.at):
            entries += table.at_literal(found[0])
        loose = self.openers.may_be_loose
        if not aside and r.buf.startswith("<", r.at) and (table.tags or (not entries and loose(r.buf, r.at))):
            found = yield from r.sees(TAG)
            entries += table.at_tag(found, loose=not entries) if found else ()
        if entries and (yield from self._is_in_span(entries)):
            return []
        return entries if self.other is None else self._in_other_json(entries, self.other)

    def _in_other_json(self, entries: list[Opener], other: OtherJson) -> list[Opener]:
        """Return the openers that count in other JSON; if it is damaged also calls, which are errors there."""
        place = other.place() if any(map(_is_bare, entries)) else "inside"
        if place == "after":
            self.other = None
            return entries
        return [e for e in entries if not _is_bare(e) or (place == "damaged" and e.kind == "call")]

    def opens_nothing(self) -> Wait:
        """Emit the character here, which opens no call, as text; it may begin other JSON, in which no call counts."""
        r, quoting = self.r, self.quoting
        may_be = self.openers.stops.bare and r.buf[r.at] in "{[" and not (self.other or quoting.off or quoting.quoted)
        found = (yield from r.sees(OTHER_JSON)) if may_be else None
        if found is not None and not wraps_calls(found["key"]):
            begins = r.base == 0 and r.at <= _MARGIN and not r.buf[: r.at].strip()  # the reply, not text after a call
            self.other = OtherJson(reply=begins)
        elif self.openers.lists and r.buf[r.at] == "[" and self.other is None and not (quoting.off or quoting.quoted):
            self.other = OtherJson(python=True) if (yield from r.sees(BARE_LIST)) is not None else None
        self.note_cut()
        self.emit_text(r.at + 1)

    def _is_in_span(self, entries: list[Opener]) -> Generator[None, None, bool]:
        """Return True if this is in a code span or fence that is closed later; otherwise its marks are only characters.

        If the text ends first, or long text follows, a span counts as closed if it opens in this line. A span of an
        earlier line does not end inside a call that begins its line. Source: q27#30.
        """
        r, quoting, spans = self.r, self.quoting, self.quoting.spans
        in_line = quoting.quoted
        if quoting.off:
            return False
        if not in_line and not spans.paragraph.waiting:
            return (yield from self._is_in_fence())
        lengths = "|".join(f"`{{{n}}}" for n in sorted(spans.closers if in_line else spans.paragraph.waiting))
        begins_line = not in_line and quoting.blank
        closing = re.compile(rf"(?<!`)(?P<run>{lengths})(?!`)|\n[ \t\r]{{0,64}}\n")
        found = yield from self._ahead(closing)
        if found is None and in_line:
            spans.closing = max(spans.closers) if len(r.buf) < r.at + _SPAN else 0  # to the text's last line
            return True
        text = r.buf[r.at : found.start()] if found is not None and begins_line else ""
        if found is None or found["run"] is None or (text and any(_is_unclosed(text, entry) for entry in entries)):
            quoting.no_span()
            return (yield from self._is_in_fence())
        if in_line:
            spans.closing = len(found["run"])
        else:
            quoting.continues(len(found["run"]))
        return True

    def _is_in_fence(self) -> Generator[None, None, bool]:
        """Return True if a fence after other text in its line is one, as another one closes it."""
        mark = self.quoting.spans.fence
        if not mark:
            return False
        found = yield from self._ahead(re.compile(rf"\n[ \t]{{0,64}}{mark}{mark[0]}*(?P<more>[^\n]*)"))
        return self.quoting.decide_fence(closes=found is not None and not found["more"].strip())

    def _ahead(self, closing: re.Pattern[str]) -> Generator[None, None, re.Match[str] | None]:
        """Return the next match of a pattern, unless long text is before it."""
        r = self.r
        while True:
            limit = r.at + _SPAN
            found = closing.search(r.buf, r.at, limit)
            if found and found.end() < min(len(r.buf), limit):
                return found
            if len(r.buf) >= limit:
                return None
            if r.ended:
                self.note_undecided()
                return found
            yield

    def take_space(self) -> Generator[None, None, str]:
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
        """Consume up to `end` without an event; returns the consumed text."""
        taken, self.r.at = self.r.buf[self.r.at : end], end
        return taken


def _is_unclosed(text: str, entry: Opener) -> bool:
    """Return True if a call at this text's start does not end in it; without a marked end, a bracket is still open."""
    if entry.tool is not None and entry.tool.element is not None:
        return re.search(rf"\A<[^>]*/>|</{re.escape(entry.tool.element.tag)}", text, re.IGNORECASE) is None
    ends = [edge(end).strip().removesuffix(">") for end in closers_of(entry.shape)]
    if ends:
        return not any(end in text for end in ends)
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))


def _is_bare(entry: Opener) -> bool:
    """Return True if this opens calls that other JSON may also contain."""
    section = entry.shape.section if entry.kind == "section" else None
    in_object = section is not None and isinstance(section.open, str) and section.open.startswith("{")
    return entry.kind in ("call", "section") and (entry.weak or in_object)
