"""Rules as GBNF, the grammars of llama.cpp; xgrammar reads the same syntax. Pure; depends on rules only.

Text that must not contain something is written as the states of an automaton, one rule per state, one character per
step: GBNF has no other negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, assert_never

from agentkit.grammar.rules import (
    SPACES,
    Alt,
    Chars,
    Exclusion,
    Grammar,
    JsonRule,
    Lit,
    Many,
    Prose,
    Raw,
    Ref,
    Repeat,
    Rule,
    Seq,
    Step,
    opened_tags,
    region,
    spread,
)

_ALPHABET: Final = "".join(map(chr, range(128)))
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}


def write(grammar: Grammar) -> str:
    """Write the whole grammar; its start is `root`."""
    w = _Writer(grammar.rules)
    body = w.prose(grammar.root) if isinstance(grammar.root, Prose) else w.rule(grammar.root)
    lines = [f"root ::= {body}", *(f"{name} ::= {text}" for name, text in w.lines.items())]
    return "\n".join(lines)


@dataclass(slots=True)
class _Writer:
    rules: Mapping[str, Rule]
    lines: dict[str, str] = field(default_factory=dict)
    made: dict[Rule, str] = field(default_factory=dict)

    def rule(self, rule: Rule, *, tight: bool = False) -> str:  # noqa: C901  # one case for each kind of rule
        """Write a rule; with `tight`, one of several items is parenthesised."""
        match rule:
            case Lit(text):
                return quote(text)
            case Chars():
                return char_class(rule.chars, rule.negated)
            case Seq(items):
                text = " ".join(self.rule(i, tight=isinstance(i, Alt)) for i in spread(items))
                return f"({text})" if tight else text
            case Alt(items):
                text = " | ".join(self.rule(i) for i in items)
                return f"({text})" if tight else text
            case Repeat(item, least, most):
                return self.rule(item, tight=True) + _times(least, most)
            case Many(item, separator):
                name = self.name_rule(item, "call")
                return f"{name} ({quote(separator)} {name})*" if separator else f"{name}+"
            case Raw(_, _, None):
                return self.name_rule(rule, "raw")
            case Raw():
                return _counted_text(rule)
            case Ref(name):
                if name not in self.lines:
                    self.lines[name] = ""
                    self.lines[name] = self.rule(self.rules[name])
                return name
            case JsonRule():
                raise TypeError("GBNF cannot contain a JSON schema: expected its rules")
            case _:
                assert_never(rule)

    def name_rule(self, rule: Rule, stem: str) -> str:
        if rule not in self.made:
            name = self.made[rule] = f"{stem}-{len(self.made)}"
            if isinstance(rule, Raw):
                self.states(name, automaton((rule.close,), rule.blocked), [""], end=False)
            else:
                self.lines[name] = ""
                self.lines[name] = self.rule(rule)
        return self.made[rule]

    def prose(self, prose: Prose) -> str:
        blocks = [self.rule(prose.after(t), tight=True) + (" text" if prose.many else "") for t in prose.triggers]
        for i, text in enumerate(blocks):
            self.lines[f"block-{i}"] = text
        self.states(
            "text", automaton(prose.triggers, prose.blocked), [f" block-{i}" for i in range(len(blocks))], end=True
        )
        # character by character, like the free text next to it: an engine that reads tokens would commit too early
        closing = f"({self.thoughts(opened_tags(prose.closing))}) " if prose.closing else ""
        return closing + (f"({self.thoughts(prose.regions)})* " if prose.regions else "") + "text"

    def thoughts(self, regions: Iterable[tuple[str, str]]) -> str:
        """Write a region of thinking, between any of these tags."""
        heads = ((" ".join(char_class(c, False) for c in start), close) for start, close in regions)
        return " | ".join(f"{head} {self.name_rule(region(close), 'thought')}" for head, close in heads)

    def states(self, name: str, states: list[State], after: list[str], *, end: bool) -> None:
        """Write an automaton as rules; `after` are the rules after its ends; with `end`, it may stop anywhere."""
        for i, state in enumerate(states):
            options = [] if not end else ['""']
            for chars, negated, to in state:
                follow = f" {_state(name, to)}" if to >= 0 else after[-1 - to]
                options.append(char_class(chars, negated) + follow)
            self.lines[_state(name, i)] = " | ".join(reversed(options))


def _counted_text(raw: Raw) -> str:
    """Write a raw value of bounded length, without characters that might end it, as an automaton cannot count."""
    unsafe = {raw.close[0], *(b.text[0] for b in raw.blocked if not b.start)}
    return f"{char_class(''.join(unsafe), True)}{{0,{raw.most}}} {quote(raw.close)}"


def _state(name: str, number: int) -> str:
    return f"{name}-s{number}" if number else name


def _times(least: int, most: int | None) -> str:
    if (least, most) in _SHORT:
        return _SHORT[least, most]
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


_SHORT: Final[Mapping[tuple[int, int | None], str]] = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}


def quote(text: str) -> str:
    """Write a literal, cut where a hexadecimal digit follows an escape: xgrammar would read it as part of that."""
    out = _CUT.sub('" "', "".join(_NAMED.get(c) or (_escape(c) if c < " " or c == "\x7f" else c) for c in text))
    return f'("{out}")' if '" "' in out else f'"{out}"'


_CUT: Final = re.compile(r"(?<=(?<!\\)\\x[0-9A-F]{2})(?=[0-9A-Fa-f])")


@lru_cache(maxsize=4096)  # a grammar has thousands of them, few of which differ
def char_class(chars: str, negated: bool) -> str:
    """Write a character class: runs as ranges, escapes last, since no hexadecimal digit may follow one."""
    plain, escapes, codes = "", "", sorted(set(map(ord, chars)))
    while codes:
        run = 1
        while run < len(codes) and codes[run] == codes[0] + run and _is_plain(codes[run]) == _is_plain(codes[0]):
            run += 1
        run = run if run > 2 else 1
        text = _in_class(codes[0]) + (f"-{_in_class(codes[run - 1])}" if run > 1 else "")
        plain, escapes = (plain + text, escapes) if _is_plain(codes[0]) else (plain, escapes + text)
        codes = codes[run:]
    return f"[{'^' if negated else ''}{plain}{escapes}]"


def _is_plain(code: int) -> bool:
    return code >= 256 or (code < 128 and (chr(code).isalnum() or chr(code) in " _<>=|:,"))


def _in_class(code: int) -> str:
    return chr(code) if _is_plain(code) else _escape(chr(code))


def _escape(c: str) -> str:
    return f"\\x{ord(c):02X}"


# ---------------------------------------------------------------- text without something

State = list[tuple[str, bool, int]]
"""Where each character class leads: to another state, or with a negative number to the end of that number."""

Position = frozenset[tuple[int, int]]


@cache
def automaton(ends: tuple[str, ...], blocked: tuple[Exclusion, ...]) -> list[State]:
    """Return the states of a text up to and including the first of `ends`, without `blocked`; 0 is the first."""
    return _Automaton(ends, blocked).run()


class _Automaton:
    def __init__(self, ends: Iterable[str], blocked: Iterable[Exclusion]) -> None:
        exact = [tuple(Step(frozenset(c)) for c in text) for text in ends]
        self.ends = len(exact)
        free = [*exact, *(p for b in blocked if not b.start for p in b.patterns)]
        self.patterns = [*free, *(p for b in blocked if b.start for p in b.patterns)]
        self.finals = frozenset((i, len(pattern)) for i, pattern in enumerate(self.patterns))
        self.again = self.closure({(i, 0) for i in range(len(free))})
        mentioned = {c for p in self.patterns for step in p for c in step.chars}
        # one character that is in no pattern, for all such characters
        self.other = next(c for c in map(chr, range(0x4E00, 0x9FFF)) if c not in mentioned)
        self.alphabet = [*dict.fromkeys(_ALPHABET + SPACES + "".join(sorted(mentioned))), self.other]
        self.alike = self.characters_alike()
        self.first_moves = {alike[0]: self.move(self.again, alike[0]) | self.again for alike in self.alike}

    def characters_alike(self) -> list[list[str]]:
        """Return the alphabet in groups: characters of the same steps lead to the same places."""
        sets = list({step.chars for p in self.patterns for step in p})
        groups: dict[tuple[bool, ...], list[str]] = {}
        for c in self.alphabet:
            groups.setdefault(tuple(c in one for one in sets), []).append(c)
        return list(groups.values())

    def closure(self, places: Iterable[tuple[int, int]]) -> Position:
        """These places, and those after steps that may be skipped."""
        out: set[tuple[int, int]] = set()
        for pattern, at in places:
            out.add((pattern, at))
            while at < len(self.patterns[pattern]) and self.patterns[pattern][at].star:
                at += 1
                out.add((pattern, at))
        return frozenset(out)

    def after(self, place: Position, c: str) -> Position:
        """Return the place after a character or any of its kind."""
        return self.move(place - self.again, c) | self.first_moves[c]

    def move(self, place: Position, c: str) -> Position:
        moved = set()
        for pattern, at in place:
            step = self.patterns[pattern][at]
            if c in step.chars:
                moved.add((pattern, at if step.star else at + 1))
        return self.closure(moved)

    def done(self, place: Position) -> int | None:
        """Which end is reached: 0 and up, or -1 for blocked text; None if none is."""
        reached = [p for p, _ in self.finals & place]
        if not reached:
            return None
        return min(reached) if min(reached) < self.ends else -1

    def run(self) -> list[State]:
        first = self.closure((i, 0) for i in range(len(self.patterns)))
        numbers = {first: 0}
        pending, out = [first], []
        while pending:
            place = pending.pop(0)
            groups: dict[int, set[str]] = {}
            for alike in self.alike:
                to = self.after(place, alike[0])
                done = self.done(to)
                if done == -1:
                    continue
                if done is None and to not in numbers:
                    numbers[to] = len(numbers)
                    pending.append(to)
                groups.setdefault(numbers[to] if done is None else -1 - done, set()).update(alike)
            out.append(self.state(groups))
        return out

    def state(self, groups: Mapping[int, set[str]]) -> State:
        """The group of all other characters is written as a negated class."""
        rest: State = []
        named: State = []
        for to, chars in groups.items():
            if self.other in chars:
                rest.append(("".join(c for c in self.alphabet if c not in chars), True, to))
            else:
                named.append(("".join(c for c in self.alphabet if c in chars), False, to))
        return [*rest, *named]
