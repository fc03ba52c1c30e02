"""The Python body, `name(key=value, …)`: its end is found as it streams, by counting brackets outside strings.

It is read once it is complete. Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import keyword
import re
from functools import cache
from typing import Any, Final

from agentkit.formats import values
from agentkit.formats.call import CallReader
from agentkit.formats.damage.early_ends import end_ahead, over_at_once, over_early_end
from agentkit.formats.damage.listed import REACH, later
from agentkit.formats.edges import weak
from agentkit.formats.format import PythonCall, Shape, edge
from agentkit.formats.kind import PartKind, Writing
from agentkit.formats.literals import Literals
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Search, Wait, pattern, text_run
from agentkit.formats.repairs import ARITHMETIC, INNER_QUOTES, LEADING_ZEROS, MISSING_COMMA
from agentkit.formats.stringliterals import NotALiteral

_NAME = Delimiter(r"(?P<name>[^\W\d][\w.-]{0,255})\s{0,64}\(", r"(?:[^\W\d][\w.-]{0,255}\s{0,64})?")
_ARGUMENT = Delimiter(
    r"\s{0,64}(?:[)\"'\[{(]|[+-]?[.0-9]|[^\W\d]\w{0,255}\s{0,64}=(?=[^=])|(?:True|False|None|true|false|null)\b"
    r"|[a-zA-Z]{1,2}[\"']|\*{1,2}[\[{(\w])",
    r"\s{0,64}(?:[+-]|\*{1,2}|[^\W\d]\w{0,255}\s{0,64}=?)?",
)
_INNER = Delimiter(rf"\s{{0,64}}{_NAME.whole.pattern}", rf"\s{{0,64}}{_NAME.begun[3:-3]}")
_MODULE: Final = "default_api."
_KEYWORDS: Final = frozenset(keyword.kwlist)
_OPERATORS: Final = r"\.[^\W\d]|[\[(*/%@&^|+\->:=]|<[\s=]|!="
_CONTINUATIONS: Final = "if|else|for|and|or|in|is|not|async|while"


def _computed(space: str) -> Delimiter:
    """What follows a call that is part of an expression."""
    whole = rf"{space}(?:{_OPERATORS}|(?:{_CONTINUATIONS})(?=\W))"
    return Delimiter(whole, rf"{space}(?:[.<!]|[a-z]{{1,6}})?")


_WITHIN = r"\s{0,64}", r"[ \t]{0,64}"  # the space inside an expression: in brackets, and where a line ends the call
_COMPUTED, _COMPUTED_LINE = map(_computed, _WITHIN)
_CUT_WORD, _CUT_WORD_LINE = (re.compile(rf"{space}(?:{_CONTINUATIONS})\Z") for space in _WITHIN)
_KEY = re.compile(r"\s*(?P<key>[^\W\d]\w*|\"[^\"\n]{1,256}\"|'[^'\n]{1,256}')\s*=(?!=)\s*")
_OUTSIDE = re.compile(r"[\"'()\[\]{}]").search
_INSIDE: Final = {'"': text_run(r'[^"\\]', r"\\."), "'": text_run(r"[^'\\]", r"\\.")}
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}


def read_python_call(r: Reader, call: CallReader, part: PythonCall) -> Wait:
    """One call; positional arguments are assigned in the order of the tool's parameters.

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
    if ")" in text:  # that of a call in a string, without which none of these is one
        _refuse_next_call(call, text, start)
        _refuse_next_section(call, text, start)
        _refuse_glued_call(call, text, start)
    if printed:
        yield from _end_of_print(r)
    _take(r, call, text, start)
    yield from _refuse_computed(r, call, text)
    call.complete = True


def _refuse_next_call(call: CallReader, text: str, start: int) -> None:
    """Refuse a string that runs over its line and the bracket that ends it, up to a call of a tool on the next line.

    Its own quote is missing: Python has no such strings, except between three quotes.
    """
    if "\n" not in text or '"""' in text or "'''" in text:
        return
    names = "|".join(map(re.escape, call.tools)) or r"(?!)"
    found = re.search(rf"\n[ \t]{{0,64}}(?=(?:{names})\()", text)
    if found and ")" in text[: found.start()]:
        message = f"a string of {call.name!r} runs over its line up to another call: close it, or write it between "
        raise Damage("ambiguous_call", f"{message}three quotes", start + found.start(), end=start + found.start())


