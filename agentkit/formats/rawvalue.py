"""Raw values read as they stream: entities in them are not decoded, markup in them is content.

What is balanced decides where a value ends. The first closing tag that is followed by something that may follow it
ends the value; what opens and closes again inside it is content. If a tag opens a value or a call inside the value, or
the enclosing call ends without this value's end, later text decides: until then the text is held, and emits no event.
Knows the reader, but no format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from functools import cache
from typing import Final, Literal

from agentkit.formats import jsontext
from agentkit.formats.damage.listed import later
from agentkit.formats.held import Held, Later, Seen
from agentkit.formats.reader import Damage, Delimiter, Reader, Search, Wait
from agentkit.formats.tags import SPACES
from agentkit.formats.valueends import ValueEnd
from agentkit.formats.valuetokens import CDATA_CLOSE, CDATA_OPEN, ValueTokens
from agentkit.formats.worn import alike

_CDATA = Delimiter(rf"{SPACES}<!\[CDATA\[", rf"{SPACES}(?:<(?:!(?:\[(?:C(?:D(?:A(?:T(?:A)?)?)?)?)?)?)?)?")
_BLANK = re.compile(r"\s*")
_CDATA_STOP = re.compile("]").search
_MARGIN: Final = 64  # characters of white space before JSON
_FAR: Final = 65_536  # characters in which the end of JSON is looked for from the first place that may end it
_NEWLINE = Delimiter(r"\r?\n", r"\r?")

Accepts = Literal["text", "data", "scalar"]


class Value:
    """Read one raw value up to its end, emitting it as deltas of `key`; `text` is the value once it has been read.

    `unclosed` is then whether its closing tag was missing, and `over`, where in that case the call is over. `missing`
    decides by name whether the call's tool declares a parameter that has not been passed yet; `kind` is what this one
    accepts: `text`; only numbers and words, `scalar`; or any value but text, `data`, so that what begins
    as JSON is JSON.
    """

    def __init__(
        self,
        r: Reader,
        index: int,
        key: str,
        end: ValueEnd,
        missing: Callable[[str], bool] | None = None,
        kind: Callable[[], Accepts] | None = None,
    ) -> None:
        self.r, self.index, self.key, self.end = r, index, key, end
        self.kind = kind
        self.tokens = ValueTokens(r, key, end, missing)
        self.seen = Seen()
        self.spans: list[tuple[int, int]] = []
        self.start = r.offset
        self.literal = 0  # spans in CDATA
        self.unclosed = False
        self.over = -1

    def text(self) -> str:
        """The value, byte-exact except for the newlines and CDATA marks that are not part of it."""
        if len(self.spans) == 1:  # as in nearly all
            return self.r.text(*self.spans[0])
        return "".join([self.r.text(start, end) for start, end in self.spans])

    @property
    def verbatim(self) -> bool:
        """Whether it began in CDATA, and so is meant to the letter."""
        return self.literal > 0

    def bare(self) -> str:
        """The part of the value that was not in CDATA."""
        return "" if self.literal == len(self.spans) else self.r.text(*self.spans[-1])

    def read(self) -> Generator[None, None, None]:
        """Consume the value and its closing tag.

        Raises:
            Damage: `truncated_call` if the text ends first; `ambiguous_call` if what is inside the value does not
            balance, so that its end is ambiguous.
        """
        r = self.r
        if (
            r.at < len(r.buf) and not (first := r.buf[r.at]).isspace() and first != "<"
        ):  # none of what may come before it
            yield from self.plain()
            return
        if not self.end.verbatim and (newline := (yield from r.sees(_NEWLINE))):
            r.at = newline.end()
        if cdata := (yield from r.sees(_CDATA)):
            r.at = cdata.end()
            yield from self.cdata()
            if (yield from self.closed_after_cdata()):
                return
        yield from self.plain()

    def wait(self, search: Search | None = None) -> Wait:
        """Wait for more; text in which `search` finds nothing is part of the value."""
        r = self.r
        if r.ended:
            raise self.truncated()
        if search is not None and r.at == len(r.buf):
            r.heat(search, None, self.index, self.key)
        yield

    def refuse_stray(self, start: int, end: int) -> None:
        """A value that contains its own closing tag was closed: what follows that is wrong, no tag is missing.

        Raises:
            Damage: `invalid_arguments`; the call is over at its end.
        """
        r = self.r
        if (stray := self.end.stray(r.text(start, end))) >= 0:
            wanted = f"expected a parameter or the end of the call after {self.end.what} of {self.key!r}"
            r.at = self.over - r.base
            raise Damage("invalid_arguments", wanted, start + stray, got=True, end=self.over)

    def crossing(self, after: int) -> Damage:
        """The error for a value that was closed where another call begins, and closed again after that."""
        message = f"{self.end.what} of {self.key!r} comes before another call, and again after it: close the call, and "
        message += f"put a value that contains such markup in {CDATA_OPEN} … {CDATA_CLOSE}"
        return Damage("ambiguous_call", message, self.seen.crossed, end=after)

    def truncated(self) -> Damage:
        """The error for a text that ends inside the value."""
        if self.seen.first_close >= 0:
            return Damage(
                "ambiguous_call",
                f"the first {self.end.what} closes an opening tag inside the value of {self.key!r}, and none is left "
                f"to close the call: put a value that contains this tag in {CDATA_OPEN} … {CDATA_CLOSE}",
                self.seen.first_close,
                ended=True,
            )
        return self.tokens.truncated()

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
                if self.seen.crossed >= 0:
                    raise self.crossing(after)
                if self.seen.mixed or (self.seen.closings and self.end.crossed(r.text(start, end))):
                    raise self.tokens.unsure(start, after)
                if self.unclosed and (newline := _LAST_NEWLINE(r.text(max(start, end - 2), end))):
                    end -= len(newline[0])
                self.spans.append((start, max(start, end)))
                return
            else:
                r.tell(r.at + 1, self.index, self.key)

    def ends_here(self) -> Generator[None, None, tuple[int, int] | None]:
        """Where the value ends and where reading continues, if what is here decides it; None for content."""
        if self.end.nested is not None:
            return (yield from self.balanced(self.end.nested))
        token = yield from self.tokens.token(0)
        if token is not None and not self.seen.token and self.is_data():
            token = yield from self.outside_data()
        if token is None:
            return None
        r, kind = self.r, token.lastgroup
        here = (r.offset, r.base + token.end())
        if kind == "fit":
            if (yield from self.tokens.is_over(token)):
                return here
            return (yield from self.later(Held(r.offset, first=here)))
        if kind == "close" and self.kind is not None and self.kind() == "scalar":
            return here  # what follows it cannot be part of a number or a word
        if kind == "close" and (yield from self.is_crossed(token.end() - r.at)):
            return here
        if kind == "end":
            clean = yield from self.tokens.is_clean(token)
            if clean and r.offset in r.unclosed:
                self.unclosed, self.over = True, here[1]
                return r.offset, r.offset
            self.seen.passed = self.seen.passed or not clean
            return (yield from self.later(Held(r.offset))) if clean else None
        self.seen.closings = self.seen.closings or kind == "odd"
        unsure = kind in ("odd", "call") or (kind == "value" and not self.tokens.is_missing(token))
        return (yield from self.later(Held(r.offset))) if unsure else None

    def is_data(self) -> bool:
        """Whether the value begins as JSON, and accepts no text; asked once, at the first token."""
        self.seen.token = True
        first = self.r.text(self.start, min(self.start + _MARGIN, self.r.offset)).lstrip()[:1]
        return first in ("[", "{") and self.kind is not None and self.kind() == "data"

    def outside_data(self) -> Generator[None, None, re.Match[str] | None]:
        """The token that is here, unless it is in a string of the value, which is JSON: then that is consumed.

        It is consumed up to its last bracket, if what ends the value follows that: otherwise the JSON is damaged.
        """
        if self.r.may_rewind(self.r.offset) and (yield from self.over_data()):
            return None
        return (yield from self.tokens.token(0))  # where it is now

    def over_data(self) -> Generator[None, None, bool]:
        """Consume the rest of a value that is JSON and ends after this place; False if it does not."""
        r = self.r
        read = r.text(self.start, r.offset)
        end, whole = jsontext.reach_of(read + r.buf[r.at : r.at + _FAR])
        enough = len(r.buf) - r.at
        while whole is None and not r.ended and enough <= _FAR:
            enough = min(later(enough), _FAR + 1)
            yield from r.have(enough)
            end, whole = jsontext.reach_of(read + r.buf[r.at : r.at + _FAR])
        ahead = end - len(read)
        if ahead <= 0:
            return False
        if whole:
            token = yield from self.tokens.token(ahead, over_space=True)
            if token is not None and token.lastgroup == "fit":
                r.tell(r.at + ahead - 1, self.index, self.key)
                return True
        r.rewound += ahead  # it is read again
        return False

    def balanced(self, nested: Delimiter) -> Generator[None, None, tuple[int, int] | None]:
        """The same if one tag closes the value and its call."""
        r = self.r
        if (yield from r.sees(nested)):
            self.seen.depth += 1
        elif close := (yield from r.sees(self.end.token)):
            if self.seen.depth == 0:
                return r.offset, r.base + close.end("close")
            self.seen.depth -= 1
            if self.seen.first_close < 0:
                self.seen.first_close = r.offset
        return None

    def closed_again(self) -> Generator[None, None, bool]:
        """Whether the tag that closed the value and its call closes again, after text that is joined to it.

        Behind white space, or another tag, may be a damaged call, which must not cost this one. After a value that is
        not empty, the text is one word, so that the end of the call is not held for long; it is consumed with the tag.
        """
        r, start, nested, again = self.r, self.r.offset, self.end.nested, False
        yield from r.more()
        if nested is None or r.at >= len(r.buf) or r.buf[r.at].isspace() or r.buf[r.at] == "<":
            return False
        if self.text().strip():
            if (found := (yield from r.sees(_after_a_word(self.end)))) is not None:
                r.at = found.end()
            return found is not None
        while True:
            found = self.end.stops(r.buf, r.at)
            r.at = found.start() if found else len(r.buf)
            if found is None:
                if r.ended:
                    break
                yield
            elif (yield from r.sees(nested)):
                break
            elif (yield from r.sees(self.end.token)):
                again = True
                break
            else:
                r.at += 1
        r.back_to(start)
        return again

    def is_crossed(self, ahead: int) -> Generator[None, None, bool]:
        """Look at what follows a value's closing, `ahead` characters from here, if nothing there fits.

        Another call there makes the value's end ambiguous. A misspelt end of this call ends it: returns if it does.
        """
        r, over = self.r, self.end.over
        self.seen.closings = True
        behind = yield from self.tokens.token(ahead, over_space=True)
        if behind is not None and behind.lastgroup == "call":
            self.seen.crossed = r.offset
        if behind is not None or not over:
            return False
        while True:
            at = _BLANK.match(r.buf, r.at + ahead).end()  # type: ignore[union-attr]  # it matches nothing too
            line = r.buf[at : at + len(over)].partition("\n")[0]
            if r.ended or len(line) == len(over) or at + len(line) < len(r.buf) or line[:1] not in ("", over[0]):
                return line[:1] == over[0] and alike(line, over)
            yield

    def cdata(self) -> Wait:
        """Consume the inside of a CDATA section and its closing mark."""
        r, start = self.r, self.r.offset
        while True:
            end = r.buf.find(CDATA_CLOSE, r.at)
            if end >= 0:
                r.tell(end, self.index, self.key)
                self.spans.append((start, r.offset))
                self.literal += 1
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

    def later(self, held: Held) -> Generator[None, None, tuple[int, int]]:
        """Continue reading without an event, until it is known where the value ends."""
        later = Later(self.tokens, self.index, self.seen, self.start, held)
        ends = yield from later.read()
        if later.over >= 0:
            self.unclosed, self.over = True, later.over
        self.seen.mixed = self.end.crosses_sections(self.r.text(self.start, ends[0]))
        return ends


_LAST_NEWLINE = re.compile(r"\r?\n\Z").search


@cache
def _after_a_word(end: ValueEnd) -> Delimiter:
    return Delimiter(
        rf"[^\s<]{{1,256}}{end.token.whole.pattern}", rf"[^\s<]{{0,256}}(?:{end.token.begun[3:-3]})?", re.I
    )


@cache
def _after_space(end: ValueEnd) -> Delimiter:
    token = end.token
    return Delimiter(f"{SPACES}(?:{token.whole.pattern})", f"{SPACES}(?:{token.begun[3:-3]})?", re.IGNORECASE)
