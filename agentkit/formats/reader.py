"""The buffer under the parser: the text that has arrived, the reader's position, and ways to wait for more text.

Reading is written as generators: a bare `yield` waits until more text has arrived or the text has ended. A chunk that
needs no decision (plain prose, the inside of a string or of a raw value) never reaches a generator: `feed` turns it
into one event immediately. That keeps the cost per streamed delta near that of a plain loop. As few chunks as possible
need a decision: a line break inside a raw value does only if the value's end may follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from functools import cache, cached_property, lru_cache
from typing import Any, Final

from agentkit.errors import ErrorCode
from agentkit.events import ArgumentDelta, InventedResult, Markup, SourceEvent, Text, Thinking
from agentkit.formats.atoms import CACHE_SIZE, SOFT, exact, expressions
from agentkit.formats.format import Limits
from agentkit.formats.pieces import CallText

Wait = Generator[None, None, None]
Search = Callable[..., re.Match[str] | None]

_new = tuple.__new__
_AT_ONCE: Final[tuple[None, ...]] = ()  # nothing to wait for: no generator is created for it
_SPACE = re.compile(r"\s*")

_REWIND_FACTOR: Final = (
    4  # text re-read after damage, as a multiple of the text read so far: keeps hostile input linear
)
_REWIND_FREE: Final = 65_536
_UNBOUNDED: Final = 1 << 62
CONSUMED: Final = 256
"""Characters that were consumed and may stay in the buffer: to take them from it costs more than to copy them."""


class Decline(Exception):
    """The apparent start of a call is text."""


class Damage(Exception):
    """The open call cannot be completed.

    Args:
        code: the error the model reads.
        message: the expectation; the position, and with `got` the text there, is added once it is known how much of
            the text belongs to the call, so that it does not depend on how the text was cut.
        position: absolute offset of the first character that cannot be read.
        ended: the text ended inside the call.
        got: whether to show the text at the position.
        end: absolute offset after the call's text, -1 if that is still to be found.
        in_tag: it is in an opening tag that has not ended, so that another tag there opens nothing.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        position: int,
        *,
        ended: bool = False,
        got: bool = False,
        end: int = -1,
        in_tag: bool = False,
    ) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message
        self.position = position
        self.ended = ended
        self.got = got
        self.end = end
        self.in_tag = in_tag

    def full_message(self, raw: str, mark: int) -> str:
        """Return the message with its position, given the call's text and the offset at which it starts."""
        found = raw[self.position - mark :][:20] if self.got else ""
        got = f", got {found!r}" if found else ""
        then = "; write the whole call again" if self.code == "truncated_call" else ""
        return f"{self.message}{got} at position {self.position}{then}"


