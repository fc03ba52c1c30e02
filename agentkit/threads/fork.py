"""A thread's log as the start of another thread. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agentkit.processor.not_run import COPIED
from agentkit.threads.entries import CREATED
from agentkit.threads.resume import answer, may_have_run
from agentkit.threads.store import Append, Body, Call, Entry, Log, NewCall
from agentkit.tool.codec import to_json

_RUNNING = (
    "not run here, but it had started in the conversation that this one was copied from, and had no answer yet: its "
    "effects may have happened; find out before you repeat it"
)


def copy_entries(log: Log, until: int | None) -> list[Append]:
    """Copy the entries up to `until`, with every call answered; keys stay with the original thread."""
    calls: dict[int, list[Call]] = defaultdict(list)
    for call in log.calls:
        calls[call.seq].append(call)
    return [
        Append(_body(e), "compaction" if e.kind == "compaction" else "message", calls=list(_copies(e, calls[e.seq])))
        for e in log.entries
        if until is None or e.seq <= until
    ]


def _body(entry: Entry) -> Body:
    return entry.body if entry.kind == "compaction" else {CREATED: entry.created, **entry.body}


def _copies(entry: Entry, calls: list[Call]) -> Iterator[NewCall]:
    """The calls, answered, as the response wrote them: the model learns from its answer that a person edited one."""
    written = [part for part in entry.body.get("message", {}).get("content", ()) if part["type"] == "call"]
    for call in calls:
        place = next((i for i, part in enumerate(written) if part["id"] == call.id), None)
        body = call.body if place is None else written.pop(place)
        if call.answer is not None:
            yield NewCall(call.id, body, "answered", call.answer)
            continue
        said = answer(call, "interrupted", _RUNNING) if may_have_run(call) else answer(call, COPIED.code, COPIED.text())
        yield NewCall(call.id, body, "answered", to_json(said))
