"""Texts of calls in every shape of every format, and damage put into every kind of part of them.

Each value that a text writes carries a number of its own (`b07x…x07e`, or 910007), so that whoever judges what was
read knows which call and which parameter every character of an argument was written for. Knows no parser.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

from agentkit.errors import FormatError
from agentkit.formats import CATALOG, Element, Format, ToolSpec
from agentkit.formats.render import WRITERS, Writing, edge
from agentkit.formats.spec import CountedName, Name, NameTag, Section, Shape, Skip, Tag, ToolElement
from agentkit.messages import ToolCall
from format_tools import ADD, ASK, CREATE_FILE, NOTE, PING, STR_REPLACE, attribute, element, spec

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
CALLED = (CREATE_FILE, STR_REPLACE, ASK, NOTE, PING, ADD, MIXED)

BEGIN, END = "b{:02d}x", "x{:02d}e"
MARKS = re.compile(r"b(\d\d)x|x(\d\d)e|9100(\d\d)")

CONTENTS = (
    "ls -la", "", " a \n b ", "if (a && b < c) { return x->y[\"k\"]; }", "def f(x):\n    return f'{x!r}' or \"\"",
    "1 < 2 > 0", "naïve 日本語 🙂", "a\r\nb\r\n", "tab\tend", "{\"a\": [1, 2]}", "[f(x=1)]", "it's", "\\n \\\" \\d \\u00e9",
    "C:\\new\\table", "&lt;b&gt; &amp; <br/>", "<p class=\"a\">x</p>", "a\n\n\nb", "}]}", "x = (1,\n     2)", "# no\n- list",
)  # fmt: skip
PROSE = ("", "Sure.\n", "I will look at a < b first.\n\n", "Jetzt – naïve 🙂 日本語.\r\n", "\n\n", "Two words\n")
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
    """A piece of a text: of call number `call` (-1 in prose, -2 around a run of calls), and of value `value`, if any."""

    text: str
    call: int = -1
    value: int = -1
    body: bool = False

    @property
    def edge(self) -> bool:
        """Whether it is a delimiter of some length, or a bracket: no word, no white space."""
        return self.value < 0 and not self.text.isspace() and not self.text.isalnum()


@dataclass(slots=True)
class Written:
    """A text, and what it says: the calls as they were meant, and what was damaged of them."""

    plan: Plan
    tokens: list[Token]
    calls: list[ToolCall]
    values: dict[int, str]
    owner: dict[int, tuple[int, str]]
    inner: dict[int, int] = field(default_factory=dict)
    hurt: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)
    inserted: list[str] = field(default_factory=list)
    rekeyed: set[int] = field(default_factory=set)
    quotes: bool = False
    done: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text as a model would have written it."""
        return "".join(t.text for t in self.tokens)

    def hurts(self, token: Token) -> None:
        """Something at this token is no longer as it was meant."""
        if token.call == -2:
            self.hurt.update(range(len(self.calls)))
        elif token.call >= 0:
            self.hurt.add(token.call)
        if token.value >= 0:
            self.touched.add(token.value)


# ---------------------------------------------------------------- writing


@cache
def shapes(format: Format) -> tuple[Shape, ...]:
    """The shapes of a format that can be written alone."""
    return tuple(s for s in format.shapes if all(type(p) in WRITERS for p in s.call))


def plan(seed: int, format: Format | None = None, damages: Sequence[str] | None = None) -> Plan:
    """What text number `seed` is to be."""
    rng = random.Random(seed)
    declared = format or rng.choice(CATALOG)
    count = rng.choices((1, 2, 3), (4, 4, 2))[0]
    calls = tuple(_planned(rng, declared) for _ in range(count))
    names = damages if damages is not None else rng.choices(tuple(DAMAGES), k=rng.choices((0, 1, 2), (1, 12, 3))[0])
    shape = declared.shapes[0] if rng.random() < 0.7 else rng.choice(shapes(declared))
    thought = rng.choice(THOUGHT) if rng.random() < 0.2 else ""
    prose = tuple(rng.choice(PROSE) for _ in range(count + 1))
    return Plan(declared, shape, calls, prose, thought, rng.random() < 0.5, tuple(names), seed)


