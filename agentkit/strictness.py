"""A JSON Schema rewritten to what OpenAI's strict mode accepts, with a report of what was lost. Pure.

Strict mode wants: an object at the root; in every object all properties required and no others; optional ones
nullable; a type (or `anyOf`, `enum`, `$ref`) everywhere; and no keyword but those in `KEPT`.
Source: OpenAI's guide to structured outputs, "Supported schemas".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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

STRING_FORMATS: Final = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
)
"""The values of `format` that strict mode knows."""

MAX_LEVELS: Final = 10
"""Strict mode's bound on nesting."""

MAX_PROPERTIES: Final = 5_000
"""Strict mode's bound on properties in one schema."""

ANYTHING: Final[Mapping[str, Any]] = {"type": ["string", "number", "boolean", "null"]}
"""What stands for a value of any kind, which strict mode does not have."""


def strict_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Rewrite a schema of an arguments object.

    Args:
        schema: JSON Schema 2020-12, its references within `$defs`.

    Returns:
        The schema in strict mode, and one line per loss: `/path: what was lost`.
    """
    rewriter = _Rewriter(schema)
    root = {key: value for key, value in schema.items() if key != "$defs"}
    out = rewriter.closed(rewriter.folded(root, ""), "", 1)
    if definitions := schema.get("$defs"):
        out["$defs"] = {name: rewriter.node(d, f"/$defs/{name}", 1) for name, d in definitions.items()}
    if rewriter.properties > MAX_PROPERTIES:
        rewriter.lose("", f"{rewriter.properties} properties; strict mode allows {MAX_PROPERTIES}")
    return out, tuple(rewriter.report)


class _Rewriter:
    """Walks one schema; collects the report."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.definitions: Mapping[str, Any] = root.get("$defs", {})
        self.report: list[str] = []
        self.properties = 0

    def lose(self, path: str, what: str) -> None:
        self.report.append(f"{path or '/'}: {what}")

    def node(self, schema: Any, path: str, level: int) -> dict[str, Any]:
        """Any schema below the root."""
        if level == MAX_LEVELS + 1:
            self.lose(path, f"nested deeper than the {MAX_LEVELS} levels of strict mode")
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
            self.lose(path, "an object with keys of the model's choice; strict mode knows only declared properties")
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        self.properties += len(properties)
        out = self.kept({**schema, "type": schema.get("type", "object")}, path)
        out["properties"] = {
            name: self.property(value, f"{path}/{name}", level + 1, optional=name not in required)
            for name, value in properties.items()
        }
        return {**out, "required": list(properties), "additionalProperties": False}

    def property(self, schema: Any, path: str, level: int, *, optional: bool) -> dict[str, Any]:
        """One property. A default is lost: the model must always send a value."""
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
        for part in out.pop("allOf", ()):
            self.lose(path, "allOf was merged into one schema")
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
            self.lose(path, "a value of any kind became a string, number, boolean or null")
        return ANYTHING if path else {"type": "object"}

    def kept(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        """What strict mode knows; the rest is reported. Keywords that hold schemas are the caller's."""
        for keyword in sorted((schema.keys() - KEPT - SILENT - {"default"}) | (schema.keys() & {"anyOf"})):
            self.lose(path, f"{keyword} {json.dumps(schema[keyword], ensure_ascii=False)} was removed")
        if schema.get("format", "date") not in STRING_FORMATS:
            self.lose(path, f"format {schema['format']!r} was removed")
            schema = {key: value for key, value in schema.items() if key != "format"}
        inner = {"anyOf", "properties", "items", "required", "additionalProperties", "$defs"}
        return {key: value for key, value in schema.items() if key in KEPT and key not in inner}


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
