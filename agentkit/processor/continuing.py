"""Continuing after the token limit: what was written so far, and whether a further response continues it.

Pure. Knows text, events and parsers by their interface; knows no model. Only what is certainly a continuation counts
as one: a call that has to be written again costs tokens, one that was joined wrongly does harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from agentkit.events import CallEnd, CallError, CallStart, Markup, SourceEvent, Text, Thinking
from agentkit.formats.pieces import Pieces
from agentkit.messages import ToolCall
from agentkit.processor.textreader import TextReader

SURE: Final = 16  # characters that do not repeat by chance; shorter repetitions, such as of an indent, do
_BORDERS: Final = 4  # more possible overlaps than this are a pattern, in which nothing can be determined
_HEAD: Final = 400  # a lead-in must end within this many characters

_OPENERS: Final = ("```", "~~~", "...", "…")
_DRESS: Final = " \t\r\n*_#>([-"  # what may precede a lead-in's first word
_WORDS: Final = re.compile(
    r"(?:continu|resum|sorry|apolog|sure\b|okay\b|ok\b|alright\b|certainly|of course|here(?:['\u2019]s| is| are)\b"
    r"|again\b|(?:picking|carrying|going|go)\s+(?:up|on)\b|the rest\b|let me\b|i['\u2019]ll\b|i will\b|understood"
    r"|got it|noted\b|my (?:last|previous)|as (?:i|we)\b|where (?:i|we)\b|finishing\b|yes\b|right\b)",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(  # only words, up to the end of a sentence or of the line
    r"[^\W\d_][\w'\u2019,;\uff0c\u3001\- \t]*?"
    r"(?:[.:!?\u2026](?=\s)|[\u3002\uff1a\uff01\uff1f]|[.:!?\u2026]?[ \t*_]*\r?\n)"
)


Parsers = Callable[[bool], TextReader]
"""Creates a fresh parser: one like that of the text so far (True), or one for a separate reply."""


class Record:
    """The text of one response as it was written.

    A parser's events and the raw text of its calls are, in order, what it was fed (the law of conservation). What it
    was fed and has not reported is therefore the open call.

    Args:
        format: the format's name for an open call whose format is not known yet.
        closings: what may follow a call and belong to its wrapping.
        openings: what a call may begin with.
    """

    def __init__(self, format: str | None = None, closings: Sequence[str] = (), openings: Sequence[str] = ()) -> None:
        self.format = format
        self._closings = _squeezed(closings)
        self._openings = _squeezed(openings)
        self._pieces = Pieces()
        self._from = self._size = 0  # where the open text's parser began, and the size of all
        self._reported = 0
        self._calls = 0
        self.behind_call = False
        """Whether nothing was said since a call ended: the open text can then be the end of its wrapping."""
        self.thought = False
        """Whether it contains thinking."""

    @property
    def text(self) -> str:
        """The whole text."""
        return self._pieces.text()

    @property
    def open(self) -> str:
        """The undecided text: that of the open call, or what may become one."""
        return self.text[self._from + self._reported :]

    @property
    def may_be_call(self) -> bool:
        """Whether the open text may be part of a call and not only the end of the previous call's wrapping."""
        return self.begins_call(self.open, follows=self.behind_call)

    def begins_call(self, text: str, *, follows: bool) -> bool:
        """Whether this text, which a parser cannot classify yet, may begin a call.

        Args:
            text: the text.
            follows: whether it directly follows a call, so that it may end that call's wrapping.
        """
        begun = "".join(text.split())
        return bool(begun) and not (follows and any(closing.startswith(begun) for closing in self._closings))

    def may_begin_either(self, text: str) -> bool:
        """Whether this text may be the beginning of a further call as well as of the wrapping's end.

        A single character decides nothing: both may begin with what has been written.
        """
        begun = "".join(text.split())
        return len(begun) > 1 and any(opening.startswith(begun) for opening in self._openings)

    def fed(self, text: str) -> None:
        """Record what the parser was fed."""
        self._pieces.add(text)
        self._size += len(text)

    def told(self, events: Iterable[SourceEvent]) -> None:
        """Record the events that the parser returned."""
        for event in events:
            match event:
                case CallEnd(call=call) | CallError(call=call):
                    self._reported += len(call.raw)
                    self._calls += 1
                    self.behind_call = True
                case Markup(text):
                    self._reported += len(text)
                case Text(text) | Thinking(text):
                    self._reported += len(text)
                    self.behind_call = False
                    self.thought = self.thought or isinstance(event, Thinking)
                case CallStart():
                    self.behind_call = False
                case _:
                    pass

    def ended(self) -> None:
        """The parser is done; another one continues."""
        self._from, self._reported, self._calls, self.behind_call = self._size, 0, 0, False

    def rest(self, text: str, parser: Parsers, *, cut: bool) -> str | None:
        """What a further response adds to this text; None if it does not continue it, or if that is uncertain.

        Args:
            text: the whole further response.
            parser: creates a fresh parser: like the one that reads this text, or for a separate reply.
            cut: whether the further response also reached its limit.
        """
        possible = [(rest, sure) for rest, sure in ways_on(self.text, text) if self._fits(rest, parser, cut=cut)]
        return possible[0][0] if len(possible) == 1 and possible[0][1] else None

    def _fits(self, rest: str, parser: Parsers, *, cut: bool) -> bool:
        """Whether the open call ends well in this rest, and before any call that would be read from the rest alone.

        A call inside the rest of a value may be quoted, or be the open one, started again. They cannot be told apart.
        """
        read = self.text[self._from :]
        spans = [span for span in _spans(parser(True), read + rest)[self._calls :] if span.start < len(read)]
        if not spans or self.begins_call(read[spans[-1].end :], follows=True):
            return False  # the open text is still not a call, and would be lost
        opened = spans[-1]
        new = next((span for span in _spans(parser(False), rest) if not _lacks_its_opening(span.event)), None)
        if isinstance(opened.event, CallError):
            return cut and new is None and opened.end == len(read) + len(rest)
        return not opened.event.repairs and (new is None or opened.end <= len(read) + new.start)


