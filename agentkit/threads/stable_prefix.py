"""The part of a thread that can no longer change, read once; and how much of a log belongs to it. Pure.

Messages and answers are final. A partial response and a call without an answer can still change, and a call that a
person denied must be found until a run has reported it. The prefix ends before the first of these, and its last entry
is a response that no later entry moves or omits.

The conversation is then that of the prefix followed by that of the rest. A compaction
in the rest changes how the prefix is read; the thread is then read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from agentkit.messages import Message
from agentkit.models.render_cache import RenderCache
from agentkit.threads.conversation import ids_of, is_broken_off, messages_of, place_of, put_in, role_of, untold
from agentkit.threads.sizes import NOTHING, ThreadSize, size_of
from agentkit.threads.store import Entry, Log

_OVERHEAD: Final = 300
"""About how many bytes a message takes in addition to its text."""

SHORTEST: Final = 32
"""The fewest entries of a prefix: to read fewer again costs less than to remember them."""


@dataclass(frozen=True, slots=True)
class StablePrefix:
    """The first entries of a thread, as a model reads them.

    Args:
        messages: the conversation, after the compactions in it.
        whole: the conversation as if it were not compacted, and the compactions' messages; None without compactions.
        ids: the ids of all calls, the compacted ones included.
        last: its last entry; None if it has no entries.
        size: the tokens of the conversation.
        weight: about how many bytes of memory it takes.
        rendered: the cache of the conversation as rendered for requests.
    """

    messages: Sequence[Message] = ()
    whole: Sequence[Message] | None = None
    ids: frozenset[str] = frozenset()
    last: Entry | None = None
    size: ThreadSize = NOTHING
    weight: int = 0
    rendered: RenderCache = field(default_factory=RenderCache)

    @property
    def end(self) -> int:
        """The number of its entries."""
        return 0 if self.last is None else self.last.seq + 1


class ThreadContent(NamedTuple):
    """A thread: its stable prefix, and the log of the rest.

    Attributes:
        prefix: the entries that can no longer change.
        rest: the entries after it, with their calls.
    """

    prefix: StablePrefix
    rest: Log

    def messages(self, *, sending: bool = False) -> list[Message]:
        """The conversation; see `messages_of`."""
        return [*self.prefix.messages, *messages_of(self.rest, sending=sending)]

    def full_history(self) -> list[Message]:
        """Return the conversation without its compactions, and the messages that these put into it."""
        before = self.prefix.messages if self.prefix.whole is None else self.prefix.whole
        return [*before, *_read(self.rest)]

    @property
    def last(self) -> int:
        """The `seq` of its last entry; -1 without one."""
        return self.rest.entries[-1].seq if self.rest.entries else self.prefix.end - 1

    @property
    def compacted(self) -> bool:
        """True if the thread has a compaction."""
        return self.prefix.whole is not None or _has_compaction(self.rest.entries)

    def ids(self) -> set[str]:
        """The ids of all calls, the compacted ones included."""
        return {*self.prefix.ids, *ids_of(self.rest)}

    def size(self) -> ThreadSize:
        """Return the tokens of its next request, without system prompt and tools."""
        return self.prefix.size.then(size_of(self.rest))


def extend_prefix(content: ThreadContent, *, least: int = SHORTEST) -> ThreadContent:
    """Return the content with the longest possible stable prefix.

    Args:
        content: no compaction is in its rest, unless it has no stable prefix.
        least: the fewest entries of a prefix.
    """
    prefix, rest = content
    end = _prefix_end(rest, prefix.end)
    if end < max(least, prefix.end + 1):
        return content
    now = replace(
        rest,
        entries=tuple(e for e in rest.entries if e.seq < end),
        calls=tuple(call for call in rest.calls if call.seq < end),
    )
    messages = messages_of(now)
    whole = prefix.whole
    if _has_compaction(now.entries):
        whole = _read(now)
    elif whole is not None:
        whole = [*whole, *messages]
    part = StablePrefix(
        [*prefix.messages, *messages],
        whole,
        prefix.ids | ids_of(now),
        now.entries[-1],
        prefix.size.then(size_of(now)),
        prefix.weight + _weight(now),
        prefix.rendered,
    )
    later = tuple(e for e in rest.entries if e.seq >= end)
    return ThreadContent(part, replace(rest, entries=later, calls=tuple(c for c in rest.calls if c.seq >= end)))


def _prefix_end(log: Log, start: int) -> int:
    """Return the length of the longest stable prefix, at least `start`; the last entry is never in it."""
    last = max((e.seq for e in log.entries), default=start)
    open_calls = (call.seq for call in (*untold(log), *(c for c in log.calls if c.status != "answered")))
    limit = min((last, *open_calls, *(e.seq for e in log.entries if e.kind == "partial")))
    compacted = max((e.seq for e in log.entries if e.kind == "compaction"), default=-1)
    order: list[Entry] = []
    end = start
    for entry in _messages(log, limit):
        place = place_of(entry, order)
        order.insert(place, entry)
        if place == len(order) - 1 and role_of(entry) == "assistant" and not _may_be_omitted(entry):
            end = entry.seq + 1
    return end if end > compacted else start


def _messages(log: Log, limit: int) -> Iterator[Entry]:
    return (entry for entry in log.entries if entry.seq < limit and entry.kind != "compaction")


def _may_be_omitted(entry: Entry) -> bool:
    """Return True if a response without calls is incomplete: the next one replaces it."""
    return is_broken_off(entry) and not any(part["type"] == "call" for part in entry.body["message"]["content"])


def _has_compaction(entries: Sequence[Entry]) -> bool:
    return any(entry.kind == "compaction" for entry in entries)


def _uncompacted(log: Log) -> Log:
    return replace(log, entries=tuple(e for e in log.entries if e.kind != "compaction"))


def _read(log: Log) -> list[Message]:
    """Return all messages of a log, before its compactions and after each of them."""
    return [*messages_of(_uncompacted(log)), *put_in(log)]


def _weight(log: Log) -> int:
    answers = (body for call in log.calls for body in (call.body, call.answer))
    return sum(_OVERHEAD + len(str(body)) for body in (*(entry.body for entry in log.entries), *answers))
