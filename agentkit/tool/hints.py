"""Type hints as one pydantic validator and one JSON Schema. The only file that builds pydantic types.

The arguments are a `TypedDict`: it allows any parameter name, it leaves out parameters that were not sent so that the
function's own defaults apply, and validating it returns the keyword arguments directly.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from enum import Enum, EnumType
from functools import cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from agentkit.errors import SchemaError
from agentkit.foreign.argument_names import CONTEXT_TYPES
from agentkit.schemas.typed.exact import DECIMAL
from agentkit.schemas.walk import map_schemas
from agentkit.tool.constraints import misapplied_constraint
from agentkit.tool.docstrings import Docstring
from agentkit.tool.signature import NOTHING, NameScope, Parameter, Signature, other_context
from agentkit.tool.strict_validators import Core, lenient_validator, narrow_validator, nodes

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import SchemaValidator


class ArgumentType(NamedTuple):
    """The arguments of a signature: their validator, the lenient one, and their JSON Schema.

    `precise` says that there is a `Decimal` among them.
    """

    validator: SchemaValidator
    lenient_validator: Callable[[bytes], Any]
    schema: dict[str, Any]
    precise: bool


def argument_type(signature: Signature) -> ArgumentType:
    """Return the type of a signature's arguments.

    Raises:
        SchemaError: a hint that has no JSON Schema.
    """
    try:
        built = _build(signature.parameters, signature)
    except Exception as e:  # pydantic's own errors, and anything the author's types raise
        raise _blame(signature, e) from e
    return built._replace(schema=without_titles(built.schema))


def value_type(hint: Any) -> ArgumentType:
    """An object whose one property `value` is of this type.

    Raises:
        SchemaError: the type has no JSON Schema.
    """
    if (meant := _instead_of_type(hint, "output_type={}")) is not None:
        raise SchemaError(f"output_type is {hint!r:.60}, which is not a type: {meant}")
    parameter = Parameter("value", hint, NOTHING, "")
    nowhere = Signature("output_type", (parameter,), (), (), Docstring(), NameScope({}, {}))
    try:
        built = _build(nowhere.parameters, nowhere)
    except Exception as e:  # pydantic's own errors, and anything the author's types raise
        raise SchemaError(f"output_type is {_type_name(hint)}, {_why(e, '')}") from e
    return built._replace(schema=without_titles(built.schema))


def _instead_of_type(hint: Any, write: str) -> str | None:
    """Return the advice for a value passed as a type; None if the value may be a type.

    Args:
        hint: the value.
        write: how a type is passed, such as `output_type={}`.
    """
    from agentkit.foreign.imports import FOREIGN

    if isinstance(hint, str):
        return f"pass the class itself, {write.format(hint)}" if hint.isidentifier() else "pass the type itself"
    if isinstance(hint, Mapping):
        return "the JSON Schema is derived from a type; pass a dataclass, TypedDict or pydantic model"
    if isinstance(hint, list) and hint:
        one = f", for one of several types {write.format(' | '.join(map(_type_name, hint)))}" if len(hint) > 1 else ""
        return f"for several values write {write.format(f'list[{_type_name(hint[0])}]')}{one}"
    if isinstance(hint, tuple) and hint:
        return f"for one of several types write {write.format(' | '.join(map(_type_name, hint)))}"
    if hint is any:
        return f"for any value write {write.format('Any')}, from typing"
    if hint is not None and type(hint).__module__ == "builtins" and not isinstance(hint, type) and not get_args(hint):
        return "pass a type, such as int or a dataclass"
    made = type(hint)
    if "output_type" in (meant := FOREIGN.get(made.__name__, "")):  # another toolkit's, such as ToolOutput(City)
        return meant
    of_ours = hasattr(made, "__dataclass_fields__") or hasattr(made, "model_fields")
    return f"pass the class itself, {write.format(made.__name__)}" if of_ours and not isinstance(hint, type) else None


class _Unsendable(TypeError):
    """A type that has a schema, but no value that a model could send; the message completes "has type X,"."""


def _build(parameters: tuple[Parameter, ...], signature: Signature) -> ArgumentType:
    from pydantic import ConfigDict, TypeAdapter

    for parameter in parameters:
        _refuse_field(parameter)
    made: dict[type, type] = {}
    hints = {p.name: Any if p.hint is NOTHING else _sendable(p.hint, made) for p in parameters}
    fields = {p.name: hints[p.name] if p.required else NotRequired[hints[p.name]] for p in parameters}
    arguments = _typed_dict("arguments", fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
    adapter: TypeAdapter[Any] = TypeAdapter(arguments)
    adapter.rebuild(force=True, _types_namespace={**signature.scope.module, **signature.scope.around})
    _refuse_unreadable(adapter.core_schema)
    if wrong := misapplied_constraint(adapter.core_schema):
        raise _Unsendable(wrong)
    schema = {
        "type": "object",
        "properties": {},
        "required": [],
        **adapter.json_schema(schema_generator=_sent_fields_generator()),
    }
    if "$ref" in schema:
        raise _Unsendable("which contains Self; write the name of the class")
    precise = any(node.get("type") == "decimal" for node in nodes(adapter.core_schema))
    return ArgumentType(narrow_validator(adapter), lenient_validator(adapter), schema, precise)


@cache
def _sent_fields_generator() -> type[GenerateJsonSchema]:
    """Pydantic's generator of schemas, without the fields of a dataclass that its constructor does not take.

    The string that a `Decimal` may be is marked as one: its digits count. The tag of a tagged union is required even if
    it has a default: no member is chosen without it.
    """
    from pydantic.json_schema import GenerateJsonSchema

    class SentFieldsGenerator(GenerateJsonSchema):
        def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
            found = super().generate(schema, mode)
            _require_tags(found, found)
            return found

        def field_is_present(self, field: Any) -> bool:
            return field.get("init", True) and super().field_is_present(field)

        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            found = super().decimal_schema(schema)
            for option in found.get("anyOf", ()):
                if option.get("type") == "string":
                    option["format"] = DECIMAL
            return found

    return SentFieldsGenerator


def _require_tags(node: Any, root: dict[str, Any]) -> None:
    """Make the tag of every tagged union required in each of its members."""
    for inner in node.values() if isinstance(node, dict) else node:
        if isinstance(inner, (dict, list)):
            _require_tags(inner, root)
    tag = node.get("discriminator") if isinstance(node, dict) else None
    if not isinstance(tag, dict) or "propertyName" not in tag:
        return
    name, options = tag["propertyName"], list(node.get("oneOf", ()))
    for option in options:  # which grows
        member = root.get("$defs", {}).get(option.get("$ref", "").removeprefix("#/$defs/"), option)
        options += member.get("oneOf", ())  # a nested union with the same tag
        if name in member.get("properties", {}) and name not in member.get("required", ()):
            member["required"] = [name, *member.get("required", ())]


def _refuse_field(parameter: Parameter) -> None:
    """Refuse settings that only a class's field can have: another name, or being left out without a default."""
    if get_origin(parameter.hint) is NotRequired:
        raise _Unsendable("which is for the fields of a TypedDict; a parameter is optional if it has a default")
    for mark in getattr(parameter.hint, "__metadata__", ()):
        alias = getattr(mark, "validation_alias", None) or getattr(mark, "alias", None)
        if alias not in (None, parameter.name):
            renamed = f"rename the parameter to {alias!r}" if isinstance(alias, str) else "rename the parameter"
            raise _Unsendable(f"whose Field has another name for it, {alias!r}; {renamed}, or remove the alias")


