"""An event loop in its own thread: its tasks outlive the loops of the runs that use it.

`Agent.run_sync` makes a new loop for each run, and an MCP session belongs to one loop for its lifetime, as
does the tool instance of a trajectory that another system's loop runs. A thread does not survive a fork: a child
process has another loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Expired
from functools import partial
from typing import Any, Final, TypeVar

from agentkit.checks.forks import reset_after_fork

T = TypeVar("T")

_Work = Coroutine[Any, Any, Any]

LEAVE: Final = 6.0
"""Seconds that its tasks have to end: a local MCP server gets 2 to exit by itself and 1 after SIGTERM."""


class BackgroundLoop:
    """Runs coroutines in a daemon thread, started on first use; stopped by `stop`, or when the program ends."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()  # the garbage collector may call `finish` in the thread that holds it
        self._stop: Any = None
        self._lasting: set[_Work] = set()
        reset_after_fork(self)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                run = partial(_run, self._loop, self._lasting)
                self._thread = threading.Thread(target=run, name=self._name, daemon=True)
                self._thread.start()
                self._stop = weakref.finalize(self, _stop, self._loop, self._thread)
            return self._loop

    @property
    def started(self) -> bool:
        """True from first use until `stop`."""
        return self._loop is not None and not self._loop.is_closed()

    def leave_to_parent(self) -> None:
        """In the child of a fork: start again. The parent's loop and tasks are not touched."""
        if self._loop is not None:
            _PARENTS.append(self._loop)  # closed by nobody: that would change what the parent's loop waits for
        if self._stop is not None:
            self._stop.detach()
        self._loop = self._thread = self._stop = None
        self._lock, self._lasting = threading.RLock(), set()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; its future can be cancelled from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def finish(self, work: _Work) -> None:
        """Start a coroutine that `stop` waits for, up to `LEAVE` seconds, before it cancels all others."""
        self._lasting.add(work)
        lasting = self._lasting
        self.submit(work).add_done_callback(lambda _: lasting.discard(work))

    def finish_after(self, holder: Any, work: Callable[[], _Work]) -> Callable[[], Any]:
        """Call `work` and `finish` it, once: when nothing holds `holder` any more, or the program ends.

        Not in the child of a fork, where `holder` is a copy. The thread is started now: a program that ends starts
        none.

        Returns:
            What does it earlier, so that it is not done again.
        """
        self._running()
        return weakref.finalize(holder, _finish, self, os.getpid(), work)

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it here; a cancellation is passed on."""
        return await asyncio.wrap_future(self.submit(work))

    def run(self, work: Coroutine[Any, Any, T], timeout: float) -> T:
        """Run a coroutine there and block until it ends.

        Raises:
            TimeoutError: it took longer than `timeout` seconds.
            RuntimeError: called from the thread itself, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(f"{self._name}: called from its own thread, which would wait for itself")
        future = self.submit(work)
        try:
            return future.result(timeout)
        except Expired:
            future.cancel()
            raise TimeoutError(f"no answer after {timeout:g} s") from None
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Cancel everything, wait for it briefly, and end the thread. It can be used again afterwards."""
        if self._stop is not None:
            self._stop()


_PARENTS: Final[list[asyncio.AbstractEventLoop]] = []


def _finish(loop: BackgroundLoop, process: int, work: Callable[[], _Work]) -> None:
    if os.getpid() == process:
        loop.finish(work())


def _run(loop: asyncio.AbstractEventLoop, lasting: set[_Work]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        if last := [task for task in asyncio.all_tasks(loop) if task.get_coro() in lasting]:
            loop.run_until_complete(asyncio.wait(last, timeout=LEAVE))
        left = asyncio.all_tasks(loop)
        for task in left:
            if not task.cancelling():  # a second time would interrupt what ends a process
                task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LEAVE))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join(2 * LEAVE + 1)