def _planned(rng: random.Random, format: Format) -> Planned:
    tool = rng.choice(CALLED)
    quoting = ""
    if rng.random() < 0.12:
        quoting = rng.choice(("whole", "whole", "half", "other"))
    return Planned(tool, tuple(rng.choice(CONTENTS) for _ in range(4)), quoting)


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
                self.section(_open(section), together, i)
            elif i:
                out.tokens.append(Token(plan.format.separator if together else "\n", -2))
            self.call(i, planned)
            if section is not None and (i == len(plan.calls) - 1 or not together):
                self.section(_close(section), together, i)
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
            self.tokenise(part, number, is_body)

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

    def tokenise(self, text: str, number: int, body: bool) -> None:
        at = 0
        for found in _VALUE.finditer(text):
            id = int(found[1] or found[2])
            if id in self.out.inner:
                continue
            self.out.tokens += [Token(t, number, body=body) for t in tokens(text[at : found.start()])]
            self.out.tokens.append(Token(found[0], number, id, body))
            at = found.end()
        self.out.tokens += [Token(t, number, body=body) for t in tokens(text[at:])]


_VALUE = re.compile(r"b(\d\d)x.*?x\1e|9100(\d\d)", re.DOTALL)
_TOKENS = re.compile(
    r"</?[^<>\s]+(?:\s[^<>]*)?>|<\|[^|<>]*\|?>|<｜[^<>]*>|\[/?[A-Z_]+\]|```\w*|[\w.-]+|\s+|.", re.DOTALL
)


def tokens(text: str) -> list[str]:
    """The delimiters, words and single characters of a text between values."""
    return _TOKENS.findall(text)


def _open(section: Section) -> str:
    return f"{edge(section.open)}\n" if isinstance(section.open, Tag) else section.open


def _close(section: Section) -> str:
    return f"\n{edge(section.close)}" if isinstance(section.close, Tag) else section.close


def call_text(format: Format, shape: Shape, call: ToolCall, number: int) -> tuple[str, str, str]:
    """A call without its section: what stands before its body, its body, and what stands behind it."""
    layout = next((p.layout for p in shape.call if isinstance(p, ToolElement)), "own")
    tool = next(t for t in CALLED if t.name == call.name).with_element(layout)
    how = Writing(replace(format, call=shape.call, section=shape.section), tool, call, number)
    before, body, after = "", "", ""
    for part in shape.call:
        text = WRITERS[type(part)](how, part)
        if not isinstance(part, str | Name | CountedName | NameTag | Tag | Skip):
            body += text
        elif body:
            after += text
        else:
            before += text
    return before, body, after


def whole(format: Format, shape: Shape, call: ToolCall) -> str:
    """A call with its section."""
    text = "".join(call_text(format, shape, call, 0))
    return text if shape.section is None else _open(shape.section) + text + _close(shape.section)


# ---------------------------------------------------------------- damage

Damage = Callable[[random.Random, Written], bool]
"""Damages a text in place; False where it has nothing of the kind."""

DAMAGES: dict[str, Damage] = {}


def _damage(f: Damage) -> Damage:
    DAMAGES[f.__name__.strip("_")] = f
    return f


def damaged(plan: Plan) -> Written | None:
    """The text of a plan, with its damages; None where it cannot be written."""
    out = write(plan)
    if out is None:
        return None
    for n, name in enumerate(plan.damages):
        if DAMAGES[name](random.Random(plan.seed * 7 + n), out):
            out.done.append(name)
    return out


def _pick(rng: random.Random, out: Written, wanted: Callable[[Token], bool]) -> int:
    found = [i for i, t in enumerate(out.tokens) if t.text and wanted(t)]
    return rng.choice(found) if found else -1


def _insert(out: Written, at: int, text: str, call: int = -1, value: int = -1) -> None:
    out.tokens.insert(at, Token(text, call, value))
    out.inserted.append(text)


def _is_markup(t: Token) -> bool:
    return t.call != -1 and t.edge


def _is_closer(t: Token) -> bool:
    return _is_markup(t) and (t.text in "}])\"'" or t.text[:2] == "</" or "end" in t.text or "close" in t.text)


@_damage
def missing(rng: random.Random, out: Written) -> bool:
    """A delimiter of any level, or a bracket, comma, colon or quote, is not there."""
    at = _pick(rng, out, _is_markup)
    if at >= 0:
        out.hurts(out.tokens[at])
        del out.tokens[at]
    return at >= 0


@_damage
def missing_closer(rng: random.Random, out: Written) -> bool:
    at = _pick(rng, out, _is_closer)
    if at >= 0:
        out.hurts(out.tokens[at])
        del out.tokens[at]
    return at >= 0


