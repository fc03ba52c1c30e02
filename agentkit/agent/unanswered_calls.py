"""The calls of a conversation that have no answer: those that wait for a person, and those that get none. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from agentkit.messages import AssistantMessage, Message, SystemMessage, TextPart, ToolCall, ToolMessage

if TYPE_CHECKING:
    from agentkit.models.native_arguments import ArgumentsError

_MOVED_ON = "no result: the conversation continued before this call was answered"


def answer_open_calls(
    messages: Sequence[Message],
) -> tuple[list[Message], tuple[ToolCall, ...], list[tuple[ToolCall, ToolMessage]]]:
    """Answer open calls: the conversation, its calls that wait for a person, and those that are answered here.

    Those that wait are the calls at its end: only answers and system messages follow their response. Any earlier call
    without an answer gets one here, after the other answers to its response; it says that there is no result. A
    call whose arguments cannot be read gets an answer that says what is wrong: nobody can approve unknown arguments.

    >>> messages, waiting, _ = answer_open_calls([AssistantMessage(ToolCall("1", "pay")), AssistantMessage("Well?")])
    >>> [type(m).__name__ for m in messages], waiting
    (['AssistantMessage', 'ToolMessage', 'AssistantMessage'], ())
    """
    end = _end(messages)
    missing: dict[int, list[ToolCall]] = {}
    for at, call in _unanswered(messages):
        missing.setdefault(at, []).append(call)
    last = missing.pop(end, [])
    waiting = tuple(call for call in last if _unreadable(call) is None)
    if len(waiting) < len(last):
        missing[end] = [call for call in last if _unreadable(call) is not None]
    whole = list(messages)
    answered: list[tuple[ToolCall, ToolMessage]] = []
    for at in sorted(missing, reverse=True):
        after = at + 1 + sum(1 for _ in takewhile(lambda m: isinstance(m, ToolMessage), messages[at + 1 :]))
        here = [(call, _answer(call, last=at == end)) for call in missing[at]]
        whole[after:after] = [answer for _, answer in here]
        answered[:0] = here
    return whole, waiting, answered


def _answer(call: ToolCall, *, last: bool) -> ToolMessage:
    error = _unreadable(call) if last else None
    if error is None:
        return ToolMessage(call.id, call.name, (TextPart(_MOVED_ON),), "cancelled")
    return ToolMessage(call.id, call.name, (TextPart(str(error)),), error.code)


def _unreadable(call: ToolCall) -> ArgumentsError | None:
    """Return the error in the arguments of a native call of which only the text is known."""
    if call.arguments or call.format is not None:
        return None
    from agentkit.models.native_arguments import ArgumentsError, read_arguments

    try:
        read_arguments(call.raw)
    except ArgumentsError as e:
        return e
    return None


def _end(messages: Sequence[Message]) -> int:
    """The index of the response at the end of the conversation; -1 if it does not end with one and its answers."""
    for at in reversed(range(len(messages))):
        if not isinstance(messages[at], ToolMessage | SystemMessage):
            return at if isinstance(messages[at], AssistantMessage) else -1
    return -1


def _unanswered(messages: Sequence[Message]) -> list[tuple[int, ToolCall]]:
    """Each call without an answer, with the index of its message. A reused id belongs to the newer call."""
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
