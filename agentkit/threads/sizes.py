"""The number of tokens in a thread's next request. Pure.

It is the provider's count for the newest response, plus an estimate of everything after it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from agentkit.models.tokens import messages_tokens
from agentkit.threads.conversation import messages_of
from agentkit.threads.store import Entry, Log


class ThreadSize(NamedTuple):
    """The tokens of a thread, or of a part of it.

    Attributes:
        estimate: of the messages.
        counted: the provider's count for the newest response, with an estimate of the messages after it and of those
            removed since; None without any count. It includes parts that are in no message: the system prompt, the
            tools, the framing of each call.
        shortened: whether a compaction came after that response.
    """

    estimate: int
    counted: int | None = None
    shortened: bool = False

    def then(self, later: ThreadSize) -> ThreadSize:
        """The size of this part followed by a later one."""
        estimate = self.estimate + later.estimate
        if later.counted is not None:  # it includes everything before it
            return ThreadSize(estimate, later.counted, later.shortened)
        counted = None if self.counted is None else self.counted + later.estimate
        return ThreadSize(estimate, counted, self.shortened)

    def tokens(self, extra: int = 0) -> int:
        """All tokens; `extra` are those of the system prompt and the tools, where no provider counted them."""
        if self.counted is None:
            return self.estimate + extra
        return max(self.counted, self.estimate + extra) if self.shortened else self.counted


NOTHING: Final = ThreadSize(0)


def size_of(log: Log) -> ThreadSize:
    """The size of a thread's conversation, as of its newest compaction, or of a part of it without one.

    A provider's count remains valid after a compaction if the estimate of the removed messages is subtracted.
    """
    now = messages_tokens(messages_of(log, sending=True))
    newest = next((e for e in reversed(log.entries) if provider_count(e) is not None), None)
    if newest is None:
        return ThreadSize(now)
    entries = tuple(e for e in log.entries if e.seq <= newest.seq)
    calls = tuple(call for call in log.calls if call.seq < newest.seq)  # the response came before its own answers
    then = messages_tokens(messages_of(replace(log, entries=entries, calls=calls)))
    compacted = any(e.kind == "compaction" and e.seq > newest.seq for e in log.entries)
    return ThreadSize(now, (provider_count(newest) or 0) + now - then, compacted)


def thread_tokens(log: Log, extra: int = 0) -> int:
    """The tokens of a thread's conversation; see `ThreadSize.tokens` for `extra`."""
    return size_of(log).tokens(extra)


def provider_count(entry: Entry) -> int | None:
    """Return the provider's count for a response and the prompt before it; None if it reported none."""
    usage = entry.body.get("response", {}).get("usage", ())
    return usage[0] + usage[1] if usage and usage[0] else None
