"""Values as bytes for another process: in C for plain values and agentkit's own, by cloudpickle otherwise.

Pickle asks each frozen dataclass for its state in Python, and sets it there again field by field; of a record with 64
calls that took longer than to roll it out. Here one of agentkit's values is its fields, set by its slots. What its
constructor checks was checked where it was made. Anything else, such as a tool's own class, sends the
whole package through cloudpickle, which also knows what `__main__` defines.
"""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from agentkit.checks.keys import words
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    MarkupPart,
    MaterialPart,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.rollout.records.record import CallRecord, TokenRecord, TrajectoryRecord
from agentkit.rollout.samples.sample import Sample, ToolKwargs
from agentkit.tool.result import ToolResult

Numbered = tuple[Any, ...]
"""A number, its value, and plain values that go with it."""

NotSent = list[tuple[int, str]]
"""Numbers of values that did not get through, with the reason."""

OURS: Final[tuple[type, ...]] = (
    TrajectoryRecord,
    CallRecord,
    TokenRecord,
    Sample,
    ToolKwargs,
    ToolResult,
    SystemMessage,
    UserMessage,
    AssistantMessage,
    ToolMessage,
    TextPart,
    MaterialPart,
    FilePart,
    ImagePart,
    ThinkingPart,
    ProviderPart,
    MarkupPart,
    ToolCall,
)
"""The values that are packed as their fields. A new field is also packed; a missing class only costs time."""


def pack(value: Any) -> bytes:
    """Return a value as bytes.

    Raises:
        Exception: it cannot be pickled; any exception that pickle, or a part of it, raises.
    """
    try:
        return _quickly(value)
    except _Foreign:
        from ray import cloudpickle

        whole: bytes = cloudpickle.dumps(value, protocol=5)  # type: ignore[no-untyped-call]
        return whole


def unpack(blob: bytes) -> Any:
    """Return the value again: equal, of the same types, except that a read-only mapping is a dict.

    Raises:
        Exception: something in it cannot be made here, such as an object of a module that this process does not have.
    """
    return pickle.loads(blob)


def pack_each(items: Sequence[Numbered]) -> tuple[bytes, NotSent]:
    """Numbered values in one package; a value that cannot be sent is omitted, and the others are sent."""
    with contextlib.suppress(Exception):  # looked for below: whose it is
        return _quickly((True, items)), []
    apart, refused = _each(items, pack, "sent to")
    return _quickly((False, apart)), refused


def unpack_each(blob: bytes) -> tuple[list[Any], NotSent]:
    """Read the values that `pack_each` packed; a value that cannot be read does not affect the others."""
    together, items = pickle.loads(blob)
    return (items, []) if together else _each(items, unpack, "read in")


def _each(items: Sequence[Numbered], change: Callable[[Any], Any], verb: str) -> tuple[list[Any], NotSent]:
    changed, refused = [], []
    for number, value, *more in items:
        try:
            changed.append((number, change(value), *more))
        except Exception as e:  # noqa: BLE001 - the boundary: what cannot be sent or read is its sender's
            refused.append((number, f"it cannot be {verb} another process: {words(e)}"))
    return changed, refused


def _quickly(value: Any) -> bytes:
    buffer = io.BytesIO()
    _Packer(buffer, 5).dump(value)
    return buffer.getvalue()


class _Foreign(Exception):
    """Something is in it that this packer does not know."""


class _Packer(pickle.Pickler):
    """Asked about everything but what pickle itself packs in C."""

    def reducer_override(self, value: Any) -> Any:
        fields_of = _FIELDS_OF.get(type(value))
        if fields_of is not None:
            return _rebuilt, fields_of(value)
        if value is _rebuilt or value is dict:
            return NotImplemented
        if type(value) is MappingProxyType:
            return dict, (value.copy(),)
        raise _Foreign


def _rebuilt(which: int, *values: Any) -> Any:
    cls, setters = _BUILT[which]
    value: Any = _new(cls)
    for setter, one in zip(setters, values, strict=True):
        setter(value, one)
    return value


_new: Final = object.__new__
_BUILT: Final = [(cls, [getattr(cls, field.name).__set__ for field in fields(cls)]) for cls in OURS]


def _getter(which: int, cls: type) -> Callable[[Any], tuple[Any, ...]]:
    names = [field.name for field in fields(cls)]
    values = attrgetter(*names)
    if len(names) == 1:
        return lambda value: (which, values(value))
    return lambda value: (which, *values(value))


_FIELDS_OF: Final = {cls: _getter(which, cls) for which, cls in enumerate(OURS)}
