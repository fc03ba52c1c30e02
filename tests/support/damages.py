"""Damage as models and servers do it to a text of calls: to whole tokens and tags, and to a small part to characters.

A template's token is dropped, doubled, swapped with its neighbor, moved, another family's, a look-alike of itself, or
stripped by the server; a stop string or a limit cuts the text; parts are in the wrong order; arguments are written as
another format writes them; a value or the prose mentions markup. Each damage marks what it touches. Knows no parser.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from damaged_texts import (
    CALLED,
    CONTENTS,
    PROSE,
    THOUGHT,
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
from agentkit.formats.format import CallBody
from agentkit.messages import ToolCall

Damage = Callable[[random.Random, Written], bool]
"""Damages a text in place; False where it has nothing of the kind."""

TOKENS: dict[str, Damage] = {}
CHARACTERS: dict[str, Damage] = {}


def _tokens(f: Damage) -> Damage:
    TOKENS[f.__name__] = f
    return f


def _characters(f: Damage) -> Damage:
    CHARACTERS[f.__name__] = f
    return f


def plan(seed: int, format: Format | None = None, *, characters: bool = False) -> Plan:
    """What text number `seed` is to be, with damage to its tokens, or to characters."""
    rng = random.Random(seed)
    declared = format or rng.choice(CATALOG)
    count = rng.choices((1, 2, 3), (4, 4, 2))[0]
    calls = tuple(_planned(rng) for _ in range(count))
    kinds = tuple(CHARACTERS if characters else TOKENS)
    names = rng.choices(kinds, k=rng.choices((0, 1, 2), (1, 12, 3))[0])
    shape = declared.shapes[0] if rng.random() < 0.7 else rng.choice(shapes(declared))
    thought = rng.choice(THOUGHT) if rng.random() < 0.2 else ""
    prose = tuple(rng.choice(PROSE) for _ in range(count + 1))
    return Plan(declared, shape, calls, prose, thought, rng.random() < 0.5, tuple(names), seed)


def _planned(rng: random.Random) -> Planned:
    quoting = rng.choice(("whole", "whole", "half", "other")) if rng.random() < 0.12 else ""
    return Planned(rng.choice(CALLED), tuple(rng.choice(CONTENTS) for _ in range(4)), quoting)


def damaged(plan: Plan) -> Written | None:
    """The text of a plan, with its damages; None where it cannot be written, or soundly says something else."""
    out = write(plan)
    if out is None:
        return None
    own, sound = {t.text for t in out.tokens if t.call != -1 and _is_long(t)}, _neighbors(out)
    for n, name in enumerate(plan.damages):
        if (TOKENS | CHARACTERS)[name](random.Random(plan.seed * 7 + n), out):
            out.done.append(name)
    out.near = {value for value, around in _neighbors(out).items() if sound.get(value) != around}
    return None if out.done and _joined(out, own) else out


def _neighbors(out: Written) -> dict[int, tuple[str, str]]:
    """What is directly before and after each value, but for white space."""
    seen = [t for t in out.tokens if t.text.strip()]
    around = zip(["", *(t.text for t in seen)], seen, [*(t.text for t in seen[1:]), ""], strict=False)
    return {t.value: (before, after) for before, t, after in around if t.value >= 0}


def _joined(out: Written, own: set[str]) -> bool:
    """Whether two values of a call whose opening is intact are one by now, as nothing of its markup is between them."""
    if not any(isinstance(part, CallBody) and part.raw for part in out.plan.shape.call):
        return False
    opened, last = False, -1
    for token in out.tokens:
        if token.value >= 0:
            if opened and last >= 0 and out.owner[last] != out.owner[token.value]:
                return True
            last = token.value
        elif token.text in own:
            opened, last = True, -1
    return False


# ---------------------------------------------------------------- what is damaged


def _is_long(t: Token) -> bool:
    """Whether this is a tag or a token, rather than a word, a quote or a bracket."""
    return t.edge and len(t.text) > 2


def _pick(rng: random.Random, out: Written, wanted: Callable[[Token], bool] = lambda _: True) -> int:
    """A piece of markup: a tag or a token, more often than a bracket or a quote; -1 where there is none."""
    found = [i for i, t in enumerate(out.tokens) if t.call != -1 and t.text and t.edge and wanted(t)]
    long = [i for i in found if _is_long(out.tokens[i])]
    if long and rng.random() < 0.8:
        return rng.choice(long)
    return rng.choice(found) if found else -1


def _pick_value(rng: random.Random, out: Written) -> int:
    found = [i for i, t in enumerate(out.tokens) if t.value >= 0 and len(t.text) > 7]
    return rng.choice(found) if found else -1


def _run(rng: random.Random, out: Written) -> range:
    """Two to six pieces next to each other, no value among them."""
    at = _pick(rng, out)
    end, size = at, rng.randrange(2, 7)
    while 0 <= end < len(out.tokens) and end - at < size and out.tokens[end].value < 0 and out.tokens[end].call != -1:
        end += 1
    return range(max(at, 0), max(end, 0))


@cache
def _own(format: Format) -> tuple[str, ...]:
    """The tokens and tags of a format's calls, of a tool that is not offered."""
    call = ToolCall("", NOTE.name, {"text": "zzz"})
    found = (t for shape in shapes(format) for t in tokens(whole(format, shape, call)))
    return tuple(dict.fromkeys(t.replace("note", "lookup") for t in found if _is_long(Token(t, 0)) and "zzz" not in t))


