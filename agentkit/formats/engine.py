"""The only text parser: `feed(text)` gives events, `close()` the last ones; whole text is feed and close.

One machine for every declared format. Knows declarations, text and events; knows no registry, no model and no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from typing import Literal, assert_never

from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, Markup, SourceEvent, Text, Thinking
from agentkit.formats.bodies import READERS, Call
from agentkit.formats.catalog import CATALOG
from agentkit.formats.prose import STOPS, TAG, Entry, Openers, Quoting
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Wait, literal
from agentkit.formats.resync import resync_at
from agentkit.formats.spec import Format, Limits, Tag, ToolSpec
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

    __slots__ = ("count", "openers", "quoting", "run", "search", "section", "start_thinking", "tools")

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
        self.section: Format | None = None
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
                    after_call = entry.kind != "thinking"
                    break
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
                if c == "`" and self.quoting is not None:
                    yield from self._ticks(self.quoting)
                elif entries := (yield from self._entries()):
                    return entries
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
        if found := (yield from self.sees(self.openers.literal)):
            entries += self.openers.literals[found[0]]
        if self.openers.tags and self.buf.startswith("<", self.at) and (found := (yield from self.sees(TAG))):
            entries += self.openers.at_tag(found)
        return entries

    def _after_call(self) -> Generator[None, None, list[Entry] | None]:
        """Behind a call: white space before another one, or before the section's end, is markup."""
        while True:
            at = self.at
            while at < len(self.buf) and self.buf[at].isspace():
                at += 1
            if at - self.at > _SPACE_RUN:
                return (yield from self._prose())
            if at < len(self.buf) or self.ended:
                break
            yield
        space, self.at = self.buf[self.at : at], at
        entries = (yield from self._entries()) if self.at < len(self.buf) else []
        if not entries and self.at < len(self.buf):
            self.unread(space)
            return (yield from self._prose())
        if space:
            self.out.append(Markup(space))
            if self.quoting is not None:
                self.quoting.said(space)
        return entries or None

    # ------------------------------------------------------------ what opens

    def _enter(self, entry: Entry) -> Generator[None, None, bool]:
        """Try to read what opens here; False, with nothing consumed, where it is text after all."""
        match entry.kind:
            case "thinking":
                found = yield from self.sees(self.openers.literal)
                self.say(Markup, found.end() if found else self.at)
                yield from self._thinking(entry.close)
                return True
            case "section":
                return (yield from self._section(entry.format))
            case "close":
                return (yield from self._section_end(entry.format))
            case "call":
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

    def _section(self, format: Format) -> Generator[None, None, bool]:
        """The opening of a section counts only where a call follows it."""
        assert format.section is not None
        self.open()
        start = self.offset
        opened = False
        try:
            if found := (yield from self.sees(self._edge(format.section.open))):
                self.at = found.end()
                if isinstance(format.section.open, Tag):
                    yield from self.space()
                    found = yield from self.sees(literal(">"))
                    self.at = found.end() if found else self.at
                if found:
                    yield from self.space()
                    entries = yield from self._entries()
                    opened = any(e.kind == "call" and e.format is format for e in entries)
        except Damage:
            opened = False
        if opened:
            self.out.append(Markup(self.raw()))
            self.section = format
        else:
            self.back_to(start)
        self.shut()
        return opened

    def _section_end(self, format: Format) -> Generator[None, None, bool]:
        """The end of a section counts only where one is open."""
        assert format.section is not None
        if self.section is not format:
            return False
        found = yield from self.sees(self._edge(format.section.close))
        if found is None:
            return False
        self.section = None
        self.say(Markup, found.end())
        return True

    def _call(self, entry: Entry) -> Generator[None, None, bool]:
        """Read one call; False where it turns out to be none before anything was said of it."""
        call = Call(entry.format, self.tools, self.count, tool=entry.tool)
        self.open()
        start = self.offset
        try:
            for part in entry.format.call:
                yield from READERS[type(part)](self, call, part)
        except Decline:
            self.back_to(start)
            self.shut()
            return False
        except Damage as damage:
            yield from self._damaged(call, damage)
        else:
            raw = self.raw()
            done = ToolCall("", call.name, call.arguments, call.format.name, raw)
            self.out.append(CallEnd(call.index, done, tuple(call.repairs)))
        self.shut()
        self.count += 1
        return True

    def _damaged(self, call: Call, damage: Damage) -> Wait:
        """Answer for a call that cannot be completed, and find where reading goes on."""
        end = yield from resync_at(self, call.format, damage)
        message = damage.told(self.raw()[: end - self.mark], self.mark)
        if end < self.offset and self.may_rewind(end):
            self.back_to(end)
        arguments = call.arguments if damage.code == "truncated_call" else {}
        lost = ToolCall("", call.name, arguments, call.format.name, self.raw())
        self.out.append(CallError(call.index, damage.code, message, lost, damage.position))
