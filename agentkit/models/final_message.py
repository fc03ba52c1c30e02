"""The message as a whole, if a stream of chat completions has it in addition to its pieces: it overrides them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from agentkit.events import SourceEvent
from agentkit.models.growing_arguments import GrowingArguments
from agentkit.models.native import NativeCall, NativeCalls, contradict
from agentkit.models.native_arguments import readable
from agentkit.models.wire import json_text_of, mapping_of, text_of
from agentkit.unicode import clean

ALONE: Final = "only the message as a whole has it, and it fits none of the calls that came in pieces"
OTHER_NAME: Final = "its pieces call {!r}, but the message as a whole calls {!r}"


def decide(calls: NativeCalls, told: Sequence[Mapping[str, Any]]) -> list[SourceEvent]:
    """Give the calls that came in pieces the arguments from the message as a whole.

    Args:
        calls: the calls that came.
        told: the calls of the message as a whole.
    """
    events: list[SourceEvent] = []
    for said, call in _pairs(calls.all, told):
        function = mapping_of(said.get("function"))
        name, whole = clean(text_of(function.get("name"))), json_text_of(function.get("arguments"))
        if call is None:
            alone, begun = calls.begin(text_of(said.get("id")), name)
            events += begun + calls.more(alone, whole)
            alone.doubt = ALONE
        elif name and call.name and name != call.name:
            call.doubt = OTHER_NAME.format(call.name, name)
        elif contradict(call.text, whole) or (call.values is None and GrowingArguments(whole).values is not None):
            events += calls.tell(call, whole)
            call.doubt = ""
    return events


def _pairs(
    calls: Sequence[NativeCall], told: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], NativeCall | None]]:
    """Each call of the message with the one that came in pieces: by an id that only these two have, or by order."""
    ids = [clean(text_of(said.get("id"))) for said in told]
    came = [call.id for call in calls]
    oft, times = Counter(ids), Counter(came)
    sure = {id: call for id, call in zip(came, calls, strict=True) if id and oft[id] == 1 == times[id]}
    yield from ((said, sure[id]) for said, id in zip(told, ids, strict=True) if id in sure)
    left = [said for said, id in zip(told, ids, strict=True) if id not in sure]
    others = [call for call in calls if call.id not in sure]
    if len(left) == len(others):
        yield from zip(left, others, strict=True)
    else:
        alike = {_key(call.name, call.text) for call in others}
        names = {call.name for call in others}
        yield from ((said, None) for said in left if not _is_known(said, alike, names))


def _is_known(said: Mapping[str, Any], alike: set[tuple[str, Hashable]], names: set[str]) -> bool:
    """Whether a call of the message may be one that came in pieces: of its name, with arguments that do not differ."""
    function = mapping_of(said.get("function"))
    name, text = text_of(function.get("name")), json_text_of(function.get("arguments"))
    key = _key(name, text)
    return name in names and (key == (name, None) or key in alike or (name, None) in alike)


def _key(name: str, text: str) -> tuple[str, Hashable]:
    """A call by its name and its arguments; by its name alone if these cannot be read, and so may be any."""
    values = readable(text) if text.strip() else None
    return name, None if values is None else _frozen(values)


def _frozen(value: Any) -> Hashable:
    """A JSON value as one that can be looked up: equal to another one if the values are equal."""
    if isinstance(value, dict):
        return frozenset((key, _frozen(inner)) for key, inner in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