class Delimiter:
    """A pattern that distinguishes "not here" from "not yet".

    Args:
        whole: a regular expression for the delimiter.
        part: one for its beginnings, only tried at the end of the text so far. It may accept more than real beginnings:
            then reading waits for a few characters more than it needs.

    Attributes:
        regex: `whole`, compiled.
        match: its `match`.
        beginning: `part`.
    """

    def __init__(self, whole: str, part: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.regex = re.compile(whole, flags)
        self.beginning = part
        self.match = self.regex.match
        self._flags = flags

    @cached_property
    def part(self) -> re.Pattern[str]:
        """Compiled when a text first ends in doubt: with many literals that takes 10 ms."""
        return re.compile(f"(?:{self.beginning})\\Z", self._flags)


@lru_cache(CACHE_SIZE)
def pattern(text: str) -> str:
    """Return a literal as a regular expression."""
    return "".join(expressions(text))


_Branches = dict[str, Any]
_COMPLETE: Final = ""  # among a node's atoms, says that a literal ends there


def _branches(texts: Iterable[str]) -> _Branches:
    """Return several literals as a tree: a common beginning is in it once, so that a mismatch is seen immediately."""
    root: _Branches = {}
    for text in texts:
        node = root
        for atom in expressions(text):
            node = node.setdefault(f"{atom}+" if atom == SOFT else atom, {})
        node[_COMPLETE] = {}
    return root


def any_of(texts: Iterable[str]) -> str:
    """Return a regular expression for the longest of several literals; without any, a pattern that never matches.

    White space in them matches the longest run: nothing after it in a literal could match a part of it.
    """

    def read(node: _Branches) -> str:
        branches = [atom + read(child) for atom, child in node.items() if atom != _COMPLETE]
        if len(branches) == 1 and _COMPLETE not in node:
            return branches[0]
        return f"(?:{'|'.join(branches)}){'?' if _COMPLETE in node else ''}" if branches else ""

    return read(_branches(texts)) or "(?!)"


def any_beginning(texts: Iterable[str]) -> str:
    """Return a regular expression for every proper beginning of several literals, the empty one included."""

    def read(node: _Branches) -> str:
        branches = [atom + read(child) for atom, child in node.items() if child.keys() - {_COMPLETE}]
        return f"(?:{'|'.join(branches)})?" if branches else ""

    return read(_branches(texts))


@lru_cache(CACHE_SIZE)
def beginnings(text: str) -> str:
    """Return a regular expression for every proper beginning of a literal, the empty one included."""
    return any_beginning((text,))


@cache
def literal(text: str) -> Delimiter:
    """Return a literal as a delimiter."""
    return Delimiter(pattern(text), beginnings(text))


@cache
def exact_literal(text: str) -> Delimiter:
    """Return a literal in exact case as a delimiter: a string's quotes, or the end of thinking with tags in it."""
    return Delimiter(exact(text), beginnings(text))


@lru_cache(CACHE_SIZE)
def after_first(text: str) -> str:
    """Return a regular expression for the text after a literal's first character: one more, after white space if any.

    Empty if any text may follow. The caller adds that the text may also end there.
    """
    _, second, third, *_ = (*expressions(text), "", "")
    if second != SOFT:
        return second
    return rf"\s{{0,64}}+(?:[{third}\s]|\Z)" if third else ""


def may_begin(text: str) -> str:
    """Return a regular expression for the first character of a literal, where the literal may begin."""
    return rf"{re.escape(text[0])}(?={after_first(text)}|\Z)"


@cache
def text_run(plain: str, escape: str) -> tuple[Callable[..., re.Match[str] | None], Search]:
    """Return functions for strings with escapes, from regular expressions for a plain character and for an escape.

    The first matches the run of both at a place, which may be empty; the second, the run and a character after it, so
    that it finds nothing in a text that consists of such a run.
    """
    run = f"{plain}*+(?:{escape}{plain}*+)*+"
    return re.compile(run, re.DOTALL).match, re.compile(f"{run}.", re.DOTALL).match


_Streamed = type[Text] | type[Thinking] | type[ArgumentDelta]


class FastPath:
    """A search for text that needs a decision; a chunk without any is an event of this kind, call and parameter."""

    __slots__ = ("index", "key", "kind", "search")

    def __init__(self, search: Search, kind: _Streamed, index: int, key: str | None) -> None:
        self.search, self.kind, self.index, self.key = search, kind, index, key


class Reader:
    """The base of the parser: characters in, events out.

    `buf[at:]` has arrived and is not consumed. `base` is the absolute offset of `buf[0]`. `call_text` is the text of
    the open call, None outside calls. `fast_path` is set while chunks may need no decision.
    """

    __slots__ = (
        "at", "base", "buf", "call_text", "cut", "ended", "fast_path", "limits", "list_start", "out", "repairs",
        "rewound",
    )  # fmt: skip

    def __init__(self, limits: Limits, repairs: frozenset[str]) -> None:
        self.limits = limits
        self.repairs = repairs
        self.buf = ""
        self.at = 0
        self.base = 0
        self.ended = False
        self.cut = -1  # absolute offset of a possible delimiter or literal that the text's end cut off
        self.out: list[SourceEvent] = []
        self.call_text: CallText | None = None
        self.rewound = 0
        self.list_start = -1  # the events of `out` from this index on wait for the end of a Python list
        self.fast_path: FastPath | None = None

    # ------------------------------------------------------------ position

    @property
    def offset(self) -> int:
        """The absolute offset of the next character to consume."""
        return self.base + self.at

    @property
    def mark(self) -> int:
        """The absolute offset at which the open call starts."""
        assert self.call_text is not None
        return self.call_text.mark

    def begin_again(self, tail: str) -> None:
        """Begin with the end of an earlier text, before offset 0."""
        self.buf, self.base = tail, -len(tail)
        self.cut = self.base - 1

    def drop(self) -> None:
        """Take consumed text from the buffer; keep it for the open call."""
        call_text, at = self.call_text, self.at
        if call_text is not None:
            if call_text.since < at:
                call_text.pieces.append(self.buf[call_text.since : at])
                if self.base + at > call_text.full:
                    call_text.join(self.base + at)
            call_text.since = max(call_text.since - at, 0)
        self.buf = self.buf[at:]
        self.base += at
        self.at = 0

    def set_fast_path(
        self, search: Search, kind: type[Text] | type[Thinking] | None, index: int = 0, key: str | None = None
    ) -> None:
        """Promise that a chunk in which `search` finds nothing is one event.

        Only once all earlier text is consumed. `kind` None creates argument deltas of the open call `index`, parameter
        `key`; any other kind is for text outside calls.
        """
        assert (kind is None) == (self.call_text is not None)
        if self.at:
            self.drop()
        self.fast_path = FastPath(search, kind or ArgumentDelta, index, key)

    def feed(self, text: str) -> list[SourceEvent]:
        """Take the next chunk; returns the events that it completes.

        Raises:
            ValueError: the parser was closed.
        """
        fast_path = self.fast_path
        if fast_path is not None:
            search = fast_path.search
            if search(text) is None and text:
                end = self.base + len(text)
                call_text = self.call_text
                if call_text is None:
                    self.base = end
                    return [_new(fast_path.kind, (text,))]
                if end <= call_text.full or call_text.join(end):
                    self.base = end
                    call_text.pieces.append(text)
                    return [_new(ArgumentDelta, (fast_path.index, text, fast_path.key))]
        return self.take(text)

    def take(self, text: str) -> list[SourceEvent]:
        """Take a chunk that needs a decision."""
        raise NotImplementedError

    # ------------------------------------------------------------ a call's own text

    def begin_call(self) -> None:
        """Keep the text from here on, as a call may start here."""
        mark = self.base + self.at
        self.call_text = call_text = CallText(self.at, mark, mark + self.limits.call)
        if self.base + len(self.buf) > call_text.room:
            self.buf = call_text.limit(self.buf, self.base)
            self.ended = False

    def raw(self) -> str:
        """Return the open call's text, from its start to here."""
        return self.text(self.mark, self.base + self.at)

    def text(self, start: int, end: int) -> str:
        """Return the open call's text between two absolute offsets, none of which is before its start."""
        call_text = self.call_text
        assert call_text is not None
        past = self.base + call_text.since
        if start >= past:
            return self.buf[start - self.base : end - self.base]
        if end > past:
            call_text.pieces.append(self.buf[call_text.since : end - self.base])
            call_text.since, past = end - self.base, end
        return call_text.text(start, end, past)

    def end_call(self) -> None:
        """Stop keeping text: the call has ended."""
        if self.call_text is not None and self.call_text.surplus:
            self.buf += self.call_text.surplus
        self.call_text = None

    def back_to(self, position: int) -> None:
        """Return to an absolute offset inside the open call."""
        call_text = self.call_text
        assert call_text is not None
        self.rewound += self.offset - position
        if position >= self.base + call_text.since:
            self.at = position - self.base
            return
        whole = self.raw() + self.buf[self.at :]
        self.buf, self.base, self.at = whole, call_text.mark, position - call_text.mark
        call_text.pieces, call_text.joined, call_text.since = [], 0, 0

    def unread(self, text: str) -> None:
        """Put back the text that was consumed just before this place. Only outside a call."""
        if self.at >= len(text):
            self.at -= len(text)
            return
        self.base += self.at - len(text)
        self.buf, self.at = text + self.buf[self.at :], 0

    def may_rewind(self, position: int) -> bool:
        """Return True if going back there keeps the total work linear."""
        return self.rewound + self.offset - position <= _REWIND_FACTOR * self.offset + _REWIND_FREE

    # ------------------------------------------------------------ reading

    def more(self) -> Iterable[None]:
        """Wait for at least one character that is not consumed; returns immediately at the text's end."""
        return _AT_ONCE if self.at < len(self.buf) or self.ended else self._arrival()

    def _arrival(self) -> Wait:
        while self.at >= len(self.buf) and not self.ended:
            yield

    def have(self, n: int) -> Generator[None, None, bool]:
        """Wait for `n` characters; False if the text ends before."""
        while len(self.buf) - self.at < n:
            if self.ended:
                return False
            yield
        return True

    def space_end(self, most: int) -> int:
        """Return the end of the white space here, an index of the buffer; at most `most` characters further."""
        return _SPACE.match(self.buf, self.at, self.at + most).end()  # type: ignore[union-attr]  # it matches nothing too

    def space(self) -> Iterable[None]:
        """Consume white space."""
        if self.at < len(self.buf) and not self.buf[self.at].isspace():
            return _AT_ONCE
        self.at = self.space_end(_UNBOUNDED)
        return _AT_ONCE if self.at < len(self.buf) or self.ended else self._take_space()

    def _take_space(self) -> Wait:
        while self.at >= len(self.buf) and not self.ended:
            yield
            self.at = self.space_end(_UNBOUNDED)

    def sees(self, delimiter: Delimiter) -> Generator[None, None, re.Match[str] | None]:
        """Return the delimiter's match at exactly this place, or None; waits while that is uncertain."""
        while True:
            if found := delimiter.match(self.buf, self.at):
                return found
            if self.at < len(self.buf) and delimiter.part.match(self.buf, self.at) is None:
                return None
            if self.ended:
                self.cut = self.base + self.at
                return None
            yield

    def follows(self, delimiter: Delimiter) -> Generator[None, None, bool]:
        """Return True if the delimiter, or at the text's end the beginning of it, is at this place."""
        if (yield from self.sees(delimiter)) is not None:
            return True
        return self.ended and delimiter.part.match(self.buf, self.at) is not None

    # ------------------------------------------------------------ emitting

    def emit(self, kind: type[Text] | type[Thinking] | type[Markup] | type[InventedResult], end: int) -> None:
        """Consume up to `end` (an index of the buffer) as one event."""
        if end > self.at:
            self.out.append(_new(kind, (self.buf[self.at : end],)))
            self.at = end

    def emit_argument(self, end: int, index: int, key: str | None) -> None:
        """Consume up to `end` as part of an argument."""
        if end > self.at:
            self.out.append(_new(ArgumentDelta, (index, self.buf[self.at : end], key)))
            self.at = end