@_damage
def doubled(rng: random.Random, out: Written) -> bool:
    at = _pick(rng, out, _is_markup)
    if at >= 0:
        token = out.tokens[at]
        out.hurts(token)
        _insert(out, at, token.text, token.call)
    return at >= 0


@_damage
def doubled_closer(rng: random.Random, out: Written) -> bool:
    at = _pick(rng, out, _is_closer)
    if at >= 0:
        token = out.tokens[at]
        out.hurts(token)
        _insert(out, at + 1, token.text, token.call)
    return at >= 0


@_damage
def swapped(rng: random.Random, out: Written) -> bool:
    """Two neighbouring delimiters in the wrong order."""
    edges = [i for i, t in enumerate(out.tokens) if _is_markup(t)]
    pairs = [k for k, (i, j) in enumerate(pairwise(edges)) if out.tokens[i].call == out.tokens[j].call]
    if not pairs:
        return False
    k = rng.choice(pairs)
    a, b = out.tokens[edges[k]], out.tokens[edges[k + 1]]
    for t in out.tokens[edges[k] : edges[k + 1] + 1]:
        out.hurts(t)
        if t.value >= 0:
            out.touched.discard(t.value)
    a.text, b.text = b.text, a.text
    out.inserted += [a.text, b.text, a.text + b.text]
    return True


@_damage
def halved(rng: random.Random, out: Written) -> bool:
    """A delimiter of which only a part is written."""
    at = _pick(rng, out, lambda t: _is_markup(t) and len(t.text) > 1)
    if at >= 0:
        token = out.tokens[at]
        out.hurts(token)
        cut = rng.randrange(1, len(token.text))
        token.text = token.text[:cut] if rng.random() < 0.5 else token.text[cut:]
        out.inserted.append(token.text)
    return at >= 0


@_damage
def misspelt(rng: random.Random, out: Written) -> bool:
    """A character of the markup is another."""
    at = _pick(rng, out, lambda t: t.call != -1 and t.value < 0)
    if at < 0:
        return False
    token = out.tokens[at]
    out.hurts(token)
    out.rekeyed.add(token.call)
    i = rng.randrange(len(token.text))
    token.text = token.text[:i] + rng.choice("x\"'<>{}[](),:=/\\ \n\x00A") + token.text[i + 1 :]
    out.inserted.append(token.text)
    return True


@_damage
def other_case(rng: random.Random, out: Written) -> bool:
    at = _pick(rng, out, lambda t: t.call != -1 and t.value < 0 and t.text != t.text.swapcase())
    if at >= 0:
        out.hurts(out.tokens[at])
        out.rekeyed.add(out.tokens[at].call)
        out.tokens[at].text = out.tokens[at].text.swapcase()
    return at >= 0


@_damage
def cut_off(rng: random.Random, out: Written) -> bool:
    """The text ends somewhere inside."""
    text = out.text
    end = rng.randrange(len(text))
    kept: list[Token] = []
    for token in out.tokens:
        if end >= len(token.text):
            kept.append(token)
        else:
            out.hurts(token)
            kept.append(replace(token, text=token.text[:end]))
        end = max(end - len(token.text), 0)
    out.tokens = kept
    return True


PAYLOADS = (
    "\x00", "\ud800", "\udfff\ud800", "\ufeff", "\r\n", "\n", "\r", '"', "'", "\\", "{", "}", "[", "]", "(", ")", ",", ":", "=",
    "<", ">", "/>", "</", "&lt;", "&#10;", "<![CDATA[", "]]>", "<!-- x -->", "<cwd>/tmp</cwd>", "<x/>", "</x>",
    "[" * 200, "{" * 200, '{"a":' * 150, "(" * 200, "9" * 400, "9" * 5000, "0x" + "f" * 400, "-" + "7" * 320, "1e999",
    "<|im_end|>", "<|im_start|>", "</s>", "<|eot_id|>", "<｜end▁of▁sentence｜>", "<|python_tag|>", "[INST]", "\u2028", "\x1b[31m",
    "and then ", "null", "true", '"a" "b"', '"a" + "b"', "2*3", "6*12+2", "10/4", "None", "NaN", '"""', "\\'", "\\d", "\\ud800",
)  # fmt: skip
QUOTING = ("`", "```\n", "<think>", "</think>", "<thinking>")


@cache
def _markup_of(format: Format) -> tuple[str, ...]:
    call = ToolCall("", PING.name, {})
    note = ToolCall("", NOTE.name, {"text": "zzz"})
    found = dict.fromkeys(
        t for shape in shapes(format) for t in tokens(whole(format, shape, note)) if not t.isalnum() and not t.isspace()
    )
    return (*found, whole(format, format.shapes[0], call))


