"""Texts of calls in every shape of every format, as sound ones, cut into the pieces that damage is put into.

Each value that a text writes carries a number of its own (`b07x…x07e`, or 910007), so that whoever judges what was
read knows which call and which parameter every character of an argument was written for. Knows no parser.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from format_tools import ADD, ASK, CREATE_FILE, NOTE, PING, STR_REPLACE, attribute, element, spec

from agentkit.errors import FormatError
from agentkit.formats import CATALOG, Element, Format, ToolSpec
from agentkit.formats.bodies.kinds import KINDS
from agentkit.formats.format import CallBody, NestedTags, Shape, ToolElement
from agentkit.formats.kind import Writing, refuse_writing
from agentkit.messages import ToolCall

MIXED = spec(
    "mixed",
    Element("mixed-up", (element("text"), attribute("number"), element("items"), element("deep", "object"))),
    ("text", "number", "items", "object"),
    text="string",
    number="integer",
    items={"type": "array"},
    object={"type": "object"},
    flag="boolean",
)
FIND = spec("find", Element("find", (attribute("number"), element("text"))), text="string", number="integer")
"""A tool that runs without arguments: of what is lost on the way to it no validation tells."""
CALLED = (CREATE_FILE, STR_REPLACE, ASK, NOTE, PING, ADD, MIXED, FIND)

BEGIN, END = "b{:02d}x", "x{:02d}e"
MARKS = re.compile(r"b(\d\d)x|x(\d\d)e|9100(\d\d)")

CONTENTS = (
    "ls -la", "", " a \n b ", "if (a && b < c) { return x->y[\"k\"]; }", "def f(x):\n    return f'{x!r}' or \"\"",
    "1 < 2 > 0", "naïve 日本語 🙂", "a\r\nb\r\n", "tab\tend", "{\"a\": [1, 2]}", "[f(x=1)]", "it's",
    "\\n \\\" \\d \\u00e9",
    "C:\\new\\table", "&lt;b&gt; &amp; <br/>", "<p class=\"a\">x</p>", "a\n\n\nb", "}]}", "x = (1,\n     2)",
    "# no\n- list",
)  # fmt: skip
PROSE = ("", "Sure.\n", "I will look at a < b first.\n\n", "Jetzt: naïve 🙂 日本語.\r\n", "\n\n", "Two words\n")
THOUGHT = ("I should call it.", "First a, then b: f(x) < 2.", "")


@dataclass(frozen=True, slots=True)
class Planned:
    """A call to be written: its tool, and what its strings hold, by the number of the value."""

    tool: ToolSpec
    contents: tuple[str, ...] = ()
    quoting: str = ""  # a quoted call stands raw in the last of its strings


@dataclass(frozen=True, slots=True)
class Plan:
    """A text before it is written. The damages are drawn from `seed`, so that a smaller plan meets the same ones."""

    format: Format
    shape: Shape
    calls: tuple[Planned, ...]
    prose: tuple[str, ...]
    thought: str
    together: bool  # the calls stand in one section
    damages: tuple[str, ...]
    seed: int


@dataclass(slots=True)
class Token:
    """A piece of a text: of call number `call` (-1 in prose, -2 around several calls), and of value `value`, if any."""

    text: str
    call: int = -1
    value: int = -1
    body: bool = False

    @property
    def edge(self) -> bool:
        """Whether it is a delimiter, or a bracket: no word, no white space."""
        return self.value < 0 and _WORD(self.text) is None


_WORD = re.compile(r"[\w.\s-]*").fullmatch


@dataclass(slots=True)
class Written:
    """A text, and what it says: the calls as they were meant, and what was damaged of them.

    `values` and `owner` are by the number of a value; `inner` has that of the value in which one is quoted. `hurt`
    are calls, `touched` values, in which something is not as it was meant; `near` are values next to which something is
    not; `inserted` is what damage wrote. With `quotes`, damage may have quoted what follows, or made it reasoning.
    """

    plan: Plan
    tokens: list[Token]
    calls: list[ToolCall]
    values: dict[int, str]
    owner: dict[int, tuple[int, str]]
    inner: dict[int, int] = field(default_factory=dict)
    hurt: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)
    near: set[int] = field(default_factory=set)
    inserted: list[str] = field(default_factory=list)
    quotes: bool = False
    done: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text as a model would have written it."""
        return "".join(t.text for t in self.tokens)

    def hurts(self, *tokens: Token) -> None:
        """Something at these tokens is no longer as it was meant; at a code fence, nor is what fences after it hold."""
        for token in tokens:
            self.quotes = self.quotes or (token.value < 0 and "`" in token.text)
            self.hurts_calls([token.call])
            if token.value >= 0:
                self.touched.add(token.value)

    def hurts_calls(self, numbers: Iterable[int]) -> None:
        """These calls are no longer as they were meant; -2 for all of them."""
        for call in numbers:
            self.hurt.update(range(len(self.calls)) if call == -2 else [call] if call >= 0 else ())

    def change(self, at: int, new: str | Callable[[str], str], piece: str | None = None) -> bool:
        """Write something else for a token, or a `piece` into it; False if there is no token."""
        if at < 0:
            return False
        token = self.tokens[at]
        self.hurts(token)
        token.text = new if isinstance(new, str) else new(token.text)
        self.inserted += [text for text in [token.text if piece is None else piece] if text]
        return True

    def insert(self, at: int, text: str, call: int) -> bool:
        """Write a token more."""
        self.tokens.insert(at, Token(text, call))
        self.hurts_calls([call])
        self.inserted.append(text)
        return True

    def cut(self, at: int, size: int) -> None:
        """End the text in token number `at`, of which so many characters stay."""
        self.hurts(*(t for t in self.tokens[at:] if t.text))
        self.tokens[at].text = self.tokens[at].text[:size]
        del self.tokens[at + 1 :]

    def rewrite(self, call: int, text: str) -> bool:
        """Write another text for the body of a call; False if it has none."""
        body = [i for i, t in enumerate(self.tokens) if t.call == call and t.body]
        if body:
            self.tokens[body[0] : body[-1] + 1] = tokenised(text, call, True, self.inner)
            self.hurt.add(call)
        return bool(body)


