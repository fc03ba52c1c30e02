"""More damages: delimiters worn, foreign or written twice, and several pieces of markup damaged near each other.

The first are drawn like those of `damages`, as `fuzz` imports this; the others only if they are asked for.
"""

from __future__ import annotations

import random
import re

from damaged_texts import Token, Written, shapes, tokens, whole
from damages import NEAR, Damage, _damage, _insert, _is_markup, _pick

from agentkit.formats import CATALOG
from agentkit.messages import ToolCall


def _near(f: Damage) -> Damage:
    NEAR[f.__name__] = f
    return f


def _is_long(t: Token) -> bool:
    """Whether this is a tag or a token, not a word, a quote or a bracket."""
    return _is_markup(t) and re.search(r"<\W?\w|\w\W?>|\W{2}", t.text) is not None


def _worn(rng: random.Random, text: str) -> str:
    """What is left of a delimiter in which characters are missing at one place: the beginning, the end or between."""
    start = rng.randrange(len(text))
    return text[:start] + text[rng.randrange(start + 1, len(text) + 1) :]


def _wear(rng: random.Random, out: Written, at: int) -> None:
    """One of the markup's pieces is missing, worn or written twice."""
    token = out.tokens[at]
    out.hurts(token)
    how = rng.random()
    if how < 0.3:
        token.text = ""
    elif how < 0.45:
        _insert(out, at, token.text, token.call)
    else:
        token.text = _worn(rng, token.text)
        out.inserted.append(token.text)


def _beside(out: Written, at: int, reach: int) -> list[int]:
    """The markup up to so many pieces from here."""
    near = range(max(at - reach, 0), min(at + reach + 1, len(out.tokens)))
    return [i for i in near if i != at and out.tokens[i].text and _is_markup(out.tokens[i])]


@_damage
def worn(rng: random.Random, out: Written) -> bool:
    """A delimiter in which characters are missing in the middle."""
    at = _pick(rng, out, lambda t: _is_markup(t) and len(t.text) > 2)
    if at >= 0:
        token = out.tokens[at]
        out.hurts(token)
        token.text = _worn(rng, token.text)
        out.inserted.append(token.text)
    return at >= 0


@_near
def two_beside(rng: random.Random, out: Written) -> bool:
    """Two pieces of markup near each other are each missing, worn or written twice."""
    at = _pick(rng, out, _is_markup)
    others = _beside(out, at, 5) if at >= 0 else []
    if not others:
        return False
    first, last = sorted((at, rng.choice(others)))
    if _joins(out, first, last + 1):
        return False
    for i in (last, first):
        _wear(rng, out, i)
    return True


@_near
def moved(rng: random.Random, out: Written) -> bool:
    """A piece of markup stands a few pieces before or behind its place."""
    at = _pick(rng, out, _is_long)
    if at < 0:
        return False
    token = out.tokens[at]
    to = rng.randrange(max(at - 8, 0), min(at + 9, len(out.tokens)))
    passed = out.tokens[min(at, to) : max(at, to) + 1]
    touched = set(out.touched)
    for t in passed:
        out.hurts(t)
    out.touched = touched
    out.tokens.insert(to, out.tokens.pop(at))
    out.inserted += [token.text, *_markup(passed)]
    return True


@_near
def exchanged(rng: random.Random, out: Written) -> bool:
    """A piece of a call's markup stands in the next call, and one of that in this one."""
    own = _pick(rng, out, lambda t: _is_long(t) and t.call >= 0)
    if own < 0:
        return False
    next_to = {out.tokens[own].call - 1, out.tokens[own].call + 1} - {-1}
    other = _pick(rng, out, lambda t: _is_long(t) and t.call in next_to)
    if other < 0:
        return False
    a, b = out.tokens[own], out.tokens[other]
    out.hurts(a)
    out.hurts(b)
    a.text, b.text = b.text, a.text
    out.inserted += [a.text, b.text]
    return True


