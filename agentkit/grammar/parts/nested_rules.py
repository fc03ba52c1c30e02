"""Elements inside elements as rules, a token before each tag. Strings may contain anything except the token."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.errors import FormatError
from agentkit.formats.format import (
    NestedTags,
)
from agentkit.grammar.arguments_as_rules import CallRules, listed_texts, words_of_null
from agentkit.grammar.from_schema import NoRule, Syntax
from agentkit.grammar.part_rules import PartRules, token_text
from agentkit.grammar.rules import Exclusion, Lit, Ref, Repeat, Rule, alt, opt, seq
from agentkit.schemas.walk import kind_of, references


def _nested(w: CallRules, part: NestedTags) -> Rule:
    """Return the rule of every parameter as an element, after the token."""
    tree = _Nested(w, part)
    return seq(*(w.optional(n, lambda n=n: tree.element(n, w.parameters[n], n)) for n in w.parameters))  # type: ignore[misc]


@dataclass(slots=True)
class _Nested:
    """The elements of one call."""

    w: CallRules
    part: NestedTags
    made: dict[tuple[str, str], str] = field(default_factory=dict)

    def element(self, name: str, schema: Any, path: str) -> Rule:
        """Return the rule of an element with its value, under a name if its schema has references."""
        if next(iter(references(schema)), None) is None:
            return self.element_rule(name, schema, path)
        written = json.dumps(schema, sort_keys=True)
        if (name, written) not in self.made:
            before = dict(self.made)
            label = self.made[name, written] = f"{self.w.prefix}-tag-{len(self.made)}"
            try:
                self.w.schemas.rules[label] = self.element_rule(name, schema, path)
            except NoRule:
                self.made = before  # rules made in the meantime may refer to it
                raise
        return Ref(self.made[name, written])

    def element_rule(self, name: str, schema: Any, path: str) -> Rule:
        if re.fullmatch(r"[^\s<>/]{1,128}", name) is None:
            raise FormatError(f"format {self.w.format.name!r} cannot write the parameter name {name!r}")
        close = f"</{name}>"
        bodies = self.bodies(schema if isinstance(schema, Mapping) else {}, path, close)
        return seq(Lit(f"{self.part.token}<{name}>"), alt(bodies))

    def bodies(self, schema: Mapping[str, Any], path: str, close: str) -> list[Rule]:
        """Return the rules of an element's content, up to and including its closing tag.

        No literal here is the beginning of another: an engine that reads tokens would commit to one of them.
        """
        options = self.w.plain(schema, path)
        found: list[Rule] = []
        if strings := [o for o in options if kind_of(o) in (None, "string") and self.enum_values(o, path) is None]:
            free = self.free(strings[0], options, path, words_of_null(self.w, schema, options))
            found.append(seq(free, Lit(close)))
        end = Lit(self.part.token + close)
        containers = 0
        for option in options:
            listed = self.enum_values(option, path)
            kind = kind_of(option)
            if listed is not None:
                found += [seq(Lit(t), end) for t in listed_texts(listed, (self.blocked,))]
            elif kind in ("array", "object"):
                containers += 1  # only the first is read from elements
                found += [seq(rule, end) for rule in self.container(option, path)] if containers == 1 else []
            elif kind not in (None, "string") and not strings:
                found.append(seq(self.w.schemas.rule(option, Syntax(), path), end))
        if not found:
            raise NoRule(f"{self.w.tool.name}: {path}: no listed value can be written as text")
        return found

    def enum_values(self, option: Mapping[str, Any], path: str) -> list[Any] | None:
        return self.w.schemas.enum_values(option, path)

    @property
    def blocked(self) -> Exclusion:
        return Exclusion(self.part.token)

    def free(
        self, text: Mapping[str, Any], options: list[Mapping[str, Any]], path: str, words: tuple[Exclusion, ...]
    ) -> Rule:
        """Return the rule of an unescaped string; text that reads as another allowed type must satisfy both."""
        constrained = (o for o in options if kind_of(o) not in (None, "string", "null"))
        if any(set(o) - {"type", "description", "title"} for o in constrained):
            self.w.schemas.gap(path, ["a string or another constrained type, which text does not distinguish"])
        self.w.schemas.gap(path, (k for k in ("pattern", "format") if k in text))
        least, most = self.w.schemas.counts(text, path, "Length")
        return token_text(self.part.token, least, most, (self.blocked, *words))

    def container(self, schema: Mapping[str, Any], path: str) -> list[Rule]:
        """Return the rule of an array or object as elements; as JSON if it is empty or declares no properties."""
        if kind_of(schema) == "array":
            least, most = self.w.schemas.counts(schema, path, "Items")
            item = self.element(self.part.item, schema.get("items", {}), f"{path}[]")
            some = [] if most == 0 else [Repeat(item, max(least, 1), most)]
            return [*some, *([] if least else [Lit("[]")])]
        properties = schema.get("properties")
        if not properties:
            return [self.w.schemas.rule(schema, Syntax(unsafe="<"), path)]
        required = [n for n in schema.get("required", ()) if n in properties]
        self.w.schemas.gap(path, [f"required: {n}" for n in schema.get("required", ()) if n not in properties])
        children = self.children(properties, required, path)
        return [*children, *([] if required else [Lit("{}")])]

    def children(self, properties: Mapping[str, Any], required: list[str], path: str) -> list[Rule]:
        """Return the rule of the children in order, at least one."""
        pairs: list[tuple[Rule, bool]] = []
        for name, below in properties.items():
            try:
                pairs.append((self.element(name, below, f"{path}.{name}"), name in required))
            except NoRule:
                if name in required:
                    raise
        rest = [rule if needed else opt(rule) for rule, needed in pairs]
        starts: list[Rule] = []
        for i, (rule, needed) in enumerate(pairs):
            starts.append(seq(rule, *rest[i + 1 :]))
            if needed:
                break
        return [alt(starts)] if starts else []


RULES = (PartRules(NestedTags, _nested),)
