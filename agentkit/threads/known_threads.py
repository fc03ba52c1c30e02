"""A cache of threads: of a known one, only the part that may have changed is read again. Knows no run and no model.

To read 10,000 entries takes about 700 ms. So a thread's stable prefix (see `stable_prefix`) is kept in memory, as a
model reads it, and the store is asked only for the entries after it: each time, so that those of other processes are
seen. The prefix's last entry is read with them: if the store has another one there, the thread was deleted and created
again, and is read as a whole.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Final

from agentkit.threads.log_reader import apart, check_log
from agentkit.threads.stable_prefix import SHORTEST, StablePrefix, ThreadContent, extend_prefix
from agentkit.threads.store import Entry, Log, Store, ask_store

MEMORY: Final = 64 * 1024 * 1024
"""About how many bytes all prefixes take at most; the thread that was read last is kept in any case."""

PAGE: Final = 500
"""How many entries of a thread are read at a time, so that its log is never in memory as a whole."""


class KnownThreads:
    """The stable prefixes of a store's threads.

    Args:
        store: contains the threads.
        memory: the most bytes that they take, about.
        shortest: the number of entries below which nothing of a thread is kept.
        page: how many entries of a thread are read at a time.
    """

    def __init__(self, store: Store, *, memory: int = MEMORY, shortest: int = SHORTEST, page: int = PAGE) -> None:
        self._store = store
        self._memory = memory
        self._shortest = shortest
        self._page = page
        self._known: OrderedDict[str, StablePrefix] = OrderedDict()  # the one read last is the last

    async def read(self, thread_id: str) -> ThreadContent:
        """Return a thread's present content.

        Raises:
            ThreadNotFound: there is no such thread.
            StoreError: an entry or a call is not in the form that agentkit writes; a known prefix is not checked again.
        """
        known, content = self._known.get(thread_id), None
        if known is not None:
            content, _ = await self._more(thread_id, known)
        if content is None:
            content = await self._whole(thread_id)
        self._keep(thread_id, content.prefix)
        return content

    async def changeable(self, thread_id: str) -> Log:
        """Return the entries after the prefix, with their calls: all calls without an answer are in it.

        Raises:
            ThreadNotFound: there is no such thread.
            StoreError: an entry or a call is not in the form that agentkit writes.
        """
        return (await self.read(thread_id)).rest

    def forget(self, thread_id: str) -> None:
        """Remove a thread from the cache."""
        self._known.pop(thread_id, None)

    async def _whole(self, thread_id: str) -> ThreadContent:
        """Read a thread page by page, as long as each page extends the prefix; then all the rest, as of one moment."""
        nothing = StablePrefix()
        content, full = await self._more(thread_id, nothing, self._page)
        while full and content is not None:
            before = content.prefix
            content, full = await self._more(thread_id, before, self._page)
            if full and content is not None and content.prefix.end == before.end:  # the next page would be the same
                content, full = await self._more(thread_id, before)
        if content is None:  # a compaction, which changes how everything before it is read
            content, _ = await self._more(thread_id, nothing)
        assert content is not None, "only what is known can turn out to be different"
        return content

    async def _more(
        self, thread_id: str, known: StablePrefix, limit: int | None = None
    ) -> tuple[ThreadContent | None, bool]:
        """Read up to `limit` entries after a known prefix; returns the content, and True if there may be more of them.

        The content is None if the thread has to be read as a whole.
        """
        last = known.last
        if last is None:
            log = await ask_store(self._store.load, thread_id, limit=limit)
        else:
            limit = None if limit is None else limit + 1
            log = await ask_store(self._store.load, thread_id, after=last.seq - 1, limit=limit)
        content = await apart(len(log.entries), lambda: self._read(thread_id, known, log))
        return content, len(log.entries) == limit

    def _read(self, thread_id: str, known: StablePrefix, log: Log) -> ThreadContent | None:
        log = check_log(log, thread_id)
        rest = log if known.last is None else _after(known.last, log)
        if rest is None:
            return None
        return extend_prefix(ThreadContent(known, rest), least=self._shortest)

    def _keep(self, thread_id: str, prefix: StablePrefix) -> None:
        self.forget(thread_id)
        if prefix.last is None:
            return
        self._known[thread_id] = prefix
        weight = sum(part.weight for part in tuple(self._known.values()))
        while weight > self._memory and len(self._known) > 1:
            weight -= self._known.popitem(last=False)[1].weight


def _after(last: Entry, log: Log) -> Log | None:
    """Return a log without its first entry, the last known one; None if that changed, or a compaction follows."""
    if not log.entries or log.entries[0] != last or any(e.kind == "compaction" for e in log.entries[1:]):
        return None
    return replace(log, entries=log.entries[1:], calls=tuple(call for call in log.calls if call.seq > last.seq))
