"""From a thread's log to the conversation that a model reads. Pure.

A response that was interrupted before it called anything is omitted once the model has answered again: otherwise the
model would read its own unfinished sentence as something it had said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

from agentkit.messages import AssistantMessage, MaterialPart, Message, TextPart, ToolMessage, UserMessage
from agentkit.threads.store import Call, CallStatus, Entry, Log
from agentkit.tool.codec import from_json

BROKEN_OFF = ("error", "cancelled", "interrupted")
"""The finishes of incomplete responses."""

_OPEN: Mapping[CallStatus, str] = {
    "planned": "no result yet: this call has not started",
    "waiting": "no result yet: this call waits for the user's approval",
    "approved": "no result yet: the user approved this call, and it has not started",
    "started": "no result yet: this call was started and not answered",
}


class LocatedMessage(NamedTuple):
    """One message of the conversation, and where it comes from.

    Attributes:
        message: the message; for a response, without the answers to its calls.
        entry: its entry; None for the summary of compacted entries.
        answers: the calls of a response, each with its answer as the model reads it.
    """

    message: Message
    entry: Entry | None = None
    answers: tuple[tuple[Call, ToolMessage], ...] = ()


def messages_of(log: Log, *, sending: bool = False) -> list[Message]:
    """The conversation, as of the newest compaction; every call is followed by its answer.

    Args:
        log: the whole thread.
        sending: whether a model is about to be asked, so that an interrupted response at the end is also omitted.
    """
    return flat(located_messages(log, sending=sending))


def flat(conversation: Iterable[LocatedMessage]) -> list[Message]:
    """The messages, every response followed by the answers to its calls."""
    return [m for said in conversation for m in (said.message, *(answer for _, answer in said.answers))]


def located_messages(log: Log, *, sending: bool = False) -> list[LocatedMessage]:
    """`messages_of`, with the positions in the store."""
    past = _compacted(log)
    calls: dict[int, dict[str, list[Call]]] = defaultdict(lambda: defaultdict(list))
    for call in log.calls:
        calls[call.seq][call.id].append(call)
    entries = in_order(log)
    start = next((i for i, e in enumerate(entries) if e.seq == past.start), 0)
    entries = [e for i, e in enumerate(entries) if i >= start or e.seq == past.user]
    said: list[LocatedMessage] = [LocatedMessage(UserMessage(MaterialPart(past.summary)))] if past.summary else []
    for entry, following in zip_longest(entries, entries[1:]):
        message = from_json(entry.body["message"])
        if not isinstance(message, AssistantMessage):
            said.append(LocatedMessage(message, entry))
            continue
        replaced = sending if following is None else following.body["message"]["role"] == "assistant"
        if replaced and not message.calls and is_broken_off(entry):
            continue
        said.append(LocatedMessage(message, entry, tuple(_answers(message, calls[entry.seq], past.answers))))
    return said


def in_order(log: Log) -> list[Entry]:
    """The messages in the order in which the model reads them.

    A user who writes while a response is being written is stored before it; the model reads it after it. `read` of a
    response is the newest entry that it answers.
    """
    entries: list[Entry] = []
    for entry in log.entries:
        if entry.kind == "compaction":
            continue
        entries.insert(place_of(entry, entries), entry)
    return entries


def place_of(entry: Entry, before: Sequence[Entry]) -> int:
    """The place of one more message among those before it in the store, which are in order."""
    place, read = len(before), entry.body.get("read")
    while read is not None and place and before[place - 1].seq > read and role_of(before[place - 1]) == "user":
        place -= 1
    return place


def role_of(entry: Entry) -> str | None:
    """The role of the message; None for an entry without one."""
    role: str | None = entry.body.get("message", {}).get("role")
    return role


def is_broken_off(entry: Entry) -> bool:
    """Return True if a response is incomplete."""
    return entry.kind == "partial" or entry.body.get("response", {}).get("finish") in BROKEN_OFF


def answer_of(call: Call) -> ToolMessage:
    """The answer to a stored call; a note about its state if it has none yet."""
    if call.answer is not None:
        answer = from_json(call.answer)
        assert isinstance(answer, ToolMessage)
        return answer
    return ToolMessage(call.id, str(call.body.get("name", "")), (TextPart(_OPEN[call.status]),), "interrupted")


def key_of(call: Call) -> str:
    """The position of a call in its thread as a string, such as `12/0`; another call may have the same id."""
    return f"{call.seq}/{call.ordinal}"


def untold(log: Log) -> list[Call]:
    """The calls that a person denied and that no response of the model follows: no run has reported their end yet."""
    last = max((e.seq for e in log.entries if role_of(e) == "assistant"), default=-1)
    return [call for call in log.calls if call.seq == last and call.status == "answered" and is_denied(call)]


def is_denied(call: Call) -> bool:
    """Return True if a person denied the call."""
    return "by" in call.note and "hash" not in call.note  # `deny` leaves this note


def decision_in_words(call: Call) -> str:
    """Say how a person decided about a call, and who; empty if nobody did."""
    if "by" not in call.note:
        return ""
    edited = " with other arguments" if call.note.get("edited") else ""
    word = "denied" if is_denied(call) else f"approved{edited}"
    return f"{word} by {call.note['by']}" if call.note["by"] else word


def _answers(
    message: AssistantMessage, calls: Mapping[str, list[Call]], instead: Mapping[str, str]
) -> Iterator[tuple[Call, ToolMessage]]:
    """The answers to a response's calls, in their order; shortened ones as the compaction left them."""
    for call in message.calls:
        known = calls.get(call.id)
        if not known:
            continue  # an answer is added when the conversation is rendered
        record = known.pop(0)
        answer = replace(answer_of(record), call_id=call.id)  # it may have been run under another
        short = instead.get(key_of(record))
        yield record, answer if short is None else replace(answer, content=(TextPart(short),))


