"""The threads of a store as a page lists them: titles and states, read again only if a thread has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentkit.agent import Agent
from agentkit.errors import ConfigError, StoreError
from agentkit.gateway.ui.thread_settings import ThreadSettings
from agentkit.messages import TextPart, UserMessage
from agentkit.threads import Log, Thread, ThreadManager
from agentkit.threads.conversation import role_of
from agentkit.threads.log_reader import read_log
from agentkit.threads.resume import is_unfinished, waiting
from agentkit.threads.store import ask_store
from agentkit.tool.codec import call_from_json, from_json
from agentkit.tool.output import label

ThreadState = Literal["idle", "running", "waiting", "interrupted", "damaged"]

_TAIL: Final = 64
"""Entries at the end of a thread that are read for its state: all calls without an answer are in the last response."""
_TITLE: Final = 60  # characters
_KEPT: Final = 2_000  # threads in memory
_PAGE: Final = 50  # threads
_SEARCHED: Final = 200  # threads


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One thread in the list.

    Args:
        thread: as it is stored.
        title: given by a person, or the first words of the first message.
        state: without the runs that are live.
        waiting: how many calls wait for a person.
        problem: what is damaged; empty for nothing.
    """

    thread: Thread
    title: str
    state: ThreadState
    waiting: int = 0
    problem: str = ""

    def to_json(self, *, running: bool) -> dict[str, Any]:
        """The item of the list."""
        thread = self.thread
        return {
            "id": thread.id,
            "title": self.title,
            "state": "running" if running else self.state,
            "waiting": self.waiting,
            "updated": thread.updated,
            "created": thread.created,
        }


class ThreadList:
    """The list of threads, without those of sub-agents.

    Args:
        threads: the store's.
        agent: whose tools say which calls an interrupted run left open.
    """

    def __init__(self, threads: ThreadManager, agent: Agent) -> None:
        self._threads = threads
        self._agent = agent
        self._known: OrderedDict[str, ThreadSummary] = OrderedDict()

    async def page(self, query: str, before: Thread | None) -> tuple[list[ThreadSummary], str | None]:
        """50 threads, the last changed first, and the id of the one after which there are more; None for no more.

        Args:
            query: words in the title, in a text, in a call's arguments or in its result; empty for all threads. At most
                200 threads are searched.
            before: the thread after which the page begins; None for the newest one.
        """
        found: list[ThreadSummary] = []
        for _ in range(0, _SEARCHED if query else 10_000, _PAGE):
            threads = await self._threads.list_threads(limit=_PAGE, before=before)
            shown = [await self.summary(thread) for thread in threads if "/" not in thread.id]
            found += [one for one in shown if not query or await self._has(one, query.casefold())]
            if len(found) > _PAGE:
                return found[:_PAGE], found[_PAGE - 1].thread.id
            if len(threads) < _PAGE:
                return found, None
            before = threads[-1]
        return found, None if before is None else before.id

    async def summary(self, thread: Thread) -> ThreadSummary:
        """A thread's title and state."""
        known = self._known.pop(thread.id, None)
        if known is None or known.thread != thread:
            known = await self._read(thread)
        self._known[thread.id] = known
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return known

    async def _read(self, thread: Thread) -> ThreadSummary:
        settings = ThreadSettings.of(thread)
        if thread.damage is not None:
            return ThreadSummary(thread, settings.title or thread.id, "damaged", problem=thread.damage)
        try:
            log = await read_log(self._threads.store, thread.id, after=thread.entries - _TAIL - 1)
            title = settings.title or await self._title(thread, log)
            waits = len(await self._threads.pending(thread.id)) if waiting(log) else 0
        except StoreError as e:
            return ThreadSummary(thread, settings.title or thread.id, "damaged", problem=str(e))
        state: ThreadState = "idle"
        if waits:
            state = "waiting"
        elif unfinished(log, settings, self._agent):
            state = "interrupted"
        return ThreadSummary(thread, title, state, waits)

    async def _title(self, thread: Thread, log: Log) -> str:
        if thread.entries > _TAIL:
            log = await ask_store(self._threads.store.load, thread.id, limit=3)
        for entry in log.entries:
            if role_of(entry) == "user":
                message = from_json(entry.body["message"])
                assert isinstance(message, UserMessage)
                texts = [part.text for part in message.content if isinstance(part, TextPart)]
                line = " ".join(texts[-1].split()) if texts else ""  # what was typed follows the attachments
                others = [label(part) for part in message.content if not isinstance(part, TextPart)]
                return _cut(line or "".join(others[:1]))
        return ""

    async def _has(self, one: ThreadSummary, query: str) -> bool:
        if query in one.title.casefold():
            return True
        try:
            log = await ask_store(self._threads.store.load, one.thread.id)
            return any(query in text.casefold() for text in _texts(log))
        except StoreError:
            return False


def unfinished(log: Log, settings: ThreadSettings, agent: Agent) -> bool:
    """Return whether a run was interrupted, and no person has stopped the thread since."""
    if not log.entries or settings.stopped >= log.entries[-1].seq:
        return False
    try:
        return is_unfinished(log, agent.registry)
    except ConfigError:  # the tool of an approved call is missing: a run says so
        return True


def _texts(log: Log) -> Iterator[str]:
    for entry in log.entries:
        yield from _texts_of(entry.body.get("message", {}))
    for call in log.calls:
        yield from _texts_of(call.answer or {})
        yield from _strings(call_from_json(call.body).arguments)


def _texts_of(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content", ())
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def _strings(value: Any) -> Iterator[str]:
    """The strings in a JSON value, and its numbers as strings."""
    if isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(item)
    else:
        yield str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _TITLE else f"{text[: _TITLE - 1].rstrip()}…"
