"""JSON Schemas as rules, in the syntax of JSON, of JSON inside raw text or an attribute, and of Python literals.

Pure; knows schemas and rules. Rules never allow more than the schema: objects with declared properties are closed,
arguments are in their declared order. A keyword that rules cannot express is a `Gap`, never silently dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal

from agentkit.grammar import numbers
from agentkit.grammar.rules import Alt, Chars, Lit, Ref, Repeat, Rule, alt, opt, seq
from agentkit.schemas import walk
from agentkit.schemas.typed import values
from agentkit.schemas.walk import ANNOTATIONS, kind_of

STRUCTURE: Final = frozenset(("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"))
SAID: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset(("minLength", "maxLength")),
    "integer": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
    "number": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
    "boolean": frozenset(),
    "null": frozenset(),
    "array": frozenset(("items", "minItems", "maxItems")),
    "object": frozenset(("properties", "required", "additionalProperties")),
}
"""The keywords that rules can express for each type."""

BELONGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(
        ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
        "array",
    ),
    **dict.fromkeys(
        ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
         "maxProperties", "dependentRequired"),
        "object",
    ),
}  # fmt: skip
"""The only type of values that a keyword constrains; values of other types satisfy it."""

_HEX: Final = Chars("0123456789abcdefABCDEF")
_UNICODE: Final = seq(Lit("\\u"), Chars("0123456789abcefABCEF"), _HEX, _HEX, _HEX)  # without the surrogates
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
CONTROLS: Final = "".join(map(chr, range(0x20))) + "\x7f"


@dataclass(frozen=True, slots=True)
class Gap:
    """A schema keyword that a target cannot enforce, with its tool and its place in the parameters."""

    tool: str
    path: str
    keyword: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.path or 'parameters'}: {self.keyword}"


@dataclass(frozen=True, slots=True)
class Syntax:
    """How values are written.

    Args:
        quotes: the quotes that may delimit strings.
        unsafe: characters that no string contains unescaped, in addition to quotes, backslash and controls.
        words: how true, false and null are written.
        dumps: the ways to write a fixed value.
    """

    quotes: tuple[str, ...] = ('"',)
    unsafe: str = ""
    words: tuple[str, str, str] = ("true", "false", "null")
    dumps: tuple[Callable[[Any], str], ...] = (values.dump,)

    def string(self, least: int = 0, most: int | None = None) -> Rule:
        """Return the rule of a string of `least` to `most` characters."""
        return alt(self._within(q, least, most) for q in self.quotes)

    def _within(self, quote: str, least: int, most: int | None) -> Rule:
        closer = "'" if quote == "'" else '"'
        plain = Chars(closer + "\\" + CONTROLS + "".join(dict.fromkeys(self.unsafe)), negated=True)
        escapes = alt(
            [*(Lit(f"\\{c}") for c in "\\nrtbf"), Lit("\\'") if quote == "'" else Lit(f"\\{quote}"), _UNICODE]
        )
        return seq(Lit(quote), Repeat(Alt((plain, escapes)), least, most), Lit(quote))

    def key(self, name: str) -> Rule:
        """Return the rule of a declared property's name, up to its value."""
        return seq(Lit(f"{self.dumps[0](name)}:"), self.space)

    def any_key(self) -> Rule:
        """Return the rule of any property's name, up to its value."""
        return seq(self.string(), Lit(":"), self.space)

    @property
    def space(self) -> Rule:
        """Optional space after a comma, and after a key's colon."""
        return opt(Lit(" "))


def _attribute_json(value: Any) -> str:
    text = values.dump(value).replace("&", "&amp;").replace('"', "&quot;")
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _double_quote(value: Any) -> str:
    return values.dump(value) if isinstance(value, str) else repr(value)


JSON: Final = Syntax()
PYTHON: Final = Syntax(quotes=('"', "'"), words=("True", "False", "None"), dumps=(repr, _double_quote))
ATTRIBUTE: Final = Syntax(quotes=("&quot;",), unsafe="<>&", dumps=(_attribute_json,))
"""JSON inside a double-quoted attribute."""


