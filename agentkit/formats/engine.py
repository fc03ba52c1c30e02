"""The only text parser: `feed(text)` returns events, `close()` the last ones; for a whole text, call `close(text)`.

One machine for every declared format. Knows declarations, text and events; knows no registry, no model and no I/O.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Final, get_args

from agentkit.checks.spelling import did_you_mean, then, unknown
from agentkit.errors import FormatError
from agentkit.events import InventedResult, Markup, SourceEvent, Text, Thinking
from agentkit.foreign import argument_names
from agentkit.formats import between
from agentkit.formats.catalog import CATALOG
from agentkit.formats.format import Format, Limits
from agentkit.formats.lost import lost
from agentkit.formats.nextcall import next_at_once
from agentkit.formats.openers import Opener, openers_of
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.quoting import Quoting
from agentkit.formats.reached import Reached
from agentkit.formats.reader import CONSUMED, Damage, Reader, Wait
from agentkit.formats.regions import aside, begun
from agentkit.formats.sequence import Calls
from agentkit.schemas.typed.repairs import REPAIRS
from agentkit.toolspec import InCode, ToolSpec

_LOG = logging.getLogger("agentkit.formats")
_LIMITS: Final = Limits()  # created once: a parser is created for every response
_ALL_REPAIRS: Final = frozenset(REPAIRS)


def get(name: str | Format) -> Format:
    """The format with this name or alias.

    Raises:
        FormatError: there is none; the message says where the names are listed.
    """
    if isinstance(name, Format):
        return name
    for format in CATALOG:
        if name == format.name or name in format.aliases:
            return format
    if name == "auto":
        raise FormatError("'auto' only reads what a model wrote: name one format here, as 'xml' or 'hermes'")
    hint = did_you_mean(str(name), [alias for f in CATALOG for alias in (f.name, *f.aliases)], argument_names.FORMATS)
    listed = "`agentkit formats` and agentkit.formats.names() list all"
    raise FormatError(f"no format is called {name!r}{then(hint, listed)}")


def _check_settings(repairs: Iterable[str], in_code: str) -> None:
    """Refuse names that mean nothing.

    Raises:
        FormatError: there is no such repair, or no such way to read code.
    """
    for repair in repairs:
        if repair not in _ALL_REPAIRS:
            raise FormatError(unknown("repair", str(repair), REPAIRS))
    if in_code not in get_args(InCode):
        raise FormatError(f"in_code={in_code!r:.60}: expected one of {', '.join(get_args(InCode))}")


_MARK: Final = "\ufeff"  # a byte order mark, which does not belong to the first line
_STUCK: Final = 64  # steps that consume nothing, as an empty end of a section does; a fault of ours has no end of them


class Parser(Reader):
    """Find calls in one response, whole or streamed. One parser per response; never reused.

    Args:
        formats: the format or formats in which calls count, as names or declarations; if two could open at the same
            place, the one named first is tried first.
        tools: the offered tools: their tags, and the schemas that type the values.
        in_code: whether calls inside Markdown code spans and fenced blocks count: `ignore` leaves them text, `reply`
            counts them in fenced blocks before which only calls are, `execute` counts them all, and also those in other
            asides (`asides`: comments, examples, made-up results).
        repairs: what may be repaired in a finished, otherwise unreadable body; each repair is named on its
            `CallEnd`. What was streamed of a repaired call's arguments may end where the damage was found.
        thinking: whether the text starts inside thinking, as when the prompt ended with `<think>`.
        limits: limits on what is accepted.
        after: the closed parser of the text before an interruption, such as thinking, in the same response: code,
            thinking and asides that were open at its end are still open, and a mark that was not over continues. No
            call reaches across, not even in what it begins with.

    Raises:
        FormatError: no format, no repair or no `in_code` is called so, a tool is not a `ToolSpec`, or `after` is not
            closed.

    The merged events do not depend on how the text is cut into chunks. `Text`, `Thinking`, `Markup`, `InventedResult`
    and the `raw` of calls, in order, are exactly the input. No text makes it raise: a bug of ours becomes the
    `internal_error` of the call in which it appeared, and is logged.
    """

    __slots__ = ("calls", "faulty", "left", "prose", "run", "told")

    def __init__(
        self,
        formats: str | Format | Iterable[str | Format],
        tools: Sequence[ToolSpec] = (),
        *,
        in_code: InCode = "ignore",
        thinking: bool = False,
        repairs: Iterable[str] = REPAIRS,
        limits: Limits | None = None,
        after: Parser | None = None,
    ) -> None:
        super().__init__(limits or _LIMITS, _ALL_REPAIRS if repairs is REPAIRS else frozenset(repairs))
        declared = [get(f) for f in ([formats] if isinstance(formats, str | Format) else formats)]
        if self.repairs is not _ALL_REPAIRS or in_code != "ignore":
            _check_settings(self.repairs, in_code)
        openers = openers_of(declared, tools)
        fence = openers.fence if in_code == "reply" else None
        self.prose = ProseReader(self, openers, Quoting(off=in_code == "execute"), fence)
        self.calls = Calls(self, openers, self.prose)
        self.told = 0  # how much of the text before is read once more, and told already
        self.faulty = -1  # the last call in which a bug of ours appeared
        inside = declared[0].thinking[0][1] if thinking and declared and declared[0].thinking else None
        if after is not None:
            if after.left is None:
                raise FormatError("after=: expected a parser that is closed; close() returns its last events")
            self.prose.follow(after.left)
            self.begin_again(after.left.tail)
            self.told = len(after.left.tail)
        self.left: Reached | None = None  # once it is closed
        self.run = self._text(inside)

    def take(self, text: str) -> list[SourceEvent]:
        """Take a chunk that needs a decision."""
        if self.ended or not text or type(text) is not str:
            self._check(text)
            if not text:
                return []
        return self._read_on(text)

    def _check(self, text: str) -> None:
        if self.ended:
            raise ValueError("feed() after close(): a parser reads one response")
        if not isinstance(text, str):  # reading would fail on it, again and again
            raise TypeError(f"feed() takes a string, found {type(text).__name__} {text!r:.60}")

    def close(self, text: str = "") -> list[SourceEvent]:
        """The text has ended, after this last chunk if any: returns the last events. Closing twice is harmless.

        A text that is whole is read fastest by `close(text)`, as what is in it is never waited for.
        """
        if self.ended and not text:
            return []
        self._check(text)
        short = self.base + len(self.buf) + len(text) <= self.limits.call  # no call in it can be too long
        events = [] if short else self.take(text)
        events += self._read_on(text if short else "", last=True)
        while not self.ended:  # a call that was too long has been abandoned; read what came after it
            events += self._read_on("", last=True)
        self.left = self.prose.left or self.prose.before("")
        del self.calls, self.prose  # they refer to this parser: without them its memory is free at once
        return events

    def _read_on(self, text: str, *, last: bool = False) -> list[SourceEvent]:
        """Read what has arrived with this chunk, and return its events. A call never sees what is beyond its limit.

        The only guard around reading: what raises in it is a bug of ours, and costs one call at most.
        """
        self.hot = None
        kept = self.kept
        if kept is not None and self.base + len(self.buf) + len(text) > kept.room:
            text = kept.within(text, self.base + len(self.buf))
        if self.at > CONSUMED:
            self.drop()
        self.buf += text
        if last:
            self.ended = kept is None or not kept.surplus
        while True:
            try:
                next(self.run)
            except StopIteration:
                self.calls.settle()
                break
            except Exception as fault:  # noqa: BLE001 - any bug costs one call, and ends no run
                _LOG.exception("agentkit failed to read a model's text, at position %d", self.offset)
                self.run = self._after_fault(fault)
                continue
            if (kept := self.kept) is None or not kept.surplus:
                break
            self.run = self._after_too_long()
        events, self.out = self.out, []
        if self.held >= 0:
            events, self.out = events[: self.held], events[self.held :]
            self.hot, self.held = None, 0
        return self._untold(events) if self.told else events

    def _untold(self, events: Iterable[SourceEvent]) -> list[SourceEvent]:
        """The events without what was told of the text before: no call is in that."""
        untold = []
        for event in events:
            if self.told and isinstance(event, Text | Thinking | Markup | InventedResult):
                said = event.text[self.told :]
                self.told -= len(event.text) - len(said)
                event = event._replace(text=said)
                if not said:
                    continue
            untold.append(event)
        return untold

    def _after_fault(self, fault: Exception) -> Wait:
        """Answer for the call in which a bug of ours appeared, and continue after it.

        If it appeared outside a call, or again while the call was answered for, at least one character is skipped.
        """
        again, self.faulty = self.faulty == self.calls.count, self.calls.count
        if self.kept is None:
            self.open()
        call = self.calls.call
        message = f"agentkit failed to read this call ({type(fault).__name__}: {str(fault)[:200]})"
        damage = Damage("internal_error", message, self.offset)
        if call is not None and not again:
            yield from self.calls.damaged(call, damage)
        else:
            if self.offset == self.mark:
                yield from self.more()
                self.at = min(self.at + 1, len(self.buf))
            self.calls.refuse(call or self.calls.unknown(), damage, self.raw())
        self.calls.over()
        if self.at < len(self.buf) or not self.ended:
            yield from self._text()

    def _after_too_long(self) -> Wait:
        """Answer for a call that is longer than it may be; what follows may be inside it, so that all of it is text."""
        message = f"the call is longer than {self.limits.call} characters; what follows is not read"
        self.hot, self.at = None, len(self.buf)
        self.calls.refuse(self.calls.call or self.calls.unknown(), Damage("limit", message, self.offset), self.raw())
        self.calls.over()
        while True:
            self.say(Text, len(self.buf))
            if self.ended:
                return
            yield

    def _inside(self, thinking: str | None) -> Wait:
        """What the text starts inside of, up to its end, if anything; else a byte order mark."""
        if thinking:
            yield from begun(self.prose, thinking)
        elif self.prose.within is not None:
            yield from self.prose.within(self.prose)
        elif not self.offset and self.buf.startswith(_MARK):
            self.say(Text, len(_MARK))

    def _text(self, thinking: str | None = None) -> Wait:
        """Text and calls in turn, to the text's end; it may start inside `thinking`."""
        yield from self._inside(thinking)
        after_call, before, stuck = False, -1, 0
        while not (after_call and self.ended and self.at >= len(self.buf)):
            stuck = stuck + 1 if self.offset == before else 0
            if stuck > _STUCK:
                raise RuntimeError("a reader of calls reads nothing, again and again")
            before = self.offset
            entries = next_at_once(self.calls) if after_call else None
            if entries is None:
                entries = yield from (between.after_call(self.calls) if after_call else self.prose.to_opener())
            if entries is None:
                return
            after_call = False
            if self.held >= 0 and not self.calls.continues(entries):
                self.calls.settle()
            for entry in entries:
                if entry.kind == "parameter" or (entry.weak and self.prose.other is not None):
                    continue  # outside of a call; in damaged JSON
                apart = entry.kind == "markup" and self.calls.section is None and self.offset >= 0
                if apart and (yield from lost(self.calls, entries)):
                    after_call = True  # it opens a call or a section, even if the first one is damaged
                    break
                if self.calls.at_once(entry) or (yield from self._enter(entry)):
                    after_call = entry.kind not in ("thinking", "answer", "markup", "aside")
                    after_call |= entry.kind == "aside" and self.calls.section is not None  # which it does not end
                    break
            else:
                after_call = yield from self._opens_nothing(entries)

    def _opens_nothing(self, entries: Sequence[Opener]) -> Generator[None, None, bool]:
        """Nothing that was tried here is a call: at least one character is text; True if a call is answered for."""
        if self.held >= 0:
            self.calls.settle(unread=True, cut=self.calls.may_continue())
        if self.offset >= 0 and (yield from lost(self.calls, entries)):
            return True
        self.calls.section = None
        if self.calls.before:
            self.unread(self.calls.before)
            self.calls.before = ""
        elif self.buf.startswith("`", self.at):
            yield from self.prose.ticks("`")
        else:
            yield from self.prose.opens_nothing()
        return False

    def _enter(self, entry: Opener) -> Generator[None, None, bool]:
        """Try to read what opens here; False, with nothing consumed, if it is text after all.

        It is not a separate generator: each one that a chunk has to go through costs time.
        """
        return _READERS[entry.kind](self.calls, entry)


_READERS: Final[Mapping[str, Callable[[Calls, Opener], Generator[None, None, bool]]]] = {
    "call": Calls.read,
    "section": Calls.read,
    "close": between.section_end,
    "thinking": between.token,
    "answer": between.token,
    "markup": between.token,
    "aside": lambda calls, entry: aside(calls.prose, entry.aside),
    "fence": lambda calls, _: between.fence(calls),
}
"""What reads what opens, by its kind; a parameter opens nothing that can be read."""
