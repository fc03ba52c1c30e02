"""The only text parser: `feed(text)` gives events, `close()` the last ones; whole text is feed and close.

One machine for every declared format. Knows declarations, text and events; knows no registry, no model and no I/O.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, assert_never

from agentkit.checks.spelling import did_you_mean, then
from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, Markup, SourceEvent, Text, Thinking
from agentkit.foreign import renamed
from agentkit.formats import values
from agentkit.formats.asides import Aside, end_of
from agentkit.formats.bodies.fixed import read_loosely, read_opening_tag
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.call import CallReader
from agentkit.formats.catalog import CATALOG
from agentkit.formats.damage.completing import doubtful, repaired_call
from agentkit.formats.damage.listed import REACH, Listed, Next, later, only_punctuation
from agentkit.formats.damage.missing_close import close_values
from agentkit.formats.damage.resync import resync_at
from agentkit.formats.damage.unread import Named, Unread
from agentkit.formats.format import Envelope, Format, KeyEnvelope, Limits, NameTag, PythonCall, Shape, Tag, ToolElement
from agentkit.formats.jsontext import GOES_ON
from agentkit.formats.openers import TAG, Opener, Quoting, begins, edge_of, openers_of
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Wait, literal, may_begin
from agentkit.formats.repairs import LONE_SURROGATE, MISSING_CLOSE, REPAIRS, WHOLE_CALL_REPAIRS
from agentkit.messages import ToolCall
from agentkit.toolspec import ToolSpec

InCode = Literal["ignore", "reply", "execute"]

_LOG = logging.getLogger("agentkit.formats")
_FENCE = Delimiter(r"`{3,}[\w+-]{0,24}[ \t]{0,8}(?:\r?\n|(?=[\[{<]))", r"`{0,16}[\w+-]{0,24}[ \t]{0,8}\r?")
_LANGUAGE = Delimiter(r"[\w+#.-]{0,23}[\w+#][ \t]{0,8}\r?\n", r"[\w+#.-]{0,24}[ \t]{0,8}\r?")  # no end of a sentence
_BETWEEN = (",", ";")  # between calls that are told apart by it
_AGAIN = Delimiter(r"[\]\s]{0,16}[,;][\[\s]{0,64}(?=[^\[\s])", r"[\]\s]{0,16}(?:[,;][\[\s]{0,64})?")  # a list goes on
_EDGES = ("<", "[")  # with which an aside begins
_MARKS = ("`", "~")
_ANY = re.compile(".").match
_NO_SHAPE = Shape(())
_LAST_WORD = re.compile(r"[\w.-]+\Z").match
_UNDECIDED = re.compile(r".\s{0,64}\Z", re.DOTALL).match
_AT_ONCE = 64  # characters of what may be a list of calls that are looked over with each that comes
_UNREADABLE = "a call of {0!r} begins here and cannot be read"
_NO_CALL = "expected one of the calls, or their end"
_SPACE_RUN = 1024  # white space after a call that is held back until it is known whether another call follows


def get(name: str | Format) -> Format:
    """The format of this name or alias.

    Raises:
        FormatError: there is none; the message lists the names.
    """
    if isinstance(name, Format):
        return name
    for format in CATALOG:
        if name == format.name or name in format.aliases:
            return format
    if name == "auto":
        raise FormatError("'auto' is for reading what a model wrote; here one format is wanted: 'xml', 'hermes', …")
    hint = did_you_mean(str(name), [alias for f in CATALOG for alias in (f.name, *f.aliases)], renamed.FORMATS)
    listed = "`agentkit formats` and agentkit.formats.names() list all"
    raise FormatError(f"no format is called {name!r}{then(hint, listed)}")


class Parser(Reader):
    """Find calls in one response, whole or streamed. One parser per response; never reused.

    Args:
        formats: the format or formats in which calls count, as names or declarations; where two could open at the same
            place the one named first is tried first.
        tools: the offered tools: their tags, and the schemas that type the values.
        in_code: whether calls inside Markdown code spans and fenced blocks count: `ignore` leaves them text, `reply`
            counts them where a fenced block opens the reply, `execute` counts them all, and those in what else is said
            aside (`asides`: comments, examples, made-up results), too.
        repairs: what may be repaired in a finished, otherwise unreadable body; each repair made is named on its
            `CallEnd`. What streamed of a repaired call's arguments may end where the damage was met.
        thinking: the text starts inside thinking, as when the prompt ended with `<think>`.
        limits: bounds on what is accepted.

    However the text is cut into chunks, the merged events are the same. `Text`, `Thinking`, `Markup` and the `raw` of
    calls, in order, are exactly the input. No text makes it raise: a fault of ours becomes the `internal_error` of the
    call in which it showed, and is logged.
    """

    __slots__ = (
        "before", "block", "blocked", "call", "count", "faulty", "fenced", "last", "line_tried", "openers",
        "opening_fence", "quoting", "reopen", "run", "section", "silent", "tools",
    )  # fmt: skip

    def __init__(
        self,
        formats: str | Format | Iterable[str | Format],
        tools: Sequence[ToolSpec] = (),
        *,
        in_code: InCode = "ignore",
        thinking: bool = False,
        repairs: Iterable[str] = REPAIRS,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(limits or Limits(), frozenset(repairs))
        declared = [get(f) for f in ([formats] if isinstance(formats, str | Format) else formats)]
        self.openers = openers_of(declared, tools)
        self.tools = self.openers.named
        self.quoting = Quoting(off=in_code == "execute")
        self.opening_fence = self.openers.fence if in_code == "reply" else None
        self.line_tried = -1
        self.fenced = ""  # what ends the fence around the calls: as many backticks as opened it, and no more
        self.silent = True
        self.block: int | None = None  # how far the line is indented with which a block of Python begins
        self.blocked = False
        self.count = 0
        self.call: CallReader | None = None  # the one that is open
        self.before = ""  # what stands between two calls, markup if the second one is a call
        self.faulty = -1  # the last call in which a fault of ours showed
        self.section: Opener | None = None
        self.reopen: Opener | None = None  # the section that has just been closed
        self.last: Opener | None = None
        inside = declared[0].thinking[0][1] if thinking and declared and declared[0].thinking else None
        self.run = self._text(inside)

    def take(self, text: str) -> list[SourceEvent]:
        """Take a chunk that needs a decision."""
        if self.ended:
            raise ValueError("feed() after close(): a parser reads one response")
        if not text:
            return []
        self.hot = None
        self.accept(text)
        return self._read_on()

    def close(self) -> list[SourceEvent]:
        """The text has ended: returns the last events. Closing twice is harmless."""
        if self.ended:
            return []
        self.hot = None
        self.accept("")
        self.ended = not self.surplus
        events = self._read_on()
        while not self.ended:  # a call that was too long has been given up; read what came after it
            self.accept("")
            self.ended = not self.surplus
            events += self._read_on()
        return events

    def _read_on(self) -> list[SourceEvent]:
        """Read what has arrived, and return its events.

        The one guard of reading: what raises in it is a fault of ours, and costs one call at most.
        """
        lost: Damage | None = None
        while True:
            try:
                if lost is None:
                    next(self.run)
                else:
                    self.run.throw(lost)
            except StopIteration:
                break
            except Exception as fault:  # noqa: BLE001 - whatever it is, one call is its price, and no run ends
                _LOG.exception("agentkit failed to read a model's text, at position %d", self.offset)
                self.run, lost = self._after_fault(fault), None
                continue
            if not self.surplus:
                break
            lost = Damage("limit", f"the call is longer than {self.limits.call} characters", self.offset)
        events, self.out = self.out, []
        return events

    # ------------------------------------------------------------ between calls

    def _after_fault(self, fault: Exception) -> Wait:
        """Answer for the call in which a fault of ours showed, and read on behind it.

        Where it showed outside a call, or again while the call was answered for, at least one character goes with it.
        """
        again, self.faulty = self.faulty == self.count, self.count
        if self.kept is None:
            self.open()
        call = self.call
        told = f"agentkit failed to read this call ({type(fault).__name__}: {str(fault)[:200]})"
        damage = Damage("internal_error", told, self.offset)
        if call is not None and not again:
            yield from self._damaged(call, damage)
        else:
            if self.offset == self.mark:
                yield from self.more()
                self.at = min(self.at + 1, len(self.buf))
            self._lost(
                call or CallReader(self.openers.formats[0], _NO_SHAPE, self.tools, self.count), damage, self.raw()
            )
        self._call_over()
        if self.at < len(self.buf) or not self.ended:
            yield from self._text()

    def _text(self, thinking: str | None = None) -> Wait:
        """Text and calls by turns, to the text's end; it may start inside `thinking`."""
        if thinking:
            yield from self._region(Thinking, thinking)
        after_call = False
        while True:
            entries = yield from (self._after_call() if after_call else self._prose())
            if entries is None:
                return
            after_call = False
            for entry in entries:
                if entry.kind == "markup" and self.section is None and (yield from self._answers(entries)):
                    after_call = True  # it opens a call or a section, be the first one damaged
                    break
                if (yield from self._enter(entry)):
                    after_call = entry.kind not in ("thinking", "answer", "markup", "aside")
                    break
            else:
                if (yield from self._answers(entries)):
                    after_call = True
                    continue
                self.section = None
                if self.before:
                    self.unread(self.before)
                    self.before = ""
                elif self.buf.startswith("`", self.at):
                    yield from self._ticks(self.quoting)
                else:
                    self._plain(self.at + 1)

    def _plain(self, end: int) -> None:
        """Consume up to `end` as visible text."""
        if self.silent and not self.buf[self.at : end].isspace():
            self.silent = end <= self.at
        self.quoting.said(self.buf[self.at : end])
        self.say(Text, end)

    def _prose(self) -> Generator[None, None, list[Opener] | None]:
        """Visible text up to something that may open; None at the text's end."""
        while True:
            if self.openers.line is not None and (entries := (yield from self._at_line_start(self.openers.line))):
                return entries
            c = self._say_to_stop()
            if not c and self.ended:
                return None
            if not c:
                yield
            if c in ("", "\n"):
                continue
            entries = yield from self._entries()
            if c == "`" and self.silent and self.opening_fence and self.quoting.blank:
                return [*entries, self.opening_fence]
            if entries:
                return entries
            if c in _MARKS:
                yield from self._ticks(self.quoting)
            else:
                self._plain(self.at + 1)

    def _say_to_stop(self) -> str:
        """Say visible text up to the next place that needs a decision.

        Returns the character there; a line end, already said; or nothing where more text is needed.
        """
        inside = self.quoting.inside
        found = (self.openers.within if inside else self.openers.search)(self.buf, self.at)
        if found is None:
            self._plain(len(self.buf))
            if not self.ended and not self.quoting.blank:
                self.heat(self.openers.within if self.quoting.inside else self.openers.search, Text)
            return ""
        if found[0] == "\n":  # the first line's end may need no decision once the line has been said
            self._plain(found.end() if inside or found.start() == self.at else found.start())
            return "\n"
        self._plain(found.start())
        if found[0] != "`" and not self.ended and _UNDECIDED(self.buf, self.at):
            return ""  # what stands behind it may tell that it opens nothing
        return found[0]

    def _at_line_start(self, line: Delimiter) -> Generator[None, None, list[Opener]]:
        """The calls that may open with a bare tool name at the start of a line."""
        if not self.quoting.blank or self.quoting.quoted:
            return []
        while len(held := (yield from self._look_over_space())) >= _SPACE_RUN:
            self._show(held)  # more is never held back; a call may still open behind it
        named = self.at < len(self.buf) and (yield from self.sees(line)) is not None
        if self.openers.block is not None:
            yield from self._note_block(self.openers.block, len(held) - held.rfind("\n") - 1, named=named)
        if named and self.line_tried != self.offset:
            self.line_tried = self.offset
            self._show(held)
            return self.openers.lines
        lines = held.rfind("\n") + 1  # whole lines of white space: not looked at again
        self._show(held[:lines])
        self.unread(held[lines:])
        return []

    def _note_block(self, block: Delimiter, indent: int, *, named: bool) -> Wait:
        """Note at the start of a line whether a block of Python begins there, or what stands there is in one."""
        if named:
            self.blocked = self.block is not None and indent > self.block
            self.block = self.block if self.blocked else None
        elif self.at < len(self.buf) and (yield from self.sees(block)) is not None:
            self.block = indent

    def _show(self, taken: str) -> None:
        """What was consumed in silence is visible text."""
        if taken:
            self.out.append(Text(taken))
            self.quoting.said(taken)

    def _fenced(self) -> Generator[None, None, bool]:
        """A code fence that opens the reply and holds a call is markup: the fence is only the call's wrapping."""
        self.open()
        start = self.offset
        if (found := (yield from self.sees(_FENCE))) is not None:
            self.at = found.end()
            ticks = len(found[0]) - len(found[0].lstrip("`"))
            yield from self._look_over_space()
            inside = self.offset
            entries = yield from self._entries()
            if self.openers.line is not None and (yield from self.sees(self.openers.line)):
                entries = [*entries, *self.openers.lines]
            for entry in entries:
                if entry.kind in ("call", "section") and (yield from self._call(entry, inside)):
                    self.fenced, self.silent = "`" * ticks, False
                    return True
        self.back_to(start)
        self.shut()
        return False

    def _ticks(self, quoting: Quoting) -> Wait:
        """Say a run of backticks or tildes, which may begin or end what is quoted."""
        run, mark = 0, self.buf[self.at]
        while True:
            end = self.at
            while self.buf.startswith(mark, end):
                end += 1
            run += end - self.at
            self.silent = False
            self.say(Text, end)
            if end < len(self.buf) or self.ended:
                break
            yield
        named = quoting.may_close(mark, run) and (yield from self.sees(_LANGUAGE)) is not None
        quoting.ticks(mark, run, opens=named)

    def _entries(self) -> Generator[None, None, list[Opener]]:
        """What may open at this very place, unless it is quoted."""
        if self.quoting.quoted:
            return []
        entries: list[Opener] = []
        aside = self.buf[self.at : self.at + 1] in _EDGES and not self.quoting.off
        if aside and (found := (yield from self.sees(self.openers.asides.opens))):
            return [Opener("aside", self.openers.formats[0], _NO_SHAPE, aside=self.openers.asides.at(found))]
        while not self.ended and self.openers.literal.part.match(self.buf, self.at):
            yield  # what stands here may be the beginning of a longer opener
        if found := self.openers.literal.match(self.buf, self.at):
            entries += self.openers.literals["".join(found[0].split())]
        if self.buf.startswith("<", self.at) and self._tag_may_open(entries) and (found := (yield from self.sees(TAG))):
            entries += self.openers.at_tag(found, loose=not entries)
        return entries

    def _tag_may_open(self, entries: Sequence[Opener]) -> bool:
        """Whether the tag that stands here may open something, beside what its very letters do."""
        if self.openers.tags or entries or self.openers.may_be_loose is None:
            return bool(self.openers.tags)
        return self.openers.may_be_loose(self.buf, self.at) is not None

    def _after_call(self) -> Generator[None, None, list[Opener] | None]:
        """What stands behind a call, up to the next one; None at the text's end.

        What closes the call once more is markup; so are white space and the separator before another call, or before
        the section's end.
        """
        held = yield from self._look_over_space()
        if self.last is not None and self._may_close_again(self.last):
            held = yield from self._over_closers(self.last, held)
        if self.reopen is not None and self.section is None and (again := (yield from self.sees(_AGAIN))):
            between = self._take(again.end())
            if entries := (yield from self._reopens(self.reopen)):
                return (yield from self._behind_call(entries, held + between))
            self.unread(between)
        separator = self.last.format.separator.strip() if self.last else ""
        found = (yield from self.sees(literal(separator))) if separator else None
        if found is None:
            if self.at >= len(self.buf):
                yield from self.more()
            if self.buf[self.at : self.at + 1] in _BETWEEN and self._listed():
                found = _ANY(self.buf, self.at)
        if found is not None:
            held += self._take(found.end())
            held += yield from self._look_over_space()
        entries = yield from self._next_in_section(apart=found is not None)
        if not entries and found is not None and self.openers.line is not None and self._listed():
            entries = self.openers.lines if (yield from self.sees(self.openers.line)) else []
        return (yield from self._behind_call(entries, held))

    def _behind_call(self, entries: list[Opener], held: str) -> Generator[None, None, list[Opener] | None]:
        """What may open behind a call and the white space `held`: prose, if nothing does and no section is open."""
        if self.at < len(self.buf) and (entries[0].kind == "aside" if entries else self.section is None):
            self.unread(held)
            return (yield from self._prose())
        self.before = held
        if entries or self.at < len(self.buf):
            return entries
        self._say_before()
        return None

    def _reopens(self, closed: Opener) -> Generator[None, None, list[Opener]]:
        """The next call of a section that was just closed, where one stands here: then the section goes on."""
        if (listed := self.openers.listed(closed)) is None:
            return []
        while (starts := listed.starts(self.buf[self.at : self.at + REACH], whole=self.ended)) is None:
            yield
        self.section = closed if starts else None
        return [self.openers.of_section(closed)[0]] if starts else []

    def _over_damage(self, entries: Sequence[Opener]) -> Generator[None, None, bool]:
        """Answer for what stands in a section and is no call, where the section writes a call behind it.

        False, with nothing consumed, where it writes none: then this is text.
        """
        opened = self.section
        for entry in entries if opened is None else (opened,):
            listed = self.openers.listed(entry) if opened is not None or entry.kind == "section" else None
            if listed is not None and (yield from self._over(entry, listed, opened=opened is not None)):
                return True
        return False

    def _over(self, entry: Opener, listed: Listed, *, opened: bool) -> Generator[None, None, bool]:
        """The same in one section, which `opened` tells is open; else it may open here."""
        skip, formed = 0, False
        if not opened:
            assert entry.shape.section is not None
            if self.quoting.quoted:
                return False
            formed = (yield from self.sees(self.openers.formed(entry))) is not None
            if listed.told and not formed:
                return False
            if (found := (yield from self.sees(edge_of(entry.shape.section.open)))) is None:
                return False
            skip = found.end() - self.at
        if not self.may_rewind(self.offset):
            return False
        coming = yield from self._coming(listed, skip, opened=opened)
        self.rewound += coming.end
        if formed and coming.kind == "call" and (yield from self._call(self.openers.strong(entry))):
            self.section = self.last = entry  # a list of calls, the first of which has an unknown name
            return True
        if not opened and listed.told:
            return False
        text = self.buf[self.at + skip : self.at + skip + coming.end]
        if coming.kind == "none" and opened and coming.told and text:  # only the end of the calls follows
            self._over_junk(text)
            return True
        if coming.kind == "none" or not (opened or self._opens(entry, skip)):
            return False
        yield from self._answer_for(entry, coming, text, skip, opened=opened)
        return True

    def _coming(self, listed: Listed, skip: int, *, opened: bool) -> Generator[None, None, Next]:
        """What comes next in a section, `skip` characters ahead."""
        enough = 0
        while True:
            start = self.at + skip
            reach = listed.reach(self.buf, start, opened=opened)
            text, whole = self.buf[start : start + reach], self.ended or len(self.buf) - start >= reach
            if whole or len(text) >= enough:
                if (coming := listed.next(text, whole=whole, opened=opened)) is not None:
                    return coming
                enough = later(len(text)) if len(text) > _AT_ONCE else 0
            yield

    def _answer_for(self, entry: Opener, coming: Next, text: str, skip: int, *, opened: bool) -> Wait:
        """What stands in a section up to the next call is markup where it says nothing, else an error."""
        self.open()
        call = CallReader(entry.format, entry.shape, self.tools, self.count, before=self.before)
        if not opened:
            yield from self._section_start(entry, call)
            text = text.lstrip().removeprefix(">")
        position, self.at = self.offset, self.since + skip + coming.end
        self.section = self.last = entry
        if coming.kind == "call" and only_punctuation(text):
            self._say_before()
            self.out.append(Markup(self.raw()))
            self.shut()
            return
        if self.ended and not coming.told and self.at >= len(self.buf):
            damage = Damage("truncated_call", f"the text ended: {_NO_CALL}", position, ended=True, got=True)
        else:
            damage = Damage("invalid_json", _NO_CALL, position, got=True)
        self._lost(call, damage, self.raw())
        self._call_over()

    def _over_junk(self, junk: str) -> None:
        """Say what stands in a section and is no call."""
        if only_punctuation(junk):
            self._say_before()
            self.say(Markup, self.at + len(junk))
        else:
            self._show(self.before)
            self.before = ""
            self._plain(self.at + len(junk))

    def _answers(self, entries: Sequence[Opener]) -> Generator[None, None, bool]:
        """Answer for what opens here and is no call that can be read; False where it is text."""
        return (yield from self._over_damage(entries)) or (yield from self._unread(entries))

    def _unread(self, entries: Sequence[Opener]) -> Generator[None, None, bool]:
        """Answer for a call that cannot be read from its beginning on, where what stands here plainly writes one.

        False, with nothing consumed, where it does not: then this is text.
        """
        for entry in entries:
            if (looker := self.openers.unread(entry)) is None or self.quoting.quoted:
                continue
            if named := (yield from self._names_a_tool(looker)):
                yield from self._refuse(entry, named)
                return True
        return False

    def _names_a_tool(self, looker: Unread) -> Generator[None, None, Named | Literal[False]]:
        """Whether a tool is named behind the opening that stands here."""
        enough = 0
        while True:
            size = len(self.buf) - self.at
            if self.ended or size >= enough:
                if (named := looker.named(self.buf, self.at, ended=self.ended)) is not None:
                    return named
                enough = later(size) if size > _AT_ONCE else 0
            yield

    def _refuse(self, entry: Opener, named: Named) -> Wait:
        """The error for a call that names this tool, and no more of which can be read."""
        cut = self.ended and (named.ended or self.cut >= self.offset)
        self.open()
        call = CallReader(entry.format, entry.shape, self.tools, self.count, before=self.before)
        call.listed = self.openers.listed(entry)
        begins = self.offset
        section = entry.kind == "section"
        if section:
            try:
                yield from self._section_start(entry, call)
            except Decline:  # it is written too badly to be one
                section = False
                self.back_to(begins)
        self.at += max(begins + named.opening - self.offset, 0)  # the call's own opening belongs to what is refused
        told = f"a call of {named.name!r} begins here and cannot be read"
        if cut:
            told = f"the text ended in a call of {named.name!r}"
        yield from self._damaged(
            call, Damage("truncated_call" if cut else "invalid_json", told, self.offset, ended=cut)
        )
        self._call_over()
        self.last, self.reopen = entry, None
        if section:
            self.section = entry

    def _opens(self, entry: Opener, skip: int) -> bool:
        """Whether a section's opening is whole after so many characters, or at the end of the tag that it is."""
        tag = isinstance(entry.shape.section and entry.shape.section.open, Tag)
        return not tag or self.buf[self.at + skip :].lstrip().startswith(">")

    def _say_before(self) -> None:
        """What was looked over behind a call is markup: it is one more call, or its end, that stands here."""
        if self.before:
            self.out.append(Markup(self.before))
            self.quoting.said(self.before)
            self.before = ""

    def _listed(self) -> bool:
        """Whether calls like the last one are told apart by commas: bare ones are, and those in brackets."""
        if self.section is not None and self.section.shape.section is not None:
            edge = self.section.shape.section.open
            python = isinstance(self.section.shape.call[0], PythonCall)
            return python or (isinstance(edge, str) and edge.rstrip().endswith("["))
        first = self.last.shape.call[0] if self.last else None
        return isinstance(first, Envelope | PythonCall) or (isinstance(first, str) and not first.strip())

    def _own_end(self) -> str | Tag:
        """What closes the section that is open; nothing without one."""
        section = self.section.shape.section if self.section is not None else None
        return section.close if section is not None else ""

    def _may_close_again(self, last: Opener) -> bool:
        """Whether what closes the last call, although it is closed, may stand here."""
        if self.at < len(self.buf) and not self.openers.closes_again(last.format, self._own_end())(self.buf, self.at):
            return False
        return not self.quoting.quoted

    def _over_closers(self, last: Opener, held: str) -> Generator[None, None, str]:
        """Consume what closes the last call again behind white space `held`; returns the white space behind it."""
        own = self._own_end()
        for edge in self.openers.closers[last.format.name]:
            while not begins(own, edge) and (found := (yield from self.sees(edge_of(edge)))):
                self.out.append(Markup(held + self._take(found.end())))
                held = yield from self._look_over_space()
        return held

    def _next_in_section(self, *, apart: bool) -> Generator[None, None, list[Opener]]:
        """What may come next behind a call: in a section whose calls do not tell themselves, a call or its end.

        Where what stands between two calls sets it `apart`, what has the form of a call is one, whatever its name.
        """
        yield from self.more()
        if self.at >= len(self.buf):
            return []
        if self.fenced and (yield from self.sees(literal(self.fenced))):
            return [replace(self.opening_fence, kind="fence_end")] if self.opening_fence else []
        if (entry := self.section) is None or entry.shape.section is None:
            entries = [*(yield from self._entries()), *self._without_opening()]
            return (yield from self._formed(entries)) if apart and self._listed() else entries
        if (yield from self.sees(edge_of(entry.shape.section.close))):
            return [self.openers.of_section(entry)[1]]
        if isinstance(entry.shape.call[0], str | NameTag | ToolElement):
            return (yield from self._entries())
        inside = self.openers.of_section(entry)[0]
        if not (yield from self._starts(inside)):
            return (yield from self._entries())
        listed = self.openers.listed(entry)
        told = apart or (listed is not None and listed.strong)
        return (yield from self._formed([inside])) if told else [inside]

    def _formed(self, entries: Sequence[Opener]) -> Generator[None, None, list[Opener]]:
        """The same openers, of which one is strong where what stands here has the form of its calls."""
        found = []
        for entry in entries:
            weak = entry.kind == "call" and entry.weak
            formed = weak and (yield from self.sees(self.openers.formed(entry)))
            found.append(self.openers.strong(entry) if formed else entry)
        return found

    def _without_opening(self) -> list[Opener]:
        """A call like the last one whose opening literal was forgotten: an envelope tells itself, behind another.

        Source: 40 calls in the Berkeley leaderboard's results, as by Hermes 2 Pro 70B in parallel_186.
        """
        last = self.last
        if last is None or not self.buf.startswith("{", self.at) or self.quoting.quoted:
            return []
        parts = last.shape.call[isinstance(last.shape.call[0], str) :]
        if last.shape.section is not None or not parts or not isinstance(parts[0], Envelope):
            return []
        return [replace(last, kind="call", shape=Shape(parts), weak=True)]

    def _starts(self, entry: Opener) -> Generator[None, None, bool]:
        """Whether a call of a section can start here; its first character tells."""
        yield from self.more()
        c = self.buf[self.at : self.at + 1]
        return c == "{" if isinstance(entry.shape.call[0], Envelope | KeyEnvelope) else c.isidentifier()

    def _look_over_space(self) -> Generator[None, None, str]:
        """Consume a bounded run of white space; returns it."""
        taken = ""
        while True:
            taken += self._take(self.space_end(_SPACE_RUN - len(taken)))
            if self.at < len(self.buf) or self.ended or len(taken) >= _SPACE_RUN:
                return taken
            yield

    def _take(self, end: int) -> str:
        """Consume up to `end` in silence; returns what was consumed."""
        taken, self.at = self.buf[self.at : end], end
        return taken

    # ------------------------------------------------------------ what opens

    def _enter(self, entry: Opener) -> Generator[None, None, bool]:
        """Try to read what opens here; False, with nothing consumed, where it is text after all.

        No generator of its own: each that a chunk has to go through costs time.
        """
        match entry.kind:
            case "section" | "call":
                return self._call(entry)
            case "thinking" | "answer" | "markup":
                return self._token(entry)
            case "aside":
                return self._aside(entry.aside)
            case "fence":
                return self._fenced()
            case "fence_end":
                return self._fence_end()
            case "close":
                return self._section_end(entry)
            case _:
                assert_never(entry.kind)

    def _token(self, entry: Opener) -> Generator[None, None, bool]:
        """What begins thinking or an answer, with all that follows up to its end; or mere markup."""
        found = yield from self.sees(literal(entry.word) if entry.word else self.openers.literal)
        if found is None and entry.word:
            return False
        self._say_before()
        self.say(Markup, found.end() if found else self.at)
        if entry.close:
            yield from self._region(Thinking if entry.kind == "thinking" else Text, entry.close)
        return True

    def _fence_end(self) -> Generator[None, None, bool]:
        """The end of a code fence that was the calls' wrapping."""
        found = yield from self.sees(literal(self.fenced))
        self.fenced = ""
        self._say_before()
        self.say(Markup, found.end() if found else self.at)
        return True

    def _region(self, kind: type[Text] | type[Thinking], close: str) -> Wait:
        """Thinking, or an answer, up to its closing token or the text's end; nothing in it is a call."""
        delimiter = literal(close)
        stop = re.compile(may_begin(close)).search
        while True:
            found = stop(self.buf, self.at)
            self.say(kind, found.start() if found else len(self.buf))
            if found is None:
                if self.ended:
                    return
                self.heat(stop, kind)
                yield
            elif end := (yield from self.sees(delimiter)):
                self.say(Markup, end.end())
                return
            else:
                self.say(kind, self.at + 1)

    def _aside(self, aside: Aside | None) -> Generator[None, None, bool]:
        """What is said aside, with its edges, as visible text; nothing in it is a call."""
        found = yield from self.sees(self.openers.asides.opens)
        if aside is None or found is None:
            return True
        end, stop = end_of(aside.closes, paragraph=aside.paragraph and not self.quoting.blank)
        self._plain(found.end())
        while True:
            found = stop(self.buf, self.at)
            self._plain(found.start() if found else len(self.buf))
            if found is None and self.ended:
                return True
            if found is None:
                self.heat(stop, Text)
                yield
            elif closed := (yield from self.sees(end)):
                opens = yield from self._entries()
                if not any(entry.kind in ("call", "section") for entry in opens):  # what ends it may begin a call
                    self._plain(closed.end())
                return True
            else:
                self._plain(self.at + 1)

    def _section_end(self, entry: Opener) -> Generator[None, None, bool]:
        """The end of a section counts only where one is open."""
        if self.section is None or self.section.format is not entry.format or entry.shape.section is None:
            return False
        found = yield from self.sees(edge_of(entry.shape.section.close))
        if found is None:
            return False
        self.section, self.reopen = None, self.section
        self._say_before()
        self.say(Markup, found.end())
        return True

    def _call(self, entry: Opener, inside: int | None = None) -> Generator[None, None, bool]:
        """Read one call, behind the opening of a section where that stands here.

        With `inside`, what was kept up to that offset is its wrapping, which becomes markup. False where it turns out
        to be no call before anything was said of it.
        """
        call = CallReader(entry.format, entry.shape, self.tools, self.count, tool=entry.tool, known_only=entry.weak)
        call.blocked = self.blocked and entry.shape.section is None
        call.elements, call.listed = self.openers.elements, self.openers.listed(entry)
        call.before = self.before
        if inside is None:
            self.open()
        else:
            call.lead = self.raw()
        start = self.offset
        self.call = call
        try:
            if entry.kind == "section":
                yield from self._section_start(entry, call)
            for call.part, part in enumerate(entry.shape.call):
                yield from KINDS[type(part)].read(self, call, part)
            self._repair(call)
        except Decline:
            return self._undo(start, inside)
        except Damage as damage:
            if call.known_only and not call.started:  # common characters that open nothing known
                return self._undo(start, inside)
            yield from self._damaged(call, damage)
        else:
            self._done(call, call.arguments, self.raw(), call.repairs)
        self._call_over()
        self.last, self.reopen = entry, None
        if entry.kind == "section":
            self.section = entry
        return True

    def _call_over(self) -> None:
        """The open call has been told."""
        self.shut()
        if self.before:
            self.quoting.said(self.before)
        self.call, self.before = None, ""
        self.count += 1
        self.silent = False

    def _undo(self, start: int, inside: int | None) -> bool:
        """It was no call: go back to where it seemed to start."""
        self.call = None
        self.back_to(start)
        if inside is None:
            self.shut()
        return False

    def _section_start(self, entry: Opener, call: CallReader) -> Wait:
        """The opening of a section, which becomes markup once the call behind it has begun."""
        assert entry.shape.section is not None
        edge = entry.shape.section.open
        if isinstance(edge, Tag):
            yield from read_opening_tag(self, edge.name)
        elif (found := (yield from self.sees(edge_of(edge)))) is not None:
            self.at = found.end()
        else:
            call.id = yield from read_loosely(self, edge)
        yield from self.space()
        call.lead = self.raw()

    def _done(self, call: CallReader, arguments: dict[str, Any], raw: str, repairs: Sequence[str]) -> None:
        """Say that the call is complete."""
        arguments = values.encodable(arguments, raw)
        halves = (LONE_SURROGATE,) if values.replaced(arguments, raw) else ()
        done = ToolCall(call.id, call.name, arguments, call.format.name, raw[call.skip :])
        self.out.append(CallEnd(call.index, done, (*repairs, *halves)))

    def _repair(self, call: CallReader) -> None:
        """Repair arguments that were read, by what the tool's schema says."""
        close_values(call, self.offset, repair=MISSING_CLOSE in self.repairs)
        if not self.repairs.isdisjoint(WHOLE_CALL_REPAIRS):
            call.repair(self.repairs)

    def _damaged(self, call: CallReader, damage: Damage) -> Wait:
        """Repair a call that cannot be read as it stands, or answer for it, and find where reading goes on."""
        # in another shape of the format, what the text's end cut off might have been read from further in front
        unread = self.ended and call.body == damage.position
        cut = damage.position == self.cut or (unread and (damage.position < self.cut or _LAST_WORD(self.buf, self.at)))
        if cut and damage.code != "internal_error":
            at = self.cut if self.cut >= self.mark else damage.position
            damage = Damage("truncated_call", f"the text ended: {damage.message}", at, ended=True, got=damage.got)
        try:
            end = yield from resync_at(self, call, damage)
        except Damage:  # no edge as far as a call may reach
            end = self.offset
        raw = self.raw()[: end - self.mark]
        if self.may_rewind(end):
            self.back_to(end)
        else:
            raw = self.raw()
        repairable = damage.code == "invalid_json" and not damage.ended
        if repairable and (yield from self.sees(GOES_ON)):  # what seemed to close the body stands in it
            repairable = False
        if repairable and (read := repaired_call(self, call, raw)):
            call.arguments, call.repairs = read.arguments, [*read.repairs]
            self._repair(call)
            if read.end < len(raw) and self.may_rewind(self.mark + read.end):
                raw = raw[: read.end]
                self.back_to(self.mark + read.end)
            self._done(call, call.arguments, raw, call.repairs)
            return
        self._lost(call, doubtful(self, call, raw, damage) if repairable else damage, raw)

    def _lost(self, call: CallReader, damage: Damage, raw: str) -> None:
        """Answer for a call that cannot be made."""
        arguments = values.encodable(call.arguments, raw) if damage.code == "truncated_call" else {}
        call.say_lead(self)
        lost = ToolCall(call.id, call.name, arguments, call.format.name, raw[call.skip :])
        self.out.append(CallError(call.index, damage.code, damage.told(raw, self.mark), lost, damage.position))
