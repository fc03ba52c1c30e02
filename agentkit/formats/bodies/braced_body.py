"""The body `{key:value,…}` with keys without quotes and quote tokens around strings; read once it is complete.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.formats.bodies.fixed_parts import missing_error
from agentkit.formats.call import CallReader
from agentkit.formats.format import Braced, FormatPart
from agentkit.formats.kind import PartKind, Writing
from agentkit.formats.reader import Damage, Reader, Search, Wait, exact_literal, may_begin
from agentkit.formats.valueends import markup_search
from agentkit.schemas.typed import values
from agentkit.schemas.typed.literals import Literals
from agentkit.schemas.typed.repairs import PYTHON_QUOTES
from agentkit.schemas.typed.stringliterals import NotALiteral
from agentkit.toolspec import ToolSpec

_KEY = re.compile(r"\s*([^\s:{}\[\],\"']+)\s*:\s*")
_PLAIN = re.compile(r"[^,:{}\[\]\\]*")
_SPACE = re.compile(r"\s*")
_FENCE: Final = "```"
_CLOSERS: Final = {"{": "}", "[": "]"}


@cache
def _outside(quote: str) -> Search:
    return re.compile(rf"[{{}}\[\]]|{may_begin(quote)}").search


@cache
def _inside(quote: str) -> Search:
    return re.compile(may_begin(quote)).search


def read_braced(r: Reader, call: CallReader, part: Braced) -> Wait:
    """Find the body's end by counting brackets outside strings, then read it."""
    yield from r.space()
    start, depth, string = r.offset, 0, False
    yield from r.more()
    if not r.buf.startswith("{", r.at):
        raise missing_error(r, "'{'")
    while True:
        search = (_inside if string else _outside)(part.quote)
        found = search(r.buf, r.at)
        r.emit_argument(found.start() if found else len(r.buf), call.index, None)
        if found is None:
            if r.ended:
                raise missing_error(r, f"the end of the call of {call.name!r}")
            r.set_fast_path(search, None, call.index)
            yield
            continue
        if found[0] == part.quote[0] and (quote := (yield from r.sees(exact_literal(part.quote)))):
            string = not string
            r.emit_argument(quote.end(), call.index, None)
            continue
        depth += (r.buf[r.at] in "{[") - (r.buf[r.at] in "}]") if not string else 0
        r.emit_argument(r.at + 1, call.index, None)
        if depth > r.limits.depth:
            raise Damage("invalid_json", f"expected nesting of at most {r.limits.depth}", r.offset)
        if depth <= 0 and not string:
            break
    reader = _Braced(r.text(start, r.offset), part.quote, start, call.shape.call)
    _take(r, call, part, reader.object(), reader)
    call.complete = True


@cache
def marks_of(quote: str, parts: tuple[FormatPart, ...]) -> Search:
    """Return a search for the edges of a call of these parts, the quotes of its strings, and fragments of these."""
    edges = [edge.split()[0] for edge in (parts[0], parts[-1]) if isinstance(edge, str) and edge.strip()]
    tokens = [found[0] if (found := _TOKEN(edge)) else edge for edge in edges]
    return markup_search((quote, *tokens))


_TOKEN: Final = re.compile(r"<[^<>\s]+>").match


def _take(r: Reader, call: CallReader, part: Braced, read: dict[str, Any], reader: _Braced) -> None:
    plain_quotes = reader.plain_quotes
    if plain_quotes and PYTHON_QUOTES not in r.repairs:
        raise Damage("invalid_json", f"expected {part.quote!r} around strings, not {plain_quotes}", r.offset)
    if plain_quotes:
        call.arguments.note(PYTHON_QUOTES)
    if found := _next_key(call.tool, read)("\0".join(text for text in read.values() if isinstance(text, str))):
        message = f"a string contains {found[0]!r}, which begins another argument: write {part.quote} at its end, or a "
        raise Damage("ambiguous_call", f"{message}space in it", reader.offset)
    for key, value in read.items():
        declared = call.tool is not None and call.tool.declares(key)
        if (isinstance(value, _Bare) and (declared or not part.typed)) or (isinstance(value, str) and not part.typed):
            call.arguments.put(r, key, str(value), nulls=True)
        else:
            call.arguments.set(r, key, _read_bare(value))


def _next_key(tool: ToolSpec | None, arguments: Mapping[str, Any]) -> Search:
    """Return a search for a comma and the key of a missing argument: a string that contains it lacks its end quote."""
    declared = tool.parameters.get("properties", {}) if tool is not None else {}
    names = [name for name in declared if name not in arguments]
    return re.compile(rf",(?:{'|'.join(map(re.escape, names)) or '(?!)'}):").search


class _Bare(str):
    """A value without quote tokens, unchanged: only the schema says whether it is a string."""

    __slots__ = ()


def _read_bare(value: Any) -> Any:
    """Return a value without a schema, its parts without quote tokens read as JSON."""
    match value:
        case _Bare():
            return values.read(str(value), {}, {})
        case dict():
            return {k: _read_bare(v) for k, v in value.items()}
        case list():
            return [_read_bare(v) for v in value]
    return value


