"""A tool's return value as text for a model: JSON, never a Python repr. Knows no tool and no message.

| returned | the model reads |
|---|---|
| `str` | itself |
| `None` | `ok` |
| number, bool, list, dict, tuple | JSON |
| set | a JSON array, sorted so that equal sets give equal text |
| dataclass, pydantic model, attrs class | a JSON object of its fields |
| `Enum` | its value |
| `datetime`, `date`, `time` | ISO 8601 |
| `timedelta` | ISO 8601 duration, such as `PT90S` |
| `bytes` | text if it is UTF-8, else base64 |
| an `ImagePart` inside another value | a note: the model cannot see an image in text |
| `Path`, `Decimal`, `UUID`, exceptions, text of another class, and anything else that defines `__str__` | that text |
| NaN and infinities | `"NaN"`, `"Infinity"`, `"-Infinity"` |
| numpy arrays and scalars | their `tolist()` |
| any other object | a JSON object of its public attributes, else a note with its class |

A value that contains itself, or is nested deeper than `MAX_DEPTH`, is cut there with a note.
"""

from __future__ import annotations

import base64
import json
import math
from collections import UserString
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator, Iterable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

from agentkit.checks.unicode import clean
from agentkit.messages import FilePart, ImagePart

NOTHING: Final = "ok"
"""What a model reads if a tool returned None: some providers refuse an empty result."""

MAX_DEPTH: Final = 100
"""Levels of nesting that are rendered; anything deeper is replaced by a note."""

NO_VALUE: Final = "(no value: "
"""The beginning of the text for something that was not awaited or iterated."""

MAX_BITS: Final = 14_000
"""Larger integers are described, not printed: Python refuses to print more than 4,300 digits."""


def text_of(value: Any) -> str:
    """Render a returned value for a model.

    >>> text_of({"when": date(2025, 1, 2), "tags": {"b", "a"}})
    '{"when": "2025-01-02", "tags": ["a", "b"]}'
    >>> text_of(None)
    'ok'
    """
    if value is None:
        return NOTHING
    if type(value) is int and value.bit_length() < MAX_BITS:
        return str(value)
    try:
        readable = value if isinstance(value, (str, dict, list)) and not isinstance(value, Enum) else plain(value)
        return clean(str(readable) if isinstance(readable, str) else json_text(readable))
    except Exception as e:  # noqa: BLE001 (rendering runs the value's own code, whose fault becomes data)
        return f"(a {type(value).__name__} that cannot be shown: {type(e).__name__}: {e})"


def json_text(value: Any) -> str:
    """Any value as JSON, by the rules of this module."""
    try:
        return _ENCODE(value)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(plain(value), ensure_ascii=False)


