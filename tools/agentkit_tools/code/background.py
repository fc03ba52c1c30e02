"""A tool's own event loop, in a thread: tasks that a call leaves running survive the caller's event loop.

`agent.run_sync` has a new event loop each time; a warm interpreter and a background command must outlive it. The thread
starts with the first call, and ends, with everything in it, when the tool is closed, collected, or the program ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

LEAVE: Final = 5.0  # seconds for what runs to be killed when the program ends


class Background:
    """Runs coroutines in its own thread.

    Args:
        owner: the tool; when it is collected, the thread ends.
        end: called at the end, in the thread; must not refer to the owner, which would keep it alive.
    """

    def __init__(self, owner: object, end: Callable[[], Awaitable[None]]) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0  # of the process that has the thread; 0 until there is one
        self._finalizer = weakref.finalize(owner, self.stop)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread, and wait for it; cancelling this cancels it, and waits for its end."""
        loop = self._running()
        waited = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
        try:
            return await asyncio.shield(waited)
        except asyncio.CancelledError:
            if not waited.done():
                loop.call_soon_threadsafe(lambda: [t.cancel() for t in asyncio.all_tasks(loop) if t.get_coro() is work])
                await asyncio.wait([waited], timeout=LEAVE)
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():  # after a fork there is no thread
                self._pid = os.getpid()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="agentkit-tool", daemon=True)
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """End the thread and its tasks. A later call starts another."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if self._pid not in (0, os.getpid()):
            return  # a fork: what runs belongs to the process that started it
        if loop is None or thread is None or not thread.is_alive():
            _alone(self._end)
            return
        asyncio.run_coroutine_threadsafe(_ending(self._end, loop), loop)
        if thread is not threading.current_thread():  # it may be the collector, running there
            thread.join(LEAVE)


def _alone(end: Callable[[], Awaitable[None]]) -> None:
    """Do it now, although there is no thread: it was never started."""

    async def ending() -> None:
        await end()

    if asyncio._get_running_loop() is None:
        asyncio.run(ending())
    else:
        thread = threading.Thread(target=lambda: asyncio.run(ending()))
        thread.start()
        thread.join(LEAVE)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _ending(end: Callable[[], Awaitable[None]], loop: asyncio.AbstractEventLoop) -> None:
    try:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=LEAVE / 2)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE / 2):
                await end()
    finally:
        loop.stop()
