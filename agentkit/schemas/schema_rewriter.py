"""A JSON Schema rewritten to a dialect, with a report of the losses. Pure.

For providers, which refuse a schema with other keywords, and for engines, which ignore these: providers get a schema
that is closed and has all of its types, engines one that is self-contained and closed where it declares properties.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agentkit.schemas.dialects import (
    LONG_ENUM,
    MAX_CHARACTERS,
    MAX_ENUM,
    MAX_LEVELS,
    MAX_LONG_ENUM,
    MAX_PROPERTIES,
    OPENAI,
    REPORTED,
    SILENT,
    Dialect,
)
from agentkit.schemas.walk import (
    ANNOTATIONS,
    BY_NAME,
    SEVERAL,
    Schema,
    disjoint,
    kind_of,
    map_schemas,
    named_types,
    references,
    resolve,
    type_of,
)

Path = tuple[str, ...]
"""A place in a schema: names of properties, `*` for the others, `[]` or `*` for the items of an array."""

ANYTHING: Final[Mapping[str, Any]] = {"type": ["string", "number", "boolean", "null"]}
"""The replacement for a value of any kind, which strict mode does not have."""


class Loss(NamedTuple):
    """Something that a schema says and its rewriting does not.

    Attributes:
        path: where it was lost.
        what: the keyword, or a description of the loss.
        narrows: whether a value that the schema allows cannot be expressed any more, or the schema would be refused.
    """

    path: Path
    what: str
    narrows: bool = False

    def __str__(self) -> str:
        return f"{'/'.join(('', *self.path)) or '/'}: {self.what}"


def strict_schema(schema: Schema) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Rewrite a schema of an arguments object to OpenAI's strict mode.

    Args:
        schema: JSON Schema 2020-12, its references within `$defs`.

    Returns:
        The schema in strict mode, and one line per loss: `/path: what was lost`.
    """
    rewriter = _Provider(schema, OPENAI)
    return rewriter.rewrite(), tuple(map(str, rewriter.losses))


def constrained_schema(schema: Schema, dialect: Dialect) -> dict[str, Any] | None:
    """Rewrite a schema of an object so that every allowed value can still be written; None if the dialect cannot.

    The result may allow more: a bound that the dialect does not know is omitted, and the reader must check it.
    """
    rewriter = _Provider(schema, dialect)
    out = rewriter.rewrite()
    return None if any(loss.narrows for loss in rewriter.losses) else out


def engine_schema(schema: Schema, dialect: Dialect) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    """Rewrite a schema for an engine that reads schemas; keywords that it would ignore are omitted and reported."""
    rewriter = _Engine(schema, dialect)
    return rewriter.rewrite(), tuple(dict.fromkeys(rewriter.losses))


class _Rewriter:
    """Traverses one schema, and records the losses.

    Attributes:
        losses: the constraints that the result does not have.
    """

    def __init__(self, schema: Schema, dialect: Dialect) -> None:
        self.schema, self.dialect = schema, dialect
        self.losses: list[Loss] = []

    def lose(self, path: Path, what: str, *, narrows: bool = False) -> None:
        self.losses.append(Loss(path, what, narrows))

    def accepts(self, keyword: str, value: Any) -> bool:
        """Return True if the dialect knows a keyword, with this value."""
        if keyword in ("pattern", "patternProperties") and self.dialect.patterns is not None:
            patterns = (value,) if keyword == "pattern" else value
            return keyword in self.dialect.kept and all(map(self.dialect.patterns.match, patterns))
        return keyword in self.dialect.kept and (keyword != "format" or value in self.dialect.formats)


# ---------------------------------------------------------------- providers


