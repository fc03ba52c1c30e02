"""Threads for tools written as plain functions. Knows callables and the event loop; knows no tool, no call, no event.

The threads are daemons: a function that never returns releases its caller (who was cancelled or timed out) and does not
hold up the interpreter's exit. The pools of asyncio and of anyio do: both join their threads.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

LIMIT = 256  # threads; a sleeping one costs some 10 KiB, and a run starts at most `max_calls` at once
IDLE = 10.0  # seconds after which a thread without work ends


class Workers:
    """A pool of daemon threads that grows with the work, up to a limit, and shrinks again.

    Args:
        limit: threads at most; further functions wait for a free one.
        idle: seconds after which an idle thread ends.
    """

    def __init__(self, limit: int = LIMIT, idle: float = IDLE) -> None:
        self.limit = limit
        self.idle = idle
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._free = 0

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread, with the caller's context variables, and return what it returns.

        When the caller is cancelled it is released at once; the function, if it has begun, runs on unheard.

        Raises:
            RuntimeError: the function raised what a coroutine cannot raise or what would stop the loop, as its message
                says (`StopIteration`, `KeyboardInterrupt`, `GeneratorExit`). Any other exception is raised as it is.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()

        def settle(outcome: tuple[Any, BaseException | None]) -> None:
            if not answer.done():
                answer.set_result(outcome)

        def job() -> None:
            if answer.cancelled():  # the caller left while this waited for a thread
                return
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = (context.run(function), None)
            except BaseException as e:  # noqa: BLE001 - carried to the caller, who raises it
                outcome = (None, e)
            try:
                loop.call_soon_threadsafe(settle, outcome)
            except RuntimeError:  # the loop was closed meanwhile: nobody waits
                return

        self._submit(job)
        value, error = await answer
        if isinstance(error, StopIteration | KeyboardInterrupt | GeneratorExit):
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        if error is not None:
            raise error
        return value

    def _submit(self, job: Callable[[], None]) -> None:
        if self._process != os.getpid():  # forked: the threads stayed behind
            self._reset()
        with self._changed:
            self._jobs.append(job)
            if self._free >= len(self._jobs):
                self._changed.notify()
            elif self._threads < self.limit:
                self._start()

    def _start(self) -> None:
        self._threads += 1
        try:
            threading.Thread(target=self._work, name="agentkit-tool", daemon=True).start()
        except RuntimeError:  # the system gives no more threads: leave the job to those there are
            self._threads -= 1
            if not self._threads:
                self._jobs.pop()
                raise

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job()
            del job  # an idle thread holds on to nothing

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            self._free += 1
            while not self._jobs:
                if not self._changed.wait(self.idle) and not self._jobs:
                    self._free -= 1
                    self._threads -= 1
                    return None
            self._free -= 1
            return self._jobs.popleft()


WORKERS = Workers()
"""The pool of this process; no thread runs before the first plain function does."""
