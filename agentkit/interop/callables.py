"""A tool as a plain Python function whose signature and docstring describe its schema, as most trainers expect.

They read the name, the type hints and a Google docstring, and call it with the model's arguments as keywords. The hints
are made from the schema, whatever the method's own are; the docstring says what hints cannot.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from agentkit.toolspec import ToolSpec

_HINTS: Final[Mapping[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "null": type(None),
}


def function_like(spec: ToolSpec, parameters: Mapping[str, Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that takes keywords the signature and the docstring of a tool.

    Args:
        spec: the tool.
        parameters: its schema, in the part that hints can say.
        function: called with the arguments; changed in place. `async` if it is to look so.
    """
    made = [parameter_of(name, schema, name in parameters["required"]) for name, schema in _ordered(parameters)]
    changed: Any = function
    changed.__name__ = changed.__qualname__ = spec.name
    changed.__doc__ = docstring(spec.description, parameters)
    changed.__signature__ = inspect.Signature(made, return_annotation=str)
    changed.__annotations__ = {p.name: p.annotation for p in made} | {"return": str}
    return function


def _ordered(parameters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Required parameters first, as Python wants them."""
    return sorted(parameters["properties"].items(), key=lambda item: item[0] not in parameters["required"])


def parameter_of(name: str, schema: Mapping[str, Any], required: bool) -> inspect.Parameter:
    """One parameter. An optional one without a default may be None, which counts as omitted."""
    hint = hint_of(schema)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if required:
        return inspect.Parameter(name, kind, annotation=hint)
    return inspect.Parameter(name, kind, annotation=hint if _nullable(schema) else hint | None, default=None)


def _nullable(schema: Mapping[str, Any]) -> bool:
    return "null" in schema["type"]


def hint_of(schema: Mapping[str, Any]) -> Any:
    """A schema in the dialect `HINTS` as a type hint. A list of which it says nothing more is a bare one."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    lists: Any = list[hint_of(schema["items"])] if "items" in schema else list  # type: ignore[misc]
    hints = [lists if name == "array" else _HINTS[name] for name in types]
    union = hints[0]
    for hint in hints[1:]:
        union = union | hint
    return union


def docstring(description: str, parameters: Mapping[str, Any]) -> str:
    """Google's form, with a description for every parameter: readers refuse a function in which one is missing."""
    lines = [description or "No description."]
    if parameters["properties"]:
        lines += ["", "Args:"]
        lines += [
            f"    {name}: {' '.join(str(schema.get('description') or name).split())}"
            for name, schema in _ordered(parameters)
        ]
    return "\n".join(lines)


def drop_omitted(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without the Nones that stand for parameters that the model left out."""
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or _meant(parameters["properties"].get(name), name in parameters["required"])
    }


def _meant(schema: Mapping[str, Any] | None, required: bool) -> bool:
    """Return True if None is a value of the parameter."""
    return schema is None or required or _nullable(schema)
