"""Rules as the Lark dialect of llguidance. Pure; knows rules only, and imports no engine.

What is regular becomes one terminal, raw values and free text become lazy ones that end where they must.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

from agentkit.grammar.rules import (
    Alt,
    Blocked,
    Chars,
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
    seq,
    spread,
)

_ANY: Final = "(?s:.*)"
# one optional space, as our rules write JSON: with any white space, a weak model may write it for ever
_SPACING: Final = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
_PLAIN: Final = " _<>=\"'!,;:%@`"


def write(grammar: Grammar) -> str:
    """The whole grammar; its start is `start`."""
    w = _Writer(grammar.rules)
    body = w.prose(grammar.root) if isinstance(grammar.root, Prose) else w.rule(grammar.root)
    return "\n".join(["%llguidance {}", f"start: {body}", *w.lines])


@dataclass(slots=True)
class _Writer:
    rules: Mapping[str, Rule]
    lines: list[str] = field(default_factory=list)
    made: dict[object, str] = field(default_factory=dict)

    def rule(self, rule: Rule, *, tight: bool = False) -> str:  # noqa: C901  # one case for each kind of rule
        """A rule; `tight` puts what holds more than one thing in brackets."""
        if not isinstance(rule, Lit) and (found := regex(rule)) is not None:
            return self.terminal(found)
        match rule:
            case Lit(text):
                return json.dumps(text, ensure_ascii=False)
            case Seq(items):
                text = " ".join(self.rule(i, tight=True) for i in _joined(spread(items)))
                return f"({text})" if tight else text
            case Alt(items):
                text = " | ".join(self.rule(i) for i in items)
                return f"({text})" if tight else text
            case Repeat(item, least, most):
                return self.rule(item, tight=True) + _times(least, most)
            case Many(item, separator):
                name = self.named(item)
                return f"{name} ({self.rule(Lit(separator))} {name})*" if separator else f"{name}+"
            case Raw():
                return self.raw(rule)
            case JsonRule(schema):
                return f"%json {json.dumps({**schema, 'x-guidance': _SPACING}, ensure_ascii=False)}"
            case Ref(name):
                return self.reference(name)
            case Chars():
                raise TypeError("a character is always regular")
            case _:
                assert_never(rule)

    def reference(self, name: str) -> str:
        label = name.replace("-", "_")
        if label not in self.made:
            self.made[label] = label
            self.lines.append(f"{label}: {self.rule(self.rules[name])}")
        return label

    def named(self, rule: Rule) -> str:
        if rule not in self.made:
            name = self.made[rule] = f"r{len(self.made)}"
            self.lines.append(f"{name}: {self.rule(rule)}")
        return self.made[rule]

    def terminal(self, pattern: str) -> str:
        """A regular expression under a name of its own."""
        if pattern not in self.made:
            name = self.made[pattern] = f"T{len(self.made)}"
            self.lines.append(f"{name}: /{pattern}/")
        return self.made[pattern]

    def raw(self, raw: Raw) -> str:
        if raw not in self.made:
            name = self.made[raw] = f"raw{len(self.made)}"
            value = _without(raw.blocked)
            if raw.least or raw.most is not None:
                value += f" & /(?s:.){{{raw.least},{'' if raw.most is None else raw.most}}}/"
            if raw.least:  # space at the edges may be no part of the value
                value += r" & /\S((?s:.*)\S)?/"
            self.lines += [
                f"{name}[lazy]: {name.upper()}",
                f"{name.upper()}: ({value}) {json.dumps(raw.close, ensure_ascii=False)}",
            ]
        return self.made[raw]

    def prose(self, prose: Prose) -> str:
        """Free text with blocks in it."""
        blocks = []
        self.lines.append(f"TEXT: {_without(prose.blocked)}")
        for i, trigger in enumerate(prose.triggers):
            self.lines.append(f"lead{i}[lazy]: TEXT {json.dumps(trigger, ensure_ascii=False)}")
            blocks.append(f"lead{i} {self.rule(prose.behind(trigger), tight=True)}")
        body = f"({' | '.join(blocks)})* TEXT" if prose.many else f"({' | '.join((*blocks, 'TEXT'))})"
        thinking = " | ".join(self.rule(seq(Lit(a), Raw(b, ()))) for a, b in prose.regions)
        return f"({thinking})* {body}" if thinking else body


def _joined(items: Iterable[Rule]) -> list[Rule]:
    """Neighbours that are regular together as one."""
    out: list[Rule] = []
    for item in items:
        if out and regex(item) is not None and regex(out[-1]) is not None:
            out[-1] = seq(out[-1], item)
        else:
            out.append(item)
    return out


def _times(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}
    return short.get((least, most)) or ("" if least == most == 1 else f"{{{least},{'' if most is None else most}}}")


# ---------------------------------------------------------------- regular expressions


def regex(rule: Rule) -> str | None:
    """A rule as a regular expression; None where it is not regular."""
    match rule:
        case Lit(text):
            return "".join(map(_escaped, text))
        case Chars(chars, negated):
            return _class(chars, negated)
        case Seq(items):
            parts = [regex(i) for i in items]
            return None if None in parts else "".join(_group(i, p) for i, p in zip(items, parts, strict=True) if p)
        case Alt(items):
            parts = [regex(i) for i in items]
            return None if None in parts else "|".join(p for p in parts if p is not None)
        case Repeat(item, least, most):
            inner = regex(item)
            return None if inner is None else f"({inner}){_times(least, most)}"
    return None


def _group(rule: Rule, pattern: str) -> str:
    return f"({pattern})" if isinstance(rule, Alt) else pattern


def _escaped(c: str) -> str:
    if ord(c) >= 128 or c.isalnum() or c in _PLAIN:
        return c
    return f"\\x{ord(c):02X}"


def _class(chars: str, negated: bool) -> str:
    inside = "".join(c if ord(c) >= 128 or c.isalnum() else f"\\x{ord(c):02X}" for c in sorted(set(chars)))
    return f"[{'^' if negated else ''}{inside}]"


def _without(blocked: Iterable[Blocked]) -> str:
    """Any text that holds none of these."""
    blocked = list(blocked)
    anywhere = [_pattern(p) for b in blocked if not b.start for p in b.patterns]
    first = [_pattern(p) for b in blocked if b.start for p in b.patterns]
    out = f"/{_ANY}/"
    if anywhere:
        out += f" & ~/{_ANY}({'|'.join(anywhere)}){_ANY}/"
    if first:
        out += f" & ~/({'|'.join(first)}){_ANY}/"
    return out


def _pattern(steps: Iterable[Step]) -> str:
    out = ""
    for step in steps:
        chars = "".join(step.chars)
        one = _escaped(chars) if len(chars) == 1 else _class(chars, negated=False)
        out += f"{one}*" if step.star else one
    return out
