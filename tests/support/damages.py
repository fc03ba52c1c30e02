"""Damage put into every kind of part of a text of calls: missing, doubled, swapped, stray, or as others write it.

Each damage marks what it touches, so that whoever judges knows what is no longer as it was meant. Knows no parser.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from damaged_texts import (
    CALLED,
    CONTENTS,
    MARKS,
    PROSE,
    THOUGHT,
    VALUE,
    Plan,
    Planned,
    Token,
    Written,
    shapes,
    thinking,
    tokens,
    whole,
    write,
)
from format_tools import NOTE, PING

from agentkit.formats import CATALOG, Format
from agentkit.messages import ToolCall

# ---------------------------------------------------------------- damage

Damage = Callable[[random.Random, Written], bool]
"""Damages a text in place; False where it has nothing of the kind."""

DAMAGES: dict[str, Damage] = {}
NEAR: dict[str, Damage] = {}
"""Those at several places near each other, in `near_damages`: not every case of them can be recognized."""


def _damage(f: Damage) -> Damage:
    DAMAGES[f.__name__.strip("_")] = f
    return f


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


def damaged(plan: Plan) -> Written | None:
    """The text of a plan, with its damages; None where it cannot be written."""
    out = write(plan)
    if out is None:
        return None
    for n, name in enumerate(plan.damages):
        if (DAMAGES | NEAR)[name](random.Random(plan.seed * 7 + n), out):
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
    touched = set(out.touched)
    for t in out.tokens[edges[k] : edges[k + 1] + 1]:
        out.hurts(t)
    out.touched = touched  # what stands between them is as it was
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
        out.inserted.append(out.tokens[at].text)
    return at >= 0


@_damage
def cut_off(rng: random.Random, out: Written) -> bool:
    """The text ends somewhere inside."""
    end = rng.randrange(max(len(out.text), 1))
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
    "\x00", "\ud800", "\udfff\ud800", "\ufeff", "\r\n", "\n", "\r", '"', "'", "\\", "{", "}", "[", "]", "(", ")", ",",
    ":", "=", "<", ">", "/>", "</", "&lt;", "&#10;", "<![CDATA[", "]]>", "<!-- x -->", "<cwd>/tmp</cwd>", "<x/>",
    "</x>",
    "[" * 200, "{" * 200, '{"a":' * 150, "(" * 200, "9" * 400, "9" * 5000, "0x" + "f" * 400, "-" + "7" * 320, "1e999",
    "<|im_end|>", "<|im_start|>", "</s>", "<|eot_id|>", "<｜end▁of▁sentence｜>", "<|python_tag|>", "[/INST]", "\u2028",
    "\x1b[31m",
    "and then ", "null", "true", '"a" "b"', '"a" + "b"', "2*3", "6*12+2", "10/4", "None", "NaN", '"""', "\\'", "\\d",
    "\\ud800",
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
    source = rng.choices(
        (PAYLOADS, _markup_of(out.plan.format), _markup_of(rng.choice(CATALOG)), QUOTING), (45, 30, 18, 7)
    )[0]
    found = rng.choice(source)
    hides = "`" in found or "think" in found.lower() or found == "<![CDATA[" or found in thinking(out.plan.format)
    out.quotes = out.quotes or hides
    return found


@_damage
def stray(rng: random.Random, out: Written) -> bool:
    """Something between two pieces of a call's markup."""
    at = _pick(rng, out, lambda t: t.call != -1)
    if at >= 0:
        token, touched, payload = out.tokens[at], set(out.touched), _payload(rng, out)
        out.hurts(token)
        joins = payload[-1].isalnum() and token.text.isdigit()  # the digits of both are one number
        before = out.tokens[at - 1] if at else token
        if before.value >= 0 and before.text.isdigit() and payload[0].isalnum():
            touched.add(before.value)
        if token.value >= 0 and (payload == "\\" or joins):  # it makes the value's first character another one
            token.text = payload + token.text
            out.inserted.append(payload)
        else:
            out.touched = touched
            _insert(out, at, payload, token.call)
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
            "0" * 30 + "7", "1_000", "-", "", "None", "True", "[]", "{}", f"[{quote}{old}{quote},]", "\ud83d",
            f"%s{quote} % {quote}",
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
    out.inserted += [new] if old in out.inserted else []
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
    known = {t.text: t.value for t in out.tokens if t.value in out.touched and VALUE.search(t.text)}
    value = re.compile("|".join([*map(re.escape, sorted(known, key=len, reverse=True)), VALUE.pattern]), VALUE.flags)
    for found in value.finditer(text):
        new += [Token(t, call, body=True) for t in tokens(text[at : found.start()])]
        number = known[found[0]] if found[0] in known else int(found[1] or found[2])
        new.append(Token(found[0], call, number, True))
        at = found.end()
    new += [Token(t, call, body=True) for t in tokens(text[at:])]
    out.tokens[body[0] : body[-1] + 1] = new
    out.hurts(Token("", call))
    out.touched.update(t.value for t in new if t.value >= 0)
    out.rebodied.add(call)
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
            {call.name: given}, {"tool_calls": [one]},
            {"name": call.name, "description": "x", "parameters": {"type": "object"}},
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
    written = re.compile(rf"(?<![\w-]){name.replace('_', '[_-]')}(?![\w-])")  # it may stand in a tag
    at = _pick(rng, out, lambda t: t.call == call and t.value < 0 and written.search(t.text) is not None)
    if at < 0:
        return False
    out.hurts(out.tokens[at])
    token = out.tokens[at]
    found = written.search(token.text)
    assert found is not None
    name = found[0]
    old = token.text
    new = rng.choice((f"{name}.{name}", f"functions.{name}", f"{name} {name}", f'"{name}"', name + "x", "no_tool"))
    token.text = token.text[: found.start()] + new + token.text[found.end() :]
    out.inserted += [token.text] if old in out.inserted else []
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
    out.hurt.add(token.call)  # its values are as they were
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
            token.text, found = re.sub(r"(?<!\r)\n", "\r\n", token.text), True
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