def _refuse_next_section(call: CallReader, text: str, start: int) -> None:
    """Refuse a string that runs over the end of a section of calls into the next one: two quotes are missing."""
    between = _between_sections(call.shape)
    if between is not None and (found := between.search(text)) and found["open"] not in text[: found.start()]:
        message = f"a string of {call.name!r} runs into the next call: close each of them"
        raise Damage("ambiguous_call", message, start + found.start(), end=start + found.start() + 1)


@cache
def _between_sections(shape: Shape) -> re.Pattern[str] | None:
    """What ends the last call of a section and opens the next section, if that is not common in prose."""
    if shape.section is None or weak(shape.section.open):
        return None
    opens, closes = (edge(part).strip() for part in (shape.section.open, shape.section.close))
    return re.compile(rf"\)\s*{pattern(closes)}\s*(?P<open>{re.escape(opens)})") if closes else None


def _refuse_glued_call(call: CallReader, text: str, start: int) -> None:
    """Refuse two strings without anything between them, the second of which contains a call's end and another call.

    Python reads them as one string. It is more likely that a model wrote one quote twice and omitted a later one.
    """
    for quote in _INSIDE:
        if quote * 2 not in text:
            continue
        names = "|".join(map(re.escape, call.tools)) or r"(?!)"
        for glued in re.finditer(rf"(?<!{quote}){quote}{quote}(?!{quote})((?:[^{quote}\\]|\\.)*){quote}", text):
            if found := re.search(rf"\)\s*[,;]?\s*(?=(?:{names})\()", glued[1]):
                message = f"a string of {call.name!r} has a quote twice, and a call after it: write each quote once"
                end = start + glued.start(1) + found.end()
                raise Damage("ambiguous_call", message, start + glued.start(), end=end)


def _own(call: CallReader, name: str) -> str:
    """The tool's name without the name of the module in which Gemini models are shown their tools."""
    own = name.removeprefix(_MODULE)
    return own if own in call.tools else name


def _end_of_print(r: Reader) -> Wait:
    """The bracket that closes the print around a call."""
    yield from r.space()
    if r.buf.startswith(")", r.at):
        r.at += 1
        return
    raise Damage("invalid_json", "expected ')' after the call that is printed", r.offset, ended=r.at >= len(r.buf))


_MORE: Final = Delimiter(
    r"[ \t]{0,16}(?:,[ \t]{0,16})?(?P<name>[^\W\d]\w{0,64})(?:(?P<given>[ \t]{0,8}=(?=[^=]))|(?=[^\w( \t=]))",
    r"[ \t]{0,16}(?:,[ \t]{0,16})?(?:[^\W\d]\w{0,64}[ \t]{0,8}=?)?",
)
"""One more argument, or its name, after the bracket that closes a call, which is doubled or in the wrong place."""
_OFTEN: Final = 64  # characters after a call that are looked at whenever more of them arrive
_CUT_MORE = re.compile(r"[ \t]{0,16}(?:,[ \t]{0,16})?[^\W\d]\w{0,64}[ \t]{0,8}=\Z")


def _refuse_computed(r: Reader, call: CallReader, text: str) -> Wait:
    """Refuse a call that is part of something Python would have to compute: it might never run."""
    if call.blocked:
        message = f"{call.name!r} is called in a block, and only Python could determine whether it runs"
        raise Damage("invalid_arguments", f"{message}; write the call alone", r.mark)
    section = call.shape.section
    inline = section is not None and isinstance(section.open, str) and section.open.endswith("[")
    ahead = end_ahead(section) if section is not None else None
    if ahead is None or (yield from r.sees(ahead)) is None:  # it is asked first: what most calls end with
        yield from _refuse_early_end(r, call, text, inline=inline)
    if r.buf.startswith("]" if inline else "\n", r.at):  # as most calls end: nothing follows
        return
    more = yield from r.sees(_MORE)
    again = more is not None and (more["given"] is not None or _is_missing(call, more["name"]))
    if again or (r.ended and _CUT_MORE.match(r.buf, r.at)):
        message = f"expected the end of the call of {call.name!r} at its closing bracket, found an argument after it"
        raise Damage("invalid_arguments", message, r.offset, got=True)
    computed, cut_word = (_COMPUTED, _CUT_WORD) if inline else (_COMPUTED_LINE, _CUT_WORD_LINE)
    if (yield from r.sees(computed)) is None and not (r.ended and cut_word.match(r.buf, r.at)):
        return
    message = f"expected the end of the call of {call.name!r}; expressions that Python would compute are not run"
    raise Damage("invalid_arguments", message, r.offset, got=True)


