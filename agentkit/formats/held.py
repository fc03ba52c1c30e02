"""What is held of a raw value while only later text can show where it ends; it emits no event until then.

Knows the reader, but no format.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field

from agentkit.events import ArgumentDelta
from agentkit.formats.reader import Damage
from agentkit.formats.repairs import MISSING_CLOSE
from agentkit.formats.valuetokens import ValueTokens

_SENTENCE = re.compile(r"(?:[^\s<>]{0,256}>)?[ \t]+[^\s<]").match
"""After the opening of a call and the rest of its tag: more of a sentence, and nothing of a call."""


@dataclass(slots=True)
class Seen:
    """What has been seen of a value so far.

    Args:
        token: whether what may end it has been seen.
        depth: how many tags like its own are open in it, if one tag closes the value and its call.
        first_close: offset of the first closing of one of these tags, -1 before it.
        crossed: offset of a closing that another call follows, -1 for none.
        closings: whether a closing of its own kind was read as content.
        passed: whether an end of the enclosing call was read as content, because a sentence continues after it.
        stray: whether, after the end of a quoted call, a value's closing came that nothing opens.
        mixed: whether the section ends in it, and another one starts after that.
    """

    token: bool = False
    depth: int = 0
    first_close: int = -1
    crossed: int = -1
    closings: bool = False
    passed: bool = False
    stray: bool = False
    mixed: bool = False


@dataclass(slots=True)
class Nesting:
    """What has been opened and not closed: `open` has `value` or `call` for each, in order; `calls` counts calls."""

    open: list[str] = field(default_factory=list)
    calls: int = 0

    def opened(self, kind: str) -> None:
        """Something opens."""
        self.open.append(kind)
        self.calls += kind == "call"

    def closed(self) -> None:
        """The innermost open thing closes."""
        self.calls -= self.open.pop() == "call"


@dataclass(slots=True)
class Held:
    """What has been read since it became uncertain where the value ends.

    Args:
        start: absolute offset from which it is held.
        nest: what has been opened and not closed.
        first: where the value ends if everything is as it seemed at first: offset and what follows it; None if nowhere.
        fits: the same for each closing of something inside the value that could also be the value's own.
        ends: the enclosing call's ends without this value's end: where each starts and where it is over.
        odd: offset of a closing that an undeclared tag follows, and what follows it.
        inside: offsets of ends of quoted calls whose own value was not closed.
        shut: how much of the text is up to the end of the last quoted call, -1 before one.
        behind: offset after the last opening of a call inside, -1 before one.
        doubled: whether the enclosing call's end immediately follows that of a quoted one, and may be its double.
        half: whether `first` ends the call, and a call that opens in the value has not ended there.
        again: whether, after the enclosing call's end, a value's closing came that nothing there opens.
    """

    start: int
    nest: Nesting = field(default_factory=Nesting)
    first: tuple[int, int] | None = None
    fits: list[tuple[int, int]] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)
    odd: tuple[int, int] | None = None
    inside: list[int] = field(default_factory=list)
    shut: int = -1
    behind: int = -1
    doubled: bool = False
    half: bool = False
    again: bool = False


class Later:
    """Reads from where it became uncertain whether the value ends; `over` is then where its call ends, if unclosed."""

    __slots__ = ("held", "index", "over", "seen", "start", "tokens")

    def __init__(self, tokens: ValueTokens, index: int, seen: Seen, start: int, held: Held) -> None:
        self.tokens, self.index, self.seen, self.start, self.held = tokens, index, seen, start, held
        self.over = -1

    def read(self) -> Generator[None, None, tuple[int, int]]:
        """Continue reading without an event, until it is certain where the value ends."""
        held = self.held
        r = self.tokens.r
        if held.first is not None:  # the closing itself was examined
            r.at = held.first[1] - r.base
        while True:
            found = self.tokens.end.stops(r.buf, r.at)
            r.at = found.start() if found else len(r.buf)
            if found is None:
                if r.ended:
                    return self.settled()
                yield
                continue
            token = yield from self.tokens.token(0)
            if token is None:
                r.at += 1
                continue
            end = r.base + token.end()
            if (ends := (yield from self.weigh(token))) is not None:
                return ends
            r.at = max(end - r.base, r.at)

    def text(self, start: int) -> str:
        """The text from an absolute offset to here."""
        return self.tokens.r.text(start, self.tokens.r.offset)

    def weigh(self, token: re.Match[str]) -> Generator[None, None, tuple[int, int] | None]:
        """Take a token into account; returns the end if it is certain now."""
        held = self.held
        r, kind = self.tokens.r, token.lastgroup
        here = (r.offset, r.base + token.end())
        match kind:
            case "call" | "other" | "value" if held.first is not None and not held.nest.open:
                return self.found(held.first)
            case "close" | "fit" | "odd" | "end" if held.half:  # it may be what ends the value or the call
                raise self.ambiguous()
            case "value" if not held.nest.open and self.tokens.is_missing(token):
                return None
            case "call" | "other" if self.seen.stray:  # the value seems closed there: this is the next call
                raise self.ambiguous()
            case "call" | "value":
                held.nest.opened(kind)
                held.behind = here[1] if kind == "call" else held.behind
            case "end":
                return (yield from self.call_ends(token))
            case "close" | "fit" | "odd":
                return (yield from self.value_closes(token, here))
        return None

    def value_closes(
        self, token: re.Match[str], here: tuple[int, int]
    ) -> Generator[None, None, tuple[int, int] | None]:
        """A value's closing: that of one opened inside, or the value's own."""
        held = self.held
        kind = token.lastgroup
        if held.nest.open and held.nest.open[-1] == "value":
            return self.inner_closes(token, here)
        elif kind == "fit" and held.nest.open and held.ends:  # a call after this one that is not as it should be
            held.nest.closed()
        elif kind == "fit" and self.is_unsure(token):
            raise self.ambiguous()
        elif kind == "fit":
            if held.first is None and held.nest.calls and token["over"] is not None:
                self.over_half(token.end("over"))
            elif held.first is not None or (yield from self.tokens.is_over(token)):
                return self.found(here)
            held.first = here
        elif kind == "odd" and not held.nest.open:
            held.odd = held.odd or here
        elif kind == "close" and not held.nest.open:
            self.seen.stray = held.shut >= 0
            held.again = held.again or (bool(held.ends) and not (yield from self.tokens.in_a_sentence(token)))
        return None

    def over_half(self, end: int) -> None:
        """Continue after the end of a call that quotes half a call: if it is a whole one, more closings come.

        Raises:
            Damage: more than one call opens in the value and does not end, or does before its own value does.
        """
        held = self.held
        if held.nest.calls > 1 or held.inside:
            raise self.ambiguous()
        held.half, held.nest = True, Nesting()
        self.tokens.r.at = end

    def inner_closes(self, token: re.Match[str], here: tuple[int, int]) -> tuple[int, int] | None:
        """A value's closing, if one was opened inside that is not closed yet."""
        held = self.held
        fits = token.lastgroup == "fit"
        if fits and token["over"] is not None and not held.nest.calls and not held.ends:
            if held.fits or self.is_again():
                raise self.ambiguous()
            return self.found(here)
        if fits:
            held.fits.append(here)
        held.nest.closed()
        return None

    def is_again(self) -> bool:
        """Whether the last opening inside is that of this same parameter: the value before it may lack its closing."""
        held = self.held
        found = self.tokens.end.own.finditer(self.text(held.start)) if self.tokens.end.own is not None else ()
        names = [f.groupdict().get("name") for f in found if f["close"] is None]  # an element's tag is its name
        return bool(names) and (names[-1] or self.tokens.key).strip() == self.tokens.key

    def is_unsure(self, token: re.Match[str]) -> bool:
        """Whether a closing that may be this value's may as well be another value's.

        This value's closing may have come before, and a call inside is open or does not balance; the enclosing call may
        have been over before another one opened; or it is one closing too many after a call that was over, or after
        half of one, as only the section ends after it; or a section that opens inside does not end there; or one came
        before the end of the call already, and nothing opens it.
        """
        held = self.held
        over = held.first is not None or bool(held.ends)
        shut = token.groupdict().get("shut") is not None
        passed = self.seen.passed and _SENTENCE(self.text(held.start), held.behind - held.start) is None
        if (held.nest.open and (held.fits or passed)) or (shut and over):
            return True
        if self.seen.closings and held.ends and self.tokens.end.unopened(self.text(self.start)) >= 0:
            return True
        end, whole = self.tokens.end, self.text(self.start)
        quoted = bool(held.fits) or held.shut >= 0
        if quoted and (end.open_section(whole) or end.worn_opening(whole) or end.ends_too_often(whole)):
            return True
        return (quoted or shut) and not end.balances(self.text(held.start))

    def call_ends(self, token: re.Match[str]) -> Generator[None, None, tuple[int, int] | None]:
        """A call's end: that of one opened inside, or that of the enclosing one."""
        held = self.held
        r = self.tokens.r
        clean = yield from self.tokens.is_clean(token)
        if held.nest.calls:
            unclosed = held.nest.open[-1] == "value"
            held.shut = r.offset + len(token[0]) - held.start
            while held.nest.open[-1] == "value":
                held.nest.closed()
            held.nest.closed()
            if unclosed and clean and not held.nest.open:
                held.inside.append(r.offset)
        elif clean:
            held.nest.open.clear()
            if held.shut >= 0 and not self.text(held.start + held.shut).strip():
                held.doubled = True
            if held.odd is not None:
                return self.found(held.odd)
            held.ends.append((r.offset, r.offset + len(token[0])))
        return None

    def found(self, end: tuple[int, int]) -> tuple[int, int]:
        """The value ends there: emit what was held of it."""
        held = self.held
        text = self.tokens.r.text(held.start, end[0])
        if text:
            self.tokens.r.out.append(ArgumentDelta(self.index, text, self.tokens.key))
        return end

    def settled(self) -> tuple[int, int]:
        """Where the value ends, now that the text has ended and it was not closed."""
        held = self.held
        if held.odd is not None or held.first is not None:
            return self.found(held.first or held.odd or (0, 0))
        if (
            len(held.ends) == 1
            and not (held.doubled or held.again)
            and MISSING_CLOSE in self.tokens.r.repairs
            and self.is_whole()
        ):
            self.tokens.r.unclosed.update(held.inside)
            ((end, self.over),) = held.ends
            return self.found((end, end))
        if held.ends or held.fits:
            raise self.ambiguous(ended=True)
        raise self.tokens.truncated()

    def is_whole(self) -> bool:
        """Whether the value up to the call's only end contains neither half of another call nor a stray closing tag.

        One that contains its own closing tag is refused later, with a better message.
        """
        held = self.held
        r = self.tokens.r
        text = r.text(self.start, held.ends[0][0])
        return self.tokens.end.stray(text) >= 0 or (self.tokens.end.whole(text) and not self.opens(text))

    def opens(self, text: str) -> bool:
        """Whether a value opens in this text and is not closed, except those of parameters that are still to come."""
        if self.tokens.end.own is None:
            return False
        found = [f for f in self.tokens.end.own.finditer(text) if f["close"] or not self.tokens.is_missing(f)]
        return 2 * sum(f["close"] is None for f in found) > len(found)

    def ambiguous(self, *, ended: bool = False) -> Damage:
        """The error for a value whose end is ambiguous; if the text ended, the last end is the call's own."""
        held = self.held
        end = held.ends[-1][1] if held.ends else self.tokens.r.offset
        return self.tokens.unsure(held.start, end if ended else -1, ended=ended)