def _run(rng: random.Random, out: Written) -> tuple[int, int]:
    """Two to six pieces of one call's markup, keys and names that stand side by side."""
    at = _pick(rng, out, _is_markup)
    if at < 0:
        return -1, -1
    end = at
    size = rng.randrange(2, 7)
    while end < len(out.tokens) and end - at < size and out.tokens[end].value < 0 and out.tokens[end].call != -1:
        end += 1
    return at, end


@_near
def run_missing(rng: random.Random, out: Written) -> bool:
    """Several pieces of markup side by side are not there."""
    at, end = _run(rng, out)
    if at < 0 or _joins(out, at, end):
        return False
    for t in out.tokens[at:end]:
        out.hurts(t)
        out.rekeyed.add(t.call)
    del out.tokens[at:end]
    return True


def _joins(out: Written, at: int, end: int) -> bool:
    """Whether these pieces, but for white space, are all that is between two values."""
    before = next((t for t in reversed(out.tokens[:at]) if t.text.strip()), None)
    behind = next((t for t in out.tokens[end:] if t.text.strip()), None)
    return before is not None and behind is not None and before.value >= 0 and behind.value >= 0


@_damage
def run_doubled(rng: random.Random, out: Written) -> bool:
    """Several pieces of markup side by side are written twice."""
    at, end = _run(rng, out)
    if at < 0:
        return False
    run = out.tokens[at:end]
    for t in run:
        out.hurts(t)
        out.rekeyed.add(t.call)
    out.tokens[end:end] = [Token(t.text, t.call) for t in run]
    out.inserted.append("".join(t.text for t in run))
    out.inserted += [t.text for t in run]
    return True


@_damage
def foreign(rng: random.Random, out: Written) -> bool:
    """A delimiter as another family writes it."""
    at = _pick(rng, out, lambda t: _is_markup(t) and len(t.text) > 1)
    if at < 0:
        return False
    format = rng.choice(CATALOG)
    sound = tokens(whole(format, rng.choice(shapes(format)), ToolCall("", "note", {"text": "zzz"})))
    theirs = [t for t in sound if len(t) > 1 and not t.isspace() and not t.isalnum()]
    if not theirs:
        return False
    token = out.tokens[at]
    out.hurts(token)
    out.rekeyed.add(token.call)
    token.text = rng.choice(theirs)
    out.inserted.append(token.text)
    out.quotes = out.quotes or "`" in token.text
    return True


@_near
def parameter_moved(rng: random.Random, out: Written) -> bool:
    """A value with the markup around it stands elsewhere in its call: before its opening, or behind its end."""
    at = _pick(rng, out, lambda t: t.value >= 0)
    if at < 0:
        return False
    call = out.tokens[at].call
    start, end = at, at + 1
    while start > 0 and out.tokens[start - 1].call == call and out.tokens[start - 1].value < 0 and at - start < 12:
        start -= 1
        if rng.random() < 0.15:
            break
    while end < len(out.tokens) and out.tokens[end].call == call and out.tokens[end].value < 0 and end - at < 8:
        end += 1
        if rng.random() < 0.4:
            break
    run = out.tokens[start:end]
    rest = [i for i, t in enumerate(out.tokens) if t.call == call and not start <= i < end]
    if not rest:
        return False
    to = rng.choice((rest[0], rest[-1] + 1, rng.choice(rest)))
    to -= len(run) if to >= end else 0
    touched = set(out.touched)
    for t in out.tokens:
        if t.call == call:
            out.hurts(t)
    out.rekeyed.add(call)
    del out.tokens[start:end]
    out.tokens[to:to] = run
    out.touched = touched
    out.inserted += _markup([t for t in out.tokens if t.call == call])
    return True


def _markup(run: list[Token]) -> list[str]:
    """The pieces of markup between the values of a run, each in one, and together."""
    pieces = [""]
    for t in run:
        if t.value < 0:
            pieces[-1] += t.text
        else:
            pieces.append("")
    return [*filter(None, pieces), "".join(pieces)]
