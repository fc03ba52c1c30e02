"""Events as JSON objects and back. Knows the events and what is in them; `agentkit.events` has the functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from agentkit.agent import lifecycle
from agentkit.agent.options import RunFinish
from agentkit.agent.outcome import RunResult
from agentkit.checks.spelling import did_you_mean
from agentkit.errors import AgentkitError, StoreError, show_value
from agentkit.events import Event
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.tool import codec
from agentkit.tool.output import plain
from agentkit.tool.result import ToolResult

_HIDDEN: Final = {"ToolResult": ToolResult, "RunResult": RunResult, "RunFinish": RunFinish}
"""The types that the events' own modules know only for type checkers."""

_SCALARS: Final = (str, bool, int, float, NoneType)


def to_json(event: Event | lifecycle.Lifecycle) -> dict[str, Any]:
    """An event as an object that JSON can express: its name as `event`, and its fields.

    A call has `id`, `name`, `arguments`, and if it has them `format` and `raw`. A result has `ok`, `text` as the model
    reads it, if it failed `code`, and what else it has: its `output` as a JSON value, `content`, `metadata`, `reward`.

    >>> to_json(events.Text("Hi"))
    {'event': 'text', 'text': 'Hi'}

    Raises:
        TypeError: it is not an event.
    """
    if type(event) not in _NAMES:
        raise TypeError(f"to_json(…) expects an event, found {show_value(event)}")
    return {"event": _NAMES[type(event)], **_fields(event)}


def from_json(body: Mapping[str, Any]) -> Event | lifecycle.Lifecycle:
    """An event from its JSON object: equal to the one that was written.

    What JSON does not have is another value: an output or metadata of a class of yours is its JSON (the text that the
    model reads is the same), the error of a run an `AgentkitError` with the type and the message of the original.

    Raises:
        StoreError: this version of agentkit cannot read it; it says what was found.
    """
    fields = _mapping(body, (), "an event")
    name = str(fields.pop("event", None))
    if name not in _KINDS:
        raise StoreError(f"no event of this version of agentkit: {show_value(body)}{did_you_mean(name, _KINDS)}")
    return _object(_KINDS[name], fields, name)  # type: ignore[no-any-return]


_NAMES: Final = {
    kind: re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    for kind in (*get_args(Event), *get_args(lifecycle.Lifecycle))
}
_KINDS: Final = {name: kind for kind, name in _NAMES.items()}


# ---------------------------------------------------------------- write


def _names(kind: Any) -> Sequence[str]:
    return [f.name for f in dataclass_fields(kind) if f.compare] if is_dataclass(kind) else kind._fields


def _fields(value: Any) -> dict[str, Any]:
    return {name.lstrip("_"): _write(getattr(value, name)) for name in _names(type(value))}


def _write(value: Any) -> Any:
    match value:
        case ToolCall(id, name, arguments, format, raw):
            rest = {"format": format} if format is not None else {}
            return {"id": id, "name": name, "arguments": plain(arguments), **rest, **({"raw": raw} if raw else {})}
        case SystemMessage() | UserMessage() | AssistantMessage() | ToolMessage():
            return codec.to_json(value)
        case ToolResult():
            return _result(value)
        case BaseException():
            return f"{type(value).__name__}: {value}"
        case dict():
            return {str(key): _write(one) for key, one in value.items()}
        case _ if (is_dataclass(value) and type(value).__module__.startswith("agentkit.")) or hasattr(value, "_fields"):
            return _fields(value)
        case frozenset() | set():
            return sorted(value)
        case tuple() | list():
            return [_write(one) for one in value]
    return plain(value)


def _result(result: ToolResult) -> dict[str, Any]:
    body: dict[str, Any] = {"ok": result.ok, "text": result.text}
    if not result.ok:
        body |= {"code": result.code, "error": result.error}
    is_text = type(result.output) is str and result.output == body["text"] and not result.content
    if not is_text and (result.ok or result.output is not None):
        body["output"] = plain(result.output)
    if result.content:
        body["content"] = [codec.part_to_json(part) for part in result.content]
    if result.metadata:
        body["metadata"] = plain(result.metadata)
    return body if result.reward is None else {**body, "reward": result.reward}


# ---------------------------------------------------------------- read


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind, localns=_HIDDEN)


def _object(kind: Any, body: Any, at: str) -> Any:
    """A named tuple or a dataclass of agentkit; a field that was written has its type, the others their defaults."""
    known = {name.lstrip("_"): name for name in _names(kind)}
    if not isinstance(body, Mapping) or (unknown := body.keys() - known.keys()):
        found = show_value(body) if not isinstance(body, Mapping) else f"the fields {', '.join(sorted(unknown))}"
        raise StoreError(f"{at}: expected {', '.join(known)}, found {found}; a newer agentkit may have written it")
    try:
        return kind(**{known[key]: _read(_hints(kind)[known[key]], one, f"{at}.{key}") for key, one in body.items()})
    except TypeError as e:  # a field is missing
        raise StoreError(f"{at}: expected {', '.join(known)}, found {', '.join(body) or 'nothing'}") from e


def _read(hint: Any, value: Any, at: str) -> Any:
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        return codec.from_json(value) if SystemMessage in inner else _read(inner[0], value, at)
    if (read := _READ.get(origin)) is not None:
        return read(value, inner, at)
    if origin is Any or isinstance(origin, TypeVar):
        return value
    if origin not in _SCALARS:
        return _object(origin, value, at)
    if type(value) is origin or (origin is float and type(value) is int):
        return value
    raise StoreError(f"{at}: expected {origin.__name__}, found {show_value(value)}")


def _list(value: Any, inner: tuple[Any, ...], at: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise StoreError(f"{at}: expected a list, found {show_value(value)}")
    return tuple(_read(inner[0], one, f"{at}[{n}]") for n, one in enumerate(value))


def _mapping(value: Any, inner: tuple[Any, ...], at: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise StoreError(f"{at}: expected an object, found {show_value(value)}")
    return {key: _read(inner[1] if inner else Any, one, f"{at}.{key}") for key, one in value.items()}


def _read_result(value: Any, _: Any, at: str) -> ToolResult:
    body = _mapping(value, (), at)
    try:
        return ToolResult(
            body.get("output", None if "error" in body or "content" in body else body["text"]),
            body.get("error"),
            code=body.get("code"),
            content=codec.content_from_json(body.get("content", ())),
            metadata=_mapping(body.get("metadata", {}), (), f"{at}.metadata"),
            reward=body.get("reward"),
        )
    except codec.UNREADABLE as e:
        raise StoreError(f"{at}: expected a result, found {show_value(value)} ({e})") from e


_READ: Final[Mapping[Any, Callable[[Any, tuple[Any, ...], str], Any]]] = {
    ToolResult: _read_result,
    **dict.fromkeys((AssistantMessage, ToolMessage), lambda value, _, at: codec.from_json(value)),
    BaseException: lambda value, _, at: AgentkitError(value),
    Literal: lambda value, _, at: _read(str, value, at),
    tuple: _list,
    Sequence: _list,
    Set: lambda value, inner, at: frozenset(_list(value, inner, at)),
    Mapping: _mapping,
}
