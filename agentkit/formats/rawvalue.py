"""Raw values read as they stream: entities in them are not decoded, markup in them is content.

Where a value ends is told by what is balanced. The first closing tag that is followed by something that may follow it
ends the value; what opens and closes again inside of it is content. Where a tag opens a value or a call inside the
value, or the enclosing call ends without this value's end, later text tells: until then what comes is held, and nothing
is said of it. Knows the reader, no format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from agentkit.events import ArgumentDelta
from agentkit.formats.reader import Damage, Delimiter, Reader, Search, Wait
from agentkit.formats.repairs import MISSING_CLOSE
from agentkit.formats.tags import SPACES
from agentkit.formats.valueends import ValueEnd, alike

CDATA_OPEN: Final = "<![CDATA["
CDATA_CLOSE: Final = "]]>"
_CDATA = Delimiter(rf"{SPACES}<!\[CDATA\[", rf"{SPACES}(?:<(?:!(?:\[(?:C(?:D(?:A(?:T(?:A)?)?)?)?)?)?)?)?")
_CDATA_STOP = re.compile("]").search
_NEWLINE = Delimiter(r"\r?\n", r"\r?")
_BLANK = re.compile(r"\s*")
_SENTENCE = re.compile(r"(?:[^\s<>]{0,256}>)?[ \t]+[^\s<]").match
"""Behind the opening of a call, over the rest of its tag: more of a sentence, and nothing of a call."""
_LINE_OVER = re.compile(r"[ \t]*(?:\r|\n|\Z|[<\[\]])").match
"""Behind the end of a call: the line's end, or what may open or close something; not more of a sentence."""


@dataclass(slots=True)
class Held:
    """What has been read since it became unsure where the value ends.

    Args:
        start: absolute offset from which it is held.
        pieces: the text.
        open: what has been opened and not closed, `value` or `call`, the innermost last.
        calls: how many of these are calls.
        first: where the value ends if everything is as it seemed at first: offset and what follows it; None if nothing.
        fits: the same for each closing of something inside the value that could also be the value's own.
        ends: the enclosing call's ends without this value's: where each starts and where it is over.
        odd: offset of a closing behind which an undeclared tag stands, and what follows it.
        inside: offsets of ends of quoted calls whose own value was not closed.
        shut: how much of the text is up to the end of the last quoted call, -1 before one.
        behind: offset behind the last opening of a call inside, -1 before one.
        doubled: whether the enclosing call's end stands right behind that of a quoted one, and may be its double.
        inner: whether `first` may as well close what opened inside, so that nothing may close behind it.
    """

    start: int
    pieces: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    calls: int = 0
    first: tuple[int, int] | None = None
    fits: list[tuple[int, int]] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)
    odd: tuple[int, int] | None = None
    inside: list[int] = field(default_factory=list)
    shut: int = -1
    behind: int = -1
    doubled: bool = False
    inner: bool = False

    def opened(self, kind: str) -> None:
        """Something opens."""
        self.open.append(kind)
        self.calls += kind == "call"

    def closed(self) -> None:
        """The innermost thing that is open closes."""
        self.calls -= self.open.pop() == "call"


