"""Pydantic's validators, narrowed to the JSON Schema that the model sees.

Pydantic reads a string of digits as seconds since 1970, `true` as the number 1 where values are listed, and text as an
iterable of its characters, even in strict mode. Knows core schemas; knows no signature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

Core = Mapping[str, Any]
"""A core schema of pydantic, or a field or argument in it."""

_INSIDE: Final = frozenset((
    "schema", "items_schema", "keys_schema", "values_schema", "choices", "steps", "lax_schema", "strict_schema",
    "json_schema", "fields", "extras_schema", "extras_keys_schema", "arguments_schema", "var_args_schema",
    "var_kwargs_schema", "definitions",
))  # fmt: skip
"""The keys below which are core schemas that read JSON; every other key has data, or reads the values of Python."""


def narrow_validator(adapter: TypeAdapter[Any]) -> SchemaValidator:
    """Return an adapter's validator without the readings that its JSON Schema does not allow.

    A date or time is read from ISO 8601 with its separators: in strict mode only in the form that the schema's `format`
    names (the offset may be missing), otherwise also a date as its midnight, a midnight as its date, and a duration
    such as `1 day, 02:30:00`. Where values are listed, `true` is not 1. An iterable is a list.
    """
    return _validator(adapter, _NARROWED)


def lenient_validator(adapter: TypeAdapter[Any]) -> Callable[[bytes], Any]:
    """Return a lenient validator of JSON text, which reads a number in a string as a format reads a value's text.

    Pydantic itself reads `0644` as 644, and `1.0` with any number of digits as an integer. The validator is built
    at its first use: most calls are valid in strict mode.
    """

    @cache
    def made() -> SchemaValidator:
        return _validator(adapter, _LENIENT)

    return lambda text: made().validate_json(text, strict=False)


_Changes = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""What core schemas become, by their type."""


def _validator(adapter: TypeAdapter[Any], changes: _Changes) -> SchemaValidator:
    if all(node.get("type") not in changes for node in nodes(adapter.core_schema)):
        return adapter.validator  # type: ignore[return-value]
    from pydantic_core import SchemaValidator

    # models and dataclasses would otherwise be validated by the validators that they have already
    return SchemaValidator(_rewritten(adapter.core_schema, changes), _use_prebuilt=False)


def nodes(core: Any) -> Iterator[Core]:
    """Every core schema, field and argument that takes part in reading JSON."""
    todo = [core]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(inner for key in _INSIDE & node.keys() for inner in _members(node[key]))


def _members(value: Any) -> Iterator[Core]:
    """The core schemas under one key: one, a list or a mapping of them, with or without labels."""
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        yield value
        return
    for one in value.values() if isinstance(value, Mapping) else value:
        inner = one[0] if isinstance(one, tuple) else one
        if isinstance(inner, Mapping):  # not the name of another choice
            yield inner


def _rewritten(value: Any, changes: _Changes) -> Any:
    match value:
        case Mapping() if isinstance(value.get("type"), str) or "schema" in value:
            node = {key: _rewritten(inner, changes) if key in _INSIDE else inner for key, inner in value.items()}
            change = changes.get(node.get("type", ""))
            if change is None:
                return node
            ref = {"ref": node.pop("ref")} if "ref" in node else {}  # under which other places refer to it
            return change(node) | ref
        case Mapping():
            return {name: _rewritten(inner, changes) for name, inner in value.items()}
        case list() | tuple():
            return type(value)(_rewritten(inner, changes) for inner in value)
        case _:
            return value


# ---------------------------------------------------------------- dates and times


class _Written(NamedTuple):
    """The forms of a date or time.

    Attributes:
        error: the beginning of the names of pydantic's errors.
        strictly: matches the beginning of a value in strict mode.
        leniently: matches it in lenient mode.
    """

    error: str
    strictly: re.Pattern[str]
    leniently: re.Pattern[str]


_DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = "[0-9]{2}:[0-9]{2}"
_WRITTEN: Final = {
    "datetime": _Written("datetime", re.compile(f"{_DATE}[Tt ]{_CLOCK}"), re.compile(_DATE)),
    "date": _Written("date", re.compile(rf"{_DATE}\Z"), re.compile(_DATE)),
    "time": _Written("time", re.compile(_CLOCK), re.compile(_CLOCK)),
    # 12:30 may be hours and minutes, or minutes and seconds
    "timedelta": _Written("time_delta", re.compile("[+-]?P"), re.compile(rf"(?![+-]?{_CLOCK}\Z)")),
}


