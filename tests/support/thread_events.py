"""Events of a thread as the server sends them to the page, in short."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]


def ours(**about: Any) -> Event:
    """The metadata of an event or a message."""
    return {"metadata": {"agentkit": about}}


def custom(name: str, /, **value: Any) -> Event:
    """One of agentkit's own events."""
    return {"type": "CUSTOM", "name": f"agentkit:{name}", "value": value}


def thread(state: str, run: str | None = None) -> Event:
    """The thread's state."""
    return custom("thread", id="t", title="T", state=state, run=run, allowed=[], waiting=0)


def started(run: str = "r1") -> Event:
    """A run starts."""
    return {"type": "RUN_STARTED", "threadId": "t", "runId": run, "protocolVersion": "1.0"}


def finished(run: str = "r1", outcome: str = "success", *interrupts: Event) -> Event:
    """A run ends."""
    about = {"type": outcome, **({"interrupts": list(interrupts)} if interrupts else {})}
    return {"type": "RUN_FINISHED", "threadId": "t", "runId": run, "outcome": about}


def text(*deltas: str, message: str = "r1-1") -> list[Event]:
    """A text message."""
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": delta} for delta in deltas),
        {"type": "TEXT_MESSAGE_END", "messageId": message},
    ]


def thinking(*deltas: str, message: str = "r1-1-r1") -> list[Event]:
    """Thinking."""
    deltas_ = [{"type": "REASONING_MESSAGE_CONTENT", "messageId": message, "delta": delta} for delta in deltas]
    return [
        {"type": "REASONING_START", "messageId": message},
        *deltas_,
        {"type": "REASONING_END", "messageId": message},
    ]


def call(id: str, name: str, arguments: str, *, message: str = "r1-1", end: Event | None = None) -> list[Event]:
    """A call: its start, its arguments in two pieces, and its end unless `end` is {}."""
    half = len(arguments) // 2
    start = {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, "parentMessageId": message}
    pieces = [
        {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for delta in (arguments[:half], arguments[half:])
    ]
    if end == {}:
        return [start, *pieces]
    return [start, *pieces, {"type": "TOOL_CALL_END", "toolCallId": id, **ours(**(end or {}))}]


def approval(id: str, hash: str = "h", name: str = "delete", **arguments: Any) -> Event:
    """A call waits for a decision."""
    return custom("approval", toolCallId=id, hash=hash, name=name, arguments=arguments, reason="it deletes")


def result(id: str, content: Any, status: str = "done", seconds: float = 0.5, code: str | None = None) -> Event:
    """A call is answered."""
    about = ours(status=status, code=code, seconds=seconds)
    return {"type": "TOOL_CALL_RESULT", "messageId": f"{id}-result", "toolCallId": id, "content": content, **about}


def snapshot(*messages: Event) -> Event:
    """The messages so far."""
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def stored_user(id: str, content: Any, seq: int = 1) -> Event:
    """A user's message in a snapshot."""
    return {"id": id, "role": "user", "content": content, **ours(seq=seq, created=1700000000)}


def stored_reply(id: str, content: str, *calls: Event, seq: int = 2, **about: Any) -> Event:
    """A reply in a snapshot: its text, then its calls."""
    parts = [{"text": content}, *({"call": one["id"]} for one in calls)]
    known = {"seq": seq, "created": 1700000000, "state": "complete", "parts": parts, "written": "", **about}
    return {"id": id, "role": "assistant", "content": content, "toolCalls": list(calls), **ours(**known)}


def stored_call(id: str, name: str, status: str = "answered", **about: Any) -> Event:
    """A call in a snapshot."""
    known = {"arguments": {"path": "a.txt"}, "format": "xml", "raw": None, "repairs": [], "effect": None, **about}
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}, **ours(status=status, **known)}
