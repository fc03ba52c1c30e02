"""JSON values against a JSON Schema: jsonschema, with comparisons in linear time. Pure; loads it on first use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

NULLABLE: Final = ("type", "enum", "const", "anyOf", "oneOf", "allOf")


def checker_of(schema: Mapping[str, Any]) -> Validator:
    """Return the validator of a valid schema (2020-12) that refers to nothing outside itself.

    jsonschema itself compares each item with each other one, and each value with each of an `enum`.
    """
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend
    from referencing import Registry

    listed: dict[int, frozenset[str]] = {}  # by the identity of an `enum`, which the schema keeps alive

    def enum(_: Validator, wanted: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
        if id(wanted) not in listed:
            listed[id(wanted)] = frozenset(map(json_key, wanted))
        if json_key(instance) not in listed[id(wanted)]:
            yield ValidationError("is not one of the listed values")

    def unique(validator: Validator, wanted: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
        if wanted and validator.is_type(instance, "array") and len(set(map(json_key, instance))) < len(instance):
            yield ValidationError("has non-unique elements")

    checks = {**Draft202012Validator.VALIDATORS, "enum": enum, "uniqueItems": unique}
    checks |= {key: _or_null(checks[key]) for key in NULLABLE}
    made = extend(Draft202012Validator, checks)  # type: ignore[no-untyped-call]
    checker: Validator = made(schema, registry=Registry())  # the default one downloads missing schemas
    return checker


def _or_null(check: Callable[..., Any]) -> Callable[..., Any]:
    """Return a check of a keyword that also accepts null under OpenAPI 3.0's `nullable: true`."""

    def check_or_null(validator: Validator, wanted: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
        allowed = instance is None and schema.get("nullable") is True
        return () if allowed else check(validator, wanted, instance, schema)

    return check_or_null


def json_key(value: Any) -> str:
    """Return a text that two values share if JSON Schema has them equal: 1 and 1.0 are, true and 1 are not.

    >>> json_key({"b": [1.0], "a": True}) == json_key({"a": True, "b": [1]}) != json_key({"a": 1, "b": [1]})
    True
    """
    match value:
        case Mapping():
            return "{" + ",".join(f"{json.dumps(name)}:{json_key(value[name])}" for name in sorted(value)) + "}"
        case list() | tuple():
            return "[" + ",".join(map(json_key, value)) + "]"
        case float() if value.is_integer():
            return hex(int(value))
        case int() if not isinstance(value, bool):
            return hex(value)  # unlike decimal digits, linear and without a limit
        case _:
            return json.dumps(value, default=repr)
