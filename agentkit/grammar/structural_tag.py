"""Rules as a structural tag, the JSON that vLLM, SGLang and xgrammar accept as `response_format`.

Pure; depends on rules only, and imports no engine. Source: xgrammar 0.2.6, docs/structural_tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentkit.grammar import gbnf
from agentkit.grammar.rules import (
    Alt,
    Exclusion,
    Grammar,
    JsonRule,
    Lit,
    Many,
    Prose,
    Raw,
    Repeat,
    Rule,
    Seq,
    leading,
    opened_tags,
    region,
    trailing,
    without_lead,
)

StructuralTag = dict[str, Any]

_RUN: Final = 128  # xgrammar refuses endless content in a tag without an end: this limits the further calls


def write(grammar: Grammar) -> StructuralTag:
    """Write the grammar as a structural tag."""
    w = _Writer(grammar.rules)
    root = grammar.root
    return {"type": "structural_tag", "format": w.prose(root) if isinstance(root, Prose) else w.rule(root)}


@dataclass(frozen=True, slots=True)
class _Writer:
    rules: Mapping[str, Rule]

    def rule(self, rule: Rule) -> StructuralTag:
        """Return a rule as a format object."""
        if isinstance(rule, Lit):
            return {"type": "const_string", "value": rule.text}
        if _plain(rule):
            return {"type": "grammar", "grammar": gbnf.write(Grammar(rule, self.rules))}
        match rule:
            case JsonRule(schema):
                return {"type": "json_schema", "json_schema": dict(schema)}
            case Alt(items):
                return {"type": "or", "elements": [self.rule(i) for i in items]}
            case Repeat(item, 0, 1):
                return {"type": "optional", "content": self.rule(item)}
            case Repeat(item, least, most):
                return {"type": "repeat", "min": least, "max": -1 if most is None else most, "content": self.rule(item)}
            case Many(item, separator):
                return self.many(item, separator)
            case Raw():
                return self.tag(rule)
            case Seq():
                closed = isinstance(rule.items[0], Lit) and isinstance(rule.items[-1], Lit | Raw)
                return self.tag(rule) if closed else self.sequence(rule.items)
        raise TypeError(f"{type(rule).__name__} is plain")

    def sequence(self, items: Iterable[Rule]) -> StructuralTag:
        """Return the tag of a sequence; a raw value uses the literal before it as its beginning."""
        out: list[StructuralTag] = []
        pending: list[Rule] = []
        for item in items:
            if _plain(item):
                pending.append(item)
            elif isinstance(item, Raw) and pending and isinstance(pending[-1], Lit):
                out += self.flush(pending[:-1])
                out.append(self.tag(Seq((pending[-1], item))))
                pending = []
            else:
                out += [*self.flush(pending), self.rule(item)]
                pending = []
        out += self.flush(pending)
        return out[0] if len(out) == 1 else {"type": "sequence", "elements": out}

    def flush(self, pending: list[Rule]) -> list[StructuralTag]:
        """Adjacent plain rules merged into one."""
        if not pending:
            return []
        return [self.rule(pending[0] if len(pending) == 1 else Seq(tuple(pending)))] if not all(
            isinstance(p, Lit) for p in pending
        ) else [self.rule(p) for p in pending]  # fmt: skip

    def tag(self, rule: Rule) -> StructuralTag:
        """Return a tag: the literal that a rule starts with, its content, and the literal that it ends with."""
        begin = leading(rule)
        rest = without_lead(rule, len(begin)) if begin else rule
        if isinstance(rest, Raw) and not _plain(rest):
            return {"type": "tag", "begin": begin, "content": any_text(rest), "end": rest.close}
        end = trailing(rest)
        items = rest.items if isinstance(rest, Seq) else (rest,)
        if not end and isinstance(last := items[-1], Repeat) and last.most is None:
            items = (*items[:-1], Repeat(last.item, last.least, _RUN))
        content = self.sequence(items[:-1] if end else items) if items != (Lit(""),) else _NOTHING
        return {"type": "tag", "begin": begin, "content": content, "end": end}

    def tags(self, rules: Iterable[Rule]) -> list[StructuralTag]:
        return [self.tag(r) for rule in rules for r in (rule.items if isinstance(rule, Alt) else (rule,))]

    def many(self, item: Rule, separator: str) -> StructuralTag:
        tags = self.tags([item])
        if not separator:
            return {"type": "plus", "content": tags[0] if len(tags) == 1 else {"type": "or", "elements": tags}}
        return {
            "type": "tags_with_separator", "tags": tags, "separator": separator, "at_least_one": True,
            "stop_after_first": False,
        }  # fmt: skip

    def prose(self, prose: Prose) -> StructuralTag:
        """Free text with tags in it, after a region of thinking; as one grammar if that expresses more."""
        if not all(b.exact for b in prose.blocked) and all(map(self.is_text, prose.blocks)):
            return {"type": "grammar", "grammar": gbnf.write(Grammar(prose, self.rules))}
        first = [self.thoughts(opened_tags(prose.closing))] if prose.closing else []
        if prose.regions:
            first.append({"type": "star", "content": self.thoughts(prose.regions)})
        text = self.free_text(prose)
        return {"type": "sequence", "elements": [*first, text]} if first else text

    def free_text(self, prose: Prose) -> StructuralTag:
        """Return the tag of the text after the thinking, with tags in it."""
        spellings = dict.fromkeys(s for b in prose.blocked for s in b.spellings)
        excludes = [s for s in spellings if s not in prose.triggers]
        if not prose.blocks:
            return {"type": "any_text", "excludes": excludes}
        return {
            "type": "triggered_tags",
            "triggers": list(dict.fromkeys(_before(t, excludes) for t in prose.triggers)),
            "tags": self.tags(prose.blocks),
            "excludes": [s for s in excludes if not any(t in s for t in prose.triggers)],
            "at_least_one": False,
            "stop_after_first": not prose.many,
        }

    def thoughts(self, regions: Iterable[tuple[str, str]]) -> StructuralTag:
        """Return the tag of a region of thinking, between any of these tags."""
        tags: list[StructuralTag] = [
            {"type": "tag", "begin": start, "content": any_text(region(close)), "end": close}
            for start, close in regions
        ]
        return tags[0] if len(tags) == 1 else {"type": "or", "elements": tags}

    def is_text(self, rule: Rule) -> bool:
        """Return True if characters express all of a rule: it contains no schema."""
        match rule:
            case JsonRule():
                return False
            case Seq(items) | Alt(items):
                return all(map(self.is_text, items))
            case Repeat(item) | Many(item):
                return self.is_text(item)
        return True


def _before(trigger: str, excludes: Iterable[str]) -> str:
    """Return a trigger, cut where it would complete text that is excluded, which would be refused first."""
    ends = [trigger.index(s) + len(s) - 1 for s in excludes if s in trigger]
    return trigger[: min(ends)] if ends else trigger


_NOTHING: StructuralTag = {"type": "const_string", "value": ""}


def any_text(raw: Raw) -> StructuralTag:
    """Return the tag of a raw value: any text without its close and its exclusions."""
    out: StructuralTag = {"type": "any_text", "excludes": _spellings(raw.close, raw.blocked)}
    return out if raw.most is None else {**out, "max_chars": raw.most}


def _spellings(close: str, blocked: Iterable[Exclusion]) -> list[str]:
    """Return the spellings of the close and of all exclusions."""
    return list(dict.fromkeys([close, *(s for b in blocked for s in b.spellings)]))


def _plain(rule: Rule) -> bool:
    """Return True if GBNF expresses a rule best: characters, or raw text that blocks more than a few exact strings."""
    match rule:
        case JsonRule() | Many():
            return False
        case Raw(_, blocked, most):
            return most is None and not all(b.exact for b in blocked)
        case Seq(items) | Alt(items):
            return all(map(_plain, items))
        case Repeat(item):
            return _plain(item)
    return True