class _Braced:
    """The reader of a complete body. The last of the call's `parts` is in no key and in no value without quotes."""

    def __init__(self, text: str, quote: str, offset: int, parts: tuple[FormatPart, ...]) -> None:
        self.text, self.quote, self.offset, self.parts, self.at = text, quote, offset, parts, 0
        self.end = parts[-1].strip() if isinstance(parts[-1], str) else ""
        self.plain_quotes = ""  # quotes of another language that were found around a string

    def bad(self, wanted: str) -> Damage:
        return Damage("invalid_json", f"expected {wanted}", self.offset + self.at, got=True)

    def ends_in(self, text: str) -> bool:
        """Return True if the call's end is in a text, which is then half a call, or markup of a damaged one."""
        return bool(self.end) and self.end in text

    def space(self) -> str:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches the empty string
        return self.text[self.at : self.at + 1]

    def object(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if self.space() != "{":
            raise self.bad("'{'")
        self.at += 1
        while self.space() != "}":
            key = self.key()
            value = self.value()
            try:
                values.refuse_other(out, key, value)
            except values.DuplicateKey as e:
                raise Damage("ambiguous_call", str(e), self.offset + self.at) from e
            out[key] = value
            self.comma("}")
        self.at += 1
        return out

    def key(self) -> str:
        found = _KEY.match(self.text, self.at)
        if found is None or self.ends_in(found[1]) or self.quote in found[1]:
            raise self.bad("a key without quotes and ':'")
        self.at = found.end()
        return found[1]

    def comma(self, closer: str) -> None:
        c = self.space()
        if c == ",":
            self.at += 1
        elif c != closer:
            raise self.bad(f"',' or {closer!r}")

    def string(self) -> str:
        start = self.at + len(self.quote)
        end = self.text.find(self.quote, start)
        if end < 0:
            raise self.bad("the end of the string")
        self.at = end + len(self.quote)
        return self.check_string(self.text[start:end], start)

    def check_string(self, text: str, start: int) -> str:
        """Return a string, unless it contains markup of its own kind of call."""
        if found := marks_of(self.quote, self.parts)(text):
            message = f"a string contains {found[0]!r}: write {self.quote} at both ends of each string"
            raise Damage("ambiguous_call", message, self.offset + start)
        return text

    def value(self) -> Any:
        c = self.space()
        if self.text.startswith(self.quote, self.at):
            return self.string()
        if c == "{":
            return self.object()
        if c == "[":
            self.at += 1
            items = []
            while (c := self.space()) != "]":
                if c in (",", "}"):
                    raise self.bad("an item")
                items.append(self.value())
                self.comma("]")
            self.at += 1
            return items
        if c in ("'", '"'):
            return self.plain_string(c)
        found = _PLAIN.match(self.text, self.at)
        text = found[0] if found else ""
        quotes = (self.quote, self.plain_quotes or self.quote)  # quotes of another language, if they are written
        # there is text before a string, or a code fence: neither of them is the value
        half = text.strip().startswith(self.quote[0]) or text.strip().endswith(self.quote[-1]) or _FENCE in text
        if self.ends_in(text) or half or any(quote in text for quote in quotes):
            raise self.bad(f"',', {self.quote!r} or a value without it")
        self.at += len(text)
        return _Bare(text.strip())

    def plain_string(self, quote: str) -> str:
        """Read a string as JSON or Python write it: its quotes are not part of its content."""
        literals = Literals(self.text, self.at)
        try:
            value = literals.one_string()
        except NotALiteral as e:
            raise self.bad(f"the end of the string in {quote}") from e
        self.at, self.plain_quotes = literals.at, quote
        return value


# ---------------------------------------------------------------- written


def write_braced(w: Writing, part: Braced) -> str:
    """Write all arguments between braces, keys without quotes."""
    arguments: Mapping[str, Any] = w.call.arguments
    if not part.typed:
        arguments = {k: values.write(v, *w.schema(k), nulls=v is None) for k, v in arguments.items()}
    if found := _next_key(w.tool, arguments)("\0".join(text for text in arguments.values() if isinstance(text, str))):
        raise FormatError(f"{found[0]!r} cannot be in a string of {w.call.name!r}: it would begin an argument there")
    return _braced_text(arguments, part.quote)


def _braced_text(value: Any, quote: str) -> str:
    match value:
        case str():
            return f"{quote}{value}{quote}"
        case Mapping():
            return "{" + ",".join(f"{_bare_key(k)}:{_braced_text(v, quote)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(_braced_text(v, quote) for v in value) + "]"
        case _:
            return values.dump(value)


def _bare_key(key: str) -> str:
    if re.fullmatch(r"[^\s:{}\[\],\"']+", key) is None:
        raise FormatError(f"{key!r} cannot be a key in this format, which has no quotes around keys")
    return key


KINDS = (
    PartKind(
        Braced,
        read_braced,
        write_braced,
        taught=(
            "Keys have no quotes.",
            "Write a string between the two tokens that the example shows, exactly as it is meant: no escaping.",
            "No string can contain that token.",
        ),
    ),
)
