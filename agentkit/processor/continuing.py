"""Going on after the token limit: what was written so far, and whether a further response goes on with it.

Pure. Knows text, events and parsers by their interface; knows no model. What is not certain to be a continuation is
none: a call that has to be written again costs tokens, one that was glued together wrongly does harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from agentkit.events import CallEnd, CallError, CallStart, Markup, SourceEvent, Text, Thinking
from agentkit.messages import ToolCall
from agentkit.processor.textreader import TextReader

SURE: Final = 16  # characters that do not meet by chance; shorter repetitions, such as of an indent, do
_BORDERS: Final = 4  # more ways to meet than this are a pattern, in which nothing can be told
_HEAD: Final = 400  # characters in which a lead-in must end

_OPENERS: Final = ("```", "~~~", "...", "…")
_DRESS: Final = " \t\r\n*_#>([-"  # what may stand before a lead-in's first word
_WORDS: Final = re.compile(
    r"(?:continu|resum|sorry|apolog|sure\b|okay\b|ok\b|alright\b|certainly|of course|here(?:['\u2019]s| is| are)\b"
    r"|again\b|(?:picking|carrying|going|go)\s+(?:up|on)\b|the rest\b|let me\b|i['\u2019]ll\b|i will\b|understood"
    r"|got it|noted\b|my (?:last|previous)|as (?:i|we)\b|where (?:i|we)\b|finishing\b|yes\b|right\b)",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(  # words and nothing else, up to the end of a sentence or of the line
    r"[^\W\d_][\w'\u2019,;\uff0c\u3001\- \t]*?"
    r"(?:[.:!?\u2026](?=\s)|[\u3002\uff1a\uff01\uff1f]|[.:!?\u2026]?[ \t*_]*\r?\n)"
)


Parsers = Callable[[bool], TextReader]
"""Makes a fresh parser: one like that of the text so far (True), or for a reply of its own."""


class Record:
    """The text of one response as it was written.

    A parser's events and the raw text of its calls are, in order, what it was fed (the law of conservation). What it
    was fed and has not told of is therefore the call that is open.

    Args:
        format: the name of the format in which a call is open whose format is not known yet.
        closings: what may stand behind a call and belong to its wrapping.
        openings: what a call may begin with.
    """

    def __init__(self, format: str | None = None, closings: Sequence[str] = (), openings: Sequence[str] = ()) -> None:
        self.format = format
        self._closings = _squeezed(closings)
        self._openings = _squeezed(openings)
        self._pieces: list[str] = []
        self._from = 0
        self._told = 0
        self._calls = 0
        self.behind_call = False
        """Whether nothing was said since a call ended: what is open can then be the end of its wrapping."""
        self.thought = False
        """Whether there is thinking in it."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._pieces)

    @property
    def open(self) -> str:
        """What is not decided yet: the text of the open call, or what may become one."""
        return "".join(self._pieces[self._from :])[self._told :]

    @property
    def may_be_call(self) -> bool:
        """Whether what is open may be more of a call than the end of the wrapping of the one before."""
        return self.begins_call(self.open, behind=self.behind_call)

    def begins_call(self, text: str, *, behind: bool) -> bool:
        """Whether this text, of which a parser cannot tell what it is, may begin a call.

        Args:
            text: it.
            behind: whether it stands right behind a call, whose wrapping it may therefore end.
        """
        begun = "".join(text.split())
        return bool(begun) and not (behind and any(closing.startswith(begun) for closing in self._closings))

    def may_begin_either(self, text: str) -> bool:
        """Whether this text may begin a further call as well as the end of the wrapping.

        A single character tells nothing: as many as are written stand at the beginning of both.
        """
        begun = "".join(text.split())
        return len(begun) > 1 and any(opening.startswith(begun) for opening in self._openings)

    def fed(self, text: str) -> None:
        """The parser was given this."""
        self._pieces.append(text)

    def told(self, events: Iterable[SourceEvent]) -> None:
        """The parser made these of it."""
        for event in events:
            match event:
                case CallEnd(call=call) | CallError(call=call):
                    self._told += len(call.raw)
                    self._calls += 1
                    self.behind_call = True
                case Markup(text):
                    self._told += len(text)
                case Text(text) | Thinking(text):
                    self._told += len(text)
                    self.behind_call = False
                    self.thought = self.thought or isinstance(event, Thinking)
                case CallStart():
                    self.behind_call = False
                case _:
                    pass

    def ended(self) -> None:
        """The parser is done; another one reads on."""
        self._from, self._told, self._calls, self.behind_call = len(self._pieces), 0, 0, False

    def rest(self, text: str, parser: Parsers, *, cut: bool) -> str | None:
        """What a further response adds to this text; None where it is none that goes on, or that cannot be told.

        Args:
            text: the further response, whole.
            parser: makes a fresh parser: like the one that reads this text, or for a reply of its own.
            cut: whether the further response met its limit, too.
        """
        possible = [(rest, sure) for rest, sure in ways_on(self.text, text) if self._fits(rest, parser, cut=cut)]
        return possible[0][0] if len(possible) == 1 and possible[0][1] else None

    def _fits(self, rest: str, parser: Parsers, *, cut: bool) -> bool:
        """Whether the open call ends well in this rest, and before anything that the rest alone would be read to call.

        A call inside the rest of a value may be quoted, or be the open one, begun again. That cannot be told apart.
        """
        read = "".join(self._pieces[self._from :])
        spans = [span for span in _spans(parser(True), read + rest)[self._calls :] if span.start < len(read)]
        if not spans or self.begins_call(read[spans[-1].end :], behind=True):
            return False  # what was open is no call even now, and would be lost
        opened = spans[-1]
        new = next(iter(_spans(parser(False), rest)), None)
        if isinstance(opened.event, CallError):
            return cut and new is None and opened.end == len(read) + len(rest)
        return not opened.event.repairs and (new is None or opened.end <= len(read) + new.start)


