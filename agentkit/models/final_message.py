"""The message as a whole, if a stream of chat completions has it in addition to its pieces: it overrides them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agentkit.events import SourceEvent
from agentkit.formats.pieces import Pieces
from agentkit.models.native import NativeCall, NativeCalls, contradict
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
        elif contradict(call.text, whole) or (call.values is None and _is_whole(whole)):
            events += calls.tell(call, whole)
            call.doubt = ""
    return events


def _is_whole(text: str) -> bool:
    return NativeCall(0, "", pieces=Pieces(text)).values is not None


def _pairs(
    calls: Sequence[NativeCall], told: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], NativeCall | None]]:
    """Each call of the message with the one that came in pieces: by an id that only these two have, or by order."""
    ids = [clean(text_of(said.get("id"))) for said in told]
    came = [call.id for call in calls]
    sure = {id for id in ids if id and ids.count(id) == 1 == came.count(id)}
    yield from ((said, calls[came.index(id)]) for said, id in zip(told, ids, strict=True) if id in sure)
    left = [said for said, id in zip(told, ids, strict=True) if id not in sure]
    others = [call for call in calls if call.id not in sure]
    if len(left) == len(others):
        yield from zip(left, others, strict=True)
    else:
        yield from ((said, None) for said in left if not any(_same(said, call) for call in others))


def _same(said: Mapping[str, Any], call: NativeCall) -> bool:
    function = mapping_of(said.get("function"))
    text = json_text_of(function.get("arguments"))
    return text_of(function.get("name")) == call.name and (text == call.text or not contradict(text, call.text))