def _hides(out: Written, text: str) -> None:
    out.quotes = out.quotes or "`" in text or "think" in text.lower() or text in thinking(out.plan.format)


# ---------------------------------------------------------------- tokens


@_tokens
def dropped(rng: random.Random, out: Written) -> bool:
    """A token or a tag is not there."""
    return out.change(_pick(rng, out), "")


@_tokens
def dropped_run(rng: random.Random, out: Written) -> bool:
    """Several pieces of markup next to each other are not there."""
    run = _run(rng, out)
    return [out.change(i, "") for i in run] != []


@_tokens
def dropped_first(rng: random.Random, out: Written) -> bool:
    """What the first call begins with is not there: the prompt had it, or a server took it for the end of thinking."""
    return out.change(next((i for i, t in enumerate(out.tokens) if t.call != -1 and _is_long(t)), -1), "")


@_tokens
def doubled(rng: random.Random, out: Written) -> bool:
    """A token or a tag is written twice."""
    at = _pick(rng, out)
    return at >= 0 and out.insert(at, out.tokens[at].text, out.tokens[at].call)


@_tokens
def doubled_run(rng: random.Random, out: Written) -> bool:
    """Several pieces of markup next to each other are written twice."""
    run = [out.tokens[i] for i in _run(rng, out)]
    if run:
        out.hurts(*run)
        end = out.tokens.index(run[-1]) + 1
        out.tokens[end:end] = [Token(t.text, t.call) for t in run]
        out.inserted += [t.text for t in run]
    return bool(run)


@_tokens
def swapped(rng: random.Random, out: Written) -> bool:
    """Two pieces of a call's markup that follow each other are in the wrong order."""
    edges = [i for i, t in enumerate(out.tokens) if t.call != -1 and t.edge and t.text]
    pairs = [(i, j) for i, j in pairwise(edges) if out.tokens[i].call == out.tokens[j].call]
    if not pairs:
        return False
    a, b = (out.tokens[i] for i in rng.choice(pairs))
    out.hurts(a, b)
    a.text, b.text = b.text, a.text
    return True


@_tokens
def moved(rng: random.Random, out: Written) -> bool:
    """A token or a tag is a few pieces before or after its place."""
    at = _pick(rng, out, _is_long)
    if at < 0:
        return False
    to = rng.randrange(max(at - 8, 0), min(at + 9, len(out.tokens)))
    out.hurts(*(t for t in out.tokens[min(at, to) : max(at, to) + 1] if t.value < 0))
    out.hurts_calls(t.call for t in out.tokens[min(at, to) : max(at, to) + 1])
    out.inserted.append(out.tokens[at].text)
    out.tokens.insert(to, out.tokens.pop(at))
    return True


@_tokens
def foreign(rng: random.Random, out: Written) -> bool:
    """Another family's token or tag is in the place of one."""
    theirs = rng.choice(_own(rng.choice(CATALOG)) or ("<x>",))
    _hides(out, theirs)
    return out.change(_pick(rng, out, _is_long), theirs)


_WIDE = str.maketrans({"|": "\uff5c", "<": "\uff1c", ">": "\uff1e", "▁": "_"})
_NARROW = str.maketrans({"\uff5c": "|", "▁": "_"})
LOOKS: tuple[Callable[[str], str], ...] = (
    lambda t: t.replace("|", "｜"),
    lambda t: t.translate(_NARROW),
    lambda t: t.translate(_WIDE),
    lambda t: re.sub(r"(?<=[<|｜\[/])(?=\w)|(?<=\w)(?=[>|｜\]])", " ", t),
    str.lower,
    str.upper,
    lambda t: t.replace("_", " "),
    lambda t: t.replace("_", "-"),
    lambda t: t.replace("_", ""),
    lambda t: t.replace("_", "\\_"),
    lambda t: t.replace("<", "&lt;").replace(">", "&gt;"),
    lambda t: t.replace("|", "||"),
)