class _Moment:
    """Reads a date, a time or a duration."""

    def __init__(self, node: Core, error: str, written: re.Pattern[str]) -> None:
        from pydantic_core import SchemaValidator

        self.__name__ = f"{node['type']}"  # distinguishes the members of a union in errors
        self._read = SchemaValidator(node).validate_python
        self._error = error
        self._begins = written.match

    def __call__(self, value: Any) -> Any:
        from pydantic_core import PydanticKnownError

        if isinstance(value, (int, float)):
            raise PydanticKnownError(f"{self._error}_type")  # type: ignore[arg-type]
        if isinstance(value, str) and not self._begins(value):
            raise PydanticKnownError(f"{self._error}_parsing", {"error": "expected ISO 8601"})  # type: ignore[arg-type]
        return self._read(value, strict=False)  # pydantic takes Python's strings only so


def _moment(node: dict[str, Any]) -> dict[str, Any]:
    written = _WRITTEN[node["type"]]
    inner = {key: value for key, value in node.items() if key not in ("serialization", "strict")}
    return {
        "type": "lax-or-strict",
        "lax_schema": _plain(_Moment(inner, written.error, written.leniently)),
        "strict_schema": _plain(_Moment(inner, written.error, written.strictly)),
    }


def _plain(function: Callable[[Any], Any]) -> dict[str, Any]:
    return {"type": "function-plain", "function": {"type": "no-info", "function": function}}


# ---------------------------------------------------------------- listed values


class _Choice:
    """Finds the listed value that a number or a boolean is: to JSON, `true` is not 1, but 1.0 is."""

    def __init__(self, kind: str, members: list[Any]) -> None:
        self._kind = kind
        self._members = [(getattr(one, "value", one) if isinstance(one, Enum) else one, one) for one in members]
        self._named = " or ".join(repr(value) for value, _ in self._members)

    def __call__(self, value: Any) -> Any:
        from pydantic_core import PydanticKnownError

        if not isinstance(value, (bool, int, float)):
            return value
        equal = [(listed, one) for listed, one in self._members if listed == value]
        for listed, one in equal:
            if isinstance(listed, bool) == isinstance(value, bool):
                return one
        if equal or isinstance(value, bool):
            raise PydanticKnownError(self._kind, {"expected": self._named})  # type: ignore[arg-type]
        return value


def _choice(node: dict[str, Any]) -> dict[str, Any]:
    members = node.get("expected", node.get("members", ()))
    numeric = [m for m in members if isinstance(m.value if isinstance(m, Enum) else m, (bool, int, float))]
    if not numeric:
        return node
    choice = _Choice("literal_error" if node["type"] == "literal" else "enum", list(members))
    return {"type": "function-before", "function": {"type": "no-info", "function": choice}, "schema": node}


_NARROWED: Final[_Changes] = {
    **dict.fromkeys(_WRITTEN, _moment),
    **dict.fromkeys(("literal", "enum"), _choice),
    "generator": lambda node: {**node, "type": "list"},
}
"""The types of core schemas that read more than their JSON Schema says, and what they become."""


# ---------------------------------------------------------------- numbers in strings


class _NumberInText:
    """Reads a string as the number that it writes, by the rules for all text; unless `read`, it is refused."""

    def __init__(self, kind: str, *, read: bool) -> None:
        self._error = f"{kind}_parsing"
        self._schema = {"type": {"int": "integer", "float": "number"}[kind]}
        self._read = read

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        from agentkit.schemas.typed.values import read

        number = read(value, self._schema, {}) if self._read else value
        if isinstance(number, str):
            from pydantic_core import PydanticKnownError

            raise PydanticKnownError(self._error)  # type: ignore[arg-type]
        return number


def _in_text(node: dict[str, Any]) -> dict[str, Any]:
    def before(*, read: bool) -> dict[str, Any]:
        function = {"type": "no-info", "function": _NumberInText(node["type"], read=read)}
        return {"type": "function-before", "function": function, "schema": node}

    # a union tries the strict ones first: a string is not read as a number if another member is a string
    return {"type": "lax-or-strict", "lax_schema": before(read=True), "strict_schema": before(read=False)}


_LENIENT: Final[_Changes] = {**_NARROWED, **dict.fromkeys(("int", "float"), _in_text)}
