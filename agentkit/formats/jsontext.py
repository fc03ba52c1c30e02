"""JSON read as it streams: strictly, one JSON token at a time, so that damage is detected at its first character.

Knows the reader, no format. A value that has arrived completely is passed to the C decoder; only one that arrives in
pieces is scanned here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from agentkit.checks.unicode import has_surrogate, without_surrogates
from agentkit.formats.atoms import PROSE
from agentkit.formats.reader import Damage, Delimiter, Reader, Search, text_run
from agentkit.schemas.typed import values
from agentkit.schemas.typed.literals import A_NUMBER, MAX_NUMBER

UNREAD: Final[Any] = object()

_SPACE = re.compile(r"[ \t\n\r]*")
_DIGITS = re.compile(r"-?[0-9][0-9.eE+-]*")
_TOKEN = re.compile(r'[^\s,:\[\]{}"]+')
_SCALAR = re.compile(r"(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)\Z")
_in_string, _STRING_STOP = text_run(r'[^"\\\x00-\x1f]', r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPE_PART = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")

_CLOSERS: Final = {"{": "}", "[": "]", '"': '"'}
_WINDOW: Final = 2048  # characters: most calls are shorter
ESCAPED_UNIT: Final = re.compile(r"\\[u]").search
"""Finds escapes that may be half a surrogate pair; in this form, it takes two thirds of the time of `in`."""
_CUT: Final = 16  # characters: more than any literal or escape that a window may cut in two

GOES_ON: Final = Delimiter(
    r'\s{0,16}(?:,\s{0,16}"|"[\w.-]{1,64}"\s{0,16}:)', r'\s{0,16}(?:,\s{0,16}|"[\w.-]{0,64}(?:"\s{0,16})?)?'
)
"""More of an object after its closing brace, with or without a comma: after a doubled brace, nothing may be lost."""


AFTER_BRACE: Final = Delimiter(rf"\s|[<\[`|]|{PROSE}\n", rf"(?:{PROSE})?")
"""Text after the brace that closes a call without another end; any other text belongs to a string or an object."""

_VALUE, _ITEM, _KEY_OR_END, _KEY, _COLON, _NEXT = range(6)
_EXPECTED: Final = {
    _VALUE: "a value",
    _ITEM: "a value or ']'",
    _KEY_OR_END: "a key in double quotes or '}'",
    _KEY: "a key in double quotes",
    _COLON: "':'",
    _NEXT: "',' or the end of the object or array (quotes in a string are written \\\")",
}


@dataclass(slots=True)
class Span:
    """One JSON value of the text: its absolute offsets, and its value once it has been read.

    `loose` says that a string in it contained raw control characters, which JSON requires to be escaped.
    """

    start: int
    end: int
    value: Any = UNREAD
    loose: bool = False

    def read(self, r: Reader) -> Any:
        """Return the value.

        Raises:
            Damage: an error that only the decoder detects: `invalid_json` for a number out of range, `ambiguous_call`
                for a key with two values.
        """
        if self.value is UNREAD:
            text = r.text(self.start, self.end)
            try:
                self.value = values.load(text, strict=not self.loose, depth=r.limits.depth)
            except values.DuplicateKey as e:
                raise Damage("ambiguous_call", str(e), self.start) from e
            except ValueError as e:
                raise Damage("invalid_json", str(e), self.start) from e
        return self.value


def scan(r: Reader, index: int | None = None, parameter: str | None = None) -> Generator[None, None, Span]:
    """Consume one JSON value, white space before it included.

    Args:
        r: the reader, inside a call.
        index: the call whose argument deltas the value's text becomes; None for no deltas.
        parameter: the one whose value it is; None if it is all arguments.

    Raises:
        Damage: `invalid_json` at the first character that JSON does not allow there; `truncated_call` at the text's
        end.
    """
    yield from r.space()
    span = _scan_arrived(r, index, parameter)
    return span if span is not None else (yield from _Scan(r, index, parameter).run())


def _scan_arrived(r: Reader, index: int | None, parameter: str | None) -> Span | None:
    """Return the value as read by the C decoder, if all of it has already arrived."""
    if (found := decode_at(r, r.at)) is None:
        return None
    value, end, loose = found
    span = Span(r.offset, r.base + end, value, loose)
    if index is None:
        r.at = end
    else:
        r.emit_argument(end, index, parameter)
    return span


def decode_at(r: Reader, at: int) -> tuple[Any, int, bool] | None:
    """Return the value at an index of the buffer, its end, and whether it was read loosely; None if the scan must read.

    The value is an object, an array or a string that has arrived completely.
    """
    buf = r.buf
    closer = _CLOSERS.get(buf[at : at + 1])
    if closer is None or (len(buf) - at < _WINDOW and buf.find(closer, at + 1) < 0):
        return None  # a failed attempt costs more than a look
    if (found := _decode(buf, at)) is None:
        return None
    value, end, loose = found
    nested = buf.find("{", at + 1, end) >= 0 or buf.find("[", at + 1, end) >= 0  # which is found faster than counted
    if nested and buf.count("{", at, end) + buf.count("[", at, end) > r.limits.depth:
        return None  # it may be too deep: the scan counts
    if ESCAPED_UNIT(buf, at, end) or (not buf.isascii() and has_surrogate(buf[at:end])):
        value = without_surrogates(value)
    return value, end, loose


def _decode(buf: str, at: int) -> tuple[Any, int, bool] | None:
    """Return the value that starts at `at`, its end, and whether it was read loosely; None if it is not complete.

    Tried on windows of growing size, so that a failed attempt costs in proportion to the value, not to the buffer.
    """
    size, decoder = _WINDOW, values.DECODER
    while True:
        window = buf[at : at + size]
        try:
            value, end = decoder.scan_once(window, 0)  # type: ignore[attr-defined]  # as `raw_decode` calls it
        except json.JSONDecodeError as e:
            if e.msg.startswith("Invalid control character") and decoder is values.DECODER:
                decoder = values.LOOSE
                continue
            # an error this far from the window's end is in the text; otherwise the window may have cut the value
            if len(window) < size or (e.pos < size - _CUT and not e.msg.startswith("Unterminated string")):
                return None
        except StopIteration as e:  # no value at the index that it has
            if len(window) < size or e.value < size - _CUT:
                return None
        except (ValueError, RecursionError):
            return None
        else:
            return value, at + end, decoder is values.LOOSE
        size *= 8


class _Scan:
    """The strict scan of one value. `p` is its position in the buffer; the reader's `at` follows when it waits."""

    __slots__ = ("index", "loose", "p", "parameter", "r", "stack")

    def __init__(self, r: Reader, index: int | None, parameter: str | None) -> None:
        self.r, self.index, self.parameter = r, index, parameter
        self.p = r.at
        self.stack: list[str] = []
        self.loose = False

    def consume(self) -> None:
        if self.index is None:
            self.r.at = self.p
        else:
            self.r.emit_argument(self.p, self.index, self.parameter)

    def pause(self, search: Search | None = None) -> None:
        """Consume up to `p` before waiting for more; text in which `search` finds nothing passes without a decision."""
        self.consume()
        if self.r.ended:
            raise Damage("truncated_call", "the text ended inside the JSON", self.r.offset, ended=True)
        if search is not None and self.index is not None:
            self.r.set_fast_path(search, None, self.index, self.parameter)

    def bad(self, state: int) -> Damage:
        return self.refusal(_EXPECTED[state])

    def refusal(self, wanted: str) -> Damage:
        at = self.r.base + self.p
        self.consume()
        return Damage("invalid_json", f"expected {wanted}", at, got=True)

    def run(self) -> Generator[None, None, Span]:
        start = self.r.offset
        state = _VALUE
        while True:
            self.p = _SPACE.match(self.r.buf, self.p).end()  # type: ignore[union-attr]  # it matches the empty string
            if self.p >= len(self.r.buf):
                self.pause()
                yield
                self.p = self.r.at
                continue
            if (c := self.r.buf[self.p]) == '"' and state not in (_COLON, _NEXT):
                yield from self.string()
                state = _COLON if state in (_KEY, _KEY_OR_END) else _NEXT
            else:
                state = yield from self.symbol(state, c)
            if not self.stack and state == _NEXT:
                self.consume()
                return Span(start, self.r.offset, loose=self.loose)

    def symbol(self, state: int, c: str) -> Generator[None, None, int]:
        """Consume one JSON token other than a string; returns the state after it."""
        if state in (_VALUE, _ITEM):
            if c in "{[":
                return self.enter(c)
            if c == "]" and state == _ITEM:
                return self.leave()
            yield from self.scalar(state)
            return _NEXT
        if state == _NEXT and self.stack:
            if c == self.stack[-1]:
                return self.leave()
            if c == ",":
                self.p += 1
                return _KEY if self.stack[-1] == "}" else _VALUE
        if state == _COLON and c == ":":
            self.p += 1
            return _VALUE
        if state == _KEY_OR_END and c == "}":
            return self.leave()
        raise self.bad(state)

    def enter(self, c: str) -> int:
        if len(self.stack) >= self.r.limits.depth:
            raise self.refusal(f"nesting of at most {self.r.limits.depth}")
        self.stack.append("}" if c == "{" else "]")
        self.p += 1
        return _KEY_OR_END if c == "{" else _ITEM

    def leave(self) -> int:
        self.stack.pop()
        self.p += 1
        return _NEXT

    def string(self) -> Generator[None, None, None]:
        self.p += 1
        while True:
            self.p = _in_string(self.r.buf, self.p).end()  # type: ignore[union-attr]  # it matches the empty string
            if self.p >= len(self.r.buf):
                self.pause(_STRING_STOP)
                yield
                self.p = self.r.at
                continue
            c = self.r.buf[self.p]
            if c == '"':
                self.p += 1
                return
            if c != "\\":
                self.loose = True
                self.p += 1
            elif _ESCAPE_PART.match(self.r.buf, self.p):
                self.pause()
                yield
                self.p = self.r.at
            else:
                raise self.refusal("a JSON escape (a backslash is written \\\\)")

    def scalar(self, state: int) -> Generator[None, None, None]:
        while True:
            found = _TOKEN.match(self.r.buf, self.p)
            if found is None:
                raise self.bad(state)
            whole = found.end() < len(self.r.buf) or self.r.ended
            if self.r.ended and found.end() >= len(self.r.buf):
                self.r.cut = self.r.base + self.p
            if found.end() - self.p > MAX_NUMBER:  # judged at this length at the latest, whatever follows
                number = _DIGITS.fullmatch(found[0], 0, MAX_NUMBER)
                raise self.refusal(A_NUMBER if number else _EXPECTED[state])
            if whole and _SCALAR.match(found[0]) is None:
                raise self.bad(state)
            if whole:
                self.p = found.end()
                return
            self.pause()
            yield
            self.p = self.r.at
