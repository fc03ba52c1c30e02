"""Locks for calls that must not run concurrently. Knows keys and event loops; knows no tool.

Each lock belongs to an object: a tool instance, or a function. It is held from the moment a call is allowed to start
until what it started has truly ended, which for a plain function in its thread may be long after its caller was
answered. The runs of one process share the locks, regardless of their event loops and threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar

from agentkit.checks.forks import reset_after_fork
from agentkit.processor.workers import Claim


class _Locks:
    """The locks of this process."""

    def __init__(self) -> None:
        self.leave_to_parent()
        reset_after_fork(self)

    def leave_to_parent(self) -> None:
        """Forget all locks: in the child of a fork, whose parent has their calls; and at the beginning."""
        self.lock = threading.Lock()  # guards the others; nothing is waited for under it
        self.held: dict[int, HeldLock] = {}  # by the id of the object: the holder of a lock keeps its object alive
        self.waiting: dict[int, dict[Callable[[], None], asyncio.AbstractEventLoop]] = {}


_LOCKS = _Locks()
_WITHIN: ContextVar[tuple[int, ...]] = ContextVar("agentkit_locks", default=())  # the locks held around this code


class HeldLock:
    """A lock that one call holds; a `threaded` one may continue in its thread after its task is over."""

    def __init__(self, key: object, *, threaded: bool) -> None:
        self._key = key  # alive as long as the lock is held: ids are reused
        self._threaded = threaded
        self._begun = self._task_over = self._function_over = self._given_up = False
        self._loop = asyncio.get_running_loop()

    @property
    def lost(self) -> bool:
        """Return whether nothing waits for the call any more, although it continues."""
        return not self.over and (self._given_up or self._task_over or self._loop.is_closed())

    @property
    def over(self) -> bool:
        """Return whether nothing of the call continues; what a closed event loop abandoned never will."""
        in_thread = self._threaded and self._begun and not self._function_over
        return (self._task_over or self._loop.is_closed()) and not in_thread

    def begin(self) -> None:
        """Start the call's task; called in that task, so that its code knows which locks it holds."""
        self._begun = True
        _WITHIN.set((*_WITHIN.get(), id(self._key)))

    def give_up(self) -> None:
        """Note that the call was answered without its task, which continues."""
        self._given_up = True
        self._release()

    def function_over(self) -> None:
        """Note that the function has returned, in its thread."""
        self._function_over = True
        self._release()

    def task_over(self, claim: Claim | None = None) -> None:
        """Note that the task has ended, or was never created; with the claim of a function that may still start."""
        if claim is None or claim.take():  # there is none, or it never started
            self._function_over = True
        self._task_over = True
        self._release()

    def _release(self) -> None:
        """Let the next one start, or wake those that wait if waiting has become futile."""
        with _LOCKS.lock:
            key = id(self._key)
            if _LOCKS.held.get(key) is not self or not (self.over or self.lost):
                return
            if self.over:
                del _LOCKS.held[key]
            waiting = _LOCKS.waiting.pop(key, {})
        for wake, loop in waiting.items():
            with suppress(RuntimeError):  # closed in the meantime: nothing waits there
                loop.call_soon_threadsafe(wake)


def acquire(key: object, wake: Callable[[], None], *, threaded: bool) -> HeldLock | None:
    """Acquire an object's lock.

    Args:
        key: the object.
        wake: called on this event loop, once, when it is worth asking again.
        threaded: whether the call will run in a thread.

    Returns:
        The lock, which must be notified when its call is over; None if another call holds it.

    Raises:
        Stuck: the call that holds it was given up but continues; or it is the call from within which this one is made.
    """
    if id(key) in _WITHIN.get():
        raise Stuck("this call is made from within another call of it, so that each would wait for the other")
    with _LOCKS.lock:
        held = _LOCKS.held.get(id(key))
        if held is None or held.over:
            _LOCKS.held[id(key)] = lock = HeldLock(key, threaded=threaded)
            return lock
        if held.lost:
            raise Stuck("an earlier call of it was given up but has not ended")
        _LOCKS.waiting.setdefault(id(key), {})[wake] = asyncio.get_running_loop()
    return None


class Stuck(RuntimeError):
    """Waiting for a lock is futile; the message says why."""
