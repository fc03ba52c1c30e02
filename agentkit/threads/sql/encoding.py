"""JSON bodies and ids as ASCII text that every database can store, and back. Knows no SQL.

A value that JSON cannot represent is refused, with its position. Everything that can be written can be read again, even
from deep in the call stack, because nesting is limited.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from agentkit.errors import StoreError
from agentkit.threads.store import Body

MAX_DEPTH: Final = 400
"""Levels of nesting in a body. Python's JSON reader fails when these and the call stack together approach 1,000."""


_SCALARS: Final = (str, int, float, type(None))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


_ENCODER: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_plain)


def encode(body: Body, name: str) -> str:
    """A body as JSON in ASCII.

    Raises:
        StoreError: it contains a value that JSON cannot represent (NaN, a key that is not a string, an object of some
            class, a cycle), an integer of more digits than Python converts (4,300), or more than `MAX_DEPTH` levels;
            the message says where, starting with `name`.
    """
    if not isinstance(body, Mapping):
        raise StoreError(f"cannot store {name}: expected a JSON object, found {body!r:.100}")
    try:
        text = _ENCODER.encode(body)
        levels, named = _shape(body)
    except RecursionError:
        text, levels, named = "", MAX_DEPTH + 1, True
    except (TypeError, ValueError) as e:
        raise StoreError(f"cannot store {_bad_value(body, name)}: {e}") from e
    if not named:  # Python would write 1 as "1" and None as "null", which changes them
        raise StoreError(f"cannot store {_odd_key(body, name)}: a key must be a string")
    if levels > MAX_DEPTH:
        places = (
            place for place, value, depth in _walk(body, name) if depth > MAX_DEPTH and not isinstance(value, _SCALARS)
        )
        raise StoreError(f"cannot store {next(places, name)[:80]}…: nested deeper than {MAX_DEPTH} levels")
    return text


def decode(text: str) -> dict[str, Any]:
    """The body that was encoded."""
    body: dict[str, Any] = json.loads(text)
    return body


def encode_id(text: str) -> str:
    """An id as the inside of a JSON string; most ids are unchanged.

    Raises:
        StoreError: it is not a string.
    """
    if not isinstance(text, str):
        raise StoreError(f"expected a string as the id, found {text!r:.100}")
    return encode_basestring_ascii(text)[1:-1]


def decode_id(text: str) -> str:
    """The id that was encoded."""
    return str(json.loads(f'"{text}"')) if "\\" in text else text


def _children(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", child) for key, child in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{i}]", child) for i, child in enumerate(value))


def _walk(body: Body, name: str) -> Iterator[tuple[str, object, int]]:
    """Each value in a body with its position and depth, down to one level more than allowed; also ends in a cycle."""
    waiting: list[tuple[str, object, int]] = [(name, body, 1)]
    seen: dict[int, int] = {}  # the depth at which a container was found; visited again only if it is deeper
    while waiting:
        place, value, depth = waiting.pop()
        yield place, value, depth
        if depth <= MAX_DEPTH and depth > seen.get(id(value), 0):
            seen[id(value)] = depth
            waiting.extend((place + step, child, depth + 1) for step, child in _children(value))


def _shape(body: Body) -> tuple[int, bool]:
    """Return the levels of nesting in a body that JSON can represent, and True if every key in it is a string."""
    levels, named = 0, True
    level: list[Any] = [body]
    while level:
        levels += 1
        inside: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                named = named and all(isinstance(key, str) for key in value)
            inside += value.values() if isinstance(value, Mapping) else value
        level = [value for value in inside if not isinstance(value, _SCALARS)]
    return levels, named


def _odd_key(body: Body, name: str) -> str:
    """Return the position of a key that is not a string."""
    odd = ((place, key) for place, value, _ in _walk(body, name) if isinstance(value, Mapping) for key in value)
    return next(f"{place}[{key!r:.60}]" for place, key in odd if not isinstance(key, str))


def _bad_value(body: Body, name: str) -> str:
    """Return the position of a value that JSON cannot represent; the body's name if none is found."""
    for place, value, _ in _walk(body, name):
        if isinstance(value, float) and not math.isfinite(value):
            return f"{place} = {value}"
        if not isinstance(value, (*_SCALARS, Mapping, list, tuple)):
            return place
    return name
