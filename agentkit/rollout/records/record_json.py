"""A record of a trajectory as a JSON object and back, without loss. Knows no file.

What JSON does not have is kept all the same: a number that is not finite is a string such as `"NaN"` in a field that is
a number; a mapping that contains one is a string of Python's JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple

from agentkit.errors import StoreError
from agentkit.rollout.records.record import CallRecord, TokenRecord, TrajectoryRecord
from agentkit.tool.codec import UNREADABLE, from_json, to_json
from agentkit.tool.output import plain

VERSION: Final = 1
"""Increased when an older agentkit could not read a newer one's records."""

_STRICT: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_LENIENT: Final = json.JSONEncoder()


class _Kind(NamedTuple):
    """How a value of one type is written, and read back."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def record_to_json(record: TrajectoryRecord) -> dict[str, Any]:
    """Return a record as a JSON object. Values that JSON does not have become the text that a model would read."""
    return {"v": VERSION, **_RECORD.write(record)}


def record_from_json(body: Mapping[str, Any]) -> TrajectoryRecord:
    """A record from its JSON object.

    Raises:
        StoreError: this version of agentkit cannot read it.
    """
    try:
        if body["v"] > VERSION:
            raise ValueError(f"version {body['v']}, but this agentkit reads only up to {VERSION}")
        record: TrajectoryRecord = _RECORD.read(body)
        return record
    except KeyError as e:
        raise StoreError(f"not a record of a trajectory: it has no {e}") from e
    except (*UNREADABLE, AttributeError) as e:
        raise StoreError(f"not a record of a trajectory ({type(e).__name__}: {e})") from e


def _number(value: float) -> float | str:
    """A number; a string that `float` reads if JSON does not have it."""
    value = float(value)
    return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")


def _object(value: Mapping[str, Any]) -> dict[str, Any] | str:
    """A mapping as JSON reads it back; a string of JSON if it contains a number that is not finite."""
    try:
        text = _LENIENT.encode(dict(value))
    except (TypeError, ValueError, RecursionError):
        text = _LENIENT.encode(plain(value))
    if "NaN" not in text and "Infinity" not in text:
        found: dict[str, Any] = json.loads(text)
        return found
    try:
        return json.loads(_STRICT.encode(json.loads(text)))  # type: ignore[no-any-return]  # the words are in a string
    except ValueError:
        return text


def _mapping(value: Any) -> dict[str, Any]:
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise TypeError(f"expected an object, found {found!r:.60}")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {value!r:.60}")
    return value


def _count(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"expected an integer, found {value!r:.60}")
    return value


def _or_none(kind: _Kind) -> _Kind:
    return _Kind(*(lambda value, change=change: None if value is None else change(value) for change in kind))


def _each(kind: _Kind) -> _Kind:
    return _Kind(lambda values: [kind.write(one) for one in values], lambda values: tuple(map(kind.read, values)))


def _by_name(kind: _Kind) -> _Kind:
    return _Kind(*(lambda values, change=change: {_text(k): change(v) for k, v in values.items()} for change in kind))


def _of(cls: type) -> _Kind:
    """An object of a class, field by field."""
    kinds = {field.name: _KINDS[str(field.type)] for field in fields(cls)}
    return _Kind(
        lambda value: {name: kind.write(getattr(value, name)) for name, kind in kinds.items()},
        lambda body: cls(**{name: kind.read(body[name]) for name, kind in kinds.items()}),
    )


_COUNT, _TEXT, _NUMBER = _Kind(int, _count), _Kind(str, _text), _Kind(_number, float)
_KINDS: Final = {
    "int": _COUNT,
    "str": _TEXT,
    "str | None": _or_none(_TEXT),
    "TrajectoryEnd": _TEXT,
    "float": _NUMBER,
    "float | None": _or_none(_NUMBER),
    "bool": _Kind(bool, lambda value: value is True),
    "Mapping[str, Any]": _Kind(_object, _mapping),
    "Mapping[str, float]": _by_name(_NUMBER),
    "Mapping[str, str]": _by_name(_TEXT),
    "tuple[int, int] | None": _or_none(_each(_COUNT)),
    "tuple[int, ...]": _Kind(list, tuple),
    "tuple[float, ...] | None": _or_none(_each(_NUMBER)),
    "tuple[Message, ...]": _each(_Kind(to_json, from_json)),
}
"""By the type of a field, as written in code."""

_KINDS["tuple[CallRecord, ...]"] = _each(_of(CallRecord))
_KINDS["TokenRecord | None"] = _or_none(_of(TokenRecord))
_RECORD: Final = _of(TrajectoryRecord)


def record_line(record: TrajectoryRecord) -> bytes:
    """A record as one line of JSON in UTF-8."""
    body = record_to_json(record)
    try:
        return _STRICT.encode(body).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 cannot contain and JSON can
        return _ASCII.encode(body).encode() + b"\n"