@_tokens
def look_alike(rng: random.Random, out: Written) -> bool:
    """A token in other characters that look like it: wide bars, with spaces, in another case, escaped."""
    looks = rng.choice(LOOKS)
    return out.change(_pick(rng, out, lambda t: _is_long(t) and looks(t.text) != t.text), looks)


@_tokens
def look_alikes(rng: random.Random, out: Written) -> bool:
    """Every token so."""
    looks = rng.choice(LOOKS)
    alike = [i for i, t in enumerate(out.tokens) if t.call != -1 and _is_long(t) and looks(t.text) != t.text]
    return [out.change(i, looks) for i in alike] != []


SPECIAL = re.compile(
    r"<[|｜][^<>]*>|</?[^<>\s/]*[|｜]>|\[/?[A-Z_]{3,}\]|<(?:start|end)_\w+>|<escape>|</?\w*tool_call\w*>"
)


@_tokens
def stripped(rng: random.Random, out: Written) -> bool:
    """Every special token is gone, as servers strip them."""
    special = [i for i, t in enumerate(out.tokens) if t.value < 0 and SPECIAL.fullmatch(t.text)]
    return [out.change(i, "") for i in special] != []


@_tokens
def stop_string(rng: random.Random, out: Written) -> bool:
    """The text ends before one of its last tokens, which was a stop string, or inside it."""
    last = [i for i, t in enumerate(out.tokens) if t.call != -1 and _is_long(t)][-3:]
    if not last:
        return False
    at = rng.choice(last)
    out.cut(at, rng.randrange(len(out.tokens[at].text)) if rng.random() < 0.3 else 0)
    return True


@_tokens
def token_limit(rng: random.Random, out: Written) -> bool:
    """The text ends after any token, or inside a value."""
    at = rng.randrange(len(out.tokens))
    out.cut(at, rng.randrange(1, max(len(out.tokens[at].text), 2)) if out.tokens[at].value >= 0 else 0)
    return True


@_tokens
def wrong_order(rng: random.Random, out: Written) -> bool:
    """What is before a call's arguments, they, and what is after them, in another order."""
    call = rng.randrange(len(out.calls))
    own = [i for i, t in enumerate(out.tokens) if t.call == call]
    body = [i for i in own if out.tokens[i].body]
    if not body or len(body) == len(own):
        return False
    pieces = [out.tokens[a:b] for a, b in pairwise((own[0], body[0], body[-1] + 1, own[-1] + 1))]
    pieces = [pieces[i] for i in rng.choice(((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)))]
    out.hurts_calls([call])
    out.tokens[own[0] : own[-1] + 1] = [t for piece in pieces for t in piece]
    return True


def _dumps(rng: random.Random, arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    how = (
        text,
        repr(dict(arguments)),
        text[:-1],
        text + "}",
        json.dumps(text),
        text[:-1] + ",}",
        json.dumps(arguments),
    )
    return rng.choice(how)


@_tokens
def other_body(rng: random.Random, out: Written) -> bool:
    """The arguments as JSON or Python, well or badly written."""
    call = rng.randrange(len(out.calls))
    return out.rewrite(call, _dumps(rng, out.calls[call].arguments))


@_tokens
def other_envelope(rng: random.Random, out: Written) -> bool:
    """Name and arguments in one JSON object under other keys, flat, nested, in a list, or in a string."""
    number = rng.randrange(len(out.calls))
    name, given = out.calls[number].name, dict(out.calls[number].arguments)
    one = {"name": name, rng.choice(("args", "input", "parameters", "params", "arguments", "kwargs")): given}
    bodies: tuple[Any, ...] = (
        one, [one], {"name": name, **given}, {"function": one}, {"type": "function", "function": one},
        {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}},
        {name: given}, {"tool_calls": [one]}, {"tool": name, "args": given}, {"arguments": given, "name": name},
    )  # fmt: skip
    return out.rewrite(number, json.dumps(rng.choice(bodies), ensure_ascii=False))


@_tokens
def decorated_name(rng: random.Random, out: Written) -> bool:
    """A tool's name with more around it, in quotes, or twice."""
    call = rng.randrange(len(out.calls))
    name = re.compile(rf"(?<![\w-]){out.calls[call].name.replace('_', '[_-]')}(?![\w-])")  # it may be in a tag
    found = [i for i, t in enumerate(out.tokens) if t.call == call and t.value < 0 and name.search(t.text)]
    if not found:
        return False
    how = rng.choice(("functions.{}", "{0}.{0}", "{0} {0}", '"{}"', "{}x", "functions_{}_2", "{}:0", "default_api.{}"))
    return out.change(rng.choice(found), lambda text: name.sub(lambda m: how.format(m[0]), text, count=1))


