"""Walking a JSON Schema: where a `$ref` leads, and what alternatives there are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]


_REFS = 32  # hops; a longer chain of $ref is a cycle


def resolve(schema: Schema, root: Schema) -> Schema:
    """Follow local `$ref`s (`#/$defs/…`) to a schema without one; the empty schema where they lead nowhere."""
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
"""What makes one schema several, beside a list of types."""


def alternatives(schema: Schema, root: Schema) -> Iterable[Schema]:
    """The plain schemas a value may satisfy: `$ref`, `anyOf`, `oneOf`, single `allOf` and type lists taken apart."""
    plain = _COMPOUND.isdisjoint(schema) and not isinstance(schema.get("type"), list)
    return (schema,) if plain else _taken_apart(schema, root)


def _taken_apart(schema: Schema, root: Schema) -> Iterator[Schema]:
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
