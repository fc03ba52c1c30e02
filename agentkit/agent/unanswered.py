"""The calls of a conversation that have no answer: what still waits for a person, and what nobody will answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from agentkit.messages import AssistantMessage, Message, SystemMessage, TextPart, ToolCall, ToolMessage

_MOVED_ON = "no result: the conversation went on before this call was answered"


def settled(messages: Sequence[Message]) -> tuple[list[Message], tuple[ToolCall, ...]]:
    """The conversation, and its calls that wait for a person.

    Those are the calls at its end: nothing but answers and system messages follows their response. Any earlier call
    without an answer gets one here, behind the others of its response; it says that there is no result.

    >>> messages, waiting = settled([AssistantMessage(ToolCall("1", "pay")), AssistantMessage("Well?")])
    >>> [type(m).__name__ for m in messages], waiting
    (['AssistantMessage', 'ToolMessage', 'AssistantMessage'], ())
    """
    end = _end(messages)
    missing: dict[int, list[ToolCall]] = {}
    for at, call in _unanswered(messages):
        missing.setdefault(at, []).append(call)
    waiting = tuple(missing.pop(end, ()))
    whole = list(messages)
    for at in sorted(missing, reverse=True):
        behind = at + 1 + sum(1 for _ in takewhile(lambda m: isinstance(m, ToolMessage), messages[at + 1 :]))
        whole[behind:behind] = [
            ToolMessage(call.id, call.name, (TextPart(_MOVED_ON),), "cancelled") for call in missing[at]
        ]
    return whole, waiting


def _end(messages: Sequence[Message]) -> int:
    """The place of the response at the end of the conversation; -1 where it does not end with one and its answers."""
    for at in reversed(range(len(messages))):
        if not isinstance(messages[at], ToolMessage | SystemMessage):
            return at if isinstance(messages[at], AssistantMessage) else -1
    return -1


def _unanswered(messages: Sequence[Message]) -> list[tuple[int, ToolCall]]:
    """Each call without an answer, with the place of its message. An id that is used again is the newer call's."""
    open_calls: dict[str, list[tuple[int, ToolCall]]] = {}
    found: list[tuple[int, ToolCall]] = []
    for at, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            fresh: dict[str, list[tuple[int, ToolCall]]] = {}
            for call in message.calls:
                fresh.setdefault(call.id, []).append((at, call))
            for id in fresh:
                found += open_calls.pop(id, ())
            open_calls |= fresh
        elif isinstance(message, ToolMessage) and open_calls.get(message.call_id):
            open_calls[message.call_id].pop(0)
    return [*found, *(one for some in open_calls.values() for one in some)]
