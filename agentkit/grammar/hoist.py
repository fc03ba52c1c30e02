"""A JSON Schema made fit for an engine that reads schemas: self-contained, closed, without what they do not know.

Pure; knows schemas. `$ref`s are gathered under `$defs`, `nullable` is written out, objects with declared properties
take no others. A keyword that the engine does not know is a `Gap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentkit.grammar.from_schema import ANNOTATIONS, Gap, SchemaRules, kind_of
from agentkit.schemas import walk

ENFORCED: Final = frozenset((
    "type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "properties", "required", "additionalProperties",
    "items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "patternProperties", "propertyNames",
    "minProperties", "maxProperties",
))  # fmt: skip
"""What xgrammar enforces, the one engine that is given schemas. Source: its JSON Schema converter, 0.2.6."""
FORMATS: Final = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")
)
"""Formats of strings that it enforces."""


@dataclass(slots=True)
class Hoist:
    """One schema of one tool on its way to being self-contained.

    Args:
        tool: the tool's name, for gaps.
        root: the schema in which `$ref`s are looked up.
    """

    tool: str
    root: Mapping[str, Any]
    gaps: dict[Gap, None] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _defs: dict[str, Any] = field(default_factory=dict)

    def whole(self, schema: Any) -> dict[str, Any]:
        """The schema with everything that it refers to."""
        out = dict(self._at(schema, ""))
        return {**out, "$defs": self._defs} if self._defs else out

    def _at(self, schema: Any, path: str) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or not {k for k in schema if k not in ANNOTATIONS}:
            return {"not": {}} if schema is False else {}
        ref = schema.get("$ref")
        if isinstance(ref, str):
            self._note(path, (k for k in schema if k != "$ref" and k not in ANNOTATIONS))
            return {"$ref": f"#/$defs/{self._named(ref, path)}"}
        out: dict[str, Any] = {}
        for key, value in schema.items():
            if key in ANNOTATIONS or key.startswith("x-"):
                continue
            if key == "format" and value in FORMATS:
                out[key] = value
            elif key in ENFORCED:
                out[key] = self._below(key, value, path)
            else:
                self._note(path, [key])
        self._tidy(out, schema, path)
        return {"anyOf": [out, {"type": "null"}]} if schema.get("nullable") is True else out

    def _tidy(self, out: dict[str, Any], schema: Mapping[str, Any], path: str) -> None:
        """What the engine wants otherwise than the schema says it."""
        if "allOf" in out and len(out["allOf"]) > 1:
            self._note(path, ["allOf"])
        if "oneOf" in out:
            if not SchemaRules(self.tool, self.root, "").disjoint(schema["oneOf"]):
                self._note(path, ["oneOf"])
            out["anyOf"] = out.pop("oneOf")
        kind = kind_of(schema)
        if kind == "object":
            out["type"] = "object"
            if out.get("properties") or "additionalProperties" not in out:
                out["additionalProperties"] = False if "properties" in out else {}
        if kind == "array":
            out.setdefault("items", {})

    def _below(self, key: str, value: Any, path: str) -> Any:
        """A keyword's value, with the schemas in it."""
        match key:
            case "properties" | "patternProperties" if isinstance(value, Mapping):
                return {n: self._at(s, f"{path}.{n}".lstrip(".")) for n, s in value.items()}
            case "anyOf" | "oneOf" | "allOf" | "prefixItems" if isinstance(value, list):
                return [self._at(s, path) for s in value]
            case "items" | "propertyNames":
                return self._at(value, f"{path}[]")
            case "additionalProperties":
                return False if value is False else self._at(value, f"{path}.*")
        return value

    def _named(self, ref: str, path: str) -> str:
        if ref not in self._names:
            name = self._names[ref] = f"d{len(self._names)}"
            self._defs[name] = self._at(walk.resolve({"$ref": ref}, self.root), path)
        return self._names[ref]

    def _note(self, path: str, keywords: Any) -> None:
        self.gaps |= dict.fromkeys(Gap(self.tool, path, k) for k in keywords)