def _blame(signature: Signature, error: Exception) -> SchemaError:
    """The error that names the parameter whose hint has no schema."""
    for parameter in signature.parameters:
        try:
            _build((parameter,), signature)
        except Exception as e:  # noqa: BLE001 (the same failure, of one parameter alone)
            if (named := _type_name(get_origin(parameter.hint) or parameter.hint)) in CONTEXT_TYPES:
                return other_context(signature.where, parameter.name, named)
            meant = _instead_of_type(parameter.hint, f"{parameter.name}: {{}}")
            return SchemaError(
                f"{signature.where}: parameter {parameter.name!r} has type {_type_name(parameter.hint)}, "
                f"{_why(e) if meant is None else f'which is not a type: {meant}'}"
            )
    return SchemaError(f"{signature.where}: its parameters together have no JSON Schema: {_first_line(error)}")


def _type_name(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        return _type_name(get_args(hint)[0])
    return str(hint).replace("typing.", "") if get_args(hint) else getattr(hint, "__name__", str(hint))


_SUPPLIED: Final = "; pass what the application supplies in ToolContext.state"


def _why(error: Exception, of_parameters: str = _SUPPLIED) -> str:
    if isinstance(error, _Unsendable):
        return str(error)
    if isinstance(error, RecursionError):
        return "which contains itself; write the recursive type as a dataclass, TypedDict or TypeAliasType"
    if getattr(error, "code", "") == "typed-dict-version":
        return (
            "which contains a typing.TypedDict inside another class; before Python 3.12 import TypedDict from "
            "typing_extensions there"
        )
    unfound = ("undefined-annotation", "class-not-fully-defined")
    if isinstance(error, NameError) or getattr(error, "code", "") in unfound:
        return f"which names a type that cannot be found: {_first_line(error)}; define it at module level"
    if type(error).__module__.startswith("pydantic_core") or str(error).startswith("Unable to apply constraint"):
        return f"which pydantic refuses: {' '.join(str(error).rpartition('Error: ')[2].split())}"
    why = "" if type(error).__module__.startswith("pydantic") else f" ({type(error).__name__}: {_first_line(error)})"
    return (
        "which has no JSON Schema; use a dataclass, TypedDict, NamedTuple, Enum, pydantic model, or the built-in "
        f"types{of_parameters}{why}"
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _sendable(hint: Any, made: dict[type, type]) -> Any:
    """The hint in a form that pydantic can validate from JSON.

    Every `typing.TypedDict` is rebuilt with typing_extensions, since pydantic rejects the former before Python 3.12; an
    `Iterable` becomes a list, since pydantic would validate it only while the tool iterates over it.

    Raises:
        _Unsendable: no JSON value is valid for it.
    """
    if sys.version_info < (3, 12) and type(hint).__module__ == "typing" and type(hint).__name__ == "_TypedDictMeta":
        return made.get(hint) or _rebuilt(hint, made)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal and any(isinstance(value, Enum) for value in arguments):
        raise _Unsendable(_UNWRITABLE)
    if Generator in (hint, origin) or hint == re.Pattern[bytes]:
        raise _Unsendable(f"which no JSON value can be; write {'str' if origin is re.Pattern else 'a list'}")
    if not any(isinstance(a, type) or get_origin(a) is not None for a in arguments):
        return hint
    changed = tuple(_sendable(a, made) for a in arguments)
    if origin is Iterable:
        item = changed[0]
        return list[item]  # type: ignore[valid-type]
    if all(a is b for a, b in zip(changed, arguments, strict=True)):
        return hint
    if origin is Annotated:
        return Annotated[(changed[0], *hint.__metadata__)]
    generic: Any = Union if origin is UnionType else origin
    return generic[changed if len(changed) > 1 else changed[0]]


_WRITABLE: Final = (str, int, float, bool, type(None))
_UNWRITABLE: Final = "whose values no model can write; write the Enum class itself, or Literal of their values"
_NAMED: Final = "name the classes in a Literal or an Enum, and look them up"

_NOT_NAMES: Final = {
    **dict.fromkeys(("tuple", "list", "set", "frozenset", "named-tuple"), "an array"),
    **dict.fromkeys(("dict", "model", "dataclass", "typed-dict"), "an object"),
    "none": "null",
}
"""Core schemas of pydantic that do not accept strings, and what they accept."""


def _refuse_unreadable(core: Core) -> None:
    """Refuse a type if any part of it accepts no JSON value."""
    found = list(nodes(core))
    definitions = {node["ref"]: node for node in found if node.get("ref")}
    for node in found:
        match node.get("type"):
            case "is-subclass":
                raise _Unsendable(
                    f"which contains type[{node['cls'].__name__}], and no JSON value is a class; {_NAMED}"
                )
            case "is-instance" if isinstance(node["cls"], EnumType):
                raise _Unsendable(f"in which the Enum {node['cls'].__name__} has no members; give it some")
            case "enum":
                for member in node["members"]:
                    if not isinstance(member.value, _WRITABLE):
                        named = f"whose member {member.name} is {member.value!r}"
                        raise _Unsendable(f"{named}, which no model can write; use strings or numbers")
            case "literal" if not all(isinstance(value, _WRITABLE) for value in node["expected"]):
                raise _Unsendable(_UNWRITABLE)
            case "dict" if wanted := _not_a_name(node.get("keys_schema", {"type": "any"}), definitions):
                raise _Unsendable(
                    f"which contains an object whose names would have to be {wanted}; in JSON a name is a string: use "
                    "str for the keys, or a list of pairs"
                )


def _not_a_name(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the kind of value that a name must be instead of a string; empty if some string is valid."""
    kind = schema["type"]
    match kind:
        case "definition-ref":
            return _not_a_name(definitions[schema["schema_ref"]], definitions)
        case "definitions" | "default" | "nullable":
            return _not_a_name(schema["schema"], definitions)
        case "union":
            choices = [c[0] if isinstance(c, tuple) else c for c in schema["choices"]]
            wanted = [_not_a_name(choice, definitions) for choice in choices]
            return " or ".join(dict.fromkeys(wanted)) if all(wanted) else ""
        case "model" if schema.get("root_model"):
            return _not_a_name(schema["schema"], definitions)
        case "literal" | "enum":
            members = [getattr(m, "value", m) for m in schema.get("expected", schema.get("members", ()))]
            return "" if any(isinstance(m, str) for m in members) else "one of " + ", ".join(map(str, members))
        case _:
            return _NOT_NAMES.get(kind, "")


def _rebuilt(original: Any, made: dict[type, type]) -> type:
    copy = _typed_dict(original.__name__, {}, total=original.__total__)
    made[original] = copy  # before its fields, which may refer to it
    hints = get_type_hints(original, include_extras=True)
    copy.__annotations__ = {name: _sendable(hint, made) for name, hint in hints.items()}
    for name in ("__required_keys__", "__optional_keys__", "__doc__", "__module__", "__qualname__"):
        setattr(copy, name, getattr(original, name))
    result: type = copy
    return result


def _typed_dict(name: str, fields: Mapping[str, Any], *, total: bool = True) -> Any:
    """A `TypedDict` with computed fields, which type checkers do not support."""
    import typing_extensions

    make: Any = typing_extensions.TypedDict
    return make(name, dict(fields), total=total)


def without_titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the titles that pydantic gives every node; a property called `title` stays."""
    return {key: map_schemas(key, value, _without_titles) for key, value in schema.items() if key != "title"}


def _without_titles(schema: Any, _: str) -> Any:
    return without_titles(schema) if isinstance(schema, Mapping) else schema
