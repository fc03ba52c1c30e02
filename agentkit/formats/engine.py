"""The only text parser: `feed(text)` gives events, `close()` the last ones; whole text is feed and close.

One machine for every declared format. Knows declarations, text and events; knows no registry, no model and no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, assert_never

from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, Markup, SourceEvent, Text, Thinking
from agentkit.formats.bodies import READERS
from agentkit.formats.call import Call
from agentkit.formats.catalog import CATALOG
from agentkit.formats.prose import STOPS, TAG, Entry, Openers, Quoting
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Wait, literal
from agentkit.formats.resync import resync_at
from agentkit.formats.spec import Envelope, Format, KeyEnvelope, Limits, NameTag, Tag, ToolElement, ToolSpec
from agentkit.formats.tagtext import tag
from agentkit.messages import ToolCall

InCode = Literal["ignore", "execute"]

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
    raise FormatError(f"no format is called {name!r}; there are {', '.join(f.name for f in CATALOG)}")


class Parser(Reader):
    """Find calls in one response, whole or streamed. One parser per response; never reused.

    Args:
        formats: the format or formats in which calls count, as names or declarations; where two could open at the same
            place the one named first is tried first.
        tools: the offered tools: their tags, and the schemas that type the values.
        in_code: whether calls inside Markdown code spans and fenced blocks count: `ignore` leaves them text.
        thinking: the text starts inside thinking, as when the prompt ended with `<think>`.
        limits: bounds on what is accepted.

    However the text is cut into chunks, the merged events are the same. `Text`, `Thinking`, `Markup` and the `raw` of
    calls, in order, are exactly the input. No text makes it raise.
    """

    __slots__ = ("count", "last", "openers", "quoting", "run", "search", "section", "start_thinking", "tools")

    def __init__(
        self,
        formats: str | Format | Iterable[str | Format],
        tools: Sequence[ToolSpec] = (),
        *,
        in_code: InCode = "ignore",
        thinking: bool = False,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(limits or Limits())
        declared = [get(f) for f in ([formats] if isinstance(formats, str | Format) else formats)]
        self.tools = {t.name: t for t in tools}
        self.openers = Openers(declared, tools)
        self.quoting = Quoting() if in_code == "ignore" else None
        stops = STOPS[self.quoting is not None] + self.openers.firsts
        self.search = re.compile(f"[{re.escape(stops)}]" if stops else r"(?!)").search
        self.count = 0
        self.section: Entry | None = None
        self.last: Entry | None = None
        self.start_thinking = declared[0].thinking[0][1] if thinking and declared and declared[0].thinking else None
        self.run = self._run()
        next(self.run)

    def feed(self, text: str) -> list[SourceEvent]:
        """Take the next chunk; returns the events that it completes.

        Raises:
            ValueError: the parser was closed.
        """
        if (events := self.quick(text)) is not None:
            return events
        if self.ended:
            raise ValueError("feed() after close(): a parser reads one response")
        if not text:
            return []
        self.hot = None
        self.accept(text)
        return self._resume()

    def close(self) -> list[SourceEvent]:
        """The text has ended: returns the last events. Closing twice is harmless."""
        if self.ended:
            return []
        self.hot = None
        self.accept("")
        self.ended = not self.surplus
        events = self._resume()
        while not self.ended:  # a call that was too long has been given up; read what came after it
            self.accept("")
            self.ended = not self.surplus
            events += self._resume()
        return events

    def _resume(self) -> list[SourceEvent]:
        try:
            next(self.run)
            while self.surplus:
                at = self.offset
                self.run.throw(Damage("limit", f"the call is longer than {self.limits.call} characters", at))
        except StopIteration:
            pass
        events, self.out = self.out, []
        return events

    # ------------------------------------------------------------ between calls

    def _run(self) -> Wait:
        yield
        if self.start_thinking:
            yield from self._thinking(self.start_thinking)
        after_call = False
        while True:
            entries = yield from (self._after_call() if after_call else self._prose())
            if entries is None:
                return
            after_call = False
            for entry in entries:
                if (yield from self._enter(entry)):
                    after_call = entry.kind in ("call", "section", "close")
                    break
            else:
                self.section = None
                if self.quoting is not None and self.buf.startswith("`", self.at):
                    yield from self._ticks(self.quoting)
                else:
                    self._plain(self.at + 1)

    def _plain(self, end: int) -> None:
        """Consume up to `end` as visible text."""
        if self.quoting is not None:
            self.quoting.said(self.buf[self.at : end])
        self.say(Text, end)

    def _prose(self) -> Generator[None, None, list[Entry] | None]:
        """Visible text up to something that may open; None at the text's end."""
        while True:
            found = self.search(self.buf, self.at)
            if found is None:
                self._plain(len(self.buf))
                if self.ended:
                    return None
                if self.quoting is None or not self.quoting.blank:
                    self.heat(self.search, Text)
                yield
            elif (c := found[0]) == "\n" and self.quoting is not None:
                self._plain(found.end())
            else:
                self._plain(found.start())
                if entries := (yield from self._entries()):
                    return entries
                if c == "`" and self.quoting is not None:
                    yield from self._ticks(self.quoting)
                else:
                    self._plain(self.at + 1)

    def _ticks(self, quoting: Quoting) -> Wait:
        run = 0
        while True:
            end = self.at
            while self.buf.startswith("`", end):
                end += 1
            run += end - self.at
            self.say(Text, end)
            if end < len(self.buf) or self.ended:
                quoting.ticks(run)
                return
            yield

    def _entries(self) -> Generator[None, None, list[Entry]]:
        """What may open at this very place, unless it is quoted."""
        if self.quoting is not None and self.quoting.quoted:
            return []
        entries: list[Entry] = []
        while not self.ended and self.openers.literal.part.match(self.buf, self.at):
            yield  # what stands here may be the beginning of a longer opener
        if found := self.openers.literal.match(self.buf, self.at):
            entries += self.openers.literals["".join(found[0].split())]
        if self.openers.tags and self.buf.startswith("<", self.at) and (found := (yield from self.sees(TAG))):
            entries += self.openers.at_tag(found)
        return entries

    def _after_call(self) -> Generator[None, None, list[Entry] | None]:
        """Behind a call: white space and the separator before another one, or before the section's end, are markup."""
        separator = self.last.format.separator.strip() if self.last else ""
        held = yield from self._look_over_space()
        if separator and (found := (yield from self.sees(literal(separator)))):
            held += self._take(found.end())
            held += yield from self._look_over_space()
        entries = yield from self._next_in_section()
        if not entries and self.at < len(self.buf):
            self.unread(held)
            return (yield from self._prose())
        if held:
            self.out.append(Markup(held))
            if self.quoting is not None:
                self.quoting.said(held)
        return entries or None

    def _next_in_section(self) -> Generator[None, None, list[Entry]]:
        """What may come next behind a call: in a section whose calls do not tell themselves, a call or its end."""
        yield from self.more()
        if self.at >= len(self.buf):
            return []
        if (entry := self.section) is None or entry.shape.section is None:
            return (yield from self._entries())
        if (yield from self.sees(self._edge(entry.shape.section.close))):
            return [replace(entry, kind="close")]
        if isinstance(entry.shape.call[0], str | NameTag | ToolElement):
            return (yield from self._entries())
        inside = replace(entry, kind="call")
        return [inside] if (yield from self._starts(inside)) else (yield from self._entries())

    def _starts(self, entry: Entry) -> Generator[None, None, bool]:
        """Whether a call of a section can start here; its first character tells."""
        yield from self.more()
        c = self.buf[self.at : self.at + 1]
        return c == "{" if isinstance(entry.shape.call[0], Envelope | KeyEnvelope) else c.isidentifier()

    def _look_over_space(self) -> Generator[None, None, str]:
        """Consume a bounded run of white space; returns it."""
        taken = ""
        while True:
            end = self.at
            while end < len(self.buf) and end - self.at + len(taken) < _SPACE_RUN and self.buf[end].isspace():
                end += 1
            taken += self._take(end)
            if self.at < len(self.buf) or self.ended or len(taken) >= _SPACE_RUN:
                return taken
            yield

    def _take(self, end: int) -> str:
        """Consume up to `end` in silence; returns what was consumed."""
        taken, self.at = self.buf[self.at : end], end
        return taken

    # ------------------------------------------------------------ what opens

    def _enter(self, entry: Entry) -> Generator[None, None, bool]:
        """Try to read what opens here; False, with nothing consumed, where it is text after all."""
        match entry.kind:
            case "thinking" | "markup":
                found = yield from self.sees(self.openers.literal)
                self.say(Markup, found.end() if found else self.at)
                if entry.kind == "thinking":
                    yield from self._thinking(entry.close)
                return True
            case "close":
                return (yield from self._section_end(entry))
            case "section" | "call":
                return (yield from self._call(entry))
            case _:
                assert_never(entry.kind)

    def _thinking(self, close: str) -> Wait:
        """Thinking up to its closing tag or the text's end; nothing in it is a call."""
        delimiter = literal(close)
        stop = re.compile(re.escape(close[0])).search
        while True:
            found = stop(self.buf, self.at)
            self.say(Thinking, found.start() if found else len(self.buf))
            if found is None:
                if self.ended:
                    return
                self.heat(stop, Thinking)
                yield
            elif end := (yield from self.sees(delimiter)):
                self.say(Markup, end.end())
                return
            else:
                self.say(Thinking, self.at + 1)

    def _edge(self, edge: str | Tag) -> Delimiter:
        return tag(edge.name, closing=edge.closing) if isinstance(edge, Tag) else literal(edge.strip())

    def _section_end(self, entry: Entry) -> Generator[None, None, bool]:
        """The end of a section counts only where one is open."""
        if self.section is None or self.section.format is not entry.format or entry.shape.section is None:
            return False
        found = yield from self.sees(self._edge(entry.shape.section.close))
        if found is None:
            return False
        self.section = None
        self.say(Markup, found.end())
        return True

    def _call(self, entry: Entry) -> Generator[None, None, bool]:
        """Read one call, behind the opening of a section where that stands here.

        False where it turns out to be none before anything was said of it.
        """
        call = Call(entry.format, entry.shape, self.tools, self.count, tool=entry.tool, known_only=entry.weak)
        self.open()
        start = self.offset
        try:
            if entry.kind == "section":
                yield from self._section_start(entry, call)
            for call.part, part in enumerate(entry.shape.call):
                yield from READERS[type(part)](self, call, part)
            call.unwrap()
        except Decline:
            self.back_to(start)
            self.shut()
            return False
        except Damage as damage:
            if call.known_only and not call.started:  # common characters that open nothing known
                self.back_to(start)
                self.shut()
                return False
            yield from self._damaged(call, damage)
        else:
            self._done(call, call.arguments, self.raw(), call.repairs)
        self.shut()
        self.count += 1
        self.last = entry
        if entry.kind == "section":
            self.section = entry
        return True

    def _section_start(self, entry: Entry, call: Call) -> Wait:
        """The opening of a section, which becomes markup once the call behind it has begun."""
        assert entry.shape.section is not None
        edge = entry.shape.section.open
        found = yield from self.sees(self._edge(edge))
        if found is None:
            raise Decline
        self.at = found.end()
        if isinstance(edge, Tag):
            yield from self.space()
            if (found := (yield from self.sees(literal(">")))) is None:
                raise Decline
            self.at = found.end()
        yield from self.space()
        call.lead = self.raw()

    def _done(self, call: Call, arguments: dict[str, Any], raw: str, repairs: Sequence[str]) -> None:
        """Say that the call is complete."""
        done = ToolCall(call.id, call.name, arguments, call.format.name, raw[call.skip :])
        self.out.append(CallEnd(call.index, done, tuple(repairs)))

    def _damaged(self, call: Call, damage: Damage) -> Wait:
        """Answer for a call that cannot be completed, and find where reading goes on."""
        end = yield from resync_at(self, call.shape, damage)
        message = damage.told(self.raw()[: end - self.mark], self.mark)
        if end < self.offset and self.may_rewind(end):
            self.back_to(end)
        arguments = call.arguments if damage.code == "truncated_call" else {}
        call.say_lead(self)
        lost = ToolCall(call.id, call.name, arguments, call.format.name, self.raw()[call.skip :])
        self.out.append(CallError(call.index, damage.code, message, lost, damage.position))
