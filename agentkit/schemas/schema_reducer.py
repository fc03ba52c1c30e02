"""A schema for a system that passes on only a part of it: the description states the keywords it would drop. Pure.

The result allows every value that the schema allows, and the tool checks the rest, so that a model which reads no
description is corrected, and no right value is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentkit.schemas.dialects import SILENT, Dialect
from agentkit.schemas.schema_rewriter import Loss, Path
from agentkit.schemas.walk import (
    ANNOTATIONS,
    Schema,
    alternatives,
    enum_values,
    kind_of,
    map_schemas,
    references,
    resolve,
    type_of,
    with_all_properties,
)

_ANY: Final = ("string", "integer", "number", "boolean", "array", "object", "null")
_NESTED: Final = 16  # alternatives within alternatives; deeper ones contain themselves
_UNSAID: Final = SILENT | {"description", "default", "nullable", "$defs", "definitions"}


def reduced_schema(schema: Schema, dialect: Dialect) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    """Rewrite the schema of an arguments object for a system that keeps a part of it.

    Args:
        schema: JSON Schema 2020-12, its references local.
        dialect: the keywords that the system keeps; below the root, all others are dropped.

    Returns:
        The schema, and the losses: all that only descriptions state.
    """
    reducer = _Reducer(schema, dialect)
    return reducer.rewrite(), tuple(dict.fromkeys(reducer.losses))


_AT_NO_ROOT: Final = frozenset(("$ref", "anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"))


def with_plain_root(schema: Schema) -> tuple[dict[str, Any], str]:
    """Rewrite a schema of an arguments object for a provider that accepts no alternatives at its root.

    The properties of all alternatives are offered, and those that each of them requires are required. The result allows
    all that the schema allows. Source: OpenAI's and Anthropic's status 400 for a tool, as in langchain#39271.

    Returns:
        The schema, and the dropped keywords in words; empty without any.
    """
    lost = {key: value for key, value in schema.items() if key in _AT_NO_ROOT}
    if not lost and schema.get("type") == "object":
        return dict(schema), ""
    kept = {key: value for key, value in with_all_properties(schema).items() if key not in _AT_NO_ROOT}
    needed = _required_names(schema, schema, 0)
    properties = kept.get("properties", {})
    out = {**kept, "type": "object", "properties": properties, "required": [n for n in properties if n in needed]}
    if any(ref != "#" and not resolve({"$ref": ref}, out) for ref in references(out)):
        out |= {"properties": {name: {} for name in properties}}  # it leads into a dropped keyword
    return out, f"The arguments must satisfy {_json(lost)}" if lost else ""


def _required_names(schema: Any, root: Schema, depth: int) -> set[str]:
    """Return the properties that every value of the schema has."""
    if not isinstance(schema, Mapping) or depth > _NESTED:
        return set()
    found = set(schema.get("required", ()))
    if "$ref" in schema:
        found |= _required_names(resolve(schema, root), root, depth + 1)
    for inner in schema.get("allOf", ()):
        found |= _required_names(inner, root, depth + 1)
    for key in ("anyOf", "oneOf"):
        if among := [_required_names(inner, root, depth + 1) for inner in schema.get(key, ())]:
            found |= set.intersection(*among)
    return found


class _Reducer:
    """Traverses one schema, and records the keywords that move to a description.

    Attributes:
        losses: these keywords.
    """

    def __init__(self, schema: Schema, dialect: Dialect) -> None:
        self.schema, self.dialect = schema, dialect
        self.losses: list[Loss] = []

    def rewrite(self) -> dict[str, Any]:
        """Return the whole schema. The root's demands on several properties have no description to move to."""
        root = resolve(self.schema, self.schema)
        for keyword in root.keys() - ANNOTATIONS - {"type", "properties", "required"}:
            if not (keyword == "additionalProperties" and root[keyword] is False):
                self.losses.append(Loss((), f"{keyword} was removed"))
        properties = {name: self.node(value, (name,)) for name, value in root.get("properties", {}).items()}
        required = [name for name in properties if name in root.get("required", ())]
        return {"type": "object", "properties": properties, "required": required}

    def node(self, schema: Any, path: Path) -> dict[str, Any]:
        """Return a reduced property, or an item of one."""
        schema = schema if isinstance(schema, Mapping) else {}
        said: list[str] = []
        options = list(alternatives(schema, self.schema))
        if self._takes_anything(schema):
            options.append({})
        out = self._types(options)
        values = [enum_values(option) for option in options if option.get("type") != "null"]
        if values and all(values):
            each = {_json(value): value for some in values for value in some or ()}  # once: options may share them
            out |= self._enum(list(each.values()), out, path, said)
            if "enum" not in out:
                self._items_of_any(out, path)
        else:
            self._rest(schema, options, out, path, said)
        if "default" in schema:
            self._tell("default", f"Default: {_json(schema['default'])}", path, said)
        about = str(self._about(schema))
        if said:
            about = ". ".join(word.rstrip(". ") for word in (about, *said) if word)
        return out | ({"description": about} if about else {})

    def _takes_anything(self, schema: Schema, depth: int = 0) -> bool:
        """Return True if `true`, the schema of anything, is among its alternatives, which `alternatives` leaves out."""
        plain = resolve(schema, self.schema)
        for key in ("anyOf", "oneOf", "allOf"):
            if isinstance(among := plain.get(key), list):
                inner = [option for option in among if isinstance(option, Mapping)] if depth < _NESTED else []
                return (True in among and key != "allOf") or any(self._takes_anything(o, depth + 1) for o in inner)
        return False

    def _about(self, schema: Schema) -> Any:
        """Return a schema's description; without one, that of the schema it refers to."""
        return schema.get("description") or resolve(schema, self.schema).get("description", "")

    def _types(self, options: Sequence[Schema]) -> dict[str, Any]:
        named: dict[str, None] = {}
        for option in options or [{}]:
            kind = kind_of(option)
            kinds = [kind] if kind else [type_of(value) for value in enum_values(option) or ()] or _ANY
            named.update(dict.fromkeys(kinds))
        if "number" in named:
            named.pop("integer", None)
        types = list(named)
        if not self.dialect.several:
            types = [name for name in types if name != "null"][:1] or ["string"]
        return {"type": types[0] if len(types) == 1 else types}

    def _enum(self, values: list[Any], out: Schema, path: Path, said: list[str]) -> dict[str, Any]:
        """Return the allowed values as the dialect has them."""
        if None not in values and "null" in out["type"] and isinstance(out["type"], list):
            values = [*values, None]
        nested = not self.dialect.nested and any(isinstance(value, list | Mapping) for value in values)
        if not nested and (self.dialect.several or all(isinstance(value, str) for value in values)):
            return {"enum": values}
        if nested:
            self._tell("enum", f"One of {_json(values)}", path, said)
            return {}
        if strings := [value for value in values if value is not None and not isinstance(value, str)]:
            self._tell("enum", f"One of {_json(strings)}", path, said)
            return {}
        return {"enum": [value for value in values if value is not None]}

    def _rest(
        self, schema: Schema, options: Sequence[Schema], out: dict[str, Any], path: Path, said: list[str]
    ) -> None:
        """Keep the other keywords if the dialect has a place for them; otherwise state them in the description."""
        several = [option for option in options if option.get("type") != "null"]
        exclusive = "oneOf" in resolve(schema, self.schema) and self._takes_anything(schema)
        merged = len(several) == 1 and len(schema.get("allOf", ())) < 2 and not exclusive
        if not self.dialect.several and len(several) > 1:
            merged = False
        if not merged:
            whole = self.inline({key: value for key, value in schema.items() if key not in ANNOTATIONS}, path, ())
            said_by_types = self.dialect.several and not any(o.keys() - _UNSAID - {"type"} for o in options)
            if not said_by_types or exclusive:
                self._tell("anyOf" if len(several) > 1 else "allOf", f"Must satisfy {_json(whole)}", path, said)
            self._items_of_any(out, path)
            return
        (one,) = several
        rest = {key: one[key] for key in one if key not in _UNSAID and key != "type" and _restricts(key, one[key])}
        if "items" in self.dialect.kept and kind_of(one) == "array":
            item = _Reducer(self.schema, self.dialect).node(one.get("items", {}), (*path, "[]"))
            if "description" not in item:  # else it says more than a place without a description can
                rest.pop("items", None)
            out["items"] = {key: value for key, value in item.items() if key != "description"}
        if rest:
            self._tell(", ".join(rest), f"Must satisfy {_json(self.inline(rest, path, ()))}", path, said)

    def _items_of_any(self, out: dict[str, Any], path: Path) -> None:
        """Say that a list may hold anything, where the dialect has a place for that."""
        kinds = {out["type"]} if isinstance(out["type"], str) else set(out["type"])
        if "items" in self.dialect.kept and kinds - {"null"} == {"array"}:
            out["items"] = self.node({}, (*path, "[]"))

    def _tell(self, keyword: str, words: str, path: Path, said: list[str]) -> None:
        said.append(words)
        self.losses.append(Loss(path, f"{keyword}: in the description only"))

    def inline(self, schema: Any, path: Path, inside: tuple[str, ...]) -> Any:
        """Return a schema without references; where it contains itself, the inner one allows anything."""
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        if isinstance(reference, str):
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            if reference in inside:
                self.losses.append(Loss(path, "it contains itself: described to one level only"))
                return beside
            target = resolve({"$ref": reference}, self.schema)
            return self.inline({**target, **beside}, path, (*inside, reference))
        kept = {key: value for key, value in schema.items() if key not in SILENT | {"$defs", "definitions"}}
        return {
            key: map_schemas(key, value, lambda inner, _: self.inline(inner, path, inside))
            for key, value in kept.items()
        }


def _restricts(keyword: str, value: Any) -> bool:
    """Return True if a keyword with this value refuses a value, or has a schema that may."""
    return not (keyword in ("items", "additionalProperties") and value in (True, {}))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
