"""Bodies with a value syntax of their own as rules: braces with quote tokens, and elements inside elements.

Knows declarations, schemas and rules; knows no target. Free strings may hold anything but the token that ends them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.formats import values
from agentkit.formats.format import Braced, NestedTags
from agentkit.grammar import rules
from agentkit.grammar.arguments_as_rules import CallRules, listed_texts, value, words_of_null
from agentkit.grammar.from_schema import Refused, Syntax, joined
from agentkit.grammar.rules import Blocked, Chars, Lit, Raw, Ref, Repeat, Rule, alt, opt, seq
from agentkit.schemas.walk import kind_of

_BARE_KEY: Final = re.compile(r"[^\s:{}\[\],\"'<>]{1,256}\Z")
_NO_KEY: Final = Chars(rules.SPACES + "\x00\x1f:{}[],\"'<>", negated=True)


def braced(w: CallRules, part: Braced) -> Rule:
    """`{key:value,…}`: typed as JSON is, or every value between the tokens and typed by its parameter's schema."""
    syntax = _Braced(quotes=(part.quote,), dumps=(lambda v: _dumped(v, part.quote),))
    if part.typed:
        return seq(Lit("{"), w.schemas.members(w.tool.parameters, syntax, "", Lit("}"), syntax.key))
    pairs: list[tuple[Rule, bool]] = []
    for name in w.parameters:
        try:
            pairs.append((value(w, name, f"{name}:{part.quote}", part.quote, ()), w.needs(name)))
        except Refused:
            if w.needs(name):
                raise
    return seq(Lit("{"), joined(pairs, Lit("}"), rules.EMPTY))


class _Braced(Syntax):
    """Keys without quotes, strings between tokens that nothing escapes, no white space."""

    def string(self, least: int = 0, most: int | None = None) -> Rule:
        return alt(seq(Lit(q), _text(q, least, most), *([] if _free(least, most) else [Lit(q)])) for q in self.quotes)

    def key(self, name: str) -> Rule:
        if _BARE_KEY.match(name) is None:
            raise FormatError(f"{name!r} cannot be a key without quotes")
        return Lit(f"{name}:")

    def any_key(self) -> Rule:
        return seq(Repeat(_NO_KEY, 1, 64), Lit(":"))

    @property
    def space(self) -> Rule:
        return rules.EMPTY


def _dumped(value: Any, quote: str) -> str:
    match value:
        case str():
            if quote in value:
                raise Refused(f"{value!r} holds {quote!r}")
            return f"{quote}{value}{quote}"
        case Mapping():
            return "{" + ",".join(f"{k}:{_dumped(v, quote)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(_dumped(v, quote) for v in value) + "]"
    return values.dump(value)


def _free(least: int, most: int | None) -> bool:
    return least == 0 and most is None


def _text(close: str, least: int, most: int | None, blocked: tuple[Blocked, ...] = ()) -> Rule:
    """A string up to and with `close`; one of bounded length without what closes it, and without its first character.

    Not every target can count in text that may hold beginnings of `close`.
    """
    if _free(least, most):
        return Raw(close, blocked)
    return Repeat(Chars(close[0], negated=True), least, most)


# ---------------------------------------------------------------- elements inside elements


def nested(w: CallRules, part: NestedTags) -> Rule:
    """Every parameter as an element, behind the token."""
    tree = _Nested(w, part)
    return seq(*(w.optional(n, lambda n=n: tree.element(n, w.parameters[n], n)) for n in w.parameters))  # type: ignore[misc]


@dataclass(slots=True)
class _Nested:
    """The elements of one call."""

    w: CallRules
    part: NestedTags
    made: dict[tuple[str, str], str] = field(default_factory=dict)

    def element(self, name: str, schema: Any, path: str) -> Rule:
        """One element with its value; one that a `$ref` leads to under a name, so that it may hold itself."""
        ref = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(ref, str):
            return self.whole(name, schema, path)
        if (name, ref) not in self.made:
            label = self.made[name, ref] = f"{self.w.prefix}-tag-{len(self.made)}"
            self.w.schemas.rules[label] = self.whole(name, schema, path)
        return Ref(self.made[name, ref])

    def whole(self, name: str, schema: Any, path: str) -> Rule:
        if re.fullmatch(r"[^\s<>/]{1,128}", name) is None:
            raise FormatError(f"format {self.w.format.name!r} cannot write the parameter name {name!r}")
        close = f"</{name}>"
        bodies = self.bodies(schema if isinstance(schema, Mapping) else {}, path, close)
        return seq(Lit(f"{self.part.token}<{name}>"), alt(bodies))

    def bodies(self, schema: Mapping[str, Any], path: str, close: str) -> list[Rule]:
        """What may stand in an element, up to and with its closing tag.

        No literal here is the beginning of another: an engine that reads in tokens would commit itself.
        """
        options = self.w.plain(schema, path)
        found: list[Rule] = []
        if strings := [o for o in options if kind_of(o) in (None, "string") and self.listed(o, path) is None]:
            free = self.free(strings[0], options, path, words_of_null(self.w, schema, options))
            found.append(seq(free, Lit(close)))
        end = Lit(self.part.token + close)
        containers = 0
        for option in options:
            listed = self.listed(option, path)
            kind = kind_of(option)
            if listed is not None:
                found += [seq(Lit(t), end) for t in listed_texts(listed, (self.blocked,))]
            elif kind in ("array", "object"):
                containers += 1  # only the first is read from elements
                found += [seq(rule, end) for rule in self.container(option, path)] if containers == 1 else []
            elif kind not in (None, "string") and not strings:
                found.append(seq(self.w.schemas.rule(option, Syntax(), path), end))
        if not found:
            raise Refused(f"{self.w.tool.name}: {path}: no listed value can be written as text")
        return found

    def listed(self, option: Mapping[str, Any], path: str) -> list[Any] | None:
        return self.w.schemas.listed(option, path)

    @property
    def blocked(self) -> Blocked:
        return Blocked(self.part.token)

    def free(
        self, text: Mapping[str, Any], options: list[Mapping[str, Any]], path: str, words: tuple[Blocked, ...]
    ) -> Rule:
        """A string as it is; beside other types, what reads as one of them is one, and must satisfy it too."""
        constrained = (o for o in options if kind_of(o) not in (None, "string", "null"))
        if any(set(o) - {"type", "description", "title"} for o in constrained):
            self.w.schemas.gap(path, ["a string beside another constrained type, which text cannot tell"])
        self.w.schemas.gap(path, (k for k in ("pattern", "format") if k in text))
        least, most = self.w.schemas.counts(text, path, "Length")
        token = self.part.token
        rule = _text(token, least, most, (self.blocked, *words))
        return rule if _free(least, most) else seq(rule, Lit(token))

    def container(self, schema: Mapping[str, Any], path: str) -> list[Rule]:
        """An array or object as elements; one that is empty, or of no declared properties, as JSON."""
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
        """The children in their order, at least one."""
        pairs: list[tuple[Rule, bool]] = []
        for name, below in properties.items():
            try:
                pairs.append((self.element(name, below, f"{path}.{name}"), name in required))
            except Refused:
                if name in required:
                    raise
        rest = [rule if needed else opt(rule) for rule, needed in pairs]
        starts: list[Rule] = []
        for i, (rule, needed) in enumerate(pairs):
            starts.append(seq(rule, *rest[i + 1 :]))
            if needed:
                break
        return [alt(starts)] if starts else []
