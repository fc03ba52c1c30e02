"""The reader of one raw value as it streams: without decoding entities, up to an end that the next text may follow.

A complete quoted call is content. Any other markup of the call's own format damages the call; the parser does not
buffer to look for another interpretation. The model is told to write the value in CDATA. Knows the call in progress and
the reader.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from agentkit.formats import jsontext
from agentkit.formats.call import CallReader
from agentkit.formats.reader import Damage, Delimiter, Reader
from agentkit.formats.tags import CDATA_CLOSE, CDATA_OPEN, SPACES
from agentkit.formats.valueends import ValueEnd

_CDATA = Delimiter(rf"{SPACES}<!\[CDATA\[", rf"{SPACES}(?:<(?:!(?:\[(?:C(?:D(?:A(?:T(?:A)?)?)?)?)?)?)?)?")
_CDATA_STOP = re.compile("]").search
_NEWLINE = Delimiter(r"\r?\n", r"\r?")
_JSON = Delimiter(r"(\s{0,64})[\[{]", r"\s{0,64}")
_REMEDY: Final = f"close each value once, and put text that contains such markup in {CDATA_OPEN} … {CDATA_CLOSE}"


def read_value(
    r: Reader, call: CallReader, key: str, end: ValueEnd, *, is_text: bool | None = None
) -> Generator[None, None, tuple[str, bool]]:
    """Consume one value and its closing, as deltas of `key`.

    Args:
        r: the reader, at the value's start.
        call: the call that it is an argument of.
        key: the parameter.
        end: the patterns of such a value's end.
        is_text: whether the call says that it is text; None if only the tool's schema does.

    Returns:
        The value, byte-exact except for the newlines and CDATA marks that are not part of it; and whether it was in
        CDATA, which means that it is literal.

    Raises:
        Damage: `truncated_call` if the text ends first; `ambiguous_call` if the value contains markup of its own kind
            of call, or if the text after its closing may not follow it.
    """
    if r.at >= len(r.buf) or (first := r.buf[r.at]).isspace() or first == "<":  # text before the value
        if end.newline and (newline := (yield from r.sees(_NEWLINE))):
            r.at = newline.end()
        if (yield from r.sees(_CDATA)) is not None:
            return (yield from _cdata(r, call, key, end)), True
    start, quoted = r.offset, []
    data = call.arguments.is_data(key) if is_text is None else not is_text
    if data and (found := (yield from r.sees(_JSON))):
        r.emit_argument(r.at + len(found[1]), call.index, key)
        quoted = yield from _json(r, call, key, end)
    return (yield from _Plain(r, call, key, end, start, quoted).read()), False


def _json(r: Reader, call: CallReader, key: str, end: ValueEnd) -> Generator[None, None, list[tuple[int, int]]]:
    """JSON as the value of a parameter that accepts no text: its strings may contain any markup."""
    start = r.offset
    try:
        yield from jsontext.scan(r, call.index, key)
    except Damage as damage:
        if damage.ended:
            raise _truncation(r, key, end) from None
        return []  # it is written in another way
    return [(start, r.offset)]


def _truncation(r: Reader, key: str, end: ValueEnd) -> Damage:
    return Damage("truncated_call", f"the text ended inside {key!r}, before {end.what}", r.offset, ended=True)


def _cdata(r: Reader, call: CallReader, key: str, end: ValueEnd) -> Generator[None, None, str]:
    """Read one CDATA section after another, and the value's closing."""
    text = ""
    while (found := (yield from r.sees(_CDATA))) is not None:
        r.at = found.end()
        start = r.offset
        while (stop := r.buf.find(CDATA_CLOSE, r.at)) < 0:
            # "]" and "]]" at the end may begin the boundary
            partial = 2 if r.buf.endswith("]]") else 1 if r.buf.endswith("]") else 0
            r.emit_argument(max(len(r.buf) - partial, r.at), call.index, key)
            if r.ended:
                raise _truncation(r, key, end)
            if not partial:
                r.set_fast_path(_CDATA_STOP, None, call.index, key)
            yield
        r.emit_argument(stop, call.index, key)
        text += r.text(start, r.offset)
        r.at += len(CDATA_CLOSE)
    yield from r.space()
    if (found := (yield from r.sees(end.boundary))) is None or not found["close"]:
        if r.at >= len(r.buf):
            raise _truncation(r, key, end)
        raise Damage("ambiguous_call", f"expected {end.what} after {CDATA_CLOSE} in {key!r}", r.offset, got=True)
    r.at = found.end("close")
    return text


