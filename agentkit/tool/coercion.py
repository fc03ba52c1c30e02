"""Values normalized by a JSON Schema: null for an optional property is omitted, 5.0 becomes an integer. Pure.

In OpenAI's strict mode, a model sends null for every optional property that it leaves out, so null means absent unless
the schema allows null. Nothing else is changed: a value that matches no alternative is returned as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from agentkit.schemas.walk import Schema, alternatives, child, map_schemas, type_of, types_of
from agentkit.schemas.words import breaks

MAX_DEPTH: Final = 128
"""More deeply nested values are returned unchanged; `agentkit.formats` reads none that are deeper."""

_CONTAINERS: Final = ("array", "object")


class _Reading(NamedTuple):
    """A value as one schema reads it.

    Attributes:
        value: the value it means.
        fits: whether that matches the schema, as far as its keywords show.
        unknown: how many names in it no property declares; strict mode lets a model write none.
        changes: how many nulls were omitted in it, and how many numbers became integers.
    """

    value: Any
    fits: bool = True
    unknown: int = 0
    changes: int = 0


def without_omitted(value: Any, root: Schema) -> Any:
    """The value that is meant.

    Where several alternatives have the type of an array or object, a matching alternative decides the meaning of null:
    the one that declares most of its names, then the one that changes least, then the first.

    >>> point = {
    ...     "type": "object",
    ...     "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    ...     "required": ["x"],
    ... }
    >>> without_omitted({"x": 1.0, "y": None}, point)
    {'x': 1}
    """
    return _Reader(root).read(value, root, 0, judge=False).value


def has_choice(schema: Any, root: Schema) -> bool:
    """Return True if the schema has several alternatives for one array or one object."""
    if not isinstance(schema, Mapping):
        return False
    kinds = [option.get("type") for option in alternatives(schema, root)]
    return any(kinds.count(kind) > 1 for kind in _CONTAINERS) or any(has_choice(s, root) for s in _inside(schema))


def _inside(schema: Schema) -> Iterator[Any]:
    """Yield the schemas directly in a schema; those it refers to are among the root's definitions."""
    found: list[Any] = []
    for keyword, value in schema.items():
        map_schemas(keyword, value, lambda inner, _: found.append(inner))
    yield from found


class _Reader:
    """Reads one value. Whether it fits is found out only where alternatives ask for it.

    Each part is judged once by each schema, however many alternatives lead there.
    """

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._judged: dict[tuple[int, int], _Reading] = {}

    def read(self, value: Any, schema: Any, depth: int, *, judge: bool) -> _Reading:
        if depth > MAX_DEPTH or not isinstance(schema, Mapping):
            return _Reading(value, schema is not False)
        if not isinstance(value, list | dict):
            return self._scalar(value, schema, judge)
        if not judge:
            return self._container(value, schema, depth, judge=False)
        key = id(value), id(schema)
        if (found := self._judged.get(key)) is None:
            found = self._judged[key] = self._container(value, schema, depth, judge=True)
        return found

    def _scalar(self, value: Any, schema: Schema, judge: bool) -> _Reading:
        integral = isinstance(value, float) and value.is_integer()
        if not judge and not integral:
            return _Reading(value)
        options = list(alternatives(schema, self._root))
        kinds = {option.get("type") for option in options}
        changes = integral and "integer" in kinds and "number" not in kinds
        if changes:
            value = int(Decimal(repr(value)))
        return _Reading(value, not judge or _matches(value, options), changes=int(changes))

    def _container(self, value: Any, schema: Schema, depth: int, *, judge: bool) -> _Reading:
        options = list(alternatives(schema, self._root))
        kind = type_of(value)
        meant = [option for option in options if option.get("type") == kind]
        if not meant:
            return _Reading(value, not judge or _matches(value, options))
        read = self._array if kind == "array" else self._object
        if len(meant) == 1:
            return read(value, meant[0], depth + 1, judge)
        fitting = [found for option in meant if (found := read(value, option, depth + 1, True)).fits]
        return min(fitting, key=lambda found: found[2:], default=_Reading(value, fits=False))

    def _array(self, value: list[Any], option: Schema, depth: int, judge: bool) -> _Reading:
        items = [self.read(item, child(option, i), depth, judge=judge) for i, item in enumerate(value)]
        whole = [item.value for item in items]
        return _Reading(whole, not judge or _holds(whole, option, items), *_counts(items))

    def _object(self, value: dict[str, Any], option: Schema, depth: int, judge: bool) -> _Reading:
        said = {name: item for name, item in value.items() if item is not None or not self._omitted(name, option)}
        items = {name: self.read(item, child(option, name), depth, judge=judge) for name, item in said.items()}
        whole = {name: item.value for name, item in items.items()}
        if not judge:
            return _Reading(whole)
        fits = said.keys() >= set(option.get("required", ())) and _holds(whole, option, items.values())
        unknown, changes = _counts(items.values())
        if "properties" in option:
            unknown += sum(child(option, name) is None for name in said)
        return _Reading(whole, fits, unknown, changes + len(value) - len(said))

    def _omitted(self, name: str, owner: Schema) -> bool:
        """Return True if null for this property can only mean that it was left out."""
        schema = owner.get("properties", {}).get(name)
        if not isinstance(schema, Mapping) or name in owner.get("required", ()):
            return False
        allowed = types_of(schema, self._root)
        return bool(allowed) and "null" not in allowed


def _matches(value: Any, options: list[Schema]) -> bool:
    return any(not breaks(value, option) for option in options)


def _holds(value: Any, option: Schema, parts: Collection[_Reading]) -> bool:
    return all(part.fits for part in parts) and not breaks(value, option)


def _counts(parts: Collection[_Reading]) -> tuple[int, int]:
    return sum(part.unknown for part in parts), sum(part.changes for part in parts)