def _payload(rng: random.Random, out: Written) -> str:
    source = rng.choices((PAYLOADS, _markup_of(out.plan.format), _markup_of(rng.choice(CATALOG)), QUOTING), (45, 30, 18, 7))[0]
    found = rng.choice(source)
    out.quotes = out.quotes or "`" in found or "think" in found.lower() or found in _thinking(out.plan.format)
    return found


@cache
def _thinking(format: Format) -> frozenset[str]:
    """What may begin or end reasoning, or an answer, where nothing is a call."""
    return frozenset(t for pair in (*format.thinking, *format.answer) for edge in pair for t in (edge, *tokens(edge)))


@_damage
def stray(rng: random.Random, out: Written) -> bool:
    """Something between two pieces of a call's markup."""
    at = _pick(rng, out, lambda t: t.call != -1)
    if at >= 0:
        token = out.tokens[at]
        out.hurts(token)
        out.touched.discard(token.value)
        _insert(out, at, _payload(rng, out), token.call)
    return at >= 0


@_damage
def in_value(rng: random.Random, out: Written) -> bool:
    """Something in the middle of a value."""
    at = _pick(rng, out, lambda t: t.value >= 0)
    if at < 0 or not 6 <= len(out.tokens[at].text) != 7:
        return False
    token, payload = out.tokens[at], _payload(rng, out)
    out.hurts(token)
    i = 3 if token.text.isdigit() else 4 + rng.randrange(max(len(token.text) - 7, 1))
    token.text = token.text[:i] + payload + token.text[i:]
    out.inserted.append(payload)
    return True


@_damage
def in_prose(rng: random.Random, out: Written) -> bool:
    """Something before, between or behind the calls."""
    places = [i for i, t in enumerate(out.tokens) if t.call == -1]
    _insert(out, rng.choice(places) + rng.randrange(2), _payload(rng, out))
    return True


@_damage
def value_replaced(rng: random.Random, out: Written) -> bool:
    """A value as another language, or nobody, writes it: an expression, another type, two strings side by side."""
    at = _pick(rng, out, lambda t: t.value >= 0)
    if at < 0:
        return False
    token = out.tokens[at]
    out.hurts(token)
    old = token.text
    quote = out.tokens[at - 1].text if at and out.tokens[at - 1].text in "\"'" else '"'
    token.text = rng.choice(
        (
            f"{old[:4]}{quote} {quote}{old[4:]}", f"{old[:4]}{quote} + {quote}{old[4:]}", f"{quote}{old}{quote}",
            f"{old}{quote}{quote}", "2*3", "6*12+2", "10-5", "10/4", "9" * 400, "9" * 5000, "0x" + "f" * 300,
            "0" * 30 + "7", "1_000", "-", "", "None", "True", "[]", "{}", f"[{quote}{old}{quote},]", "\ud83d", "%s" + quote + " % " + quote,
        )
    )  # fmt: skip
    return True


@_damage
def other_quotes(rng: random.Random, out: Written) -> bool:
    """Every double quote around keys and values of one call becomes a single one, or the other way round."""
    at = _pick(rng, out, lambda t: t.call >= 0 and t.text in ('"', "'"))
    if at < 0:
        return False
    old, call = out.tokens[at].text, out.tokens[at].call
    new = "'" if old == '"' else '"'
    for token in out.tokens:
        if token.call == call and token.text == old:
            token.text = new
    out.hurts(out.tokens[at])
    out.touched.update(t.value for t in out.tokens if t.call == call and t.value >= 0)
    return True


@_damage
def trailing_comma(rng: random.Random, out: Written) -> bool:
    at = _pick(rng, out, lambda t: t.call >= 0 and t.text in ("}", "]", ")"))
    if at >= 0:
        out.hurts(out.tokens[at])
        _insert(out, at, ",", out.tokens[at].call)
    return at >= 0


def _replace_body(out: Written, call: int, text: str) -> bool:
    body = [i for i, t in enumerate(out.tokens) if t.call == call and t.body]
    if not body:
        return False
    new: list[Token] = []
    at = 0
    for found in _VALUE.finditer(text):
        new += [Token(t, call, body=True) for t in tokens(text[at : found.start()])]
        new.append(Token(found[0], call, int(found[1] or found[2]), True))
        at = found.end()
    new += [Token(t, call, body=True) for t in tokens(text[at:])]
    out.tokens[body[0] : body[-1] + 1] = new
    out.hurts(Token("", call))
    out.touched.update(t.value for t in new if t.value >= 0)
    out.rekeyed.add(call)
    return True