def inside(closer: str) -> Syntax:
    """JSON inside raw text that `closer` ends: no string in it may contain the closer's first character unescaped."""
    return escaping(closer.strip()[0])


def escaping(characters: str) -> Syntax:
    """JSON in which these characters are escaped in strings; listed values of other types stay as they are."""

    def dump(value: Any) -> str:
        return _STRING.sub(lambda m: "".join(escapes.get(c, c) for c in m[0]), values.dump(value))

    escapes = {c: f"\\u{ord(c):04x}" for c in characters}
    return Syntax(unsafe=characters, dumps=(dump,))


class NoRule(ValueError):
    """No value satisfies the schema, as far as rules can express it."""


@dataclass(slots=True)
class SchemaRules:
    """The schemas of one tool as rules; collects the named rules that they need and the gaps.

    Args:
        tool: the tool's name.
        root: the schema in which `$ref`s are resolved.
        prefix: the prefix of the rules' names.
        largest: the largest count that the target supports; None for any number.
    """

    tool: str
    root: Mapping[str, Any]
    prefix: str
    largest: int | None = None
    rules: dict[str, Rule] = field(default_factory=dict)
    gaps: dict[Gap, None] = field(default_factory=dict)
    _names: dict[tuple[str, int], str] = field(default_factory=dict)
    _syntaxes: list[Syntax] = field(default_factory=list)

    def gap(self, path: str, keywords: Iterable[str]) -> None:
        """Record keywords that cannot be expressed."""
        self.gaps |= dict.fromkeys(Gap(self.tool, path, k) for k in keywords)

    def counts(self, schema: Mapping[str, Any], path: str, of: Literal["Length", "Items"]) -> tuple[int, int | None]:
        """How many characters or items a value has, at least and at most, as far as the target can count."""
        least, most = schema.get(f"min{of}", 0), schema.get(f"max{of}")
        if self.largest is not None and least > self.largest:
            self.gap(path, [f"min{of}"])
            least = 0
        if self.largest is not None and most is not None and most > self.largest:
            self.gap(path, [f"max{of}"])
            most = None
        return least, most

    def rule(self, schema: Any, syntax: Syntax, path: str = "") -> Rule:
        """Return the rule of a schema's values, as `syntax` writes them.

        Raises:
            NoRule: there is no such value.
        """
        if schema is False:
            raise NoRule(f"{self.tool}: {path}: the schema allows no value")
        if not isinstance(schema, Mapping):
            return self._name_rule("any", syntax, lambda: self._any(syntax))
        ref = schema.get("$ref")
        if isinstance(ref, str):
            self.gap(path, _constraints(schema) - {"$ref"})
            found = walk.resolve({"$ref": ref}, self.root)
            return self._name_rule(ref, syntax, lambda: self.rule(found, syntax, path))
        found_rules = [self._plain(plain, syntax, path) for plain in self.options(schema, path)]
        if not found_rules:
            raise NoRule(f"{self.tool}: {path}: the schema is a choice of nothing but itself")
        return alt(found_rules)

    def _name_rule(self, key: str, syntax: Syntax, make: Callable[[], Rule]) -> Rule:
        """Return a reference to a named rule, which may so contain itself."""
        if syntax not in self._syntaxes:
            self._syntaxes.append(syntax)
        slot = (key, self._syntaxes.index(syntax))
        if slot not in self._names:
            before = dict(self._names)
            name = self._names[slot] = f"{self.prefix}-{len(self._names)}"
            try:
                self.rules[name] = make()
            except NoRule:
                self._names = before  # rules made in the meantime may refer to it
                raise
        return Ref(self._names[slot])

    def options(
        self, schema: Mapping[str, Any], path: str, within: tuple[Mapping[str, Any], ...] = ()
    ) -> list[Mapping[str, Any]]:
        """Return the schema split into single types, enums and references; `within` are those that led to it."""
        if schema in within:
            return []  # a choice of itself adds nothing
        for key in ("anyOf", "oneOf", "allOf"):
            listed = schema.get(key)
            if isinstance(listed, list) and listed:
                rest = {k: v for k, v in schema.items() if k != key and k not in ANNOTATIONS}
                if (key == "allOf" and len(listed) > 1) or (key == "oneOf" and not walk.disjoint(listed, self.root)):
                    self.gap(path, [key])
                merged = [self._merge(rest, s, path) for s in (listed[:1] if key == "allOf" else listed)]
                return self._or_null(schema, [o for m in merged for o in self.options(m, path, (*within, schema))])
        kind = schema.get("type")
        kinds = kind if isinstance(kind, list) else [kind]
        return self._or_null(schema, [{**schema, "type": k} if k else schema for k in kinds])

    def _or_null(self, schema: Mapping[str, Any], options: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [*options, {"type": "null"}] if schema.get("nullable") is True else options

    def _merge(self, rest: Mapping[str, Any], option: Any, path: str) -> Mapping[str, Any]:
        """Return an alternative together with the keywords next to the choice."""
        if not isinstance(option, Mapping):
            return rest
        if "$ref" in option and rest:
            option = walk.resolve(option, self.root)
        self.gap(path, (k for k in rest if k in option and rest[k] != option[k]))
        return {**rest, **option}

    def _plain(self, schema: Mapping[str, Any], syntax: Syntax, path: str) -> Rule:
        """Return the rule of a schema of one type, or of listed values."""
        if "$ref" in schema:
            return self.rule(schema, syntax, path)
        listed = self.enum_values(schema, path)
        if listed is not None:
            return alt(Lit(dump(v)) for v in listed for dump in syntax.dumps)
        kind = kind_of(schema)
        if kind is None:
            self.gap(path, _constraints(schema))
            return self.rule(True, syntax, path)
        looked = {
            k for k in _constraints(schema) if BELONGS.get(k, kind) in (kind, "number" if kind == "integer" else kind)
        }
        self.gap(path, looked - STRUCTURE - SAID[kind] - _vacuous(schema))
        return _KINDS[kind](self, schema, syntax, path)

    def enum_values(self, schema: Mapping[str, Any], path: str = "") -> list[Any] | None:
        """Return the values that a schema lists; None if it lists none.

        Raises:
            NoRule: none of them is of the schema's type.
        """
        found = walk.enum_values(schema)
        if found is None:
            return None
        self.gap(path, _constraints(schema) - STRUCTURE)
        kind = schema.get("type")
        found = [v for v in found if not isinstance(kind, str) or kind not in SAID or _is(v, kind)]
        if not found:
            raise NoRule(f"{self.tool}: {path}: no listed value is of type {kind!r}")
        return found

    # ------------------------------------------------------------ types

    def _string(self, schema: Mapping[str, Any], syntax: Syntax, path: str) -> Rule:
        return syntax.string(*self.counts(schema, path, "Length"))

    def _number(self, schema: Mapping[str, Any], syntax: Syntax, path: str) -> Rule:
        make = numbers.integer if schema.get("type") == "integer" else numbers.number
        try:
            return make(*bounds(schema))
        except numbers.EmptyRange:
            raise NoRule(f"{self.tool}: {path}: no number lies between the bounds") from None

    def _boolean(self, schema: Mapping[str, Any], syntax: Syntax, path: str) -> Rule:
        return Alt((Lit(syntax.words[0]), Lit(syntax.words[1])))

    def _null(self, schema: Mapping[str, Any], syntax: Syntax, path: str) -> Rule:
        return Lit(syntax.words[2])

    def _array(self, schema: Mapping[str, Any], syntax: Syntax, path: str) -> Rule:
        item = self.rule(schema.get("items", True), syntax, f"{path}[]")
        least, most = self.counts(schema, path, "Items")
        return _brackets("[", item, "]", least, most, syntax)

    def _object(self, schema: Mapping[str, Any], syntax: Syntax, path: str) -> Rule:
        properties = schema.get("properties")
        if not properties and (schema.get("additionalProperties", properties is None) is not False):
            self.gap(path, ["required"] if schema.get("required") else [])
            extra = self.rule(schema.get("additionalProperties", True), syntax, f"{path}.*")
            return _brackets("{", seq(syntax.any_key(), extra), "}", 0, None, syntax)
        return seq(Lit("{"), self.members(schema, syntax, path, Lit("}"), syntax.key))

    def members(
        self, schema: Mapping[str, Any], syntax: Syntax, path: str, close: Rule, key: Callable[[str], Rule]
    ) -> Rule:
        """Return the rule of the declared properties in order, optional ones omitted freely, and `close`."""
        required = schema.get("required", ())
        pairs: list[tuple[Rule, bool]] = []
        for name, below in (schema.get("properties") or {}).items():
            try:
                pairs.append((seq(key(name), self.rule(below, syntax, f"{path}.{name}".lstrip("."))), name in required))
            except NoRule:
                if name in required:
                    raise
        self.gap(path, [f"required: {n}" for n in required if n not in (schema.get("properties") or {})])
        return join_members(pairs, close, syntax.space)

    def _any(self, syntax: Syntax) -> Rule:
        free = self.rule(True, syntax)
        member = seq(syntax.any_key(), free)
        scalars = (syntax.string(), numbers.NUMBER, *map(Lit, syntax.words))
        containers = (_brackets("[", free, "]", 0, None, syntax), _brackets("{", member, "}", 0, None, syntax))
        return alt([*scalars, *containers])


def join_members(pairs: Sequence[tuple[Rule, bool]], close: Rule, space: Rule) -> Rule:
    """Members with commas between them, in order, and `close`; those that are not needed may be omitted."""
    rest = [seq(Lit(","), space, pair) if needed else opt(seq(Lit(","), space, pair)) for pair, needed in pairs]
    starts = []
    for i, (pair, needed) in enumerate(pairs):
        starts.append(seq(pair, *rest[i + 1 :], close))
        if needed:
            return alt(starts)
    return alt([*starts, close])


def _brackets(start: str, item: Rule, end: str, least: int, most: int | None, syntax: Syntax) -> Rule:
    """`least` to `most` items between brackets."""
    if most == 0:
        return Lit(start + end)
    more = Repeat(seq(Lit(","), syntax.space, item), max(least - 1, 0), None if most is None else most - 1)
    some = seq(Lit(start), item, more, Lit(end))
    return some if least else Alt((Lit(start + end), some))


_KINDS: Final[Mapping[str, Callable[[SchemaRules, Mapping[str, Any], Syntax, str], Rule]]] = {
    "string": SchemaRules._string,
    "integer": SchemaRules._number,
    "number": SchemaRules._number,
    "boolean": SchemaRules._boolean,
    "null": SchemaRules._null,
    "array": SchemaRules._array,
    "object": SchemaRules._object,
}


def bounds(schema: Mapping[str, Any]) -> tuple[Decimal | None, Decimal | None, bool, bool]:
    """Return the tighter of the inclusive and exclusive bounds on each side, and whether it is exclusive."""
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    open_low = above is not None and (low is None or above >= low)
    open_high = below is not None and (high is None or below <= high)
    low, high = above if open_low else low, below if open_high else high
    return (
        None if low is None else Decimal(str(low)), None if high is None else Decimal(str(high)), open_low, open_high
    )  # fmt: skip


def _constraints(schema: Mapping[str, Any]) -> set[str]:
    return {k for k in schema if k not in ANNOTATIONS and not k.startswith("x-")}


def _vacuous(schema: Mapping[str, Any]) -> set[str]:
    """Keywords that refuse nothing in this schema."""
    out = {"uniqueItems"} if not schema.get("uniqueItems") or schema.get("maxItems", 2) < 2 else set()
    return out | ({"minProperties"} if schema.get("minProperties", 1) <= len(schema.get("required", ())) else set())


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return walk.type_of(value) == kind
