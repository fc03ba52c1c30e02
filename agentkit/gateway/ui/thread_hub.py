"""All threads of a page: those that are watched or run, what they share, and their end with the server."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agentkit.agent import Agent
from agentkit.errors import ConfigError, FormatError
from agentkit.events import CallEnd, Usage
from agentkit.formats import parse
from agentkit.gateway.events.ag_ui import repairs_of
from agentkit.gateway.ui.live_threads import LiveThread
from agentkit.gateway.ui.page_models import ModelOption, PageModels
from agentkit.gateway.ui.thread_list import ThreadList
from agentkit.messages import ToolCall
from agentkit.threads import ThreadManager

if TYPE_CHECKING:
    from agentkit.gateway.ui.code_tokens import CodeTokens

_KNOWN_CALLS: Final = 1_000


class ThreadHub:
    """The threads of one store, answered by one agent.

    Args:
        threads: the store's threads.
        agent: answers.
        choices: the models that a person can choose.
    """

    def __init__(self, threads: ThreadManager, agent: Agent, choices: Sequence[ModelOption] = ()) -> None:
        self.threads = threads
        self.agent = agent
        self.models = PageModels(agent, choices)
        self.list = ThreadList(threads, agent)
        self.token = secrets.token_hex(4)
        """Begins the epoch of every log: another one after a restart."""
        self.changes = 0
        """How often the list of threads has changed."""
        self.closing = False
        """Whether the server ends."""
        self._repairs = lru_cache(_KNOWN_CALLS)(self._read_repairs)  # reading takes 0.6 ms
        self._tokens: CodeTokens | None = None
        self._live: dict[str, LiveThread] = {}
        self._used: Counter[str] = Counter()  # how many requests use each thread

    def get(self, id: str) -> LiveThread:
        """The thread of this id."""
        if id not in self._live:
            self._live[id] = LiveThread(id, self)
        return self._live[id]

    def running(self, id: str) -> bool:
        """Return whether a thread is being run."""
        known = self._live.get(id)
        return known is not None and (known.live is not None or known.trouble.owner is not None)

    def forget_unused(self, id: str) -> None:
        """Forget a thread if nobody uses it."""
        thread = self._live.get(id)
        if thread is not None and thread.unused and not self._used[id]:
            del self._live[id]

    @contextmanager
    def use(self, id: str) -> Iterator[None]:
        """Keep a thread for the time of the block: another request that waits for its lock must find the same one."""
        self._used[id] += 1
        try:
            yield
        finally:
            self._used[id] -= 1
            if not self._used[id]:
                del self._used[id]
                self.forget_unused(id)

    def drop(self, thread: LiveThread) -> None:
        """Forget a thread that was deleted, and end the streams of those who follow it."""
        thread.trouble.gone = True
        self._live.pop(thread.id, None)
        thread.wake()
        self.list_changed()

    def list_changed(self) -> None:
        """Tell everyone that the list of threads has changed."""
        self.changes += 1
        for thread in self._live.values():
            thread.wake()

    def cost(self, model: str, usage: Usage) -> float | None:
        """The cost of a response; None if the model has no price in the agent's budget."""
        with suppress(ConfigError):
            price = self.agent.budget.price(model)
            return None if price is None else price.of(usage)
        return None

    def repairs(self, call: ToolCall) -> list[dict[str, str]]:
        """The repairs that were needed to read a call, each with its explanation; none for a native call."""
        if call.format is None:
            return []
        return self._repairs(call.format, call.raw)

    def _read_repairs(self, format: str, raw: str) -> list[dict[str, str]]:
        try:
            events = parse(raw, format, self.agent.registry.specs())
        except FormatError:  # the application's own format
            return []
        return repairs_of(next((event.repairs for event in events if isinstance(event, CallEnd)), ()))

    async def tokens(self, language: str, code: str) -> list[tuple[str, str]]:
        """The tokens of code, to be coloured."""
        if self.closing:
            return [("", code)]
        if self._tokens is None:
            from agentkit.gateway.ui.code_tokens import CodeTokens

            self._tokens = CodeTokens()
        return await self._tokens.tokens(language, code)

    def end_streams(self) -> None:
        """End all streams, and the reading of code: the server is about to end."""
        self.closing = True
        if self._tokens is not None:
            self._tokens.close()
        for thread in self._live.values():
            thread.wake()

    async def aclose(self) -> None:
        """End all streams and all runs, and close what was created."""
        self.end_streams()
        await asyncio.gather(*(thread.stop() for thread in list(self._live.values())))
        await self.models.aclose()
        await self.threads.aclose()
