"""Read a thread from its store and check every body: the only place where bodies are read.

Bodies are checked by the same rules (`readable`) before they are written; code that uses them does not check again. A
damaged body, or one of another program or version, raises a `StoreError` that names thread and entry.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from agentkit.errors import StoreError
from agentkit.events import Usage
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.threads.entries import CREATED, IDEMPOTENT, OWN, SECONDS, TOOL, UNGUARDED, before_guards, whole_entry
from agentkit.threads.store import Append, Body, Call, CallStatus, Change, Entry, Log, Move, Store, ask_store
from agentkit.tool.codec import UNREADABLE, call_from_json, from_json

T = TypeVar("T")
_C = TypeVar("_C", bound=Change)

LONG: Final = 200
"""From this number of entries on, reading takes some milliseconds, and is done outside the event loop."""


async def read_log(store: Store, thread_id: str, *, after: int = -1) -> Log:
    """Load a log and check every body.

    Raises:
        ThreadNotFound: there is no such thread.
        StoreError: an entry or a call is not in the form that agentkit writes.
    """
    log = await ask_store(store.load, thread_id, after=after)
    return await apart(len(log.entries), lambda: check_log(log, thread_id))


async def apart(entries: int, work: Callable[[], T]) -> T:
    """Do work on this many entries; in another thread if that takes long, so that the event loop does not wait."""
    return await asyncio.to_thread(work) if entries >= LONG else work()


def check_log(log: Log, thread_id: str) -> Log:
    """Return the log with partial responses joined.

    Raises:
        StoreError: for the first body that agentkit would not write like this, or that contradicts another.
    """
    calls: dict[int, list[Call]] = {}
    for call in log.calls:
        try:
            _check_call(call.status, call.body, call.note, call.answer)
        except (*UNREADABLE, StoreError) as e:
            where = f"thread {thread_id!r}, entry {call.seq}, call {call.ordinal}"
            raise StoreError(f"{where} is damaged in the store: {e}") from e
        calls.setdefault(call.seq, []).append(call)
    entries: list[Entry] = []
    for entry in log.entries:
        kept = calls.get(entry.seq, ())
        try:
            entries.append(whole := whole_entry(entry, kept) if entry.kind == "partial" else entry)
            _match(_check_entry(whole), kept)
        except (*UNREADABLE, StoreError) as e:
            raise StoreError(f"thread {thread_id!r}, entry {entry.seq} is damaged in the store: {e}") from e
    return replace(log, entries=tuple(entries))


def readable(changes: Sequence[_C], thread_id: str) -> Sequence[_C]:
    """Return the changes if reading accepts the bodies that they write.

    Raises:
        StoreError: for the first body that reading would refuse; it must not be written.
    """
    for change in changes:
        where = "a new entry" if isinstance(change, Append) else f"entry {change.seq}"
        try:
            if isinstance(change, Move):
                _check_call(change.to, change.body, change.note, change.answer)
                continue
            for call in change.calls:
                _check_call(call.status, call.body, None, call.answer)
            grown = [Call(0, sys.maxsize, new.id, new.status, new.body) for new in change.calls if "before" in new.body]
            _check_entry(whole_entry(Entry(sys.maxsize, change.kind, change.body, None, 0.0), grown))
        except (*UNREADABLE, StoreError) as e:
            raise StoreError(f"thread {thread_id!r}, {where} cannot be written: {e}; nothing was changed") from e
    return changes


def _check_entry(entry: Entry) -> tuple[ToolCall, ...]:
    """Check an entry; returns the calls of its message."""
    body = entry.body
    if entry.kind == "compaction":
        _check_fields(body, _COMPACTION)
        if "message" in body:
            raise ValueError("expected a compaction, found a message")
        for name in ("start", "user"):
            if (place := body.get(name)) is not None and not 0 <= place <= entry.seq:
                raise ValueError(f"{name!r} is {place}, expected the seq of an entry up to this one")
        return ()
    _check_fields(body, _ENTRY)
    _check_fields(body.get("response", {}), _RESPONSE)
    message = from_json(body["message"])
    if isinstance(message, ToolMessage):
        raise ValueError("expected a message, found a result")
    if isinstance(message, AssistantMessage):
        return message.calls
    if entry.kind == "partial":
        raise ValueError("a message that is not a response is 'partial'")
    return ()


def _match(asked: Sequence[ToolCall], kept: Sequence[Call]) -> None:
    """Raise ValueError unless the calls that a response makes are those that are stored with it, in any order."""
    left = defaultdict[str, deque[Call]](deque)
    for call in kept:
        left[call.id].append(call)
    for ask in asked:
        if not left[ask.id]:
            raise ValueError(f"the call {ask.id!r} of {ask.name} is not stored with it")
        call = left[ask.id].popleft()
        stored = call_from_json(call.body)
        if (stored.id, stored.name) != (ask.id, ask.name):
            found = f"{stored.id!r} of {stored.name}"
            raise ValueError(f"call {call.ordinal} is {found}, expected {ask.id!r} of {ask.name}")
        written = _written(call_from_json(before_guards(call.body)))
        if not call.note.get("edited") and written != _written(ask):
            raise ValueError(f"the arguments of call {call.ordinal} differ from those in the response")
    for more in (call for calls in left.values() for call in calls):
        raise ValueError(f"call {more.ordinal}, {more.id!r}, is not a call of the response")


def _written(call: ToolCall) -> str:
    """Return arguments as a string, in which NaN is equal to itself."""
    return json.dumps(dict(call.arguments), sort_keys=True)


def _check_call(status: CallStatus, body: Body | None, note: Body | None, answer: Body | None) -> None:
    if body is not None:
        call_from_json(body)
        _check_fields(body, _CALL)
    _check_fields(note or {}, _NOTE)
    if "hash" in (note or {}) and status in ("planned", "waiting"):
        raise ValueError(f"status is {status!r}, but its note has a person's approval")
    if answer is not None:
        _check_fields(answer, _ANSWER)
        if not isinstance(from_json(answer), ToolMessage):
            raise ValueError("expected a result, found another message")


class _Field(NamedTuple):
    """The allowed values of a key; `needed` if the key is required."""

    holds: Callable[[Any], bool]
    words: str
    needed: bool = False


_Fields = Mapping[str, _Field]


def _check_fields(body: Body, fields: _Fields) -> None:
    for name, field in fields.items():
        if name not in body:
            if field.needed:
                raise ValueError(f"{name!r} is missing, expected {field.words}")
        elif not field.holds(body[name]):
            raise ValueError(f"{name!r} is {body[name]!r:.60}, expected {field.words}")


def _whole(value: Any) -> bool:
    return type(value) is int


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _counts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) <= len(Usage._fields) and all(map(_whole, value))


def _texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


_TEXT: Final = _Field(lambda value: isinstance(value, str), "a string")
_TEXT_OR_NONE: Final = _Field(_text_or_none, "a string or null")
_PLACE: Final = _Field(_whole, "the seq of an entry")
_PLACE_OR_NONE: Final = _Field(lambda value: value is None or _whole(value), "the seq of an entry or null")
_USAGE: Final = _Field(_counts, f"at most {len(Usage._fields)} integers")
_OBJECT: Final = _Field(lambda value: isinstance(value, Mapping), "an object")

_NUMBER: Final = _Field(lambda value: type(value) in (int, float), "a number")

_ENTRY: Final[_Fields] = {
    "message": _OBJECT._replace(needed=True),
    CREATED: _NUMBER,
    "read": _PLACE,
    "response": _OBJECT,
    OWN: _Field(lambda value: isinstance(value, bool), "true or false"),
}
_RESPONSE: Final[_Fields] = {
    "run": _TEXT,
    "model": _TEXT,
    "usage": _USAGE,
    "finish": _TEXT,
    "seconds": _NUMBER,
}
_COMPACTION: Final[_Fields] = {
    "start": _PLACE_OR_NONE,
    "user": _PLACE_OR_NONE,
    "summary": _TEXT_OR_NONE,
    "answers": _Field(_texts, "strings by the positions of calls"),
    "tokens": _Field(lambda value: _counts(value) and len(value) == 2, "two integers"),
    "usage": _USAGE,
    "model": _TEXT_OR_NONE,
}
_CALL: Final[_Fields] = {
    "key": _TEXT,
    TOOL: _TEXT,
    UNGUARDED: _TEXT,
    IDEMPOTENT: _Field(lambda value: isinstance(value, bool), "true or false"),
}
_ANSWER: Final[_Fields] = {SECONDS: _NUMBER}
_NOTE: Final[_Fields] = {
    "hash": _TEXT,
    "by": _TEXT_OR_NONE,
    "edited": _Field(lambda value: isinstance(value, bool), "true or false"),
    "untouched": _Field(lambda value: isinstance(value, bool), "true or false"),
}
