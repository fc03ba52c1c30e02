"""The number of tokens in a thread's next request. Pure.

It is the provider's count for the newest response, plus an estimate of everything after it.
"""

from __future__ import annotations

from dataclasses import replace

from agentkit.threads.conversation import messages_of
from agentkit.threads.store import Entry, Log
from agentkit.tokens import messages_tokens


def thread_tokens(log: Log, extra: int = 0) -> int:
    """The tokens of a thread's conversation, as of its newest compaction.

    The provider's count includes parts that are in no message: the system prompt, the tools, the framing of each call.
    It remains valid after a compaction if the estimate of what was removed is subtracted.

    Args:
        log: the whole thread.
        extra: the tokens of the system prompt and the tools, for a thread without any count by a provider.
    """
    now = messages_tokens(messages_of(log, sending=True))
    newest = next((e for e in reversed(log.entries) if counted(e) is not None), None)
    if newest is None:
        return now + extra
    entries = tuple(e for e in log.entries if e.seq <= newest.seq)
    calls = tuple(call for call in log.calls if call.seq < newest.seq)  # the response came before its own answers
    then = messages_tokens(messages_of(replace(log, entries=entries, calls=calls)))
    count = (counted(newest) or 0) + now - then
    compacted = any(e.kind == "compaction" and e.seq > newest.seq for e in log.entries)
    return max(count, now + extra) if compacted else count


def counted(entry: Entry) -> int | None:
    """The provider's count for a response and the prompt before it; None if it reported none."""
    usage = entry.body.get("response", {}).get("usage", ())
    return usage[0] + usage[1] if usage and usage[0] else None
