"""Threads for tools written as plain functions. Knows callables and the event loop; knows no tool, no call, no event.

The threads are daemons: a function that never returns releases its caller (which was cancelled or timed out) and does
not delay the interpreter's exit. The pools of asyncio and anyio do: both join their threads. Its thread is lost until
the function returns; once all threads are lost, any request for one fails immediately.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any

from agentkit.checks.forks import reset_after_fork
from agentkit.tool.own_thread import OwnThread

LIMIT = 256  # threads; a sleeping one costs some 10 KiB, and a run starts at most `max_calls` at once
IDLE = 10.0  # seconds after which a thread without work ends


class NoThread(RuntimeError):
    """A function was not run: every thread runs a function that does not return, although nothing waits for it."""


class Claim:
    """A claim to run something: the first thread to take it may. `taken` is when it did, by `perf_counter`."""

    __slots__ = ("_lock", "taken")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.taken = 0.0

    def take(self) -> bool:
        """Take it; False if it is already taken."""
        first = self._lock.acquire(blocking=False)
        if first:
            self.taken = perf_counter()
        return first


class _Job:
    """One function for one caller."""

    def __init__(self, function: Callable[[], Any], claim: Claim) -> None:
        self.claim = claim
        self.lost = False  # it is running, and nothing waits for it
        self._function = function
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()

    def run(self) -> None:
        """Run it, in a thread, unless its caller, having left while this waited, has taken the claim."""
        if self.answer.cancelled() or not self.claim.take():
            return
        try:
            value = self._context.run(self._function)
        except BaseException as e:  # noqa: BLE001 - carried to the caller, who raises it
            self.finish(None, e)
        else:
            self.finish(value, None)

    def finish(self, value: Any, error: BaseException | None) -> None:
        """Wake the caller."""
        try:
            self._loop.call_soon_threadsafe(self._finish, value, error)
        except RuntimeError:  # the loop was closed in the meantime: nothing waits
            return

    def _finish(self, value: Any, error: BaseException | None) -> None:
        if not self.answer.done():
            self.answer.set_result((value, error))


class Workers:
    """A pool of daemon threads that grows with the work, up to a limit, and shrinks again.

    Args:
        limit: how many threads at most; further functions wait for a free one.
        idle: seconds after which an idle thread ends.
    """

    def __init__(self, limit: int = LIMIT, idle: float = IDLE) -> None:
        self.limit = limit
        self.idle = idle
        self.leave_to_parent()
        reset_after_fork(self)

    def leave_to_parent(self) -> None:
        """Forget all threads: in the child of a fork, whose parent keeps them; and at the beginning."""
        self._changed = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._threads = 0
        self._free = 0
        self._working: set[_Job] = set()
        self._lost = 0  # threads whose function continues although nothing waits for it

    def state(self) -> str:
        """Say in words what the threads are doing."""
        with self._changed:
            busy, lost = self._threads - self._free, self._lost
        if lost and lost >= busy:
            return f"{lost} plain tools of this process have not returned"
        given_up = f", {lost} of which were given up" if lost else ""
        return f"{busy} plain tools of this process are running{given_up}"

    async def run(self, function: Callable[[], Any], claim: Claim | None = None, own: OwnThread | None = None) -> Any:
        """Run a function in a thread, with the caller's context variables, and return what it returns.

        If the caller is cancelled, it is released immediately; the function, if it has started, runs on unobserved.

        Args:
            function: what to run.
            claim: taken when it starts; if something takes it before, the function never starts.
            own: the thread to run it in; None for any of the pool.

        Raises:
            NoThread: no thread will ever be free, as far as is known.
        """
        job = _Job(function, Claim() if claim is None else claim)
        if own is None:
            self._submit(job)
        else:
            own.submit(job.run)
        try:
            value, error = await job.answer
        except asyncio.CancelledError:
            self._leave(job)
            raise
        if error is not None:
            raise error
        return value

    def _submit(self, job: _Job) -> None:
        with self._changed:
            if self._lost >= self.limit:
                raise self._none_left()
            self._jobs.append(job)
            if self._free >= len(self._jobs):
                self._changed.notify()
            elif self._threads < self.limit:
                self._start()

    def _none_left(self) -> NoThread:
        return NoThread(
            f"{self._lost} plain tools of this process have not returned, and no further one can be started until one "
            "of them does; tools written with `async def` still run"
        )

    def _leave(self, job: _Job) -> None:
        """Let a caller go. If that leaves no thread, the functions that wait for one fail."""
        with self._changed:
            if job not in self._working:
                return
            job.lost = True
            self._lost += 1
            if self._lost < self.limit:
                return
            waiting = tuple(self._jobs)
            self._jobs.clear()
            error = self._none_left()
        for one in waiting:
            one.finish(None, error)

    def _start(self) -> None:
        self._threads += 1
        try:
            threading.Thread(target=self._work, name="agentkit-tool", daemon=True).start()
        except RuntimeError:  # the system provides no more threads: leave the job to the existing ones
            self._threads -= 1
            if not self._threads:
                self._jobs.pop()
                raise

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            self._done(job)
            del job  # an idle thread keeps nothing alive

    def _next(self) -> _Job | None:
        with self._changed:
            self._free += 1
            while not self._jobs:
                if not self._changed.wait(self.idle) and not self._jobs:
                    self._free -= 1
                    self._threads -= 1
                    return None
            self._free -= 1
            job = self._jobs.popleft()
            self._working.add(job)
            return job

    def _done(self, job: _Job) -> None:
        with self._changed:
            self._working.discard(job)
            self._lost -= job.lost


WORKERS = Workers()
"""The pool of this process; no thread runs before the first plain function does."""
