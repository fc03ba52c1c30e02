"""From a thread's log to the conversation that a model reads. Pure.

A response that broke off before it called anything is left out once the model has answered anew: it would read its own
half sentence as something it had said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from agentkit.messages import AssistantMessage, Message, TextPart, ToolMessage, UserMessage
from agentkit.threads.codec import from_json
from agentkit.threads.store import Call, Entry, Log

BROKEN_OFF = ("error", "cancelled", "interrupted")
"""The finishes of responses that did not come to their end."""

_WAITING = "no result yet: this call waits for the user's approval"
_UNDER_WAY = "no result yet: this call was begun and not answered"


def messages_of(log: Log, *, sending: bool = False) -> list[Message]:
    """The conversation, as of the newest compaction; every call is followed by its answer.

    Args:
        log: the whole thread.
        sending: whether a model is about to be asked, so that a broken-off response at the end is left out as well.
    """
    start, summary, answers = _compacted(log)
    calls: dict[int, dict[str, Call]] = defaultdict(dict)
    for call in log.calls:
        calls[call.seq][call.id] = call
    entries = [e for e in log.entries if e.kind != "compaction" and e.seq >= start]
    messages: list[Message] = [UserMessage((TextPart(summary),))] if summary else []
    for entry, following in zip_longest(entries, entries[1:]):
        message = from_json(entry.body["message"])
        if not isinstance(message, AssistantMessage):
            messages.append(message)
            continue
        replaced = sending if following is None else following.body["message"]["role"] == "assistant"
        if replaced and not message.calls and is_broken_off(entry):
            continue
        messages.append(message)
        messages.extend(_answers(message, calls[entry.seq], answers))
    return messages


def is_broken_off(entry: Entry) -> bool:
    """Whether a response did not come to its end."""
    return entry.kind == "partial" or entry.body.get("response", {}).get("finish") in BROKEN_OFF


def answer_of(call: Call) -> ToolMessage:
    """The answer to a stored call; what can be said of it where it has none yet."""
    if call.answer is not None:
        answer = from_json(call.answer)
        assert isinstance(answer, ToolMessage)
        return answer
    said = _WAITING if call.status == "waiting" else _UNDER_WAY
    return ToolMessage(call.id, str(call.body.get("name", "")), (TextPart(said),), "interrupted")


def _answers(message: AssistantMessage, calls: Mapping[str, Call], instead: Mapping[str, str]) -> Iterator[ToolMessage]:
    """The answers to a response's calls, in their order; shortened ones as the compaction left them."""
    for call in message.calls:
        known = calls.get(call.id)
        if known is None:
            continue  # an answer is made up when the conversation is rendered
        answer = answer_of(known)
        short = instead.get(f"{known.seq}/{known.ordinal}")
        yield answer if short is None else ToolMessage(answer.call_id, answer.name, (TextPart(short),), answer.error)


def _compacted(log: Log) -> tuple[int, str | None, Mapping[str, str]]:
    """Where the conversation begins, the summary of what came before, and the answers that were shortened."""
    start, summary, answers = 0, None, {}
    for entry in _kinds(log.entries, "compaction"):
        start = entry.body.get("start", start)
        summary = entry.body.get("summary", summary)
        answers |= entry.body.get("answers", {})
    return start, summary, answers


def _kinds(entries: Iterable[Entry], kind: str) -> Iterator[Entry]:
    return (e for e in entries if e.kind == kind)


def ids_of(log: Log) -> set[str]:
    """The ids of all calls, the compacted ones included."""
    return {part["id"] for entry in log.entries for part in _parts(entry) if part["type"] == "call"}


def _parts(entry: Entry) -> Iterable[Mapping[str, Any]]:
    message = entry.body.get("message", {})
    return message["content"] if message.get("role") == "assistant" else ()