def plain(value: Any, within: tuple[int, ...] = ()) -> Any:
    """The value converted to JSON types.

    Args:
        value: anything.
        within: the ids of the enclosing containers, outermost first.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value, within)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() < MAX_BITS else f"(an integer of {value.bit_length()} bits)"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _name_of(value)
    if id(value) in within:
        return "(this value again: it contains itself)"
    if len(within) >= MAX_DEPTH:
        return f"(cut: nested deeper than {MAX_DEPTH} levels)"
    try:
        return _contents_of(value, (*within, id(value)))
    except Exception as e:  # noqa: BLE001 - the value's own code: its fault is a note in its place, and loses no other
        return f"(a {type(value).__name__} that cannot be shown: {type(e).__name__}: {e})"


def _contents_of(value: Any, within: tuple[int, ...]) -> Any:
    """The contents of a container or an object."""
    if isinstance(value, Mapping):
        return {_key(key): plain(item, within) for key, item in value.items()}
    if is_pending(value):
        return f"{NO_VALUE}a {type(value).__name__})"
    for kind, render in _SCALARS:
        if isinstance(value, kind):
            return render(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), within) for f in fields(value)}
    if _has(value, "model_dump") and not isinstance(value, type):
        return plain(_dump_model(value), within)
    if isinstance(value, Set):
        return sorted((plain(item, within) for item in value), key=json_text)
    if _has(value, "tolist"):
        return plain(value.tolist(), within)
    if isinstance(value, Collection) and not _endless(value):
        return [plain(item, within) for item in value]
    return _describe(value, within)


def _has(value: Any, name: str) -> bool:
    """Return True if an object has an attribute, unless it claims to have any attribute whatever."""
    return hasattr(value, name) and not hasattr(value, "no_object_has_this_attribute")


def _endless(value: Any) -> bool:
    """Return True if the items of a value have its own type, as do their items, without end, like those of a text."""
    if isinstance(value, (list, tuple)):
        return False
    item = value
    for _ in range(MAX_DEPTH):
        item = next(iter(item), None)
        if type(item) is not type(value):
            return False
    return True


def _describe(value: Any, within: tuple[int, ...]) -> Any:
    """An object of an unknown type: its own text, its public attributes, or a note; never its memory address."""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if _has(value, "__name__"):  # a class, a function, a module
        return str(value.__name__)
    if any("__str__" in vars(cls) for cls in type(value).__mro__[:-1]):
        return str(value)
    named = {name: getattr(value, name) for name in getattr(type(value), "__match_args__", ()) if hasattr(value, name)}
    public = {name: item for name, item in getattr(value, "__dict__", named).items() if not name.startswith("_")}
    return {name: plain(item, within) for name, item in public.items()} or shows_nothing(value)


def is_pending(value: Any) -> bool:
    """Return True for a value that must still be awaited or iterated before a model can read it."""
    return isinstance(value, Iterator | AsyncIterator | Awaitable)


def pending_parts(value: Any, at: str = "", within: tuple[int, ...] = ()) -> Generator[tuple[str, Any], None, None]:
    """The pending parts of a value, each with its location, such as `[0]` or `['rows']`; empty for the value itself."""
    if is_pending(value):
        yield at, value
    if isinstance(value, str | bytes) or id(value) in within or len(within) >= MAX_DEPTH:
        return
    within = (*within, id(value))
    if isinstance(value, Mapping):
        items: Iterable[tuple[str, Any]] = ((f"[{key!r:.60}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        items = ((f"[{n}]", item) for n, item in enumerate(value))
    elif is_dataclass(value) and not isinstance(value, type):
        items = ((f".{f.name}", getattr(value, f.name)) for f in fields(value))
    else:
        return
    for step, item in items:
        yield from pending_parts(item, at + step, within)


def shows_nothing(value: Any) -> str:
    """Return the text for an object without a readable value.

    >>> shows_nothing(object())
    '(an object of class object, without a readable value)'
    """
    return f"(an object of class {type(value).__name__}, without a readable value)"


def _dump_model(model: Any) -> Any:
    """A pydantic model by its own serialisers, or if they fail by its fields."""
    try:
        return model.model_dump(mode="json")
    except (TypeError, ValueError):
        return {name: getattr(model, name) for name in type(model).model_fields}


def _key(key: Any) -> str:
    readable = plain(key)
    return readable if isinstance(readable, str) else json_text(readable)


def _name_of(number: float) -> str:
    """JSON cannot represent these; the string is their name in JavaScript, which models know."""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _bytes(value: bytes | bytearray | memoryview) -> str:
    """The bytes as text if they are UTF-8, else as base64."""
    content = bytes(value)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return base64.b64encode(content).decode("ascii")


def _image(image: ImagePart) -> str:
    return image.url or f"{image.media_type}, {len(image.data or b''):,} bytes"


def label(part: ImagePart | FilePart) -> str:
    """The words for an image or a file in a text for people: `[image: image/png]`, `[document: report.pdf]`."""
    kind, name = (part.kind, part.name) if isinstance(part, FilePart) else ("image", "")
    return f"[{kind}: {name or part.url or part.media_type}]"


def _duration(value: timedelta) -> str:
    """ISO 8601, in seconds: exact and without calendar units."""
    seconds = value.total_seconds()
    return f"{'-' if seconds < 0 else ''}PT{abs(seconds):g}S"


def _refuse(value: Any) -> Any:
    """Pass whatever `json` does not support to `plain`, which walks the whole value within its limits."""
    raise TypeError(type(value).__name__)


_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_refuse).encode
"""One encoder for all values: `json.dumps` with options would create a new one each time."""

_SCALARS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...]] = (
    ((bytes, bytearray, memoryview), _bytes),
    ((date, time), lambda value: str(value.isoformat())),
    (timedelta, _duration),
    ((PurePath, UserString), str),
    (ImagePart, lambda image: f"(an image, {_image(image)}: return it by itself or in a list)"),
)
"""Types that become a single string (`datetime` is a `date`)."""
