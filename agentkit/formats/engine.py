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
from agentkit.formats.lost_calls import answer_lost_call
from agentkit.formats.nextcall import next_at_once
from agentkit.formats.openers import Opener, openers_of
from agentkit.formats.prose_state import ProseState
from agentkit.formats.prosereader import ProseReader
from agentkit.formats.quoting import Quoting
from agentkit.formats.reader import CONSUMED, Damage, Reader, Wait
from agentkit.formats.regions import read_aside, read_opened_thinking
from agentkit.formats.sequence import Calls
from agentkit.schemas.typed.repairs import REPAIRS
from agentkit.toolspec import InCode, ToolSpec

_LOG = logging.getLogger("agentkit.formats")
_LIMITS: Final = Limits()  # created once: a parser is created for every response
_ALL_REPAIRS: Final = frozenset(REPAIRS)


def get(name: str | Format) -> Format:
    """Return the format with this name or alias.

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
_STUCK: Final = 64  # steps in a row that may consume nothing, as an empty end of a section; more are our fault


class Parser(Reader):
    """Find calls in one response, whole or streamed. One parser per response; never reused.

    Args:
        formats: the format or formats in which calls count, as names or declarations; of two that could open at the
            same place, the first is tried first.
        tools: the offered tools: their tags, and the schemas that type the values.
        in_code: whether calls inside Markdown code spans and fenced blocks count: `ignore` leaves them text, `reply`
            counts them in fenced blocks after nothing but calls, `execute` counts them all, and also those in other
            asides (`asides`: comments, examples, invented results).
        repairs: the repairs that may be made in a finished, otherwise unreadable body; each one is named on its
            `CallEnd`. The streamed arguments of a repaired call may end where the damage was found.
        thinking: whether the text starts inside thinking, as when the prompt ended with `<think>`.
        limits: limits of calls and names.
        after: the closed parser of the text before an interruption, such as thinking, in the same response: code,
            thinking and asides that were open at its end are still open, and a run of marks continues. No call
            continues, nor does its opening.

    Raises:
        FormatError: no format, repair or `in_code` has this name, a tool is not a `ToolSpec`, or `after` is not
            closed.

    The merged events do not depend on how the text is cut into chunks. `Text`, `Thinking`, `Markup`, `InventedResult`
    and the `raw` of calls, in order, are exactly the input. No text makes it raise: a bug in agentkit becomes the
    `internal_error` of the call in which it appeared, and is logged.
    """

    __slots__ = ("calls", "faulty", "overlap", "prose", "resume_state", "run")

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
        self.overlap = 0  # characters of the text before that are read once more
        self.faulty = -1  # the last call in which a bug in agentkit appeared
        inside = declared[0].thinking[0][1] if thinking and declared and declared[0].thinking else None
        if after is not None:
            if after.resume_state is None:
                raise FormatError("after=: expected a parser that is closed; close() returns its last events")
            self.prose.copy_from(after.resume_state)
            self.begin_again(after.resume_state.tail)
            self.overlap = len(after.resume_state.tail)
        self.resume_state: ProseState | None = None  # once it is closed
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
        """End the text, after this last chunk if any; returns the last events. Closing twice is harmless.

        A whole text is read fastest by `close(text)`, which never waits.
        """
        if self.ended and not text:
            return []
        self._check(text)
        short = self.base + len(self.buf) + len(text) <= self.limits.call  # no call in it can be too long
        events = [] if short else self.take(text)
        events += self._read_on(text if short else "", last=True)
        while not self.ended:  # a call that was too long has been abandoned; read the text after it
            events += self._read_on("", last=True)
        self.resume_state = self.prose.resume_state or self.prose.with_tail("")
        del self.calls, self.prose  # they refer to this parser: without them its memory is free at once
        return events

    def _read_on(self, text: str, *, last: bool = False) -> list[SourceEvent]:
        """Read on with this chunk, and return its events. A call never sees text beyond its limit.

        The only guard around reading: an exception in it is a bug in agentkit, and costs one call at most.
        """
        self.fast_path = None
        call_text = self.call_text
        if call_text is not None and self.base + len(self.buf) + len(text) > call_text.room:
            text = call_text.limit(text, self.base + len(self.buf))
        if self.at > CONSUMED:
            self.drop()
        self.buf += text
        if last:
            self.ended = call_text is None or not call_text.surplus
        while True:
            try:
                next(self.run)
            except StopIteration:
                self.calls.end_list()
                break
            except Exception as fault:  # noqa: BLE001 - any bug costs one call, and ends no run
                _LOG.exception("agentkit failed to read a model's text, at position %d", self.offset)
                self.run = self._after_fault(fault)
                continue
            if (call_text := self.call_text) is None or not call_text.surplus:
                break
            self.run = self._after_too_long()
        events, self.out = self.out, []
        if self.list_start >= 0:
            events, self.out = events[: self.list_start], events[self.list_start :]
            self.fast_path, self.list_start = None, 0
        return self._without_overlap(events) if self.overlap else events

    def _without_overlap(self, events: Iterable[SourceEvent]) -> list[SourceEvent]:
        """Return the events without those that were emitted for the text before: no call is in that."""
        kept = []
        for event in events:
            if self.overlap and isinstance(event, Text | Thinking | Markup | InventedResult):
                new = event.text[self.overlap :]
                self.overlap -= len(event.text) - len(new)
                event = event._replace(text=new)
                if not new:
                    continue
            kept.append(event)
        return kept

    def _after_fault(self, fault: Exception) -> Wait:
        """Answer the call in which a bug in agentkit appeared, and continue after it.

        If it appeared outside a call, or again while the call was answered, at least one character is skipped.
        """
        again, self.faulty = self.faulty == self.calls.count, self.calls.count
        if self.call_text is None:
            self.begin_call()
        call = self.calls.call
        message = f"agentkit failed to read this call ({type(fault).__name__}: {str(fault)[:200]})"
        damage = Damage("internal_error", message, self.offset)
        if call is not None and not again:
            yield from self.calls.handle_damage(call, damage)
        else:
            if self.offset == self.mark:
                yield from self.more()
                self.at = min(self.at + 1, len(self.buf))
            self.calls.refuse(call or self.calls.unknown_call(), damage, self.raw())
        self.calls.close_call()
        if self.at < len(self.buf) or not self.ended:
            yield from self._text()

    def _after_too_long(self) -> Wait:
        """Answer a call that is longer than it may be; all later text may be inside it, and is text."""
        message = f"the call is longer than {self.limits.call} characters; what follows is not read"
        self.fast_path, self.at = None, len(self.buf)
        call = self.calls.call or self.calls.unknown_call()
        self.calls.refuse(call, Damage("limit", message, self.offset), self.raw())
        self.calls.close_call()
        while True:
            self.emit(Text, len(self.buf))
            if self.ended:
                return
            yield

    def _inside(self, thinking: str | None) -> Wait:
        """Read the rest of the region in which the text starts, if any; else a byte order mark."""
        if thinking:
            yield from read_opened_thinking(self.prose, thinking)
        elif self.prose.continuation is not None:
            yield from self.prose.continuation(self.prose)
        elif not self.offset and self.buf.startswith(_MARK):
            self.emit(Text, len(_MARK))

    def _text(self, thinking: str | None = None) -> Wait:
        """Read text and calls in turn, to the text's end; it may start inside `thinking`."""
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
            if self.list_start >= 0 and not self.calls.continues(entries):
                self.calls.end_list()
            for entry in entries:
                if entry.kind == "parameter" or (entry.weak and self.prose.other is not None):
                    continue  # outside of a call; in damaged JSON
                apart = entry.kind == "markup" and self.calls.section is None and self.offset >= 0
                if apart and (yield from answer_lost_call(self.calls, entries)):
                    after_call = True  # it opens a call or a section, even if the first one is damaged
                    break
                if self.calls.read_at_once(entry) or (yield from self._enter(entry)):
                    after_call = entry.kind not in ("thinking", "answer", "markup", "aside")
                    after_call |= entry.kind == "aside" and self.calls.section is not None  # which it does not end
                    break
            else:
                after_call = yield from self._opens_nothing(entries)

    def _opens_nothing(self, entries: Sequence[Opener]) -> Generator[None, None, bool]:
        """Emit at least one character as text, as no call opens here; True if a call is answered."""
        if self.list_start >= 0:
            self.calls.end_list(unread=True, cut=self.calls.may_continue())
        if self.offset >= 0 and (yield from answer_lost_call(self.calls, entries)):
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
        """Try to read the call or region that opens here; False, with nothing consumed, if it is text.

        It is not a separate generator: each one that a chunk has to go through costs time.
        """
        return _READERS[entry.kind](self.calls, entry)


_READERS: Final[Mapping[str, Callable[[Calls, Opener], Generator[None, None, bool]]]] = {
    "call": Calls.read,
    "section": Calls.read,
    "close": between.read_section_end,
    "thinking": between.read_marker,
    "answer": between.read_marker,
    "markup": between.read_marker,
    "aside": lambda calls, entry: read_aside(calls.prose, entry.aside),
    "fence": lambda calls, _: between.read_fence(calls),
}
"""The reader of each kind of opener; a parameter opens nothing that can be read."""
