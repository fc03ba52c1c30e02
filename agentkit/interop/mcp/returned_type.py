"""The return type of one of our tools as a server's `outputSchema`, and its results in that form."""

from __future__ import annotations

import typing
from collections.abc import AsyncIterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from agentkit.messages import ImagePart, TextPart
from agentkit.schemas.validators import checker_of
from agentkit.tool import BoundTool, ToolResult
from agentkit.tool.output import plain

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from pydantic import TypeAdapter

RESULT: Final = "result"
"""The key under which the official SDKs put a value that is not an object."""

_UNTYPED: Final = (str, bytes, NoneType, object, Any)  # text, or nothing that a schema could say
_OURS: Final = (ToolResult, TextPart, ImagePart)  # they decide themselves what the model reads


@dataclass(frozen=True, slots=True)
class ReturnedType:
    """The schema of a tool's structured results, and whether a value is `wrapped` under `RESULT`.

    Fields of models have their aliases, as with the official SDK.
    """

    schema: Mapping[str, Any]
    wrapped: bool
    checker: Validator
    adapter: TypeAdapter[Any]

    def structure(self, output: Any) -> dict[str, Any] | None:
        """Return a tool's output as structured content; None if it does not have the declared type."""
        with suppress(Exception):  # what its type cannot write, or its author's serializer fails at
            output = self.adapter.dump_python(output, mode="json", by_alias=True, fallback=str, warnings=False)
        value = plain(output)
        value = {RESULT: value} if self.wrapped else value
        return value if self.checker.is_valid(value) else None


def returned_type(tool: BoundTool | None) -> ReturnedType | None:
    """The type that a tool's function declares; None for text, for no value, and for a type without a schema."""
    if tool is None:
        return None
    from pydantic import TypeAdapter

    try:
        hint = typing.get_type_hints(tool.method, include_extras=True).get("return")
        if hint in _UNTYPED or hint is None or _decides_itself(hint):
            return None
        adapter = TypeAdapter(hint)
        schema = adapter.json_schema(mode="serialization")
    except Exception:  # noqa: BLE001 - the author's own types: a tool can be served without a schema
        return None
    if wrapped := schema.get("type") != "object":
        inside = {keyword: value for keyword, value in schema.items() if keyword != "$defs"}
        around = {"type": "object", "properties": {RESULT: inside}, "required": [RESULT]}
        schema = {**around, "$defs": schema["$defs"]} if "$defs" in schema else around
    return ReturnedType(schema, wrapped, checker_of(schema), adapter)


def _decides_itself(hint: Any) -> bool:
    """Say if a type is, or includes, one of our results, or an iterator, whose items are not one value."""
    kind = typing.get_origin(hint) or hint
    if isinstance(kind, type) and issubclass(kind, (*_OURS, Iterator, AsyncIterable)):
        return True
    return any(map(_decides_itself, typing.get_args(hint)))
