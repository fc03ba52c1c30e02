"""The Python body, `name(key=value, …)`: its end is found as it streams, by counting brackets outside strings.

It is read once it is complete. Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import keyword
import re
from functools import cache
from typing import Any, Final

from agentkit.formats.atoms import PROSE
from agentkit.formats.bodies.fixed_parts import missing_error
from agentkit.formats.call import CallReader
from agentkit.formats.format import PythonCall, Shape, edge
from agentkit.formats.kind import PartKind, Writing
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Search, Wait, text_run
from agentkit.schemas.typed import values
from agentkit.schemas.typed.literals import Literals
from agentkit.schemas.typed.repairs import ARITHMETIC, LEADING_ZEROS
from agentkit.schemas.typed.stringliterals import NotALiteral

_NAME = Delimiter(r"(?P<name>[^\W\d][\w.-]{0,255})\s{0,64}\(", r"(?:[^\W\d][\w.-]{0,255}\s{0,64})?")
_ARGUMENT = Delimiter(
    r"\s{0,64}(?:[)\"'\[{(]|[+-]?[.0-9]|[^\W\d]\w{0,255}\s{0,64}=(?=[^=])|(?:True|False|None|true|false|null)\b"
    r"|[a-zA-Z]{1,2}[\"']|\*{1,2}[\[{(\w])",
    r"\s{0,64}(?:[+-]|\*{1,2}|[^\W\d]\w{0,255}\s{0,64}=?)?",
)
_INNER = Delimiter(rf"\s{{0,64}}{_NAME.regex.pattern}", rf"\s{{0,64}}{_NAME.beginning}")
_BLANK: Final = r"[ \t]{0,64}"
_AFTER_LINE = Delimiter(
    rf"{_BLANK}(?:[;,.]?{_BLANK}(?:#[^\n]{{0,1024}})?(?:\r?\n|<[^\s=]|`)|[,;]{_BLANK}[^\W\d][\w.-]{{0,255}}\()|{PROSE}\n",
    rf"{_BLANK}(?:[;,.]?{_BLANK}(?:#[^\n]{{0,1024}})?\r?|[,;]{_BLANK}[\w.-]{{1,256}}|[;,.]?{_BLANK}<)|{PROSE}",
)
"""Text after a call that a line ends: the line's end, the next call, markup or the end of code."""
_MODULE: Final = "default_api."
_KEYWORDS: Final = frozenset(keyword.kwlist)
_KEY = re.compile(r"\s*(?P<key>[^\W\d]\w*|\"[^\"\n]{1,256}\"|'[^'\n]{1,256}')\s*=(?!=)\s*")
_OUTSIDE = re.compile(r"[\"'()\[\]{}]").search
_INSIDE: Final = {'"': text_run(r'[^"\\]', r"\\."), "'": text_run(r"[^'\\]", r"\\.")}
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}


def read_python_call(r: Reader, call: CallReader, part: PythonCall) -> Wait:
    """Read one call; positional arguments are assigned in the order of the tool's parameters.

    Some models print a call's result; they mean the call itself.
    """
    yield from r.space()
    found = yield from r.sees(_NAME)
    if found is None or found["name"] in _KEYWORDS:
        raise Decline
    r.at = found.end()
    name, printed = _own(call, found["name"]), False
    if name == "print" and name not in call.tools and (inner := (yield from r.sees(_INNER))) is not None:
        printed = _own(call, inner["name"]) in call.tools
        name, r.at = (_own(call, inner["name"]), inner.end()) if printed else (name, r.at)
    if call.known_only and (yield from r.sees(_ARGUMENT)) is None and not (r.ended and r.cut == r.offset):
        raise Decline  # `[search(web)]` in prose
    call.begin(r, name)
    start = r.offset
    yield from _Brackets(r, call).run()
    text = r.text(start, r.offset - 1)
    if printed:
        yield from _end_of_print(r)
    if "\n" in text:
        _refuse_next_call(call, text, start)
    if (boundary := _boundary(call.shape)) is not None and (found := boundary.search(text)):
        message = f"a string of {call.name!r} contains the end of the calls and another opening: close each string once"
        raise Damage("ambiguous_call", message, start + found.start())
    _take(r, call, text, start)
    if call.blocked:
        message = f"{call.name!r} is called in a block, and only Python could determine whether it runs"
        raise Damage("invalid_arguments", f"{message}; write the call alone", r.mark)
    if call.shape.section is None and not (yield from r.follows(_AFTER_LINE)):
        wanted = f"expected the end of the line after the call of {call.name!r}"
        message = f"{wanted}; expressions that Python would compute are not run"
        raise Damage("invalid_arguments", message, r.offset, got=True)
    call.complete = True


def _refuse_next_call(call: CallReader, text: str, start: int) -> None:
    """Refuse a string that runs over its line and the bracket that ends it, up to a call of a tool on the next line.

    Its own quote is missing: Python has no such strings, except between three quotes.
    """
    if '"""' in text or "'''" in text:
        return
    found = re.search(rf"\n[ \t]{{0,64}}(?=(?:{call.openers.table.tool_names})\()", text)
    if found and ")" in text[: found.start()]:
        message = f"a string of {call.name!r} runs over its line up to another call: close it, or write it between "
        raise Damage("ambiguous_call", f"{message}three quotes", start + found.start())


@cache
def _boundary(shape: Shape) -> re.Pattern[str] | None:
    """Return a pattern for the end of a section and the opening of the next one, if tokens mark them."""
    if shape.section is None or not (end := edge(shape.section.close).strip().lstrip("] \n")):
        return None
    return re.compile(rf"{re.escape(end)}\s{{0,64}}{re.escape(edge(shape.section.open).strip())}")


