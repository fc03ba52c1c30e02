"""A JSON Schema rewritten to what a provider's constrained decoding accepts, with a report of what was lost. Pure.

OpenAI's strict mode wants: an object at the root; in every object all properties required and no others; optional ones
nullable; a type (or `anyOf`, `enum`, `$ref`) everywhere; and no keyword but those in `KEPT`. Anthropic's structured
outputs want objects without other properties, too; optional properties may be left out; no bounds, and no schema that
holds itself.
Source: OpenAI's guide to structured outputs, "Supported schemas"; Anthropic's, "JSON Schema limitations".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

KEPT: Final = frozenset(
    (
        *("$ref", "$defs", "type", "description", "enum", "anyOf"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)
"""The keywords of strict mode."""

SILENT: Final = frozenset({"title", "$schema", "$id", "$comment", "examples", "deprecated", "discriminator"})
"""Keywords that restrict nothing, so that losing them needs no report."""

TOLD: Final = frozenset(
    (
        *("pattern", "format", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)
"""Keywords that go into the description where they cannot stay."""

STRING_FORMATS: Final = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
)
"""The values of `format` that strict mode knows."""

MAX_LEVELS: Final = 10
"""Strict mode's bound on nesting."""

MAX_PROPERTIES: Final = 5_000
"""Strict mode's bound on properties in one schema."""

MAX_ENUM: Final = 1_000
"""Strict mode's bound on the values of all enums of one schema."""

LONG_ENUM: Final = 250
MAX_LONG_ENUM: Final = 15_000
"""Strict mode's bound on the characters of one enum of strings that has more than `LONG_ENUM` values."""

MAX_CHARACTERS: Final = 120_000
"""Strict mode's bound on the characters of all names of properties and definitions, and of all values of enums."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What of JSON Schema a provider's constrained decoding accepts.

    Args:
        kept: the keywords.
        formats: the values of `format`.
        optional: whether a property may be left out; else every one is required, and null stands for "left out".
        recursive: whether a schema may hold itself.
        sized: whether strict mode's bounds on enums and characters hold, and that on levels through references.
    """

    kept: frozenset[str]
    formats: frozenset[str]
    optional: bool
    recursive: bool
    sized: bool = False


OPENAI: Final = Dialect(KEPT, STRING_FORMATS, optional=False, recursive=True, sized=True)
ANTHROPIC: Final = Dialect(
    frozenset(
        (
            *("$ref", "$defs", "type", "description", "enum", "anyOf", "format"),
            *("properties", "required", "additionalProperties", "items"),
        )
    ),
    STRING_FORMATS | {"uri"},
    optional=True,
    recursive=False,
)

ANYTHING: Final[Mapping[str, Any]] = {"type": ["string", "number", "boolean", "null"]}
"""What stands for a value of any kind, which strict mode does not have."""