def _squeezed(texts: Iterable[str]) -> list[str]:
    """Without white space, and without those that are nothing else."""
    return [squeezed for text in texts if (squeezed := "".join(text.split()))]


def ways_on(written: str, text: str) -> list[tuple[str, bool]]:
    r"""What a further response may add to what was written, and whether that can be relied on if nothing else fits.

    Either all of it, or what stands behind its beginning, where that repeats the end of what was written.

    >>> ways_on("def f(x):\n    return", "def f(x):\n    return x"), ways_on("rm -rf ./bui", "ld")
    ([('def f(x):\n    return x', True), (' x', True)], [('ld', True)])
    """
    borders = _borders(written, text)
    if len(borders) > _BORDERS:  # as good as any number of ways
        return []
    trimmed = written[-1:].isspace() and text[:1].isspace()  # the same, perhaps: servers and tokenizers trim it
    whole = (text, not trimmed and not _leads_in(text))
    return [whole, *((text[size:], size >= SURE) for size in borders if size < len(text))]


def _borders(written: str, text: str) -> list[int]:
    """In how many characters the end and the beginning agree: each possible number, the greatest first.

    Linear: Knuth, Morris and Pratt's table.
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
    """Whether it begins as a message does, and not in the middle of a call: with words to the reader, or a fence."""
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
    """The calls in a text, and where they stand."""
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
    """Calls that ran in a reply which its token limit cut: what follows may begin it again, and runs none of them.

    Args:
        calls: those that ran before the text that is read now.
    """

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._again = set(map(_key, calls))
        self._here: list[ToolCall] = []
        self._resumed = False

    def add(self, call: ToolCall) -> None:
        """One more ran."""
        self._here.append(call)
        if self._resumed:
            self._again.add(_key(call))

    def resumed(self) -> None:
        """A further response was asked for: each call that is added from now on may be begun again."""
        self._resumed = True

    def may_begin_again(self) -> None:
        """What follows may begin all over: it is held against the calls that were added."""
        self._again = set(map(_key, self._here))

    def again(self, call: ToolCall) -> bool:
        """Whether this is one of those that ran."""
        return bool(self._again) and _key(call) in self._again


def _key(call: ToolCall) -> Any:
    return call.name, json.dumps(dict(call.arguments), sort_keys=True, default=str)
