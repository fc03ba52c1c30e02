"""A thread's log as the start of another thread. Pure."""

from __future__ import annotations

from collections import defaultdict

from agentkit.messages import TextPart, ToolMessage
from agentkit.threads.store import Append, Call, Log, NewCall
from agentkit.tool.codec import to_json

_FORKED = "not run here: the conversation was copied before this call had an answer"


def copied(log: Log, until: int | None) -> list[Append]:
    """The entries up to `until`, with every call answered; keys are not copied, they belong to the original thread."""
    calls: dict[int, list[Call]] = defaultdict(list)
    for call in log.calls:
        calls[call.seq].append(call)
    return [
        Append(e.body, "compaction" if e.kind == "compaction" else "message", calls=[_copy(c) for c in calls[e.seq]])
        for e in log.entries
        if until is None or e.seq <= until
    ]


def _copy(call: Call) -> NewCall:
    if call.answer is not None:
        return NewCall(call.id, call.body, "answered", call.answer)
    said = ToolMessage(call.id, str(call.body["name"]), (TextPart(_FORKED),), "cancelled")
    return NewCall(call.id, call.body, "answered", to_json(said))
