"""Repeated names and raw values as rules, between tags or between literals."""

from __future__ import annotations

import re
from typing import Final

from agentkit.formats.escapes import attribute
from agentkit.formats.format import (
    NameTag,
    Pairs,
    TagParameters,
)
from agentkit.formats.valueends import end_of_value, fragments_of
from agentkit.grammar.arguments_as_rules import CallRules, typed_value, value
from agentkit.grammar.part_rules import KEY, PartRules
from agentkit.grammar.rules import Exclusion, Rule, seq


def _refused_markup(w: CallRules, part: TagParameters | Pairs) -> tuple[Exclusion, ...]:
    """Return the markup that the reader refuses in a value: all of its kind, but for the beginning of its closing."""
    end = end_of_value(w.format.shapes[0], part)
    parts = (part for mark in end.marks for part in ((mark,) if mark == end.what else fragments_of(mark, end.what)))
    marks = (part for part in dict.fromkeys(parts) if part == end.what or not end.what.startswith(part))
    return tuple(Exclusion(m.removesuffix(">"), tag=True) if _TAG(m) else Exclusion(m, cases=True) for m in marks)


_TAG: Final = re.compile(r"</?[^\W\d][\w.:-]*>?").fullmatch


def _tag_parameters(w: CallRules, part: TagParameters) -> Rule:
    names = (p.name for p in w.format.call if isinstance(p, NameTag | TagParameters))
    tags = tuple(Exclusion(f"{start}{name}", tag=True) for name in names for start in ("</", "<"))
    blocked = (*tags, *_refused_markup(w, part))
    close = f"</{part.name}>\n"

    def one(name: str) -> Rule:
        start = f'<{part.name} {part.attribute}="{attribute(name)}"'
        if part.kind:
            return typed_value(
                w, name, f'{start} {part.kind}="true">', lambda _: f'{start} {part.kind}="false">', close, blocked
            )
        return value(w, name, f"{start}>", close, blocked)

    return seq(*(w.optional(n, lambda n=n: one(n)) for n in w.parameters))  # type: ignore[misc]  # bound immediately


def _pairs(w: CallRules, part: Pairs) -> Rule:
    literals = [p.strip() for p in w.format.call if isinstance(p, str) and p.strip()]
    marks = dict.fromkeys((part.key.strip(), literals[0], literals[-1]))
    opening = part.close.strip().replace("</", "<", 1)
    marks |= {opening: None} if opening in part.middle else {}
    # the parser reads a close in other letters as the close, wherever a parameter may be missing after it
    blocked = (
        Exclusion(part.close.strip(), cases=True),
        *(Exclusion(mark) for mark in marks),
        *_refused_markup(w, part),
    )
    close = f"{part.close}\n"

    def one(name: str) -> Rule:
        start = f"{part.key}{name}"
        if part.kind:
            before, after = part.kind
            return typed_value(
                w, name, f"{start}{before}string{after}", lambda k: f"{start}{before}{k}{after}", close, blocked
            )
        return value(w, name, f"{start}{part.middle}", close, blocked)

    return seq(*(w.optional(n, lambda n=n: one(n)) for n in w.parameters))  # type: ignore[misc]  # bound immediately


RULES = (PartRules(TagParameters, _tag_parameters, keys=KEY), PartRules(Pairs, _pairs, keys=KEY))