def _own(call: CallReader, name: str) -> str:
    """Return the tool's name without the module's name with which Gemini models are shown their tools."""
    own = name.removeprefix(_MODULE)
    return own if own in call.tools else name


def _end_of_print(r: Reader) -> Wait:
    yield from r.space()
    if not r.buf.startswith(")", r.at):
        raise missing_error(r, "')' after the call that is printed")
    r.at += 1


class _Brackets:
    """Consume up to and including the bracket that closes the call."""

    def __init__(self, r: Reader, call: CallReader) -> None:
        self.r, self.call = r, call
        self.stack = ["("]

    def run(self) -> Wait:
        r = self.r
        while self.stack:
            found = _OUTSIDE(r.buf, r.at)
            if found is None:
                r.emit_argument(len(r.buf), self.call.index, None)
                yield from self.wait(_OUTSIDE)
                continue
            c = found[0]
            if c in _PAIRS:
                if self.stack.pop() != _PAIRS[c]:
                    r.emit_argument(found.start(), self.call.index, None)
                    raise Damage("invalid_json", "expected the brackets of the call to match", r.offset, got=True)
                if not self.stack:
                    r.emit_argument(found.start(), self.call.index, None)
                    r.at = found.end()
                    return
            r.emit_argument(found.end(), self.call.index, None)
            if c in "([{":
                self.stack.append(c)
                if len(self.stack) > r.limits.depth:
                    raise Damage("invalid_json", f"expected nesting of at most {r.limits.depth}", r.offset)
            elif c in "\"'":
                yield from self.string(c)
                if (r.at < len(r.buf) or (yield from r.have(1))) and (r.buf[r.at].isalnum() or r.buf[r.at] in "_\"'"):
                    wanted = "expected ',' or a bracket after a string: escape the quotes inside it"
                    raise Damage("invalid_json", wanted, r.offset, got=True)

    def wait(self, search: Search | None) -> Wait:
        """Wait for more, once everything is consumed; text in which `search` finds nothing needs no decision."""
        r = self.r
        if r.ended:
            raise missing_error(r, f"the end of the call of {self.call.name!r}")
        if search is not None:
            r.set_fast_path(search, None, self.call.index)
        yield

    def string(self, quote: str) -> Wait:
        """Consume from after the opening quote up to and including the closing one."""
        r = self.r
        if len(r.buf) - r.at < 2:
            yield from r.have(2)
        if triple := r.buf.startswith(quote * 2, r.at):  # an empty string does not count
            r.emit_argument(r.at + 2, self.call.index, None)
        run, stop = _INSIDE[quote]
        while True:
            end = run(r.buf, r.at).end()  # type: ignore[union-attr]  # it matches the empty string
            if not triple and r.buf.startswith(quote, end):
                r.emit_argument(end + 1, self.call.index, None)
                return
            r.emit_argument(end, self.call.index, None)
            if r.at >= len(r.buf):
                yield from self.wait(stop)
                continue
            wanted = 2 if r.buf[r.at] == "\\" else 3
            if len(r.buf) - r.at < wanted and not (yield from r.have(wanted)):
                r.emit_argument(len(r.buf), self.call.index, None)
                yield from self.wait(None)
            closes = r.buf.startswith(quote * wanted, r.at) and r.buf[r.at] == quote
            r.emit_argument(r.at + (2 if r.buf[r.at] == "\\" else wanted if closes else 1), self.call.index, None)
            if closes:
                return


def _take(r: Reader, call: CallReader, text: str, start: int) -> None:
    reader = Literals(text, python=True)
    order = iter(call.tool.parameters.get("properties", {}) if call.tool else ())
    while reader.space():
        key = _KEY.match(text, reader.at)
        name = next(order, None) if key is None else key["key"].strip("\"'")
        if name is None:
            message = f"{call.name!r} is called with an argument that has no name; write name=value"
            raise Damage("invalid_arguments", message, start + reader.at)
        reader.at = key.end() if key is not None else reader.at
        try:
            call.arguments.set(r, name, reader.value())
            if (c := reader.space()) and c != ",":
                raise reader.bad("',' or ')'")
            reader.at += len(c)
        except NotALiteral as e:
            raise Damage("invalid_arguments", f"the value of {name!r}: {e}", start + e.position) from e
        except RecursionError:
            raise Damage("invalid_arguments", f"the value of {name!r} is nested too deep", start) from None
    for repair in reader.repairs.keys() & {ARITHMETIC, LEADING_ZEROS}:
        if repair not in r.repairs:
            raise Damage("invalid_arguments", f"expected values, got what needs the repair {repair!r}", start)
        call.arguments.note(repair)


# ---------------------------------------------------------------- written


def write_python_call(w: Writing, part: PythonCall) -> str:
    """Write the call with every argument named."""
    written = ", ".join(f"{k}={python_literal(v)}" for k, v in w.call.arguments.items())
    boundary = _boundary(w.format.shapes[0])
    if boundary is not None:  # only strings have it
        written = boundary.sub(lambda found: f"\\x{ord(found[0][0]):02x}{found[0][1:]}", written)
    return f"{w.call.name}({written})"


def python_literal(value: Any) -> str:
    """Return a JSON value as Python writes it.

    Raises:
        FormatError: the value is not JSON.
    """
    values.dump(value)
    return repr(value)


KINDS = (
    PartKind(
        PythonCall,
        read_python_call,
        write_python_call,
        taught=("Write each call as Python does, with named arguments only and literals as values.",),
    ),
)