class _Provider(_Rewriter):
    """Rewrites for a provider, which refuses all other keywords.

    Attributes:
        properties: how many properties all objects have together.
    """

    def __init__(self, schema: Schema, dialect: Dialect) -> None:
        super().__init__(schema, dialect)
        self.definitions: Mapping[str, Any] = schema.get("$defs", {})
        self.properties = 0

    def rewrite(self) -> dict[str, Any]:
        root = {key: value for key, value in self.schema.items() if key != "$defs"}
        out = self.close(self.to_strict_keywords(root, ()), (), 1)
        if self.definitions:
            out["$defs"] = {name: self.node(d, ("$defs", name), 1) for name, d in self.definitions.items()}
        if self.properties > MAX_PROPERTIES:
            said = f"{self.properties} properties; strict mode allows {MAX_PROPERTIES}"
            self.lose((), said, narrows=True)
        for said in _large_enums(out) if self.dialect.sized else ():
            self.lose((), said, narrows=True)
        if not self.dialect.recursive and _holds_itself(self.definitions):
            self.lose((), "a schema that contains itself", narrows=True)
        return out

    def node(self, schema: Any, path: Path, level: int) -> dict[str, Any]:
        """Return a rewritten schema below the root."""
        if level == MAX_LEVELS + 1:
            self.lose(path, f"nested deeper than the {MAX_LEVELS} levels of strict mode", narrows=True)
        schema = self.to_strict_keywords(schema, path)
        if "$ref" in schema:
            return self.reference(schema)
        if "anyOf" in schema:
            return self.union(schema, path, level)
        if "object" in named_types(schema):
            return self.close(schema, path, level)
        out = self.known_keywords(schema, path)
        if "array" in named_types(schema):
            out["items"] = self.node(schema.get("items", {}), (*path, "*"), level + 1)
        return out

    def reference(self, schema: Schema) -> dict[str, Any]:
        """Strict mode allows nothing next to `$ref`: the reference is wrapped to keep its description."""
        reference = {"$ref": schema["$ref"]}
        return {"anyOf": [reference], "description": schema["description"]} if "description" in schema else reference

    def union(self, schema: Schema, path: Path, level: int) -> dict[str, Any]:
        """`anyOf`, without the keywords next to it."""
        for keyword in sorted(schema.keys() - {"anyOf", "description", "type", *SILENT}):
            self.lose(path, f"{keyword} next to anyOf was removed")
        out: dict[str, Any] = {"anyOf": [self.node(member, path, level) for member in schema["anyOf"]]}
        return out | ({"description": schema["description"]} if "description" in schema else {})

    def close(self, schema: Schema, path: Path, level: int) -> dict[str, Any]:
        """Return an object with every property required, the optional ones nullable, and no others."""
        more = schema.get("additionalProperties")
        if more is not False and (more is not None or not schema.get("properties")):
            said = "an object with keys of the model's choice; strict mode knows only declared properties"
            self.lose(path, said, narrows=True)
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        self.properties += len(properties)
        out = self.known_keywords({**schema, "type": schema.get("type", "object")}, path)
        out["properties"] = {
            name: self.property(value, (*path, name), level + 1, optional=name not in required)
            for name, value in properties.items()
        }
        listed = [name for name in properties if name in required] if self.dialect.optional else list(properties)
        return {**out, "required": listed, "additionalProperties": False}

    def property(self, schema: Any, path: Path, level: int, *, optional: bool) -> dict[str, Any]:
        """Return a rewritten property. If the model must always send a value, a default is lost."""
        if self.dialect.optional:
            return self.node(schema, path, level)
        bare = {k: v for k, v in schema.items() if k != "default"} if isinstance(schema, Mapping) else {}
        out = self.node(bare, path, level)
        if not optional:
            return out
        null = self.accepts_null(schema)
        what, default = "it is optional", False
        if isinstance(schema, Mapping) and "default" in schema:
            default = schema["default"]
            what = f"default {json.dumps(default, ensure_ascii=False)} was removed"
        means_itself = null and default is not None
        how = (
            "null is one of its values, so the model cannot omit it"
            if means_itself
            else "the model sends null to omit it"
        )
        self.lose(path, f"{what}; {how}")
        return out if null else self.nullable(out)

    def nullable(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema of the same values and null."""
        if "null" in named_types(schema):
            return schema
        if "anyOf" in schema:
            return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
        if "$ref" not in schema and "enum" not in schema:
            return {**schema, "type": [*named_types(schema), "null"]}
        outer = {"description": schema.pop("description")} if "description" in schema else {}
        return {"anyOf": [schema, {"type": "null"}], **outer}

    def accepts_null(self, schema: Any, depth: int = 0) -> bool:
        if not isinstance(schema, Mapping) or depth > MAX_LEVELS:
            return False
        if (name := str(schema.get("$ref", "")).removeprefix("#/$defs/")) in self.definitions:
            return self.accepts_null(self.definitions[name], depth + 1)
        members = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        if any(self.accepts_null(member, depth + 1) for member in members):
            return True
        return "null" in named_types(schema) or None in schema.get("enum", ())

    def to_strict_keywords(self, schema: Any, path: Path) -> dict[str, Any]:
        """Return the schema with keywords in the spelling of strict mode."""
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
            self.lose(path, "a tuple became an array whose items may be in any position")
            out["items"] = _either(out.pop("prefixItems"))
        if "enum" in out and "type" not in out:
            out["type"] = _one_or_many(sorted({type_of(value) for value in out["enum"]}))
        if not out.keys() & {"type", "anyOf", "$ref"}:
            return {**out, **self.type_for(out, path)}
        return out

    def type_for(self, schema: Schema, path: Path) -> Mapping[str, Any]:
        """Return a type for a schema that has none."""
        for keyword, kind in (("properties", "object"), ("items", "array")):
            if keyword in schema:
                return {"type": kind}
        if path:
            self.lose(path, "a value of any kind became a string, number, boolean or null", narrows=True)
        return ANYTHING if path else {"type": "object"}

    def known_keywords(self, schema: Schema, path: Path) -> dict[str, Any]:
        """Return the keywords that the dialect knows; the rest is reported, and the description states bounds.

        Keywords that contain schemas are left to the caller.
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
        if reported := {key: schema[key] for key in lost if key in REPORTED}:
            words = (schema.get("description", ""), f"Must satisfy {json.dumps(reported, ensure_ascii=False)}")
            out["description"] = ". ".join(word.rstrip(". ") for word in words if word)
        return out


# ---------------------------------------------------------------- strict mode's limits


def _large_enums(schema: Schema) -> Iterator[str]:
    """Yield the limits of strict mode that a schema exceeds, except those that the rewriting counts."""
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


def _inner(schema: Schema) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the schemas directly inside, with the number of levels by which they are deeper."""
    for inner in schema.get("properties", {}).values():
        yield 1, inner
    if "items" in schema:
        yield 1, schema["items"]
    for inner in schema.get("anyOf", ()):
        yield 0, inner


def _schemas(schema: Schema) -> Iterator[Mapping[str, Any]]:
    yield schema
    for _, inner in _inner(schema):
        yield from _schemas(inner)
    for inner in schema.get("$defs", {}).values():
        yield from _schemas(inner)


def _levels(schema: Schema, definitions: Mapping[str, Any], known: dict[str, int]) -> int:
    """Return the levels of a schema, following its references; a reference back to itself is followed once."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name not in known:
            known[name] = 1
            known[name] = _levels(definitions.get(name, {}), definitions, known)
        return known[name]
    return max((deeper + _levels(inner, definitions, known) for deeper, inner in _inner(schema)), default=1)


def _holds_itself(definitions: Mapping[str, Any]) -> bool:
    edges = {name: {ref.removeprefix("#/$defs/") for ref in references(d)} for name, d in definitions.items()}
    while ready := [name for name, wanted in edges.items() if not wanted & edges.keys()]:
        for name in ready:
            del edges[name]
    return bool(edges)


def _either(schemas: list[Any]) -> dict[str, Any]:
    """Return one schema for values of any of these."""
    different = [s for i, s in enumerate(schemas) if s not in schemas[:i]]
    return dict(different[0]) if len(different) == 1 else {"anyOf": different}


def _one_or_many(names: list[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else names


# ---------------------------------------------------------------- engines


class _Engine(_Rewriter):
    """Rewrites for an engine: `$ref`s are collected under `$defs`, `nullable` is written out."""

    def __init__(self, schema: Schema, dialect: Dialect) -> None:
        super().__init__(schema, dialect)
        self.names: dict[str, str] = {}
        self.definitions: dict[str, Any] = {}

    def rewrite(self) -> dict[str, Any]:
        out = dict(self.node(self.schema, ()))
        return {**out, "$defs": self.definitions} if self.definitions else out

    def node(self, schema: Any, path: Path) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or not schema.keys() - ANNOTATIONS:
            return {"not": {}} if schema is False else {}
        ref = schema.get("$ref")
        if isinstance(ref, str):
            for keyword in (k for k in schema if k != "$ref" and k not in ANNOTATIONS):
                self.lose(path, keyword)
            return {"$ref": f"#/$defs/{self.define(ref, path)}"}
        out: dict[str, Any] = {}
        for key, value in schema.items():
            if key in ANNOTATIONS or key.startswith("x-"):
                continue
            if self.accepts(key, value):
                out[key] = self.below(key, value, path)
            else:
                self.lose(path, key)
        self.tidy(out, schema, path)
        return {"anyOf": [out, {"type": "null"}]} if schema.get("nullable") is True else out

    def below(self, key: str, value: Any, path: Path) -> Any:
        """Return a keyword's value, with the schemas in it."""
        if key == "additionalProperties" and value is False:
            return False
        own = key in BY_NAME or key == "additionalProperties"
        return map_schemas(
            key, value, lambda inner, name: self.node(inner, path if key in SEVERAL else (*path, name if own else "[]"))
        )

    def tidy(self, out: dict[str, Any], schema: Schema, path: Path) -> None:
        """Change the keywords that the engine expects in another form."""
        if "allOf" in out and len(out["allOf"]) > 1:
            self.lose(path, "allOf")
        if "oneOf" in out:
            if not disjoint(schema["oneOf"], self.schema):
                self.lose(path, "oneOf")
            out["anyOf"] = out.pop("oneOf")
        kind = kind_of(schema)
        if kind == "object":
            out["type"] = "object"
            if out.get("properties") or "additionalProperties" not in out:
                out["additionalProperties"] = False if "properties" in out else {}
        if kind == "array":
            out.setdefault("items", {})

    def define(self, ref: str, path: Path) -> str:
        if ref not in self.names:
            name = self.names[ref] = f"d{len(self.names)}"
            self.definitions[name] = self.node(resolve({"$ref": ref}, self.schema), path)
        return self.names[ref]
