"""One argument's value as rules: raw text, text whose type is written next to it, an attribute; and their common parts.

Knows declarations, schemas and rules; depends on no part and no target's syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agentkit.formats.escapes import attribute
from agentkit.formats.format import Format, ToolElement
from agentkit.formats.tags import CDATA_OPEN
from agentkit.grammar import rules
from agentkit.grammar.from_schema import ATTRIBUTE, JSON, Gap, NoRule, SchemaRules, inside
from agentkit.grammar.rules import Chars, Exclusion, Lit, Raw, Repeat, Rule, alt, opt, seq
from agentkit.schemas import walk
from agentkit.schemas.dialects import XGRAMMAR
from agentkit.schemas.schema_rewriter import engine_schema
from agentkit.schemas.typed import values
from agentkit.schemas.walk import kind_of
from agentkit.toolspec import Layout, ToolSpec

Target = Literal["structural_tag", "gbnf"]
"""`structural_tag` for vLLM, SGLang and xgrammar; `gbnf` for llama.cpp."""

COUNTED: Final = 1999  # llama.cpp refuses higher counts: MAX_REPETITION_THRESHOLD in its `llama-grammar.cpp`
_CDATA: Final = Exclusion(CDATA_OPEN, start=True)


@dataclass(slots=True)
class CallRules:
    """One tool's call in one format, while it is turned into rules.

    Args:
        format: the format.
        tool: the tool.
        prefix: the prefix of its rules' names.
        target: the system that enforces the rules.
    """

    format: Format
    tool: ToolSpec
    prefix: str
    target: Target
    schemas: SchemaRules = field(init=False)

    def __post_init__(self) -> None:
        layout: Layout = next((p.layout for p in self.format.call if isinstance(p, ToolElement)), "own")
        self.tool = self.tool.with_element(layout)
        largest = COUNTED if self.target == "gbnf" else None
        self.schemas = SchemaRules(self.tool.name, self.tool.parameters, self.prefix, largest)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The schema keywords that the rules do not enforce."""
        return tuple(self.schemas.gaps)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schema of each parameter, in declared order."""
        found = self.tool.parameters.get("properties", {})
        return found if isinstance(found, Mapping) else {}

    def needs(self, parameter: str) -> bool:
        """Return True if a call without this parameter is refused."""
        return parameter in self.tool.parameters.get("required", ())

    def options(self, parameter: str) -> list[Mapping[str, Any]]:
        """Return a parameter's schema split into plain ones."""
        return self.plain(self.tool.schema_of(parameter), parameter)

    def plain(self, schema: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
        """Return a schema split into plain ones."""
        found: list[Mapping[str, Any]] = []
        pending, seen = [schema], set[str]()
        while pending:
            one = pending.pop(0)
            if isinstance(ref := one.get("$ref"), str):
                if ref not in seen:  # a choice of itself adds nothing
                    seen.add(ref)
                    pending[:0] = self.schemas.options(walk.resolve(one, self.tool.parameters), path)
            else:
                split = self.schemas.options(one, path)
                pending[:0] = [o for o in split if "$ref" in o]
                found += [o for o in split if "$ref" not in o]
        return found

    def arguments(self) -> Rule:
        """Return the rule of all arguments as one JSON object."""
        schema = {"type": "object", **self.tool.parameters}
        if self.target == "gbnf":
            return self.schemas.rule(schema, JSON)
        known, losses = engine_schema(schema, XGRAMMAR)
        for loss in losses:
            self.schemas.gap("".join(s if s == "[]" else f".{s}" for s in loss.path).lstrip("."), [loss.what])
        return rules.JsonRule(known)

    def optional(self, parameter: str, make: Callable[[], Rule]) -> Rule:
        """Return the rule for one argument, which may be omitted if it is not required."""
        try:
            rule = make()
        except NoRule:
            if self.needs(parameter):
                raise
            return rules.EMPTY
        return rule if self.needs(parameter) else opt(rule)


# ---------------------------------------------------------------- raw text


def value(w: CallRules, name: str, start: str, close: str, blocked: tuple[Exclusion, ...]) -> Rule:
    """Return the rule of a value as text from `start` to `close`; the parameter's schema has its type."""
    options = w.options(name)
    texts = [o for o in options if kind_of(o) in (None, "string") and w.schemas.enum_values(o, name) is None]
    if texts:
        return _free_text(w, name, texts, options, start, close, blocked)
    found: list[Rule] = []
    array = False
    for option in options:
        listed = w.schemas.enum_values(option, name)
        if listed is not None:
            found += [seq(Lit(start), Lit(text), Lit(close)) for text in listed_texts(listed, blocked)]
        elif not array or kind_of(option) == "object":  # after an array, a scalar is read as its only item
            found.append(seq(Lit(start), w.schemas.rule(option, inside(close), name), Lit(close)))
        array = array or kind_of(option) == "array"
    if not found:
        raise NoRule(f"{w.tool.name}: {name}: no listed value can be written as text")
    return alt(found)


def _free_text(
    w: CallRules,
    name: str,
    texts: list[Any],
    options: list[Any],
    start: str,
    close: str,
    blocked: tuple[Exclusion, ...],
) -> Rule:
    """Return the rule of an unescaped string; text that reads as another allowed type must satisfy both."""
    for option in options:
        if option not in texts and kind_of(option) != "null" and (set(option) - {"type", "description", "title"}):
            w.schemas.gap(name, ["a string or another constrained type, which text does not distinguish"])
    text = texts[0]
    w.schemas.gap(name, (k for k in ("pattern", "format") if k in text))
    least, most = w.schemas.counts(text, name, "Length")
    if least:
        w.schemas.gap(name, ["minLength"])
    words = words_of_null(w, w.tool.schema_of(name), options)
    if most is not None and words:
        w.schemas.gap(name, ["maxLength together with a default of null"])
    end = close.rstrip()
    blocked = (*blocked, _CDATA, *words)
    return seq(Lit(start), Raw(end, blocked, most), Lit(close[len(end) :]))


def words_of_null(w: CallRules, schema: Mapping[str, Any], options: list[Any]) -> tuple[Exclusion, ...]:
    """Words that would be read as null, if null is the default and not a value that the schema allows."""
    if any(kind_of(o) in ("null", None) for o in options) or not values.accepts_null(schema, w.tool.parameters):
        return ()
    return tuple(Exclusion(word, start=True) for word in sorted(values.NULLS))


def listed_texts(listed: list[Any], blocked: tuple[Exclusion, ...]) -> list[str]:
    """Fixed values as text, without those that text cannot represent exactly."""
    out = []
    for value in listed:
        text = value if isinstance(value, str) else values.dump(value)
        safe = text == text.strip() and not any(b.text in text for b in (*blocked, _CDATA))
        if safe and values.same(values.read(text, {"enum": listed}, {}), value):
            out.append(text)
    return out


def typed_value(
    w: CallRules, name: str, text: str, other: Callable[[str], str], close: str, blocked: tuple[Exclusion, ...]
) -> Rule:
    """Return the rule of a value with its type: a raw string after `text`, JSON after `other` of its type."""
    found: list[Rule] = []
    for option in w.options(name):
        listed = w.schemas.enum_values(option, name)
        kind = kind_of(option)
        if listed is not None:
            strings = [v for v in listed if isinstance(v, str)]
            found += [seq(Lit(text), Lit(t), Lit(close)) for t in listed_texts(strings, blocked)]
            found += [
                seq(Lit(other(walk.type_of(v))), Lit(values.dump(v)), Lit(close))
                for v in listed
                if not isinstance(v, str)
            ]
            continue
        if kind in ("string", None):
            found.append(_free_text(w, name, [option], [option], text, close, blocked))
        if kind is not None and kind != "string":
            found.append(seq(Lit(other(kind)), w.schemas.rule(option, inside(close), name), Lit(close)))
    if not found:
        raise NoRule(f"{w.tool.name}: {name}: no listed value can be written as text")
    return alt(found)


# ---------------------------------------------------------------- attributes

_SAFE: Final = Chars('"&<>' + "".join(map(chr, range(0x20))), negated=True)
_ENTITIES: Final = tuple(map(Lit, ("&amp;", "&lt;", "&gt;", "&quot;", "&#10;", "&#13;", "&#9;")))


def attribute_value(w: CallRules, name: str, label: str) -> Rule:
    """Return the rule of an argument in an attribute of the tool's tag."""
    options = w.options(name)
    found: list[Rule] = []
    for option in options:
        listed = w.schemas.enum_values(option, name)
        if listed is not None:
            found += [Lit(attribute(t)) for t in listed_texts(listed, ())]
        elif kind_of(option) in (None, "string"):
            w.schemas.gap(name, (k for k in ("pattern", "format") if k in option))
            if len(options) > 1:
                w.schemas.gap(
                    name, [k for o in options if kind_of(o) not in ("string", "null") for k in set(o) - {"type"}]
                )
            found.append(Repeat(alt([_SAFE, *_ENTITIES]), *w.schemas.counts(option, name, "Length")))
        else:
            found.append(w.schemas.rule(option, ATTRIBUTE, name))
    if not found:
        raise NoRule(f"{w.tool.name}: {name}: no listed value can be written as text")
    return seq(Lit(f' {label}="'), alt(found), Lit('"'))