@_tokens
def mentioned(rng: random.Random, out: Written) -> bool:
    """Markup in prose: a token of the own format or another, alone or in a sentence; or a whole call that is meant."""
    format = out.plan.format if rng.random() < 0.8 else rng.choice(CATALOG)
    piece = rng.choice((*_own(format), whole(format, format.shapes[0], ToolCall("", PING.name, {}))))
    _hides(out, piece)
    at = rng.choice([i for i, t in enumerate(out.tokens) if t.call == -1])
    return out.insert(at + rng.randrange(2), rng.choice(("{}", "{} opens a call.\n", "Use {}.\n\n")).format(piece), -1)


@_tokens
def mentioned_in_value(rng: random.Random, out: Written) -> bool:
    """A value has a token of the own format or of another in it."""
    at = _pick_value(rng, out)
    piece = rng.choice(_own(out.plan.format if rng.random() < 0.8 else rng.choice(CATALOG)) or ("<x>",))
    _hides(out, piece)
    return at >= 0 and _into(rng, out, at, piece)


def _into(rng: random.Random, out: Written, at: int, piece: str) -> bool:
    text = out.tokens[at].text
    i = 4 + rng.randrange(len(text) - 7)
    return out.change(at, text[:i] + piece + text[i:], piece)


@_tokens
def layout(rng: random.Random, out: Written) -> bool:
    """White space of the markup is missing, more, or ends lines in another way."""
    new = rng.choice(("", " ", "\n", "\r\n", "\n\n", "\t"))
    found = [i for i, t in enumerate(out.tokens) if t.value < 0 and t.call != -1 and t.text.isspace()]
    return [out.change(i, new) for i in found if rng.random() < 0.6 and out.tokens[i].text != new] != []


# ---------------------------------------------------------------- characters

PAYLOADS = (
    "\x00", "\ud800", "\ufeff", "\r\n", "\n", '"', "'", "\\", "{", "}", "[", "]", "(", ")", ",", ":", "=", "<", ">",
    "/>", "</", "&lt;", "&#10;", "<![CDATA[", "]]>", "<!-- x -->", "<cwd>/tmp</cwd>", "<x/>", "</x>", "[" * 200,
    "{" * 200, '{"a":' * 150, "9" * 400, "0x" + "f" * 400, "1e999", "<|im_end|>", "</s>", "\u2028", "\x1b[31m",
    "and then ", "null", '"a" "b"', '"a" + "b"', "2*3", "None", '"""', "\\'", "\\d", "`", "```\n", "<think>",
    "</think>",
)  # fmt: skip


def _payload(rng: random.Random, out: Written) -> str:
    found = rng.choice(PAYLOADS if rng.random() < 0.6 else _own(out.plan.format) or PAYLOADS)
    _hides(out, found)
    out.quotes = out.quotes or found == "<![CDATA["
    return found


@_characters
def misspelt(rng: random.Random, out: Written) -> bool:
    """A character of the markup, or of a name in it, is another."""
    found = [i for i, t in enumerate(out.tokens) if t.call != -1 and t.value < 0 and t.text]
    at = rng.choice(found) if found else -1
    i, other = rng.random(), rng.choice("x\"'<>{}[](),:=/\\ \n\x00A")
    return out.change(at, lambda t: t[: int(i * len(t))] + other + t[int(i * len(t)) + 1 :])


@_characters
def halved(rng: random.Random, out: Written) -> bool:
    """Characters of a token are missing: those at its beginning, in the middle or at its end."""
    i, j = rng.random(), rng.random()

    def left(t: str) -> str:
        start = int(i * len(t))
        return t[:start] + t[start + 1 + int(j * (len(t) - start)) :]

    return out.change(_pick(rng, out, lambda t: len(t.text) > 1), left)


@_characters
def stray(rng: random.Random, out: Written) -> bool:
    """Something between two pieces of a call's markup."""
    found = [i for i, t in enumerate(out.tokens) if t.call != -1]
    at = rng.choice(found) if found else -1
    if at < 0:
        return False
    return out.insert(at, _payload(rng, out), out.tokens[at].call)


@_characters
def in_value(rng: random.Random, out: Written) -> bool:
    """Something in the middle of a value."""
    at = _pick_value(rng, out)
    return at >= 0 and _into(rng, out, at, _payload(rng, out))


@_characters
def in_prose(rng: random.Random, out: Written) -> bool:
    """Something before, between or after the calls."""
    at = rng.choice([i for i, t in enumerate(out.tokens) if t.call == -1])
    return out.insert(at + rng.randrange(2), _payload(rng, out), -1)


@_characters
def cut_off(rng: random.Random, out: Written) -> bool:
    """The text ends at any character."""
    at = rng.randrange(len(out.tokens))
    out.cut(at, rng.randrange(max(len(out.tokens[at].text), 1)))
    return True
