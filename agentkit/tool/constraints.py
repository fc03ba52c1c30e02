"""Constraints that cannot be applied to their type. Knows core schemas of pydantic, and no hint.

Pydantic builds what it can of a constraint into a type's own schema. It puts the rest after the type, and raises a
`TypeError` in each call where the value cannot be measured or compared like this: here the tool's author gets
the error instead, when the tool is registered.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from agentkit.tool.strict_validators import Core, nodes

_SAMPLES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "bool": False, "bytes": b"", "complex": 0j, "date": datetime.date.min, "datetime": datetime.datetime.min,
        "decimal": Decimal(), "dict": {}, "float": 0.0, "frozenset": frozenset(), "int": 0, "list": [], "none": None,
        "set": set(), "str": "", "time": datetime.time.min, "timedelta": datetime.timedelta(), "tuple": (),
        "typed-dict": {}, "uuid": UUID(int=0),
    }
)  # fmt: skip
"""A value of each type, as a core schema names it: what cannot be applied to one can be applied to none of them."""

_METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "min_length": "__len__", "max_length": "__len__", "gt": "__gt__", "ge": "__ge__", "lt": "__lt__",
        "le": "__le__", "multiple_of": "__mod__", "max_digits": "as_tuple", "decimal_places": "as_tuple",
        "allow_inf_nan": "__float__", "pattern": "casefold",
    }
)  # fmt: skip
"""The constraints, each with the method that a class needs for it."""

_AROUND: Final = ("default", "definitions", "nullable")
"""Core schemas that are about the one inside; of one that may be null, pydantic constrains only that."""


class _Constraint(NamedTuple):
    """A constraint after a type: its options as written, the type, and the function that applies it to a value."""

    options: Mapping[str, Any]
    at: Core
    apply: Callable[[Any], Any]

    def applies(self, value: Any) -> bool:
        """Return True if the constraint can be applied to a value, or to the instances of a class."""
        if isinstance(value, type):
            methods = map(_METHODS.__getitem__, self.options)
            return all(getattr(value, name, None) is not getattr(object, name, None) for name in methods)
        try:
            self.apply(value)
        except TypeError:
            return False
        except ValueError:  # it is not as wanted
            return True
        return True


def misapplied_constraint(core: Core) -> str:
    """Return in words a constraint, anywhere in a type, that cannot be applied to its type; empty if all can."""
    found = list(nodes(core))
    definitions = {node["ref"]: node for node in found if node.get("ref")}
    for constraint in filter(None, map(_constraint, found)):
        types = list(_types(constraint.at, definitions))
        for name, value in types:
            if not constraint.applies(value):
                written = ", ".join(f"{option}={wanted!r}" for option, wanted in constraint.options.items())
                only = "write it only at the types that it is for" if len(types) > 1 else "remove it"
                return f"but {written} cannot be applied to {name}; {only}"
    return ""


def _constraint(node: Core) -> _Constraint | None:
    """The constraint that this node puts after a type."""
    match node:
        case {"type": "function-after", "function": {"function": partial() as made}, "schema": at}:
            of_pydantic = str(getattr(made.func, "__module__", "")).startswith("pydantic.")
            known = of_pydantic and made.keywords and made.keywords.keys() <= _METHODS.keys()
            return _Constraint(made.keywords, at, made) if known else None
        case {"type": "function-after", "function": {"function": made}, "schema": at}:
            found = getattr(made, "__name__", "") == "forbid_inf_nan_check"
            return _Constraint({"allow_inf_nan": False}, at, made) if found else None
        case {"type": "chain", "steps": [at, {"type": "function-wrap", "schema": {"type": "str", "pattern": wanted}}]}:
            return _Constraint({"pattern": wanted}, at, _as_text)
    return None


def _as_text(value: Any) -> None:
    """Refuse a value that a pattern cannot match.

    Raises:
        TypeError: it is not a string.
    """
    if not isinstance(value, str):
        raise TypeError


def _types(schema: Core, definitions: Mapping[str, Core]) -> Iterator[tuple[str, Any]]:
    """Yield the types that a value may have, each by its name and with a value of it or as a class.

    Left out are unknown types, such as `Any` and the result of the author's own function.
    """
    kind = schema["type"]
    match kind:
        case "definition-ref":
            yield from _types(definitions[schema["schema_ref"]], definitions)
        case "union" | "tagged-union":
            choices = schema["choices"].values() if kind == "tagged-union" else schema["choices"]
            for choice in choices:
                yield from _types(choice[0] if isinstance(choice, tuple) else choice, definitions)
        case "literal":
            yield from ((repr(value), value) for value in schema["expected"])
        case "enum":
            yield from ((str(member), member) for member in schema["members"])
        case "model" | "dataclass":
            yield schema["cls"].__name__, schema["cls"]
        case "function-after" if (inner := _constraint(schema)) is not None:
            yield from _types(inner.at, definitions)
        case _ if kind in _AROUND:
            yield from _types(schema["schema"], definitions)
        case _ if kind in _SAMPLES:
            yield kind, _SAMPLES[kind]