class _Past(NamedTuple):
    """The start of the conversation after compactions: see `agentkit.threads.compaction`."""

    start: int = 0
    summary: str | None = None
    user: int | None = None
    answers: Mapping[str, str] = MappingProxyType({})


def _compacted(log: Log) -> _Past:
    """The newest summary, and all answers that were shortened; a compaction shortens none of a later response."""
    past = _Past()
    for entry in _kinds(log.entries, "compaction"):
        body = entry.body
        if "start" in body:
            past = past._replace(start=body["start"], summary=body.get("summary"), user=body.get("user"))
        past = past._replace(answers={**past.answers, **_shortened(entry)})
    return past


def put_in(log: Log) -> list[Message]:
    """Return the summaries and shortened answers that a thread's compactions put into it, in their order."""
    calls = {key_of(call): call for call in log.calls}
    put: list[Message] = []
    for entry in _kinds(log.entries, "compaction"):
        if entry.body.get("summary"):
            put.append(UserMessage(MaterialPart(entry.body["summary"])))
        shortened = [(calls[key], short) for key, short in _shortened(entry).items() if key in calls]
        put += [replace(answer_of(call), content=(TextPart(short),)) for call, short in shortened]
    return put


def _shortened(compaction: Entry) -> dict[str, str]:
    answers: Mapping[str, str] = compaction.body.get("answers", {})
    return {key: short for key, short in answers.items() if int(key.split("/")[0]) < compaction.seq}


def _kinds(entries: Iterable[Entry], kind: str) -> Iterator[Entry]:
    return (e for e in entries if e.kind == kind)


def ids_of(log: Log) -> set[str]:
    """The ids of all calls, the compacted ones included."""
    return {part["id"] for entry in log.entries for part in _parts(entry) if part["type"] == "call"}


def _parts(entry: Entry) -> Iterable[Mapping[str, Any]]:
    message = entry.body.get("message", {})
    return message["content"] if message.get("role") == "assistant" else ()
