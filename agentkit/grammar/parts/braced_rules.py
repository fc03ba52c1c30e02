"""The body in braces as rules: bare keys, and strings between tokens that may contain anything except their token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.formats.format import (
    Braced,
)
from agentkit.grammar import rules
from agentkit.grammar.arguments_as_rules import CallRules, value
from agentkit.grammar.from_schema import NoRule, Syntax, join_members
from agentkit.grammar.part_rules import PartRules, token_text
from agentkit.grammar.rules import Chars, Lit, Repeat, Rule, alt, seq
from agentkit.schemas.typed import values

_BARE_KEY: Final = re.compile(r"[^\s:{}\[\],\"'<>]{1,256}\Z")
_NO_KEY: Final = Chars(rules.SPACES + "\x00\x1f:{}[],\"'<>", negated=True)


def _braced(w: CallRules, part: Braced) -> Rule:
    """`{key:value,…}`: typed as in JSON, or every value between the tokens and typed by its parameter's schema."""
    syntax = _Braced(quotes=(part.quote,), dumps=(lambda v: _dump(v, part.quote),))
    if part.typed:
        return seq(Lit("{"), w.schemas.members(w.tool.parameters, syntax, "", Lit("}"), syntax.key))
    pairs: list[tuple[Rule, bool]] = []
    for name in w.parameters:
        try:
            pairs.append((value(w, name, f"{name}:{part.quote}", part.quote, ()), w.needs(name)))
        except NoRule:
            if w.needs(name):
                raise
    return seq(Lit("{"), join_members(pairs, Lit("}"), rules.EMPTY))


class _Braced(Syntax):
    """Keys without quotes, strings between tokens without any escaping, no white space."""

    def string(self, least: int = 0, most: int | None = None) -> Rule:
        return alt(seq(Lit(q), token_text(q, least, most)) for q in self.quotes)

    def key(self, name: str) -> Rule:
        if _BARE_KEY.match(name) is None:
            raise FormatError(f"{name!r} cannot be a key without quotes")
        return Lit(f"{name}:")

    def any_key(self) -> Rule:
        return seq(Repeat(_NO_KEY, 1, 64), Lit(":"))

    @property
    def space(self) -> Rule:
        return rules.EMPTY


def _dump(value: Any, quote: str) -> str:
    match value:
        case str():
            if quote in value:
                raise NoRule(f"{value!r} contains {quote!r}")
            return f"{quote}{value}{quote}"
        case Mapping():
            return "{" + ",".join(f"{k}:{_dump(v, quote)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(_dump(v, quote) for v in value) + "]"
    return values.dump(value)


RULES = (PartRules(Braced, _braced),)