def _refuse_early_end(r: Reader, call: CallReader, text: str, *, inline: bool) -> Wait:
    """Refuse a call that is closed again after more of a string."""
    quotes = "".join(quote for quote in _INSIDE if quote in text)
    size, found = 0, None if quotes else 0
    while found is None:
        if over_at_once(r.buf, r.at, call.listed, ended=r.ended):
            return
        rest = r.buf[r.at : r.at + REACH]
        whole = r.all_here or len(rest) == REACH
        if whole or len(rest) >= size:
            found = over_early_end(rest, call.listed, quotes, inline=inline, whole=whole)
            size = later(len(rest)) if len(rest) > _OFTEN else 0
        if found is None:
            yield
    if found:
        at, r.at = r.offset, r.at + found
        message = f"{call.name!r} is closed again after more of a string: write one quote at each end of a string"
        raise Damage("ambiguous_call", message, at, end=r.offset)


def _is_missing(call: CallReader, name: str) -> bool:
    """Whether this names, in a section of calls, a parameter that has not been set."""
    known = call.tool.parameters.get("properties", {}) if call.tool and call.shape.section is not None else {}
    return name in known and name not in call.arguments.by_name


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
                r.tell(len(r.buf), self.call.index, None)
                yield from self.wait(_OUTSIDE)
                continue
            c = found[0]
            if c in _PAIRS:
                if self.stack.pop() != _PAIRS[c]:
                    r.tell(found.start(), self.call.index, None)
                    raise Damage("invalid_json", "expected the brackets of the call to match", r.offset, got=True)
                if not self.stack:
                    r.tell(found.start(), self.call.index, None)
                    r.at = found.end()
                    return
            r.tell(found.end(), self.call.index, None)
            if c in "([{":
                self.stack.append(c)
                if len(self.stack) > r.limits.depth:
                    raise Damage("invalid_json", f"expected nesting of at most {r.limits.depth}", r.offset)
            elif c in "\"'":
                yield from self.string(c)

    def wait(self, search: Search | None) -> Wait:
        """Wait for more, once everything is consumed; text in which `search` finds nothing needs no decision."""
        r = self.r
        if r.ended:
            raise Damage(
                "truncated_call", f"the text ended inside the call of {self.call.name!r}", r.offset, ended=True
            )
        if search is not None:
            r.heat(search, None, self.call.index)
        yield

    def string(self, quote: str) -> Wait:
        """Consume from after the opening quote up to and including the closing one."""
        r = self.r
        if len(r.buf) - r.at < 2:
            yield from r.have(2)
        if triple := r.buf.startswith(quote * 2, r.at):  # an empty string does not count
            r.tell(r.at + 2, self.call.index, None)
        run, stop = _INSIDE[quote]
        while True:
            end = run(r.buf, r.at).end()  # type: ignore[union-attr]  # it matches the empty string
            if not triple and r.buf.startswith(quote, end):
                r.tell(end + 1, self.call.index, None)
                return
            r.tell(end, self.call.index, None)
            if r.at >= len(r.buf):
                yield from self.wait(stop)
                continue
            wanted = 2 if r.buf[r.at] == "\\" else 3
            if len(r.buf) - r.at < wanted and not (yield from r.have(wanted)):
                r.tell(len(r.buf), self.call.index, None)
                yield from self.wait(None)
            closes = r.buf.startswith(quote * wanted, r.at) and r.buf[r.at] == quote
            r.tell(r.at + (2 if r.buf[r.at] == "\\" else wanted if closes else 1), self.call.index, None)
            if closes:
                return


def _take(r: Reader, call: CallReader, text: str, start: int) -> None:
    """Read the arguments between the brackets."""
    reader = Literals(text, python=True)
    position = 0
    while reader.space():
        key = _KEY.match(text, reader.at)
        if key is None:
            order = list(call.tool.parameters.get("properties", {})) if call.tool else []
            if position >= len(order):
                raise Damage(
                    "invalid_arguments",
                    f"{call.name!r} is called with an argument that has no name; write name=value",
                    start + reader.at,
                )
            name = order[position]
            position += 1
        else:
            name = key["key"].strip("\"'")
            reader.at = key.end()
        try:
            call.arguments.set(r, name, _value(r, call, reader))
        except NotALiteral as e:
            raise Damage("invalid_arguments", f"the value of {name!r}: {e}", start + e.position) from e
        except RecursionError:
            raise Damage("invalid_arguments", f"the value of {name!r} is nested too deep", start) from None
    if reader.repairs:
        _note(r, call, reader, start)