def _json(rng: random.Random, arguments: Mapping[str, Any]) -> str:
    """Arguments as JSON, well or badly written."""
    text = json.dumps(arguments, ensure_ascii=False)
    how = rng.randrange(8)
    return (
        text, text[:-1] + ",}", repr(dict(arguments)), text[:-1], text + "}", text.replace("\\n", "\n"),
        json.dumps(text), text.replace(": ", " ", 1),
    )[how]  # fmt: skip


@_damage
def json_for_a_body(rng: random.Random, out: Written) -> bool:
    """JSON, itself damaged, where parameters should stand; or where JSON should stand."""
    call = rng.randrange(len(out.calls))
    return _replace_body(out, call, _json(rng, out.calls[call].arguments))


@_damage
def other_envelope(rng: random.Random, out: Written) -> bool:
    """Name and arguments in one JSON object under other keys, flat, nested, in a list, or doubly."""
    number = rng.randrange(len(out.calls))
    call = out.calls[number]
    given = dict(call.arguments)
    key = rng.choice(("args", "input", "parameters", "params", "arguments", "kwargs"))
    one = {"name": call.name, key: given}
    body: Any = rng.choice(
        (
            one, one, {"name": call.name, **given}, [one], {"function": one}, {"type": "function", "function": one},
            {"id": "call_1", "type": "function", "function": {"name": call.name, "arguments": json.dumps(given)}},
            {call.name: given}, {"tool_calls": [one]}, {"name": call.name, "description": "x", "parameters": {"type": "object"}},
        )
    )  # fmt: skip
    return _replace_body(out, number, json.dumps(body, ensure_ascii=False))


@_damage
def list_in_one(rng: random.Random, out: Written) -> bool:
    """The body twice in one call: as a list, or side by side."""
    call = rng.randrange(len(out.calls))
    text = "".join(t.text for t in out.tokens if t.call == call and t.body)
    return _replace_body(
        out, call, rng.choice((f"[{text}, {text}]", f"{text}, {text}", f"{text}\n{text}", f"[{text}]"))
    )


@_damage
def doubled_name(rng: random.Random, out: Written) -> bool:
    """`name.name`, `functions.name`, a name in two words, quotes around it."""
    call = rng.randrange(len(out.calls))
    name = out.calls[call].name
    at = _pick(rng, out, lambda t: t.call == call and t.text == name)
    if at < 0:
        return False
    out.hurts(out.tokens[at])
    token = out.tokens[at]
    token.text = rng.choice(
        (f"{name}.{name}", f"functions.{name}", f"{name} {name}", f'"{name}"', name + "x", "no_tool")
    )
    return True


@_damage
def unknown_child(rng: random.Random, out: Written) -> bool:
    """A parameter that the tool does not declare, written like the others."""
    values = [i for i, t in enumerate(out.tokens) if t.value >= 0]
    if not values:
        return False
    token = out.tokens[rng.choice(values)]
    key = out.owner[token.value][1]
    run = [i for i, t in enumerate(out.tokens) if t.call == token.call and t.body]
    text = "".join(out.tokens[i].text for i in run)
    out.hurts(token)
    out.touched.discard(token.value)
    out.rekeyed.add(token.call)
    piece = (
        text.replace(token.text, "zzz").replace(key, "unknown") if text.count(token.text) == 1 else "<cwd>/tmp</cwd>"
    )
    piece = MARKS.sub("z", piece)
    _insert(out, rng.choice((run[0], run[-1] + 1)), rng.choice((piece, "<cwd>/tmp</cwd>")), token.call)
    return True


@_damage
def line_ends(rng: random.Random, out: Written) -> bool:
    """CR LF for every line end of the markup."""
    found = False
    for token in out.tokens:
        if token.value < 0 and token.call != -1 and "\n" in token.text:
            token.text, found = token.text.replace("\n", "\r\n"), True
            out.hurts(token)
    return found


@_damage
def no_space(rng: random.Random, out: Written) -> bool:
    """The markup without its line breaks."""
    found = False
    for token in out.tokens:
        if token.value < 0 and token.call != -1 and token.text.isspace() and rng.random() < 0.6:
            token.text, found = "", True
            out.hurts(token)
    return found