# ---------------------------------------------------------------- writing


@cache
def shapes(format: Format) -> tuple[Shape, ...]:
    """The shapes of a format that can be written alone."""
    return tuple(s for s in format.shapes if all(KINDS[type(p)].write is not refuse_writing for p in s.call))


def write(plan: Plan) -> Written | None:
    """The undamaged text of a plan; None where its shape cannot carry it."""
    try:
        return _Writer(plan).written()
    except (FormatError, StopIteration):
        return None


class _Writer:
    """Writes one plan, token by token."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rng = random.Random(plan.seed + 1)
        self.out = Written(plan, [], [], {}, {})
        self.next = 0

    def written(self) -> Written:
        plan, out = self.plan, self.out
        if plan.thought and plan.format.thinking:
            start, end = plan.format.thinking[0]
            out.tokens.append(Token(f"{start}{plan.thought}{end}"))
        section = plan.shape.section
        together = plan.together and section is not None and not section.each
        for i, planned in enumerate(plan.calls):
            if i == 0 or not together:
                out.tokens.append(Token(plan.prose[i]))
            if section is not None and (i == 0 or not together):
                self.section(section.start, together, i)
            elif i:
                out.tokens.append(Token(plan.format.separator if together else "\n", -2))
            self.call(i, planned)
            if section is not None and (i == len(plan.calls) - 1 or not together):
                self.section(section.end, together, i)
        out.tokens.append(Token(plan.prose[-1]))
        return out

    def section(self, text: str, together: bool, call: int) -> None:
        self.out.tokens += [Token(t, -2 if together else call) for t in tokens(text)]

    def call(self, number: int, planned: Planned) -> None:
        call = ToolCall("", planned.tool.name, self.arguments(number, planned))
        self.out.calls.append(call)
        text = call_text(self.plan.format, self.plan.shape, call, number)
        head, body, foot = text if isinstance(text, tuple) else ("", text, "")
        if planned.quoting:
            body = self.quote(body, number, planned)
        for part, is_body in ((head, False), (body, True), (foot, False)):
            self.out.tokens += tokenised(part, number, is_body, self.out.inner)

    def arguments(self, number: int, planned: Planned) -> dict[str, Any]:
        given: dict[str, Any] = {}
        contents = iter((*planned.contents, *planned.contents))
        properties = planned.tool.parameters["properties"]
        for key in properties:
            match properties[key].get("type"):
                case "string":
                    given[key] = self.string(number, key, next(contents))
                case "integer" | "number":
                    given[key] = self.number(number, key)
                case "array":
                    given[key] = [self.string(number, key, next(contents)), self.number(number, key)]
                case "object":
                    given[key] = {"k": self.string(number, key, next(contents)), "n": None}
                case _:
                    given[key] = True
        return given

    def string(self, number: int, key: str, content: str) -> str:
        id = self.take(number, key)
        self.out.values[id] = f"{BEGIN.format(id)}{content}{END.format(id)}"
        return self.out.values[id]

    def number(self, number: int, key: str) -> int:
        id = self.take(number, key)
        self.out.values[id] = str(910_000 + id)
        return 910_000 + id

    def take(self, number: int, key: str) -> int:
        self.next += 1
        self.out.owner[self.next] = (number, key)
        return self.next

    def quote(self, body: str, number: int, planned: Planned) -> str:
        """Put a quoted call, raw as models write it, into the last string of a call whose values are raw text."""
        format = self.plan.format
        own = [i for i, (n, _) in self.out.owner.items() if n == number and not self.out.values[i].isdigit()]
        if not own or not format.textual:
            return body
        id = own[-1]
        value, (_, key) = self.out.values[id], self.out.owner[id]
        at = body.find(value)
        if at < 0 or body[:at].endswith(('="', "[", '"')) or not isinstance(self.out.calls[number].arguments[key], str):
            return body
        other = format if planned.quoting != "other" else self.rng.choice(CATALOG)
        if other is format and any(isinstance(part, NestedTags) for part in format.call):
            return body  # nothing could mark the token as text
        self.next += 1
        self.out.inner[self.next] = id
        word = f"{BEGIN.format(self.next)}quoted{END.format(self.next)}"
        quoted = whole(other, other.shapes[0], ToolCall("", NOTE.name, {"text": word}))
        if planned.quoting == "half":
            quoted = quoted[: quoted.find(word) + len(word)]
        new = f"{BEGIN.format(id)}{quoted}{END.format(id)}"
        self.out.values[id] = new
        self.out.calls[number].arguments[key] = new  # type: ignore[index]
        return body[:at] + new + body[at + len(value) :]


VALUE = re.compile(r"b(\d\d)x.*?x\1e|9100(\d\d)", re.DOTALL)
_TOKENS = re.compile(
    r"</?[^<>\s]+(?:\s[^<>]*)?>|<\|[^|<>]*\|?>|<｜[^<>]*>|\[/?[A-Z_]+\]|```\w*|&\w+;|[\w.-]+|\s+|.", re.DOTALL
)


def tokens(text: str) -> list[str]:
    """The delimiters, words and single characters of a text between values."""
    return _TOKENS.findall(text)


def tokenised(text: str, call: int, body: bool, inner: Mapping[int, int]) -> list[Token]:
    """A part of a call in tokens: each value is one, with what is quoted in it."""
    out: list[Token] = []
    at = 0
    for found in VALUE.finditer(text):
        id = int(found[1] or found[2])
        if id not in inner:
            out += [Token(t, call, body=body) for t in tokens(text[at : found.start()])]
            out.append(Token(found[0], call, id, body))
            at = found.end()
    return [*out, *(Token(t, call, body=body) for t in tokens(text[at:]))]


def call_text(format: Format, shape: Shape, call: ToolCall, number: int) -> tuple[str, str, str]:
    """A call without its section: what stands before its body, its body, and what stands behind it."""
    layout = next((p.layout for p in shape.call if isinstance(p, ToolElement)), "own")
    tool = next(t for t in CALLED if t.name == call.name).with_element(layout)
    how = Writing(replace(format, call=shape.call, section=shape.section), tool, call, number)
    before, body, after = "", "", ""
    for part in shape.call:
        text = KINDS[type(part)].write(how, part)
        if isinstance(part, CallBody):
            body += text
        elif body:
            after += text
        else:
            before += text
    return before, body, after


def whole(format: Format, shape: Shape, call: ToolCall) -> str:
    """A call with its section."""
    text = "".join(call_text(format, shape, call, 0))
    return text if shape.section is None else shape.section.start + text + shape.section.end


@cache
def thinking(format: Format) -> frozenset[str]:
    """What may begin or end reasoning, or an answer, where nothing is a call."""
    return frozenset(t for pair in (*format.thinking, *format.answer) for edge in pair for t in (edge, *tokens(edge)))
