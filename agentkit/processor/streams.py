"""A stream of events that is iterated once and always cleaned up. Knows nothing of what it streams."""

from __future__ import annotations

import asyncio
import logging
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from agentkit.checks.missing_await import Closing, never_read

T = TypeVar("T")
_LOG = logging.getLogger("agentkit.processor")


class EventStream(Closing, ABC, Generic[T]):
    """Iterate it with `async for`, once. `async with` makes sure that all it started has ended when the block is left.

    Without the block, leaving the loop early also ends it, a moment later: Python's event loop closes an iterator that
    nothing references any more. (That is why the stream itself references it only weakly.)
    """

    _unread: str | None = None
    """The warning if it is collected without ever having been read; set when it is handed out."""

    over = False
    """True once it has ended, together with all that it started."""

    _iterator: weakref.ref[AsyncGenerator[T, None]] | None = None
    _begun = False
    _loop: asyncio.AbstractEventLoop | None = None
    _end_awaited: asyncio.Event | None = None

    @abstractmethod
    def _events(self) -> AsyncGenerator[T, None]:
        """The events. Sets `_begun` first; its `finally` ends whatever it started, then calls `_is_over`."""

    def _is_over(self) -> None:
        """Note the end, and wake all that wait for it."""
        self.over = True
        if self._end_awaited is not None:
            self._end_awaited.set()

    async def _wait_for_end(self) -> None:
        if not self.over:
            if self._end_awaited is None:
                self._end_awaited = asyncio.Event()
            await self._end_awaited.wait()

    def __aiter__(self) -> AsyncGenerator[T, None]:
        if self._iterator is not None:
            raise RuntimeError(f"this {type(self).__name__} was iterated before; its results are still its attributes")
        self._loop = asyncio._get_running_loop()
        if self._loop is None:
            raise RuntimeError(
                f"a {type(self).__name__} runs on asyncio, and no asyncio event loop runs here; under trio, use "
                'a thread: `await trio.to_thread.run_sync(agent.run_sync, "…")`'
            )
        self._unread = None
        iterator = self._events()
        self._iterator = weakref.ref(iterator)
        return iterator

    def __repr__(self) -> str:
        state = (
            "is over"
            if self.over
            else "is iterated"
            if self._begun
            else "was not read yet: `async for event in …`, or `await` it"
        )
        return f"<{type(self).__name__}, which {state}>"

    def __del__(self) -> None:
        if self._unread is not None:
            never_read(self, self._unread)

    if not TYPE_CHECKING:  # type checkers find these mistakes if they do not see the methods that report them

        def _mark_reported(self) -> None:
            self._unread = None

        def __iter__(self) -> Any:
            self._mark_reported()
            raise TypeError(
                f"a {type(self).__name__} is iterated with `async for`, inside an async function; without one write "
                "`agent.run_sync(…)`"
            )

    @property
    def _left(self) -> bool:
        """Return whether its event loop was closed before it ended: nothing that has to wait can be done any more."""
        return self._loop is not None and self._loop.is_closed()

    async def aclose(self) -> None:
        """End the stream now; returns when all that it started has ended. Once it is over, this does nothing."""
        self._unread = None
        if self.over:
            return
        if self._left:
            self._is_over()  # nothing of it can be ended there; waiting would raise an error in each waiting caller
            _LOG.warning(
                "%s: its event loop was closed before it had ended; what it had started was left unfinished",
                type(self).__name__,
            )
            return
        iterator = None if self._iterator is None else self._iterator()
        if iterator is not None:
            await iterator.aclose()
        if self._begun:  # the event loop may be closing it already
            await self._wait_for_end()

    async def __aenter__(self) -> Self:
        self._unread = None
        return self
