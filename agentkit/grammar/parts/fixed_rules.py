"""The parts other than bodies as rules: literals, tags, names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentkit.formats.escapes import attribute
from agentkit.formats.format import (
    CallId,
    CountedName,
    Name,
    Recipient,
    Skip,
    Tag,
    TextArgument,
    edge,
)
from agentkit.grammar import rules
from agentkit.grammar.arguments_as_rules import CallRules
from agentkit.grammar.part_rules import NAME, PartRules, refuse_constraint
from agentkit.grammar.rules import Chars, Exclusion, Lit, Repeat, Rule, seq
from agentkit.toolspec import ToolSpec

_ID: Final = Repeat(Chars("abcdefghijklmnopqrstuvwxyz0123456789"), 10, 10)
_COUNT: Final = Repeat(Chars("0123456789"), 1, 3)


def _literal(w: CallRules, part: str) -> Rule:
    return Lit(part)


def _tag(w: CallRules, part: Tag) -> Rule:
    if part.closing and w.tool.first_required and any(isinstance(p, TextArgument) for p in w.format.call):
        return rules.EMPTY  # the text argument ends with it
    return Lit(edge(part))


def _name(w: CallRules, part: Name) -> Rule:
    return Lit(part.prefix + (attribute(w.tool.name) if part.attribute else w.tool.name))


def _counted_name(w: CallRules, part: CountedName) -> Rule:
    return seq(Lit(f"{part.prefix}{w.tool.name}:"), _COUNT)


def _call_id(w: CallRules, part: CallId) -> Rule:
    return _ID


def _skip(w: CallRules, part: Skip) -> Rule:
    before, slot, after = part.written.partition("{number}")
    return seq(Lit(before), _COUNT, Lit(after)) if slot else Lit(before)


def _name_starts(part: Name, edge: str, tool: ToolSpec) -> Iterator[Exclusion]:
    """Yield the call's opening, regardless of the name after it; at the start of a line, a name before arguments."""
    if edge:
        yield Exclusion(edge)
    else:
        yield from (Exclusion(f"{tool.name} {bracket}") for bracket in "{(")


RULES = (
    PartRules(str, _literal),
    PartRules(Tag, _tag),
    PartRules(Name, _name, name=NAME, announces=_name_starts),
    PartRules(CountedName, _counted_name, name=NAME),
    PartRules(CallId, _call_id),
    PartRules(Recipient, refuse_constraint),
    PartRules(Skip, _skip),
)