def _note(r: Reader, call: CallReader, reader: Literals, start: int) -> None:
    """Record the repairs of values that were read differently from how they were written."""
    for repair in reader.repairs.keys() & {ARITHMETIC, LEADING_ZEROS}:
        if repair not in r.repairs:
            raise Damage("invalid_arguments", f"expected values, got what needs the repair {repair!r}", start)
        call.arguments.note(repair)


def _value(r: Reader, call: CallReader, reader: Literals) -> Any:
    """One argument and the comma after it; if it cannot be read, a string that contains quotes like its own."""
    at = reader.at
    try:
        value = reader.value()
        _comma(r, call, reader)
    except NotALiteral:
        if INNER_QUOTES not in r.repairs or not _quotes_inside(reader.text, at):
            raise
        reader.at = at
        reader.after = _end_of_argument(call)
        value = reader.value()
        _comma(r, call, reader)
        if _holds_call(call, reader.text[at : reader.at]):
            raise NotALiteral("expected a string without a call in it, since its quotes are unbalanced", at) from None
        reader.after = None
        call.arguments.note(INNER_QUOTES)
    return value


_NEXT_ARGUMENT = re.compile(r"[\"']\s*,\s*[^\W\d]\w*\s*=\s*[\"'\[{\d]").search


def _holds_call(call: CallReader, text: str) -> bool:
    """Whether a tool is called in a string whose quotes are unbalanced, or gets another argument there.

    It may actually be the next call; and if the string begins with the name of a parameter, its first quote is stray.
    """
    own = "|".join(map(re.escape, call.tool.parameters.get("properties", {}) if call.tool else ())) or "(?!)"
    if _NEXT_ARGUMENT(text) or re.search(rf"\A[\"']\s*(?:{own})\s*=|,\s*(?:{own})\s*=\s*[\"']", text):
        return True
    for name, tool in call.tools.items():
        keys = "|".join(map(re.escape, tool.parameters.get("properties", {}))) or "(?!)"  # its bracket may be missing
        if re.search(rf"\b{re.escape(name)}\s*(?:\(|(?:{keys})\s*=)", text):
            return True
    return False


_OF_EXPRESSION = re.compile(r"\s*(?:\Z|[^\w\s\\$#`]|(?:if|else|in|is|and|or|not|for)\b|[a-zA-Z]{1,2}[\"'])")


def _quotes_inside(text: str, at: int) -> bool:
    """Whether the string that starts here continues after its first quote: a word follows, not an operator.

    An expression that Python would compute from the string and the text after it is never read as the string's text.
    """
    first = Literals(text, at, python=True)
    if text[at : at + 1] not in ("'", '"'):
        return False
    try:
        if not first.one_string():
            return False  # the first quote is written twice, or what was between the two is elsewhere
    except NotALiteral:
        return False
    return _OF_EXPRESSION.match(text, first.at) is None


_BEFORE_QUOTE: Final = 128  # characters in which a name and `=` may be
_EXCHANGED: Final = re.compile(r"(?:,|[^\W\d]\w*\s*=\s*)[\"']\Z").search


def _comma(r: Reader, call: CallReader, reader: Literals) -> None:
    """The comma after an argument; it may be missing before the name of the next one.

    Not after a string that ends with one: the quote and the comma have changed places. Nor after one that ends with a
    name and `=`: its own quote is missing.
    """
    end = reader.at
    c = reader.space()
    if c == ",":
        reader.at += 1
        return
    if not c:
        return
    exchanged = _EXCHANGED(reader.text[max(end - _BEFORE_QUOTE, 0) : end]) is not None
    if exchanged or MISSING_COMMA not in r.repairs or not _KEY.match(reader.text, reader.at):
        raise reader.bad("',' or ')'")
    call.arguments.note(MISSING_COMMA)


def _end_of_argument(call: CallReader) -> re.Pattern[str]:
    """What follows a string that is an argument: the end of the call, or the next parameter's name."""
    known = call.tool.parameters.get("properties", {}) if call.tool else {}
    names = "|".join(map(re.escape, known)) or r"[^\W\d]\w*"
    return re.compile(rf"\s*(?:\Z|,\s*(?:{names})\s*=(?!=))")


# ---------------------------------------------------------------- written


def write_python_call(w: Writing, part: PythonCall) -> str:
    """The call with every argument named."""
    return f"{w.call.name}({', '.join(f'{k}={python_literal(v)}' for k, v in w.call.arguments.items())})"


def python_literal(value: Any) -> str:
    """A JSON value as Python writes it.

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
