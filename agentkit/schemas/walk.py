"""Traverses a JSON Schema: where a `$ref` leads, its alternatives, the schemas inside it, its types. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

Schema = Mapping[str, Any]

ANNOTATIONS: Final = frozenset((
    "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable",
    "$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "contentEncoding", "contentMediaType",
    "discriminator",
))  # fmt: skip
"""Keywords that refuse no value."""

# ---------------------------------------------------------------- types

_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
TYPES: Final = frozenset((*_TYPES.values(), "null"))
"""The types of JSON Schema."""


def type_of(value: Any, other: str = "null") -> str:
    """Return the JSON type of a JSON value; `other` for one that is not in `_TYPES`."""
    return _TYPES.get(type(value), other)


def kind_of(schema: Schema) -> str | None:
    """Return the one type of a schema; inferred from its keywords if it names none. None for any type."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind if kind in TYPES else None
    return "object" if "properties" in schema else "array" if "items" in schema else None


def named_types(schema: Schema) -> list[str]:
    """Return the types that a schema names."""
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def types_of(schema: Schema, root: Schema) -> frozenset[str]:
    """Return the JSON types that a schema allows; empty if it allows any. An integer is also a number."""
    found: set[str] = set()
    for option in alternatives(schema, root):
        kinds = [option["type"]] if "type" in option else [type_of(value) for value in enum_values(option) or ()]
        if not kinds:
            return frozenset()
        found.update(kinds)
    return frozenset(found | ({"integer"} if "number" in found else set()))


def enum_values(schema: Schema) -> list[Any] | None:
    """Return the values of a schema's `enum` or `const`; None without one."""
    found = [schema["const"]] if "const" in schema else schema.get("enum")
    return found if isinstance(found, list) else None


# ---------------------------------------------------------------- references and alternatives

_REFS = 32  # hops; a longer chain of $ref is a cycle


def resolve(schema: Schema, root: Schema) -> Schema:
    """Follow local `$ref`s (`#/$defs/…`) to a schema without one; the empty schema if they lead nowhere."""
    for _ in range(_REFS):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        found: Any = root
        for step in ref.removeprefix("#/").split("/"):
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            return {}
        schema = found
    return {}


_COMPOUND: Final = frozenset(("$ref", "anyOf", "oneOf", "allOf", "nullable"))
"""The keywords that give one schema alternatives, in addition to a list of types."""


def alternatives(schema: Schema, root: Schema) -> Iterable[Schema]:
    """Return the plain schemas of a value, with `$ref`, `anyOf`, `oneOf`, single `allOf` and type lists expanded."""
    plain = _COMPOUND.isdisjoint(schema) and not isinstance(schema.get("type"), list)
    return (schema,) if plain else _split_alternatives(schema, root)


def _split_alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    pending = [schema]
    for _ in range(256):  # a schema with more alternatives than this is cyclic
        if not pending:
            return
        plain = resolve(pending.pop(0), root)
        for key in ("anyOf", "oneOf", "allOf"):
            if isinstance(plain.get(key), list):
                pending = [s for s in plain[key] if isinstance(s, Mapping)] + pending
                break
        else:
            kind = plain.get("type")
            if isinstance(kind, list):
                pending = [{**plain, "type": k} for k in kind] + pending
            else:
                yield plain
            if plain.get("nullable") is True:
                yield {"type": "null"}


def with_all_properties(schema: Schema) -> Schema:
    """Return an object's schema with the properties of its `$ref`, `allOf`, `anyOf`, `oneOf`, `then` and `else`.

    It accepts no more than before, and may accept less where one name has several meanings; made to be shown, not to
    be checked against. A schema that allows no other names, or only some, is returned as it is.

    >>> with_all_properties({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {"type": "null"}}}]})[
    ...     "properties"
    ... ]
    {'a': {}, 'b': {'type': 'null'}}
    """
    if schema.get("additionalProperties", True) is not True:
        return schema
    found: dict[str, dict[str, Any]] = {}  # by name, each way in which it is described once
    pending: list[Any] = [schema]
    seen: set[int] = set()
    for inner in pending:  # which grows
        one = resolve(inner, schema)
        if id(one) in seen:
            continue
        seen.add(id(one))
        properties = one.get("properties")
        for name, value in properties.items() if isinstance(properties, Mapping) else ():
            found.setdefault(name, {}).setdefault(repr(value), value)
        several = [inner for key in ("allOf", "anyOf", "oneOf") if isinstance(one.get(key), list) for inner in one[key]]
        pending += [more for more in (*several, one.get("then"), one.get("else")) if isinstance(more, Mapping)]
    own = schema.get("properties", {})
    new = {name: [*ways.values()] for name, ways in found.items() if name not in own}
    added = {name: {"anyOf": ways} if ways[1:] else ways[0] for name, ways in new.items()}
    return {**schema, "properties": {**own, **added}} if added else schema