def _lacks_its_opening(end: CallEnd | CallError) -> bool:
    """Whether it is an error about parameters outside of any call, as the rest of a call has them."""
    return isinstance(end, CallError) and not end.call.name


def _squeezed(texts: Iterable[str]) -> list[str]:
    """Without white space, and without strings that consist of nothing else."""
    return [squeezed for text in texts if (squeezed := "".join(text.split()))]


def ways_on(written: str, text: str) -> list[tuple[str, bool]]:
    r"""What a further response may add to what was written, and whether that is reliable if nothing else fits.

    Either all of it, or what follows its beginning, if that beginning repeats the end of what was written.

    >>> ways_on("def f(x):\n    return", "def f(x):\n    return x"), ways_on("rm -rf ./bui", "ld")
    ([('def f(x):\n    return x', True), (' x', True)], [('ld', True)])
    """
    borders = _borders(written, text)
    if len(borders) > _BORDERS:  # practically any number of ways
        return []
    trimmed = written[-1:].isspace() and text[:1].isspace()  # perhaps the same: servers and tokenizers trim it
    whole = (text, not trimmed and not _leads_in(text))
    return [whole, *((text[size:], size >= SURE) for size in borders if size < len(text))]


def _borders(written: str, text: str) -> list[int]:
    """The possible lengths of an overlap between the end and the beginning, the greatest first.

    Linear: the table of Knuth, Morris and Pratt.
    """
    size = min(len(written), len(text))
    table = [0] * (size + 1)
    for i in range(1, size):
        n = table[i]
        while n and text[i] != text[n]:
            n = table[n]
        table[i + 1] = n + 1 if text[i] == text[n] else 0
    n = 0
    for char in written[len(written) - size :]:
        while n and (n == size or char != text[n]):
            n = table[n]
        n += n < size and char == text[n]
    found: list[int] = []
    while n and len(found) <= _BORDERS:
        found.append(n)
        n = table[n]
    return found


def _leads_in(text: str) -> bool:
    """Whether it begins like a message, not in the middle of a call: with words to the reader, or a fence."""
    head = text[:_HEAD].lstrip()
    if head.startswith(_OPENERS):
        return True
    words = head.lstrip(_DRESS)
    if _WORDS.match(words):
        return True
    return not words[:1].islower() and _SENTENCE.match(words) is not None


class _Span(NamedTuple):
    event: CallEnd | CallError
    start: int
    end: int


def _spans(parser: TextReader, text: str) -> list[_Span]:
    """The calls in a text, and where they are."""
    found: list[_Span] = []
    at = 0
    for event in (*parser.feed(text), *parser.close()):
        match event:
            case CallEnd(call=call) | CallError(call=call):
                found.append(_Span(event, at, at + len(call.raw)))
                at += len(call.raw)
            case Text(said) | Thinking(said) | Markup(said):
                at += len(said)
    return found


class Made:
    """Calls that ran in a reply that the token limit cut: what follows may start it again, and does not rerun them.

    Args:
        calls: the calls that ran before the text that is read now.
    """

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._again = set(map(_key, calls))
        self._here: list[ToolCall] = []
        self._resumed = False

    def add(self, call: ToolCall) -> None:
        """Add a call that ran."""
        self._here.append(call)
        if self._resumed:
            self._again.add(_key(call))

    def resumed(self) -> None:
        """A further response was requested: each call that is added from now on may be repeated."""
        self._resumed = True

    def may_begin_again(self) -> None:
        """What follows may start all over: it is compared with the calls that were added."""
        self._again = set(map(_key, self._here))

    def again(self, call: ToolCall) -> bool:
        """Whether this is one of the calls that ran."""
        return bool(self._again) and _key(call) in self._again


def _key(call: ToolCall) -> Any:
    return call.name, json.dumps(dict(call.arguments), sort_keys=True, default=str)