class Value:
    """Read one raw value up to its end, telling it as deltas of `key`; `text` is the value once it has been read.

    `verbatim` tells then whether it stood in CDATA, and so is meant to the letter; `unclosed`, that its closing tag was
    missing, and `over`, where then the call's end is behind it. `missing` tells, by name, the parameters that the
    call's tool declares and that were not given yet; `scalar`, whether this one takes numbers and words only.
    """

    def __init__(
        self,
        r: Reader,
        index: int,
        key: str,
        end: ValueEnd,
        missing: Callable[[str], bool] | None = None,
        scalar: Callable[[], bool] | None = None,
    ) -> None:
        self.r, self.index, self.key, self.end = r, index, key, end
        self.missing, self.scalar = missing, scalar
        self.spans: list[tuple[int, int]] = []
        self.depth = 0
        self.start = r.offset
        self.first_close = -1
        self.crossed = -1
        self.closings = False  # whether one of its own kind of closings was taken for content
        self.passed = False  # an end of the enclosing call, behind which a sentence goes on, was taken for content
        self.verbatim = False
        self.unclosed = False
        self.over = -1

    def text(self) -> str:
        """The value, byte-exact but for the newlines and CDATA marks that are not part of it."""
        raw, mark = self.r.raw(), self.r.mark
        return "".join(raw[a - mark : b - mark] for a, b in self.spans)

    def read(self) -> Generator[None, None, None]:
        """Consume the value and its closing tag.

        Raises:
            Damage: `truncated_call` where the text ends first; `ambiguous_call` where what is inside the value does not
            balance, so that nobody can tell where it ends.
        """
        r = self.r
        if not self.end.verbatim and (newline := (yield from r.sees(_NEWLINE))):
            r.at = newline.end()
        if cdata := (yield from r.sees(_CDATA)):
            r.at = cdata.end()
            self.verbatim = True
            yield from self.cdata()
            if (yield from self.closed_after_cdata()):
                return
        yield from self.plain()

    def wait(self, search: Search | None = None) -> Wait:
        """Wait for more; what `search` finds nothing in goes by as part of the value."""
        r = self.r
        if r.ended:
            raise self.truncated()
        if search is not None and r.at == len(r.buf):
            r.heat(search, None, self.index, self.key)
        yield

    def refuse_stray(self, start: int, end: int) -> None:
        """A value that holds its own closing tag was closed: what stands behind that is wrong, no tag is missing.

        Raises:
            Damage: `invalid_arguments`; the call is over where its end stands.
        """
        r = self.r
        if (stray := self.end.stray(r.raw()[start - r.mark : end - r.mark])) >= 0:
            wanted = f"expected a parameter or the end of the call behind {self.end.what} of {self.key!r}"
            r.at = self.over - r.base
            raise Damage("invalid_arguments", wanted, start + stray, got=True, end=self.over)

    def crossing(self, after: int) -> Damage:
        """The error for a value that was closed where another call begins, and closed again behind that."""
        told = f"{self.end.what} of {self.key!r} stands before another call, and again behind it: close the call, and "
        told += f"put a value that holds such markup in {CDATA_OPEN} … {CDATA_CLOSE}"
        return Damage("ambiguous_call", told, self.crossed, end=after)

    def truncated(self) -> Damage:
        """The error for a text that ends inside the value."""
        at = self.r.offset
        if self.first_close >= 0:
            return Damage(
                "ambiguous_call",
                f"the first {self.end.what} closes an opening tag inside the value of {self.key!r}, and none is left "
                f"to close the call: a value that holds this tag must stand in {CDATA_OPEN} … {CDATA_CLOSE}",
                self.first_close,
                ended=True,
            )
        return Damage("truncated_call", f"the text ended inside {self.key!r}, before {self.end.what}", at, ended=True)

    # ------------------------------------------------------------ plain characters

    def plain(self) -> Wait:
        """Consume raw characters up to the end of the value."""
        r, stops = self.r, self.end.stops
        start = self.start = r.offset
        while True:
            found = stops(r.buf, r.at)
            r.tell(found.start() if found else len(r.buf), self.index, self.key)
            if found is None:
                yield from self.wait(stops)
            elif (ends := (yield from self.ends_here())) is not None:
                end, after = ends
                if after < r.offset:
                    r.back_to(after)
                else:
                    r.at = after - r.base
                if self.unclosed:
                    self.refuse_stray(start, end)
                if self.crossed >= 0:
                    raise self.crossing(after)
                if self.closings and self.end.crossed(r.raw()[start - r.mark : end - r.mark]):
                    raise self.unsure(start, after)
                if self.unclosed and (newline := _LAST_NEWLINE.search(r.raw(), max(start, end - 2) - r.mark)):
                    end = r.mark + newline.start()
                self.spans.append((start, max(start, end)))
                return
            else:
                r.tell(r.at + 1, self.index, self.key)

    def ends_here(self) -> Generator[None, None, tuple[int, int] | None]:
        """Where the value ends and where reading goes on, if it is what stands here that tells; None for content."""
        if self.end.nested is not None:
            return (yield from self.balanced(self.end.nested))
        token = yield from self.token(0)
        if token is None:
            return None
        r, kind = self.r, token.lastgroup
        here = (r.offset, r.base + token.end())
        if kind == "fit":
            if (yield from self.is_over(token)):
                return here
            return (yield from self.later(Held(r.offset, first=here)))
        if kind == "close" and self.scalar is not None and self.scalar():
            return here  # what stands behind it belongs to no number and to no word
        if kind == "close" and (yield from self.is_crossed(token.end() - r.at)):
            return here
        if kind == "end":
            clean = yield from self.is_clean(token)
            if clean and r.offset in r.unclosed:
                self.unclosed, self.over = True, here[1]
                return r.offset, r.offset
            self.passed = self.passed or not clean
            return (yield from self.later(Held(r.offset))) if clean else None
        unsure = kind in ("odd", "call") or (kind == "value" and not self.is_missing(token))
        return (yield from self.later(Held(r.offset))) if unsure else None

    def balanced(self, nested: Delimiter) -> Generator[None, None, tuple[int, int] | None]:
        """The same where one tag closes the value and its call."""
        r = self.r
        if (yield from r.sees(nested)):
            self.depth += 1
        elif close := (yield from r.sees(self.end.token)):
            if self.depth == 0:
                return r.offset, r.base + close.end("close")
            self.depth -= 1
            if self.first_close < 0:
                self.first_close = r.offset
        return None

    def token(self, ahead: int, *, over_space: bool = False) -> Generator[None, None, re.Match[str] | None]:
        """The token that stands so many characters ahead, maybe over white space; waits until it can be told."""
        r, token = self.r, self.end.token
        while True:
            at = r.at + ahead
            if over_space:
                at = _BLANK.match(r.buf, at).end()  # type: ignore[union-attr]  # it matches nothing too
            found = token.match(r.buf, at)
            if r.ended or (found is not None and found.lastgroup in _TOLD):
                return found
            if at < len(r.buf) and token.part.match(r.buf, at) is None:
                return found
            yield

    def is_missing(self, token: re.Match[str]) -> bool:
        """Whether the opening of a value is that of a parameter that is still to come."""
        name = token.groupdict().get("name")
        return name is not None and self.missing is not None and self.missing(name.strip())

    def is_over(self, token: re.Match[str]) -> Generator[None, None, bool]:
        """Whether the value's closing ends it for sure: behind the call nothing closes once more.

        Only white space is looked over. Behind prose a closing may as well be all that is left of a damaged call, which
        must not cost this one.
        """
        if token["over"] is None or token.groupdict().get("section") is not None:
            return True
        r = self.r
        ahead = token.end("over") - r.at
        while True:
            behind = yield from self.token(ahead, over_space=True)
            if behind is None:
                return True
            if behind.lastgroup == "value" and self.is_missing(behind):
                wanted = f"expected no parameter behind the end of the call, which closes {self.key!r}"
                raise Damage("invalid_arguments", wanted, r.base + behind.start(), got=True)
            if behind.lastgroup not in ("tail", "section"):
                return behind.lastgroup not in ("close", "fit", "odd", "end")
            ahead = behind.end() - r.at

    def is_crossed(self, ahead: int) -> Generator[None, None, bool]:
        """Look behind a value's closing, so many characters ahead, behind which nothing fits.

        Another call there makes the value unsure. The end of this call, misspelt, ends it: returns whether it does.
        """
        r, over = self.r, self.end.over
        self.closings = True
        behind = yield from self.token(ahead, over_space=True)
        if behind is not None and behind.lastgroup == "call":
            self.crossed = r.offset
        if behind is not None or not over:
            return False
        while True:
            at = _BLANK.match(r.buf, r.at + ahead).end()  # type: ignore[union-attr]  # it matches nothing too
            line = r.buf[at : at + len(over)].partition("\n")[0]
            if r.ended or len(line) == len(over) or at + len(line) < len(r.buf) or line[:1] not in ("", over[0]):
                return line[:1] == over[0] and alike(line, over)
            yield

    def is_clean(self, token: re.Match[str]) -> Generator[None, None, bool]:
        """Whether the call may be over behind this: its line ends there, or other markup follows."""
        r = self.r
        ahead = token.end() - r.at
        while not r.ended and _SPACES_ONLY(r.buf, r.at + ahead):
            yield
        return _LINE_OVER(r.buf, r.at + ahead) is not None

    # ------------------------------------------------------------ what only later text tells

    def later(self, held: Held) -> Generator[None, None, tuple[int, int]]:
        """Read on without saying anything, until it is told where the value ends."""
        r = self.r
        if held.first is not None:  # the closing itself was looked at
            self.hold(held, held.first[1] - r.base)
        while True:
            found = self.end.stops(r.buf, r.at)
            stop = found.start() if found else len(r.buf)
            self.hold(held, stop)
            if found is None:
                if r.ended:
                    return self.settled(held)
                yield
                continue
            token = yield from self.token(0)
            if token is None:
                self.hold(held, r.at + 1)
                continue
            size = token.end() - r.at
            if (ends := (yield from self.weigh(held, token))) is not None:
                return ends
            self.hold(held, r.at + size)

    def hold(self, held: Held, end: int) -> None:
        """Consume up to an index of the buffer in silence."""
        held.pieces.append(self.r.buf[self.r.at : end])
        self.r.at = end

    def weigh(self, held: Held, token: re.Match[str]) -> Generator[None, None, tuple[int, int] | None]:
        """Take a token into account; returns the end if it is told now."""
        r, kind = self.r, token.lastgroup
        here = (r.offset, r.base + token.end())
        if held.inner and kind in ("close", "fit", "odd", "end"):
            raise self.ambiguous(held)
        match kind:
            case "call" | "other" | "value" if held.first is not None and not held.open:
                return self.found(held, held.first)
            case "value" if not held.open and self.is_missing(token):
                return None
            case "call" | "value":
                held.opened(kind)
                held.behind = here[1] if kind == "call" else held.behind
            case "end":
                return (yield from self.call_ends(held, token))
            case "close" | "fit" | "odd":
                return (yield from self.value_closes(held, token, here))
        return None

    def value_closes(
        self, held: Held, token: re.Match[str], here: tuple[int, int]
    ) -> Generator[None, None, tuple[int, int] | None]:
        """A value's closing: of one that was opened inside, or the value's own."""
        kind = token.lastgroup
        if held.open and held.open[-1] == "value":
            self.inner_closes(held, token, here)
        elif kind == "fit" and held.open and held.ends:  # a call behind this one that is not as it should be
            held.closed()
        elif kind == "fit" and self.is_unsure(held, token):
            raise self.ambiguous(held)
        elif kind == "fit" and held.open and token["over"] is not None:
            self.closes_inside(held, here)
        elif kind == "fit":
            if held.first is not None or (yield from self.is_over(token)):
                return self.found(held, here)
            held.first = here
        elif kind == "odd" and not held.open:
            held.odd = held.odd or here
        return None

    def inner_closes(self, held: Held, token: re.Match[str], here: tuple[int, int]) -> None:
        """A value's closing, where one was opened inside that is not closed yet."""
        fits = token.lastgroup == "fit"
        if fits and token["over"] is not None and not held.calls and not held.ends:
            if held.fits or self.is_again(held):
                raise self.ambiguous(held)
            self.closes_inside(held, here)
            return
        if fits:
            held.fits.append(here)
        held.closed()

    def closes_inside(self, held: Held, here: tuple[int, int]) -> None:
        """The value seems to end here with its call, while something is open inside: what comes next must tell.

        What is open may be half a call that is quoted. Or all of one is, with an opening that cannot be read: then this
        closes that one, and the value's own closing is still to come.
        """
        held.first, held.inner = here, True
        held.open.clear()
        held.calls = 0

    def is_again(self, held: Held) -> bool:
        """Whether the last opening inside is that of this very parameter: the value before it may lack its closing."""
        found = self.end.own.finditer("".join(held.pieces)) if self.end.own is not None else ()
        names = [f.groupdict().get("name") for f in found if f["close"] is None]  # an element's tag is its name
        return bool(names) and (names[-1] or self.key).strip() == self.key

    def is_unsure(self, held: Held, token: re.Match[str]) -> bool:
        """Whether a closing that may be this value's may as well be another's.

        This one's may have been before, and a call inside is open or does not balance; the enclosing call may have been
        over before another one opened; or it is a closing too many behind a call that was over, or behind half of one,
        as only the section ends behind this one; or one stood before the end of the call already, and no text opens it.
        """
        over = held.first is not None or bool(held.ends)
        shut = token.groupdict().get("shut") is not None
        passed = self.passed and _SENTENCE("".join(held.pieces), held.behind - held.start) is None
        if (held.open and (held.fits or passed)) or (shut and over):
            return True
        if self.closings and held.ends and self.end.unopened(self.r.raw()[self.start - self.r.mark :]) >= 0:
            return True
        return (bool(held.fits) or shut) and not self.end.balances("".join(held.pieces))

    def call_ends(self, held: Held, token: re.Match[str]) -> Generator[None, None, tuple[int, int] | None]:
        """A call's end: of one that was opened inside, or of the enclosing one."""
        r = self.r
        clean = yield from self.is_clean(token)
        if held.calls:
            unclosed = held.open[-1] == "value"
            held.shut = r.offset + len(token[0]) - held.start
            while held.open[-1] == "value":
                held.closed()
            held.closed()
            if unclosed and clean and not held.open:
                held.inside.append(r.offset)
        elif clean:
            held.open.clear()
            if held.shut >= 0 and not "".join(held.pieces)[held.shut :].strip():
                held.doubled = True
            if held.odd is not None:
                return self.found(held, held.odd)
            held.ends.append((r.offset, r.offset + len(token[0])))
        return None

    def found(self, held: Held, end: tuple[int, int]) -> tuple[int, int]:
        """The value ends there: say what was held of it."""
        text = "".join(held.pieces)[: end[0] - held.start]
        if text:
            self.r.out.append(ArgumentDelta(self.index, text, self.key))
        return end

    def settled(self, held: Held) -> tuple[int, int]:
        """Where the value ends, now that the text has ended and it was not closed."""
        if held.odd is not None or held.first is not None:
            return self.found(held, held.first or held.odd or (0, 0))
        if len(held.ends) == 1 and not held.doubled and MISSING_CLOSE in self.r.repairs and self.is_whole(held):
            self.r.unclosed.update(held.inside)
            ((end, self.over),) = held.ends
            self.unclosed = True
            return self.found(held, (end, end))
        if held.ends or held.fits:
            raise self.ambiguous(held, ended=True)
        raise self.truncated()

    def is_whole(self, held: Held) -> bool:
        """Whether the value up to the call's one end holds no half of another call, and no stray closing tag.

        One that holds its own closing tag is refused later, in better words.
        """
        r = self.r
        text = r.raw()[self.start - r.mark : held.ends[0][0] - r.mark]
        return self.end.stray(text) >= 0 or (self.end.whole(text) and not self.opens(text))

    def opens(self, text: str) -> bool:
        """Whether a value opens in this text and is not closed, but for those of parameters that are still to come."""
        if self.end.own is None:
            return False
        found = [f for f in self.end.own.finditer(text) if f["close"] or not self.is_missing(f)]
        return 2 * sum(f["close"] is None for f in found) > len(found)

    def ambiguous(self, held: Held, *, ended: bool = False) -> Damage:
        """The error for a value whose end nobody can tell; where the text ended, the last end is the call's own."""
        end = held.ends[-1][1] if held.ends else self.r.offset
        return self.unsure(held.start, end if ended else -1, ended=ended)

    def unsure(self, start: int, end: int, *, ended: bool = False) -> Damage:
        """The error for a value in which what opens and closes from `start` on does not balance."""
        return Damage(
            "ambiguous_call",
            f"nobody can tell where the value of {self.key!r} ends: what opens and closes in it does not balance. "
            f"Write {self.end.what} behind each value; one that holds parts of a call must stand in {CDATA_OPEN} … "
            f"{CDATA_CLOSE}",
            start,
            ended=ended,
            end=end,
        )

    # ------------------------------------------------------------ CDATA

    def cdata(self) -> Wait:
        """Consume the inside of a CDATA section and its closing mark."""
        r, start = self.r, self.r.offset
        while True:
            end = r.buf.find(CDATA_CLOSE, r.at)
            if end >= 0:
                r.tell(end, self.index, self.key)
                self.spans.append((start, r.offset))
                r.at += len(CDATA_CLOSE)
                return
            # "]" and "]]" at the end may begin the mark
            held = 2 if r.buf.endswith("]]") else 1 if r.buf.endswith("]") else 0
            r.tell(max(len(r.buf) - held, r.at), self.index, self.key)
            yield from self.wait(_CDATA_STOP if not held else None)

    def closed_after_cdata(self) -> Generator[None, None, bool]:
        """After a CDATA section: another one, or the end, or plain content."""
        r = self.r
        while True:
            if cdata := (yield from r.sees(_CDATA)):
                r.at = cdata.end()
                yield from self.cdata()
            else:
                break
        after = _after_space(self.end)
        while not r.ended and (r.at >= len(r.buf) or after.part.match(r.buf, r.at)):
            yield
        close = after.match(r.buf, r.at)
        if close and (self.end.nested is not None or close.lastgroup == "fit"):
            r.at = close.end("close")
            return True
        return False


_TOLD: Final = ("fit", "call")  # all that they take to be told stands there; more text makes them nothing else
_LAST_NEWLINE = re.compile(r"\r?\n\Z")
_SPACES_ONLY = re.compile(r"[ \t]*\r?\Z").match


@cache
def _after_space(end: ValueEnd) -> Delimiter:
    token = end.token
    return Delimiter(f"{SPACES}(?:{token.whole.pattern})", f"{SPACES}(?:{token.part.pattern[3:-3]})?", re.IGNORECASE)