def disjoint(options: Sequence[Any], root: Schema) -> bool:
    """Say if no value satisfies two of the schemas, by their types or a property that is fixed in each."""
    plain = [resolve(o, root) for o in options if isinstance(o, Mapping)]
    kinds = [{"integer": "number"}.get(str(p.get("type")), str(p.get("type"))) for p in plain]
    if len(plain) == len(options) == len(set(kinds)) and "None" not in kinds:
        return True
    fixed = [
        {(n, json.dumps(s["const"])) for n, s in p.get("properties", {}).items()
         if isinstance(s, Mapping) and "const" in s and n in p.get("required", ())}
        for p in plain
    ]  # fmt: skip
    names = set.intersection(*({n for n, _ in f} for f in fixed)) if fixed else set()
    return any(len({v for f in fixed for m, v in f if m == n}) == len(options) for n in names)


# ---------------------------------------------------------------- inner schemas

BY_NAME: Final = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Keywords that contain schemas by name."""
SEVERAL: Final = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
"""Keywords that contain a list of schemas."""
ONE: Final = frozenset((
    "items", "propertyNames", "contains", "additionalProperties", "not", "if", "then", "else",
    "unevaluatedItems", "unevaluatedProperties", "contentSchema",
))  # fmt: skip
"""Keywords that contain a schema."""


def map_schemas(keyword: str, value: Any, change: Callable[[Any, str], Any]) -> Any:
    """Return a keyword's value with the schemas directly in it changed; any other value unchanged.

    Args:
        keyword: the keyword.
        value: its value.
        change: called with a schema and its name there; `*` if it has none.
    """
    if keyword in BY_NAME and isinstance(value, Mapping):
        return {name: change(inner, name) for name, inner in value.items()}
    if keyword in SEVERAL and isinstance(value, list):
        return [change(inner, "*") for inner in value]
    return change(value, "*") if keyword in ONE else value


def child(schema: Schema, step: str | int) -> Any:
    """Return the schema of a property or of an item; None or a boolean if there is none."""
    if isinstance(step, str):
        return schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    prefix = schema.get("prefixItems", ())
    return prefix[step] if step < len(prefix) else schema.get("items")


_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def references(schema: Any) -> Iterator[str]:
    """Yield every reference in a schema, including the rare kinds."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            yield from (
                (value,)
                if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str)
                else references(value)
            )
    elif isinstance(schema, list):
        for inner in schema:
            yield from references(inner)


_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_DATA = ("enum", "const", "required", "default", "examples", "example")


def words(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield the words that a model must write exactly when it fills in this JSON Schema, each with its place."""
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        if key in ("enum", "const", "required"):
            yield from ((word, key) for word in strings(value))
        elif key == "properties" and isinstance(value, Mapping):
            yield from ((name, "parameter") for name in value)
        if key in _OF_SCHEMAS and isinstance(value, Mapping):
            value = list(value.values())
        if key not in _DATA:
            for below in value if isinstance(value, list | tuple) else (value,):
                yield from words(below)


def map_strings(value: Any, change: Callable[[str], str], *, keys: bool = False) -> Any:
    """Change each string in a JSON value; also its keys, if `keys` is set.

    >>> map_strings({"a": ["b", 1]}, str.upper)
    {'a': ['B', 1]}
    """
    match value:
        case str():
            return change(value)
        case Mapping():
            named = ((change(str(key)) if keys else key, inner) for key, inner in value.items())
            return {key: map_strings(inner, change, keys=keys) for key, inner in named}
        case list():
            return [map_strings(inner, change, keys=keys) for inner in value]
        case _:
            return value


def strings(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, keys included."""
    match value:
        case str():
            yield value
        case Mapping():
            for k, v in value.items():
                yield k
                yield from strings(v)
        case list() | tuple():
            for v in value:
                yield from strings(v)
        case _:
            pass
