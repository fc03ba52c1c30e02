"""JSON bodies and ids as ASCII text that every database holds, and back. Knows no SQL.

What JSON cannot carry is refused with its place. What can be written can be read again, also by a program that stands
deep in its stack: nesting is bounded.
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
"""Levels of nesting in a body. Python's JSON reader gives up when these and the stack together come near 1,000."""


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_ENCODER: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_plain)


def encode(body: Body, name: str) -> str:
    """A body as JSON in ASCII.

    Raises:
        StoreError: it holds what JSON cannot (NaN, a key that is no text, an object of some class, a circle), an
            integer of more digits than Python converts (4,300), or more than `MAX_DEPTH` levels; says where, starting
            with `name`.
    """
    if not isinstance(body, Mapping):
        raise StoreError(f"cannot keep {name}: a JSON object is wanted, found {body!r:.100}")
    try:
        text = _ENCODER.encode(body)
    except RecursionError as e:
        raise StoreError(f"cannot keep {_too_deep(body, name)}: nested deeper than {MAX_DEPTH} levels") from e
    except (TypeError, ValueError) as e:
        raise StoreError(f"cannot keep {_fault(body, name) or name}: {e}") from e
    if not _has_text_keys(body):  # Python would write 1 as "1" and None as "null", and so alter them
        raise StoreError(f"cannot keep {_odd_key(body, name)}: a key is text")
    # No body is deeper than it has brackets; those in strings count too, hence the second look.
    if text.count("{") + text.count("[") > MAX_DEPTH and (place := _too_deep(body, name)):
        raise StoreError(f"cannot keep {place}: nested deeper than {MAX_DEPTH} levels")
    return text


def decode(text: str) -> dict[str, Any]:
    """The body that was encoded."""
    body: dict[str, Any] = json.loads(text)
    return body


def encode_id(text: str) -> str:
    """An id as the inside of a JSON string; most ids are left as they are.

    Raises:
        StoreError: it is no text.
    """
    if not isinstance(text, str):
        raise StoreError(f"an id is text, found {text!r:.100}")
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
    """Each value in a body with its place and its depth, down to one level more than allowed; ends in a circle too."""
    waiting: list[tuple[str, object, int]] = [(name, body, 1)]
    seen: dict[int, int] = {}  # the depth at which a container was met; again only where it lies deeper
    while waiting:
        place, value, depth = waiting.pop()
        yield place, value, depth
        if depth <= MAX_DEPTH and depth > seen.get(id(value), 0):
            seen[id(value)] = depth
            waiting.extend((place + step, child, depth + 1) for step, child in _children(value))


def _has_text_keys(body: Body) -> bool:
    """Whether every key in a body that is no circle is text."""
    waiting: list[object] = [body]
    for value in waiting:
        if isinstance(value, Mapping):
            if not all(isinstance(key, str) for key in value):
                return False
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
    return True


def _odd_key(body: Body, name: str) -> str:
    """The place of a key that is no text; empty when there is none."""
    for place, value, _ in _walk(body, name):
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    return f"{place}[{key!r:.60}]"
    return ""


def _fault(body: Body, name: str) -> str:
    """The place of a value that JSON cannot hold; empty when none is found."""
    for place, value, _ in _walk(body, name):
        if isinstance(value, float) and not math.isfinite(value):
            return f"{place} = {value}"
        if not isinstance(value, (str, int, float, bool, Mapping, list, tuple, type(None))):
            return place
    return ""


def _too_deep(body: Body, name: str) -> str:
    """The place where the nesting passes the bound, shortened; empty when it does not."""
    for place, value, depth in _walk(body, name):
        if depth > MAX_DEPTH and isinstance(value, (Mapping, list, tuple)):
            return f"{place[:80]}…"
    return ""