def strict_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Rewrite a schema of an arguments object to OpenAI's strict mode.

    Args:
        schema: JSON Schema 2020-12, its references within `$defs`.

    Returns:
        The schema in strict mode, and one line per loss: `/path: what was lost`.
    """
    rewriter = _Rewriter(schema, OPENAI)
    return rewriter.root(), tuple(rewriter.report)


def constrained_schema(schema: Mapping[str, Any], dialect: Dialect) -> dict[str, Any] | None:
    """Rewrite a schema of an object so that all that it allows can still be said; None where the dialect cannot.

    What comes back may allow more: a bound that the dialect does not know is left out, and is for the reader to check.
    """
    rewriter = _Rewriter(schema, dialect)
    out = rewriter.root()
    return None if rewriter.narrowed else out


class _Rewriter:
    """Walks one schema; collects the report.

    Attributes:
        report: one line per loss.
        narrowed: whether a value that the schema allows cannot be said any more, or the provider refuses the schema.
    """

    def __init__(self, schema: Mapping[str, Any], dialect: Dialect) -> None:
        self.schema, self.dialect = schema, dialect
        self.definitions: Mapping[str, Any] = schema.get("$defs", {})
        self.report: list[str] = []
        self.narrowed = False
        self.properties = 0

    def lose(self, path: str, what: str, *, narrows: bool = False) -> None:
        self.report.append(f"{path or '/'}: {what}")
        self.narrowed = self.narrowed or narrows

    def root(self) -> dict[str, Any]:
        """The whole schema."""
        root = {key: value for key, value in self.schema.items() if key != "$defs"}
        out = self.closed(self.folded(root, ""), "", 1)
        if self.definitions:
            out["$defs"] = {name: self.node(d, f"/$defs/{name}", 1) for name, d in self.definitions.items()}
        if self.properties > MAX_PROPERTIES:
            said = f"{self.properties} properties; strict mode allows {MAX_PROPERTIES}"
            self.lose("", said, narrows=True)
        for said in _oversized(out) if self.dialect.sized else ():
            self.lose("", said, narrows=True)
        if not self.dialect.recursive and _holds_itself(self.definitions):
            self.lose("", "a schema that holds itself", narrows=True)
        return out

    def node(self, schema: Any, path: str, level: int) -> dict[str, Any]:
        """Any schema below the root."""
        if level == MAX_LEVELS + 1:
            self.lose(path, f"nested deeper than the {MAX_LEVELS} levels of strict mode", narrows=True)
        schema = self.folded(schema, path)
        if "$ref" in schema:
            return self.reference(schema)
        if "anyOf" in schema:
            return self.union(schema, path, level)
        if "object" in _types(schema):
            return self.closed(schema, path, level)
        out = self.kept(schema, path)
        if "array" in _types(schema):
            out["items"] = self.node(schema.get("items", {}), f"{path}/*", level + 1)
        return out

    def reference(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Strict mode allows nothing beside `$ref`: a description goes around it."""
        reference = {"$ref": schema["$ref"]}
        return {"anyOf": [reference], "description": schema["description"]} if "description" in schema else reference

    def union(self, schema: Mapping[str, Any], path: str, level: int) -> dict[str, Any]:
        """`anyOf`, without what stands beside it."""
        for keyword in schema.keys() - {"anyOf", "description", "type", *SILENT}:
            self.lose(path, f"{keyword} beside anyOf was removed")
        out: dict[str, Any] = {"anyOf": [self.node(member, path, level) for member in schema["anyOf"]]}
        return out | ({"description": schema["description"]} if "description" in schema else {})

    def closed(self, schema: Mapping[str, Any], path: str, level: int) -> dict[str, Any]:
        """An object: every property required, the optional ones nullable, no others."""
        more = schema.get("additionalProperties")
        if more is not False and (more is not None or not schema.get("properties")):
            said = "an object with keys of the model's choice; strict mode knows only declared properties"
            self.lose(path, said, narrows=True)
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        self.properties += len(properties)
        out = self.kept({**schema, "type": schema.get("type", "object")}, path)
        out["properties"] = {
            name: self.property(value, f"{path}/{name}", level + 1, optional=name not in required)
            for name, value in properties.items()
        }
        listed = [name for name in properties if name in required] if self.dialect.optional else list(properties)
        return {**out, "required": listed, "additionalProperties": False}

    def property(self, schema: Any, path: str, level: int, *, optional: bool) -> dict[str, Any]:
        """One property. Where the model must always send a value, a default is lost."""
        if self.dialect.optional:
            return self.node(schema, path, level)
        if optional and "default" in schema:
            shown = json.dumps(schema["default"], ensure_ascii=False)
            self.lose(path, f"default {shown} was removed; the model sends null to leave it out")
        elif optional:
            self.lose(path, "it is optional; the model sends null to leave it out")
        bare = {k: v for k, v in schema.items() if k != "default"} if isinstance(schema, Mapping) else {}
        out = self.node(bare, path, level)
        return self.nullable(out) if optional and not self.accepts_null(schema) else out

    def nullable(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The same or null."""
        if "null" in _types(schema):
            return schema
        if "anyOf" in schema:
            return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
        if "$ref" not in schema and "enum" not in schema:
            return {**schema, "type": [*_types(schema), "null"]}
        outer = {"description": schema.pop("description")} if "description" in schema else {}
        return {"anyOf": [schema, {"type": "null"}], **outer}

    def accepts_null(self, schema: Any, depth: int = 0) -> bool:
        """Whether null is valid already."""
        if not isinstance(schema, Mapping) or depth > MAX_LEVELS:
            return False
        if (name := str(schema.get("$ref", "")).removeprefix("#/$defs/")) in self.definitions:
            return self.accepts_null(self.definitions[name], depth + 1)
        members = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        if any(self.accepts_null(member, depth + 1) for member in members):
            return True
        return "null" in _types(schema) or None in schema.get("enum", ())

    def folded(self, schema: Any, path: str) -> dict[str, Any]:
        """The same schema with the keywords that strict mode spells otherwise."""
        out = dict(schema) if isinstance(schema, Mapping) else {}
        parts = out.pop("allOf", ())
        for part in parts:
            self.lose(path, "allOf was merged into one schema", narrows=len(parts) > 1)
            out = {**part, **out}
        if "const" in out:
            out["enum"] = [out.pop("const")]
        if "oneOf" in out:
            out["anyOf"] = [*out.get("anyOf", ()), *out.pop("oneOf")]
        if "prefixItems" in out:
            self.lose(path, "a tuple became an array whose items may stand at any place")
            out["items"] = _either(out.pop("prefixItems"))
        if "enum" in out and "type" not in out:
            out["type"] = _one_or_many(sorted({_type_of(value) for value in out["enum"]}))
        if not out.keys() & {"type", "anyOf", "$ref"}:
            return {**out, **self.typed(out, path)}
        return out

    def typed(self, schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """A type for a schema that has none."""
        for keyword, kind in (("properties", "object"), ("items", "array")):
            if keyword in schema:
                return {"type": kind}
        if path:
            self.lose(path, "a value of any kind became a string, number, boolean or null", narrows=True)
        return ANYTHING if path else {"type": "object"}

    def kept(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        """What the dialect knows; the rest is reported, and bounds are told in the description.

        Keywords that hold schemas are the caller's.
        """
        kept = self.dialect.kept
        lost = sorted((schema.keys() - kept - SILENT - {"default"}) | (schema.keys() & {"anyOf"}))
        for keyword in lost:
            self.lose(path, f"{keyword} {json.dumps(schema[keyword], ensure_ascii=False)} was removed")
        if schema.get("format", "date") not in self.dialect.formats:
            self.lose(path, f"format {schema['format']!r} was removed")
            lost.append("format")
        inner = {"anyOf", "properties", "items", "required", "additionalProperties", "$defs"}
        out = {key: value for key, value in schema.items() if key in kept and key not in inner and key not in lost}
        if told := {key: schema[key] for key in lost if key in TOLD}:
            words = (schema.get("description", ""), f"Must satisfy {json.dumps(told, ensure_ascii=False)}")
            out["description"] = ". ".join(word.rstrip(". ") for word in words if word)
        return out


def _oversized(schema: Mapping[str, Any]) -> Iterator[str]:
    """The bounds of strict mode that a schema is beyond, but for those that the rewriting itself counts."""
    enums = [s["enum"] for s in _schemas(schema) if "enum" in s]
    values = sum(map(len, enums))
    if values > MAX_ENUM:
        yield f"{values} values of enums; strict mode allows {MAX_ENUM}"
    for enum in enums:
        size = sum(len(value) for value in enum if isinstance(value, str))
        if len(enum) > LONG_ENUM and size > MAX_LONG_ENUM:
            yield f"an enum of {len(enum)} values with {size} characters; strict mode allows {MAX_LONG_ENUM}"
    names = sum(len(name) for s in _schemas(schema) for key in ("properties", "$defs") for name in s.get(key, ()))
    size = names + sum(len(value if isinstance(value, str) else json.dumps(value)) for enum in enums for value in enum)
    if size > MAX_CHARACTERS:
        yield f"{size} characters of names and values; strict mode allows {MAX_CHARACTERS}"
    levels = _levels(schema, schema["$defs"], {}) if "$defs" in schema else 0
    if levels > MAX_LEVELS:
        yield f"{levels} levels through references; strict mode allows {MAX_LEVELS}"


def _inner(schema: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The schemas directly inside, and how many levels deeper they stand."""
    for inner in schema.get("properties", {}).values():
        yield 1, inner
    if "items" in schema:
        yield 1, schema["items"]
    for inner in schema.get("anyOf", ()):
        yield 0, inner


def _schemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema and all schemas inside it."""
    yield schema
    for _, inner in _inner(schema):
        yield from _schemas(inner)
    for inner in schema.get("$defs", {}).values():
        yield from _schemas(inner)


def _levels(schema: Mapping[str, Any], definitions: Mapping[str, Any], known: dict[str, int]) -> int:
    """The levels of a schema, its references followed; where one leads back to itself, once."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name not in known:
            known[name] = 1
            known[name] = _levels(definitions.get(name, {}), definitions, known)
        return known[name]
    return max((deeper + _levels(inner, definitions, known) for deeper, inner in _inner(schema)), default=1)


def _holds_itself(definitions: Mapping[str, Any]) -> bool:
    """Whether a definition leads back to itself."""
    edges = {name: set(_references(definition)) for name, definition in definitions.items()}
    while ready := [name for name, wanted in edges.items() if not wanted & edges.keys()]:
        for name in ready:
            del edges[name]
    return bool(edges)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix("#/$defs/")
        for inner in schema.values():
            yield from _references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _references(inner)


def _types(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _either(schemas: list[Any]) -> dict[str, Any]:
    """One schema for values of any of these."""
    different = [s for i, s in enumerate(schemas) if s not in schemas[:i]]
    return dict(different[0]) if len(different) == 1 else {"anyOf": different}


def _one_or_many(names: list[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else names


def _type_of(value: Any) -> str:
    """A JSON value's type name."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")
