"""Arguments of an envelope under other keys than its format's; and envelopes that describe a tool, not a call.

Pure; the tool's schema decides. Knows tools, but no reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.checks.spelling import nearest
from agentkit.errors import ErrorCode
from agentkit.schemas.typed import values
from agentkit.schemas.typed.repairs import ARGUMENTS_KEY, DOUBLY_ENCODED
from agentkit.toolspec import ToolSpec

CALL_KEYS: Final = ("type", "id", "index", "call_id", "tool_call_id")
"""Keys that may be next to name and arguments and mean nothing for the call."""

_IDS: Final = ("id", "call_id", "tool_call_id")

_OF_APIS: Final = ("function", "tool_call", "tool_use", "function_call")
"""Values of a call's `type` in APIs."""

NESTED: Final = ("function", "function_call", "tool_call")
"""Keys under which an envelope may contain another one, as OpenAI's API writes a call."""

OTHER_ARGUMENTS: Final = (
    "arguments", "parameters", "args", "input", "params", "inputs", "kwargs", "tool_input", "tool_args",
    "tool_arguments", "function_arguments", "action_input", "payload",
)  # fmt: skip
"""Keys under which models write the arguments although their format has another one."""


class NoReading(ValueError):
    """The keys of an envelope cannot be read as arguments, or can be read in more than one way."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code


def _parameters(tool: ToolSpec | None) -> Mapping[str, Any]:
    """Return the schemas of a tool's parameters, by name."""
    return tool.parameters.get("properties", {}) if tool is not None else {}


def arguments_elsewhere(tool: ToolSpec | None, fields: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments of a call, and the repairs that it took to read them, if exactly one reading fits the tool.

    Args:
        tool: the tool; None if it is not offered.
        fields: the envelope's content next to the name, under keys that are not its format's.

    Raises:
        NoReading: no reading fits, or more than one; or a key may belong to the call or be an argument.
    """
    schemas = _parameters(tool)
    fields, idle = {k: v for k, v in fields.items() if k not in CALL_KEYS}, own_parameters(tool, fields)
    if not fields and not idle:
        return {}, ()
    found: list[tuple[dict[str, Any], tuple[str, ...]]] = []
    for key in (k for k in OTHER_ARGUMENTS if k in fields):
        value, repairs = _decode(fields[key])
        if isinstance(value, dict) and not is_schema(value) and _fits(tool, value):
            found.append((value, (ARGUMENTS_KEY, *repairs)))
    flat = {**fields, **idle}
    if tool is not None and flat.keys() <= schemas.keys() and _fits(tool, flat):
        doubtful = [] if found else sorted(idle.keys() - set(tool.parameters.get("required", ())))
        if doubtful:
            raise NoReading("ambiguous_call", f"{doubtful[0]!r} may be a key of the call or an argument")
        found.append((flat, (ARGUMENTS_KEY,)))
    if len(found) == 1:
        return found[0]
    keys = ", ".join(repr(key) for key in flat)[:200]
    if found:
        raise NoReading("ambiguous_call", f"{keys} can be read in {len(found)} ways")
    raise NoReading("invalid_arguments", f"got {keys}")


def only_names(tool: ToolSpec | None, fields: Mapping[str, Any]) -> bool:
    """Return True if these keys, next to a tool's name, contain nothing that may be arguments."""
    found = [value for key, value in fields.items() if key in OTHER_ARGUMENTS]
    if found:
        return all(value is None for value in found)
    return fields.keys() <= {*CALL_KEYS} and not own_parameters(tool, fields)


def own_parameters(tool: ToolSpec | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys next to name and arguments that are also names of the tool's parameters, with their values."""
    schemas = _parameters(tool).keys() & CALL_KEYS
    return {k: v for k, v in fields.items() if k in schemas and not (k == "type" and v in _OF_APIS)}


def id_of(fields: Mapping[str, Any]) -> str:
    """Return the id among the keys of an envelope."""
    found = (fields[key] for key in _IDS if key in fields)
    return next((str(id) for id in found if isinstance(id, str | int) and not isinstance(id, bool)), "")


def ambiguous_key(tool: ToolSpec | None, arguments: Any, fields: Mapping[str, Any]) -> str:
    """Return a key of a call without arguments that may as well be its argument; empty without one."""
    if arguments or fields.get("type") in _OF_APIS:
        return ""
    return next(iter(own_parameters(tool, fields)), "")


def extra_arguments(tool: ToolSpec | None, fields: Mapping[str, Any]) -> list[str]:
    """Return the keys next to an envelope's arguments that would also be arguments: dropping one would change the call.

    So would dropping a key close to a parameter's name. Any other key says nothing about the call.
    """
    schemas = _parameters(tool)
    return [
        key
        for key, value in fields.items()
        if key in schemas
        or (key in OTHER_ARGUMENTS and value not in (None, {}, ""))
        or nearest(key, schemas) is not None
    ]


def _decode(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the value under a key of arguments, which may be JSON inside a string, or null for none."""
    if not isinstance(value, str):
        return ({} if value is None else value), ()
    try:
        return values.load(value), (DOUBLY_ENCODED,)
    except ValueError:
        return value, ()


def _fits(tool: ToolSpec | None, arguments: Mapping[str, Any]) -> bool:
    """Return True if the tool declares all of these arguments, and they are all that it requires."""
    if tool is None:
        return True
    declared = "properties" not in tool.parameters or all(map(tool.declares, arguments))
    return declared and arguments.keys() >= set(tool.parameters.get("required", ()))


def is_schema(value: Any) -> bool:
    """Return True for a JSON Schema of arguments."""
    return (
        isinstance(value, dict) and value.get("type") == "object" and isinstance(value.get("properties", {}), dict)
        and not value.keys().isdisjoint(("properties", "required", "additionalProperties", "$schema"))
    ) or (isinstance(value, dict) and len(value) == 1 and value.get("type") == "object")  # fmt: skip


_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema")
_DECLARED: Final = ("description", "title", "type", "strict", *_SCHEMAS)
"""Keys of a tool's declaration next to its name."""


def describes(
    tool: ToolSpec | None, others: Mapping[str, Any] | frozenset[str], arguments: Any, *, prose: bool = False
) -> bool:
    """Return True if an envelope describes a tool: it has a description, or a JSON Schema for arguments.

    Args:
        tool: the tool that it names; None if that is not offered.
        others: its keys other than name and arguments.
        arguments: its arguments; None if there are none.
        prose: whether nothing marks it as a call, so that a description alone decides.
    """
    schemas = _parameters(tool)
    described = "description" in others and "description" not in schemas
    if described and (prose or not arguments):
        return True
    own = prose and is_schema(arguments) and arguments.get("properties", {}).keys() <= schemas.keys()
    return is_schema(arguments) and (described or "type" not in schemas or (own and bool(arguments.get("properties"))))


def only_describes(tool: ToolSpec | None, others: Mapping[str, Any]) -> bool:
    """Return True if keys next to a tool's name are those of its declaration, even if it also has such parameters.

    Args:
        tool: the tool; None if it is not offered.
        others: the keys; none of them is the format's for arguments.
    """
    schemas = _parameters(tool)
    return "description" in others and all(
        (key in _DECLARED and (key not in _SCHEMAS or is_schema(value))) or (key in CALL_KEYS and key not in schemas)
        for key, value in others.items()
    )