class _Plain:
    """Text up to its closing. `stack` are open tags of a quoted call, `quoted` the ranges of complete quoted calls."""

    __slots__ = ("call", "end", "key", "quoted", "r", "since", "stack", "start")

    def __init__(
        self, r: Reader, call: CallReader, key: str, end: ValueEnd, start: int, quoted: list[tuple[int, int]]
    ) -> None:
        self.r, self.call, self.key, self.end, self.start, self.quoted = r, call, key, end, start, quoted
        self.stack: list[str] = []
        self.since = start

    def read(self) -> Generator[None, None, str]:
        r, end, index, key = self.r, self.end, self.call.index, self.key
        while True:
            found = end.stops(r.buf, r.at)
            r.emit_argument(found.start() if found else len(r.buf), index, key)
            if found is None:
                if r.ended:
                    raise _truncation(r, key, end)
                r.set_fast_path(end.stops, None, index, key)
                yield
                continue
            boundary = yield from r.sees(end.boundary)
            while boundary and boundary["close"] and self.may_change(boundary):
                yield
                boundary = end.boundary.match(r.buf, r.at)
            if boundary is None:
                r.emit_argument(r.at + 1, index, key)
            elif not self.stack and boundary["close"] and self.fits(boundary):
                text = self.check_value(r.offset)
                r.at = boundary.end("close")
                return text
            else:
                self.nest(boundary)
                r.emit_argument(boundary.end(), index, key)

    def may_change(self, closing: re.Match[str]) -> bool:
        """Return True if more text may make a closing another boundary, or one that ends the value."""
        return (closing["fit"] is None or self.end.ends_call) and not self.r.ended and self.undecided()

    def undecided(self) -> bool:
        """Return True if the text after a closing here has not arrived yet."""
        return self.end.boundary.part.match(self.r.buf, self.r.at) is not None

    def fits(self, boundary: re.Match[str]) -> bool:
        """Return True if the text after a closing may follow it; at the text's end, so may half of the call's end."""
        return boundary["fit"] is not None or (
            self.r.ended and self.end.cut_end(self.r.buf, boundary.end()) is not None
        )

    def nest(self, boundary: re.Match[str]) -> None:
        """Take an opening or a closing in the value: a part of a quoted call, or damage.

        Raises:
            Damage: it belongs to no complete quoted call.
        """
        stack, kind = self.stack, boundary.lastgroup or ""
        opens = kind in ("open", "call") and (stack or kind == "call" or self.end.ends_call)
        if opens:
            self.since = self.since if stack else self.r.offset
            stack.append(kind)
        elif stack and stack[-1] == ("call" if kind == "end" else "open") and kind not in ("open", "call"):
            stack.pop()
            stop = self.r.base + boundary.end()
            if not stack and not self.end.is_complete(self.r.text(self.since, stop)):
                raise self.refusal(boundary, kind)
            if not stack:
                self.quoted.append((self.since, stop))
        elif stack or kind != "end" or self.end.ends_call or self.end.find_markup(boundary[0]):
            raise self.refusal(boundary, kind)  # in a child element, the closing tag of another tool is text

    def refusal(self, boundary: re.Match[str], kind: str) -> Damage:
        """Return the error for a boundary that neither belongs to the value nor ends it."""
        r, end, key = self.r, self.end, self.key
        if kind in ("close", "fit") and not self.stack:
            if r.ended and self.undecided():
                r.at = len(r.buf)
                return Damage(
                    "truncated_call", f"the text ended after {key!r}, before {end.call_end}", r.offset, ended=True
                )
            wanted = f"expected a parameter or {end.call_end} after {end.what} of {key!r}"
            return Damage("ambiguous_call", f"{wanted}: {_REMEDY}", r.offset)
        if self.stack:
            message = f"a call that opens inside {key!r}, at position {self.since}, is not whole"
        else:
            message = f"{boundary[0]!r} is inside {key!r}, before {end.what}"
        return Damage("ambiguous_call", f"{message}: {_REMEDY}", r.offset)

    def check_value(self, stop: int) -> str:
        """Return the value, unless a fragment of its own kind of markup is in it, outside of complete quoted calls.

        Raises:
            Damage: one is.
        """
        r, at, rest = self.r, self.start, []
        if not self.quoted:
            text = r.text(at, stop)
            if not any(c in text for c in self.end.firsts):  # as in most
                return text
        for first, last in self.quoted:
            rest.append(r.text(at, first))
            at = last
        rest.append(r.text(at, stop))
        if found := self.end.find_markup(self.end.around.sub("\n", "\0".join(rest)).replace("\0", "\n")):
            raise Damage("ambiguous_call", f"{found[0]!r} is inside {self.key!r}: {_REMEDY}", stop)
        return r.text(self.start, stop)
