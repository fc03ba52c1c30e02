"""A thread's log as the messages of AG-UI. Pure: knows no store, no run and no page.

What AG-UI has no field for is in each message's `metadata.agentkit`.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agentkit.agent import call_hash
from agentkit.agent.decisions import EDITED
from agentkit.events import Usage
from agentkit.gateway.events.ag_ui import content_of, waiting_call
from agentkit.gateway.events.ag_ui import usage_of as usage_json
from agentkit.gateway.events.run_encoder import PageEvent, call_status
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    MarkupPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.processor.approval import STARTED_BEFORE
from agentkit.processor.not_run import DENIED
from agentkit.threads import Call, Entry, Log
from agentkit.threads.conversation import in_order, is_denied
from agentkit.threads.entries import CREATED, IDEMPOTENT, OWN, SECONDS
from agentkit.threads.resume import may_have_run, waits_inside
from agentkit.tool.call_effect import effect, effect_json
from agentkit.tool.codec import call_from_json, from_json
from agentkit.tool.registry import ToolRegistry

_STATES: Final = {"cancelled": "stopped", "error": "error", "interrupted": "partial"}
"""The states of a response by its finish; any other one is complete."""


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """The facts that a snapshot shows besides the log.

    Args:
        registry: the agent's tools.
        waiting: the calls that a person can decide about, by their ids; those of a sub-agent have a `/` in theirs.
        running: whether a run of the thread is live, here or elsewhere.
        repairs: returns the repairs that were needed to read a call.
        cost: returns the cost of a model's usage; None if it is unknown.
    """

    registry: ToolRegistry
    waiting: Mapping[str, ToolCall] = field(default_factory=dict)
    running: bool = False
    repairs: Callable[[ToolCall], Sequence[PageEvent]] = lambda _: ()
    cost: Callable[[str, Usage], float | None] = lambda _, __: None


def messages_snapshot(log: Log, facts: SnapshotFacts, *, until: int | None = None) -> list[PageEvent]:
    """The messages of AG-UI, in the order in which the model reads them.

    Args:
        log: the whole thread.
        facts: what is not in it.
        until: the last entry; None for all.
    """
    calls: dict[tuple[int, str], deque[Call]] = defaultdict(deque)
    for call in log.calls:
        calls[call.seq, call.id].append(call)
    found: list[PageEvent] = []
    for entry in in_order(log):
        if until is not None and entry.seq > until:
            continue
        message = from_json(entry.body["message"])
        if isinstance(message, UserMessage) and not entry.body.get(OWN):
            found.append(_user(entry, message))
        elif isinstance(message, AssistantMessage):
            kept = [calls[entry.seq, call.id].popleft() for call in message.calls if calls[entry.seq, call.id]]
            found.append(_assistant(entry, message, kept, facts))
            found += [_result(call) for call in kept if call.answer is not None]
    return found


def about_call(call: ToolCall) -> PageEvent:
    """The facts about a call that a page shows besides its name and its arguments."""
    return {"effect": effect_json(effect(call))}


def message_id(entry: Entry) -> str:
    """The id of a stored message: that of the client that sent it, or one made of its number."""
    return entry.key or f"m{entry.seq}"


def usage_of(entry: Entry) -> Usage:
    """The tokens of a stored response; none for any other entry."""
    return Usage(*(entry.body.get("response") or {}).get("usage", ()))


def _user(entry: Entry, message: UserMessage) -> PageEvent:
    about = {"seq": entry.seq, "created": entry.body.get(CREATED, entry.created)}
    return {
        "id": message_id(entry),
        "role": "user",
        "content": content_of(message.content, joined=False),
        "metadata": {"agentkit": about},
    }


def about_response(entry: Entry, message: AssistantMessage, cost: Callable[[str, Usage], float | None]) -> PageEvent:
    """The facts about a response that a page shows besides its text and its calls; `cost` as in `SnapshotFacts`."""
    response: Mapping[str, Any] = entry.body.get("response") or {}
    finish, model = response.get("finish"), response.get("model")
    usage = usage_of(entry)
    return {
        "seq": entry.seq,
        "created": entry.body.get(CREATED, entry.created),
        "model": model,
        "run": response.get("run"),
        "finish": finish,
        "seconds": response.get("seconds"),
        "usage": usage_json(usage),
        "cost": cost(str(model or ""), usage),
        "state": "partial" if entry.kind == "partial" else _STATES.get(str(finish), "complete"),
        "thinking": "".join(part.text for part in message.content if isinstance(part, ThinkingPart)),
        "parts": _parts(message),
        "written": "".join(_written(part) for part in message.content),
    }


def _assistant(entry: Entry, message: AssistantMessage, kept: Sequence[Call], facts: SnapshotFacts) -> PageEvent:
    about = about_response(entry, message, facts.cost)
    said: PageEvent = {
        "id": message_id(entry),
        "role": "assistant",
        "content": message.text,
        "metadata": {"agentkit": about},
    }
    if message.calls:
        said["toolCalls"] = [_call(call, facts) for call in kept]
    return said


def _parts(message: AssistantMessage) -> list[PageEvent]:
    """The text, the thinking and the calls in the order in which they were written."""
    found: list[PageEvent] = []
    for part in message.content:
        match part:
            case TextPart(text) if text:
                kind, value = "text", text
            case ThinkingPart(text) if text:
                kind, value = "thinking", text
            case ToolCall(id):
                found.append({"call": id})
                continue
            case _:
                continue
        if found and kind in found[-1]:
            found[-1][kind] += value
        else:
            found.append({kind: value})
    return found


def _written(part: object) -> str:
    """A part as the model wrote it; a native call is none of its text."""
    match part:
        case TextPart(text) | MarkupPart(text):
            return text
        case ToolCall(format=str(), raw=raw):
            return raw
        case _:
            return ""


def _call(record: Call, facts: SnapshotFacts) -> PageEvent:
    call = call_from_json(record.body)
    arguments = dict(call.arguments)
    about: PageEvent = {
        "arguments": arguments,
        "format": call.format,
        "raw": call.raw or None,
        "repairs": list(facts.repairs(call)),
        **about_call(call),
        "status": _status(record, facts),
        "hash": call_hash(call),
        "reason": STARTED_BEFORE if record.status == "waiting" and may_have_run(record) else "",
        "started": record.started,
        "ended": record.ended,
        "attempts": record.attempts,
        "decided": decision_json(record),
    }
    inside = [
        {"id": id, **waiting_call(one), "reason": "", **about_call(one)}
        for id, one in facts.waiting.items()
        if id.startswith(f"{record.id}/")
    ]
    if inside:
        about["inside"] = inside
    function = {"name": call.name, "arguments": json.dumps(arguments, ensure_ascii=False, default=str)}
    return {"id": record.id, "type": "function", "function": function, "metadata": {"agentkit": about}}


def _status(record: Call, facts: SnapshotFacts) -> str:
    match record.status:
        case "waiting" if record.id in facts.waiting:
            return "waiting"
        case "waiting" if waits_inside(record):
            inside = any(id.startswith(f"{record.id}/") for id in facts.waiting)
            return "waiting" if inside else "approved"
        case "waiting":
            return "planned"  # the user wrote again after it: the next run answers it
        case "started" if facts.running:
            return "running"
        case "started":
            return "unknown" if is_unknown(record, facts.registry) else "planned"
        case status:
            return status


def is_unknown(record: Call, registry: ToolRegistry) -> bool:
    """Return whether only a person can say what became of a call that a dead run had started."""
    tool = registry.get_tool(str(record.body["name"]))
    if record.status != "started" or tool is None:
        return record.status == "started"
    return not ((tool.policy.idempotent and record.body.get(IDEMPOTENT)) or tool.policy.reconcile)


def decision_json(record: Call) -> PageEvent | None:
    """A person's decision about a call; None if there is none."""
    by, edited = record.note.get("by"), bool(record.note.get("edited"))
    if "hash" in record.note:
        return {"decision": "approved", "by": by, "edited": edited, "reason": ""}
    if not is_denied(record):
        return None
    said = from_json(record.answer) if record.answer is not None else None
    text = said.text if isinstance(said, ToolMessage) else ""
    reason = text.removeprefix(DENIED.text()).removeprefix(": ") if text.startswith(DENIED.text()) else ""
    return {"decision": "denied", "by": by, "edited": edited, "reason": reason}


def _without_note(answer: ToolMessage) -> Sequence[TextPart | ImagePart]:
    """The content of an answer as its tool returned it: that a person edited the call is shown with the call."""
    first, *rest = answer.content or (None,)
    return rest if rest and isinstance(first, TextPart) and first.text.startswith(EDITED) else answer.content


def _result(record: Call) -> PageEvent:
    answer = from_json(record.answer or {})
    assert isinstance(answer, ToolMessage)
    about = {"status": call_status(answer.error, answer.text), "code": answer.error, "seconds": _seconds(record)}
    said: PageEvent = {
        "id": f"{record.id}-result",
        "role": "tool",
        "toolCallId": record.id,
        "content": content_of(_without_note(answer)),
        "metadata": {"agentkit": about},
    }
    return said if answer.error is None else {**said, "error": answer.error}


def _seconds(record: Call) -> float | None:
    """How long a call took, as the run measured it or by the times in the store; None if it did not run."""
    if record.answer is not None and SECONDS in record.answer:
        return float(record.answer[SECONDS])
    return None if record.started is None or record.ended is None else max(0.0, record.ended - record.started)
