"""JSON Schemas of clients: keywords that are null are removed; those of the wrong type are refused. Pure.

Only the types of the keywords that agentkit reads are checked, not their meaning: servers accept any dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentkit.errors import show_value
from agentkit.gateway.client_request import RequestRefused

_MAX_DEPTH: Final = 64  # of nested schemas: far from Python's own limit of about 1,000 nested calls


def client_schema(schema: Any, at: str, depth: int = 0) -> dict[str, Any]:
    """Return a schema without keywords that are null.

    Args:
        schema: as the client wrote it.
        at: where it is in the request.
        depth: the number of schemas around it.

    Raises:
        RequestRefused: it is not a schema.
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        raise _refused(at, f"a JSON Schema of at most {_MAX_DEPTH} nested schemas", schema)
    found = {}
    for name, value in schema.items():
        if value is None and name not in ("default", "const"):
            continue
        read = _KEYWORDS.get(name)
        found[name] = value if read is None else read(value, f"{at}.{name}", depth + 1)
    return found


def _refused(at: str, expected: str, value: Any) -> RequestRefused:
    return RequestRefused(400, f"{at}: expected {expected}, found {show_value(value)}", "invalid_request", param=at)


def _schema(value: Any, at: str, depth: int) -> Any:
    return value if isinstance(value, bool) else client_schema(value, at, depth)


def _object(value: Any, at: str, depth: int) -> dict[str, Any]:
    """Return a schema as an object, as agentkit reads those of parameters."""
    if isinstance(value, bool):
        return {} if value else {"not": {}}
    return client_schema(value, at, depth)


def _by_name(value: Any, at: str, depth: int) -> Any:
    if not isinstance(value, Mapping):
        raise _refused(at, "an object of schemas", value)
    return {name: _object(inner, f"{at}.{name}", depth) for name, inner in value.items() if inner is not None}


def _list(value: Any, at: str, depth: int) -> Any:
    if not isinstance(value, list):
        raise _refused(at, "a list of schemas", value)
    return [_object(inner, f"{at}[{n}]", depth) for n, inner in enumerate(value)]


def _schema_or_list(value: Any, at: str, depth: int) -> Any:
    return _list(value, at, depth) if isinstance(value, list) else _schema(value, at, depth)


def _values(value: Any, at: str, depth: int) -> Any:
    if not isinstance(value, list):
        raise _refused(at, "a list of values", value)
    return value


def _names(value: Any, at: str, depth: int) -> Any:
    if isinstance(value, bool):  # in a property, as drafts 3 and OpenAPI 2 have it
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _refused(at, "a list of names", value)
    return value


def _types(value: Any, at: str, depth: int) -> Any:
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in several):
        raise _refused(at, "a type, or a list of types", value)
    return value


def _text(value: Any, at: str, depth: int) -> Any:
    if not isinstance(value, str):
        raise _refused(at, "a string", value)
    return value


_KEYWORDS: Final[Mapping[str, Callable[[Any, str, int], Any]]] = {
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), _by_name),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _list),
    **dict.fromkeys(("additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"), _schema),
    **dict.fromkeys(("description", "title", "$ref", "pattern", "format"), _text),
    "items": _schema_or_list,
    "enum": _values,
    "required": _names,
    "type": _types,
}
"""What is read of each keyword."""
