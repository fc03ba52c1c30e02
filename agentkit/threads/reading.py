"""A thread as its store has it, held against what agentkit writes: the one door by which bodies are read.

Behind it nobody asks again whether a body has what it should. A body that somebody else wrote, an older or newer
agentkit perhaps, or that was damaged, is a `StoreError` that names the thread and the entry.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentkit.errors import StoreError
from agentkit.events import Usage
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.threads.codec import UNREADABLE, call_from_json, from_json
from agentkit.threads.store import Body, Call, Entry, Log, Store


async def read_log(store: Store, thread_id: str, *, after: int = -1) -> Log:
    """`Store.load`, with every body checked.

    Raises:
        ThreadNotFound: there is no such thread.
        StoreError: an entry or a call is not as agentkit writes it.
    """
    log = await store.load(thread_id, after=after)
    check(log, thread_id)
    return log


def check(log: Log, thread_id: str) -> None:
    """Raise `StoreError` for the first body that is not as agentkit writes it, or that another one contradicts."""
    calls: dict[int, list[Call]] = {}
    for call in log.calls:
        try:
            _check_call(call)
        except (*UNREADABLE, StoreError) as e:
            where = f"thread {thread_id!r}, entry {call.seq}, call {call.ordinal}"
            raise StoreError(f"{where} is damaged in the store: {e}") from e
        calls.setdefault(call.seq, []).append(call)
    for entry in log.entries:
        try:
            _match(_check_entry(entry), calls.get(entry.seq, ()))
        except (*UNREADABLE, StoreError) as e:
            raise StoreError(f"thread {thread_id!r}, entry {entry.seq} is damaged in the store: {e}") from e


def _check_entry(entry: Entry) -> tuple[ToolCall, ...]:
    """The calls that it asks for."""
    body = entry.body
    if entry.kind == "compaction":
        _hold(body, _COMPACTION)
        if "message" in body:
            raise ValueError("a message stands where a compaction is wanted")
        for name in ("start", "user"):
            if (place := body.get(name)) is not None and not 0 <= place <= entry.seq:
                raise ValueError(f"{name!r} is {place}, wanted the place of an entry up to this one")
        return ()
    _hold(body, _ENTRY)
    _hold(body.get("response", {}), _RESPONSE)
    message = from_json(body["message"])
    if isinstance(message, ToolMessage):
        raise ValueError("a result stands where a message is wanted")
    if isinstance(message, AssistantMessage):
        return message.calls
    if entry.kind == "partial":
        raise ValueError("a message that is no response is 'partial'")
    return ()


def _match(asked: Sequence[ToolCall], kept: Sequence[Call]) -> None:
    """Raise ValueError unless the calls that a response asks for are those that are kept with it, in any order."""
    left = defaultdict[str, deque[Call]](deque)
    for call in kept:
        left[call.id].append(call)
    for ask in asked:
        if not left[ask.id]:
            raise ValueError(f"the call {ask.id!r} of {ask.name} is not kept with it")
        call = left[ask.id].popleft()
        said = call_from_json(call.body)
        if (said.id, said.name) != (ask.id, ask.name):
            raise ValueError(f"call {call.ordinal} is {said.id!r} of {said.name}, wanted {ask.id!r} of {ask.name}")
        if not call.note.get("edited") and _written(said) != _written(ask):
            raise ValueError(f"call {call.ordinal} has other arguments than the response gave it")
    for more in (call for calls in left.values() for call in calls):
        raise ValueError(f"call {more.ordinal}, {more.id!r}, is none that the response asks for")


def _written(call: ToolCall) -> str:
    """Arguments as text, in which NaN is equal to itself."""
    return json.dumps(dict(call.arguments), sort_keys=True)


def _check_call(call: Call) -> None:
    call_from_json(call.body)
    _hold(call.body, _CALL)
    _hold(call.note, _NOTE)
    if "hash" in call.note and call.status in ("planned", "waiting"):
        raise ValueError(f"status is {call.status!r}, and its note holds a person's approval")
    if call.answer is not None and not isinstance(from_json(call.answer), ToolMessage):
        raise ValueError("another message stands where a result is wanted")


class _Field(NamedTuple):
    """What may stand under a key; `needed` when the key must be there."""

    holds: Callable[[Any], bool]
    words: str
    needed: bool = False


_Fields = Mapping[str, _Field]


def _hold(body: Body, fields: _Fields) -> None:
    """Raise ValueError for a value that is none of these."""
    for name, field in fields.items():
        if name not in body:
            if field.needed:
                raise ValueError(f"{name!r} is missing, wanted {field.words}")
        elif not field.holds(body[name]):
            raise ValueError(f"{name!r} is {body[name]!r:.60}, wanted {field.words}")


def _whole(value: Any) -> bool:
    return type(value) is int


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _counts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) <= len(Usage._fields) and all(map(_whole, value))


def _texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


_TEXT: Final = _Field(lambda value: isinstance(value, str), "text")
_TEXT_OR_NONE: Final = _Field(_text_or_none, "text or null")
_PLACE: Final = _Field(_whole, "the place of an entry")
_PLACE_OR_NONE: Final = _Field(lambda value: value is None or _whole(value), "the place of an entry or null")
_USAGE: Final = _Field(_counts, f"at most {len(Usage._fields)} whole numbers")
_OBJECT: Final = _Field(lambda value: isinstance(value, Mapping), "an object")

_ENTRY: Final[_Fields] = {
    "message": _OBJECT._replace(needed=True),
    "read": _PLACE,
    "response": _OBJECT,
}
_RESPONSE: Final[_Fields] = {
    "run": _TEXT,
    "model": _TEXT,
    "usage": _USAGE,
    "finish": _TEXT,
    "seconds": _Field(lambda value: type(value) in (int, float), "a number"),
}
_COMPACTION: Final[_Fields] = {
    "start": _PLACE_OR_NONE,
    "user": _PLACE_OR_NONE,
    "summary": _TEXT_OR_NONE,
    "answers": _Field(_texts, "texts by the calls' places"),
    "tokens": _Field(lambda value: _counts(value) and len(value) == 2, "two whole numbers"),
    "usage": _USAGE,
    "model": _TEXT_OR_NONE,
}
_CALL: Final[_Fields] = {"key": _TEXT}
_NOTE: Final[_Fields] = {
    "hash": _TEXT,
    "by": _TEXT_OR_NONE,
    "edited": _Field(lambda value: isinstance(value, bool), "true or false"),
}
