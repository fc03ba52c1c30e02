"""How many tokens a thread's next request has. Pure.

It is the provider's own count of the newest response, and an estimate of what came after it.
"""

from __future__ import annotations

from dataclasses import replace

from agentkit.threads.conversation import messages_of
from agentkit.threads.store import Entry, Log
from agentkit.tokens import messages_tokens


def thread_tokens(log: Log, beside: int = 0) -> int:
    """The tokens of a thread's conversation, as of its newest compaction.

    What the provider counted includes what no message says: the system prompt, the tools, the frame of each call. It
    stays true after a compaction, when the estimate of what was taken out is subtracted.

    Args:
        log: the whole thread.
        beside: the tokens of the system prompt and the tools, for a thread without any count by a provider.
    """
    now = messages_tokens(messages_of(log, sending=True))
    newest = next((e for e in reversed(log.entries) if counted(e) is not None), None)
    if newest is None:
        return now + beside
    entries = tuple(e for e in log.entries if e.seq <= newest.seq)
    calls = tuple(call for call in log.calls if call.seq < newest.seq)  # the response came before its own answers
    then = messages_tokens(messages_of(replace(log, entries=entries, calls=calls)))
    count = (counted(newest) or 0) + now - then
    compacted = any(e.kind == "compaction" and e.seq > newest.seq for e in log.entries)
    return max(count, now + beside) if compacted else count


def counted(entry: Entry) -> int | None:
    """What the provider counted for a response, with the prompt before it; None where it counted nothing."""
    usage = entry.body.get("response", {}).get("usage", ())
    return usage[0] + usage[1] if usage and usage[0] else None
