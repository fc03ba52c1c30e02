"""Keywords that llama.cpp's converter of schemas refuses: their search, and the schema without them. Pure.

A server that converts schemas to grammars refuses the whole request for one keyword. Only refused keywords are
rewritten or omitted: the model reads the schema too, so all others stay, even if the converter ignores them.
Source: `common/json-schema-to-grammar.cpp` and `common/json-schema.cpp` of llama.cpp, build 11434 and
earlier.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from agentkit.schemas.dialects import REPORTED
from agentkit.schemas.patterns import MOST, NoSpelling, respell
from agentkit.schemas.walk import TYPES, Schema

_BOUND: Final = 10**15
"""Bounds of integers from here on: the converter writes at most 16 digits, and loops on some longer bounds."""

_NAMED: Final = ("properties", "$defs", "definitions")
_LISTED: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


class Refusal(NamedTuple):
    """Something in a schema that the converter refuses.

    Args:
        path: where: keywords and names from the root, such as `("properties", "date", "pattern")`.
        why: the refused keyword or value, in words.
        lost: whether the schema without it allows more; otherwise it says the same in another spelling.
    """

    path: tuple[str, ...]
    why: str
    lost: bool


def convertible(schema: Schema) -> tuple[dict[str, Any], tuple[Refusal, ...]]:
    """Return a schema that the converter accepts, and everything that it would have refused.

    The description next to an omitted keyword states it for the model.
    """
    walk = _Walk(schema)
    return walk.node(schema, ()), tuple(walk.refusals)


class _Walk:
    def __init__(self, root: Schema) -> None:
        self.root = root
        self.refusals: list[Refusal] = []

    def node(self, schema: Any, path: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            self.refusals.append(Refusal(path, f"a schema that is {json.dumps(schema)}", schema is not True))
            return {}
        out: dict[str, Any] = {}
        omitted: dict[str, Any] = {}
        for key, value in schema.items():
            why = self.fault(key, value, schema)
            if why is not None:
                self.refusals.append(Refusal((*path, key), why, lost=True))
                omitted |= {key: value} if key in REPORTED else {}
            elif key == "pattern":
                self.pattern(value, (*path, key), out, omitted)
            else:
                out[key] = self.below(key, value, (*path, key))
        if omitted:
            said = f"Must satisfy {json.dumps(omitted, ensure_ascii=False)}"
            out["description"] = ". ".join(s.rstrip(". ") for s in (out.get("description", ""), said) if s)
        return out

    def pattern(self, value: str, path: tuple[str, ...], out: dict[str, Any], omitted: dict[str, Any]) -> None:
        try:
            out["pattern"], refused = respell(value)
        except NoSpelling as e:
            self.refusals.append(Refusal(path, f"{value} has {e}", lost=True))
            omitted["pattern"] = value
            return
        if refused:
            self.refusals.append(Refusal(path, f"{value} has {' and '.join(refused)}", lost=False))

    def below(self, key: str, value: Any, path: tuple[str, ...]) -> Any:
        """Return a keyword's value, with the schemas in it that the converter reads."""
        if key in _NAMED:
            return {name: self.node(inner, (*path, name)) for name, inner in value.items()}
        if key in _LISTED or (key == "items" and isinstance(value, list)):
            return [self.node(inner, (*path, str(at))) for at, inner in enumerate(value)]
        if key == "items" or (key == "additionalProperties" and not isinstance(value, bool)):
            return self.node(value, path)
        return value

    def fault(self, key: str, value: Any, schema: Schema) -> str | None:
        """Return the reason for which the converter refuses a keyword, patterns and inner schemas aside; else None."""
        if key == "$ref":
            return None if isinstance(value, str) and self.leads(value) else f"{value!r} leads nowhere in this schema"
        if key == "additionalProperties" and value is not False and schema.get("properties"):
            odd = [name for name in schema["properties"] if not _ODD.isdisjoint(name)]
            return f"other properties next to one whose name has a sign of classes: {odd[0]!r}" if odd else None
        wanted = _WANTED.get(key)
        return None if wanted is None or wanted[0](value) else f"{json.dumps(value)} is not {wanted[1]}"

    def leads(self, ref: str) -> bool:
        """Return True if the converter finds the schema that a reference names; it knows no escapes."""
        found: Any = self.root
        for step in ref.split("/")[1:]:
            found = found.get(step) if isinstance(found, Mapping) else None
        return ref.startswith("#/") and isinstance(found, Mapping)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _is_bound(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _BOUND


def _names_types(value: Any) -> bool:
    named = [value] if isinstance(value, str) else value
    return isinstance(named, list) and bool(named) and TYPES.issuperset(named)


def _is_several(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_ODD: Final = frozenset("]^\\")
_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems")
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_WANTED: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "type": (_names_types, "one of JSON's types, or several"),
    "pattern": (lambda value: isinstance(value, str), "a text"),
    "format": (lambda value: isinstance(value, str), "a text"),
    "properties": (lambda value: isinstance(value, Mapping), "an object"),
    **dict.fromkeys(("enum", "anyOf", "oneOf", "allOf"), (_is_several, "a list of at least one")),
    **dict.fromkeys(_COUNTS, (_is_count, f"a count of at most {MOST:,}")),
    **dict.fromkeys(_BOUNDS, (_is_bound, f"a number of at most {len(str(_BOUND)) - 1} digits")),
}
"""The converter's condition on each keyword's value, and its words."""
