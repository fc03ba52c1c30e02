"""A hand-written schema: read in any of its shapes, and checked against the signature. Knows no provider.

The model sees the schema; the call needs the signature. If they differ, one of them is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentkit.errors import SchemaError
from agentkit.schemas.walk import references, resolve, types_of
from agentkit.tool.signature import NOTHING, Parameter, Signature

ARGUMENT_KEYS: Final = ("parameters", "input_schema", "inputSchema")
"""The keys under which a function has its arguments' schema: OpenAI, Anthropic, MCP."""

SHAPES: Final = (
    'an OpenAI function, {"type": "function", "function": {"name": ..., "description": ..., "parameters": {...}}}, its '
    'inner part alone, or the JSON Schema of the arguments, {"type": "object", "properties": {...}}'
)


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """A hand-written schema.

    Args:
        parameters: the JSON Schema of the arguments, exactly as written.
        name: the tool's name; None if the schema has none.
        description: None if the schema has none.
        strict: whether it is written for OpenAI's strict mode, where optional parameters are also required.
    """

    parameters: Mapping[str, Any]
    name: str | None = None
    description: str | None = None
    strict: bool = False


def read_written(raw: Mapping[str, Any], where: str) -> WrittenSchema:
    """Read a hand-written schema in any of its shapes.

    Raises:
        SchemaError: it has none of these shapes, or is not a valid JSON Schema of an object.
    """
    if raw.get("type") == "object" or "properties" in raw:
        return WrittenSchema(_object_schema(raw, where), None, raw.get("description"))
    function = raw.get("function", raw)
    if not isinstance(function, Mapping) or not function.keys() & {"name", "description", *ARGUMENT_KEYS}:
        raise SchemaError(f"{where}: the hand-written schema has the keys {list(raw)}; write {SHAPES}")
    written = [function[key] for key in ARGUMENT_KEYS if key in function]
    parameters = written[0] if written else {"type": "object", "properties": {}}
    strict = bool(function.get("strict") or raw.get("strict"))
    return WrittenSchema(_object_schema(parameters, where), function.get("name"), function.get("description"), strict)


def _object_schema(schema: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise SchemaError(f"{where}: the hand-written schema must describe an object; write {SHAPES}; found {schema!r}")
    refuse_invalid(schema, where)
    return schema


def refuse_invalid(schema: Mapping[str, Any], where: str) -> None:
    """Refuse an invalid JSON Schema.

    Raises:
        SchemaError: says where it is invalid, and why.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError as NotASchema

    try:
        Draft202012Validator.check_schema(schema)
    except NotASchema as e:
        at = "/".join(str(step) for step in e.absolute_path) or "its root"
        raise SchemaError(f"{where}: the hand-written schema is not valid JSON Schema at {at}: {e.message}") from e
    for reference in references(schema):
        if reference != "#" and not (reference.startswith("#/") and resolve({"$ref": reference}, schema)):
            why = "which it does not contain" if reference.startswith("#/") else "which is no '#/...' pointer into it"
            raise SchemaError(
                f"{where}: the hand-written schema refers to {reference!r}, {why}; put the "
                "definition under '$defs' and refer to '#/$defs/...'"
            )


def compare(written: WrittenSchema, signature: Signature, derived: Mapping[str, Any]) -> None:
    """Check a hand-written schema against the signature.

    Args:
        written: the schema.
        signature: the function.
        derived: the schema derived from the hints, for the types.

    Raises:
        SchemaError: an extra or missing parameter; a parameter required in one and optional in the other; different
            defaults; types without a common value.
    """
    properties: Mapping[str, Any] = written.parameters.get("properties", {})
    where = signature.where
    for name in properties:
        if name not in signature.names:
            why = "receives the ToolContext" if name in signature.context else "is not in the signature"
            why = "is Hidden" if name in signature.hidden else why
            raise SchemaError(f"{where}: the hand-written schema has parameter {name!r}, which {why}; remove it there")
    for name in written.parameters.get("required", ()):
        if name not in properties:
            raise SchemaError(
                f"{where}: the hand-written schema requires {name!r}, which is not in its 'properties'; remove it from "
                "'required'"
            )
    for parameter in signature.parameters:
        if parameter.name not in properties:
            raise SchemaError(
                f"{where}: parameter {parameter.name!r} is missing from the hand-written schema; add it to 'properties'"
            )
        _compare_required(parameter, written, where)
        _compare_default(parameter, properties[parameter.name], where)
        _compare_types(parameter, properties[parameter.name], written.parameters, derived, where)


def _compare_required(parameter: Parameter, written: WrittenSchema, where: str) -> None:
    required = parameter.name in written.parameters.get("required", ())
    if parameter.required and not required:
        raise SchemaError(
            f"{where}: parameter {parameter.name!r} has no default, but the hand-written schema does not require it; "
            "add it to 'required', or give it a default"
        )
    if required and not parameter.required and not written.strict:
        raise SchemaError(
            f"{where}: parameter {parameter.name!r} has a default, but the hand-written schema requires it; remove it "
            "from 'required', or remove the default"
        )


def _compare_default(parameter: Parameter, schema: Any, where: str) -> None:
    if not isinstance(schema, Mapping) or "default" not in schema:
        return
    theirs = schema["default"]
    ours = json_default(parameter)
    if type(ours) is not type(theirs) or ours != theirs:
        stated = "no default" if parameter.required else f"default {parameter.default!r}"
        raise SchemaError(
            f"{where}: parameter {parameter.name!r} has {stated} in the signature, but default {theirs!r} in the "
            "hand-written schema; make them the same"
        )


def _compare_types(
    parameter: Parameter, schema: Any, root: Mapping[str, Any], derived: Mapping[str, Any], where: str
) -> None:
    ours = types_of(derived["properties"][parameter.name], derived)
    theirs = types_of(schema if isinstance(schema, Mapping) else {}, root)
    if ours and theirs and not ours & theirs:
        raise SchemaError(
            f"{where}: parameter {parameter.name!r} is {' or '.join(sorted(ours))} by its hint, but "
            f"{' or '.join(sorted(theirs))} in the hand-written schema; make them the same"
        )


def json_default(parameter: Parameter) -> Any:
    """A default as JSON; `NOTHING` for a parameter without one, or with one that JSON cannot represent."""
    if parameter.required:
        return NOTHING
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        value = to_jsonable_python(parameter.default)
        json.dumps(value, allow_nan=False)
    except (PydanticSerializationError, TypeError, ValueError):
        return NOTHING
    return value
