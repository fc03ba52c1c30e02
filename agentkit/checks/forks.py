"""Hooks around a fork. Knows no thread, no loop and no file: the objects do the work.

A child has the memory of its parent, but only the thread that forked: a lock that another thread held stays locked, and
a wait for another thread never ends. So a hook of such an object runs in the child before any other code.
Comparing the process id at the next use would be too late: several threads may then compare at the same time.
"""

from __future__ import annotations

import os
import weakref
from functools import cache
from threading import RLock
from typing import Protocol


class ForkAware(Protocol):
    """Something with locks or threads."""

    def leave_to_parent(self) -> None:
        """Forget, in the child, the parent's threads with their locks and data. Nothing else runs then."""
        ...


class Pausable(Protocol):
    """Something that must not be at work during a fork."""

    def rest(self) -> None:
        """Before the fork: wait until nothing is done, and do nothing until `resume`."""
        ...

    def resume(self) -> None:
        """After the fork, in the parent."""
        ...


def reset_after_fork(thing: ForkAware) -> None:
    """Have `leave_to_parent` called in every child of this process, as long as the object lives."""
    with (forks := _forks()).lock:
        forks.starting_anew.add(thing)


def pause_around_forks(thing: Pausable) -> None:
    """Have `rest` and `resume` called around every fork of this process, as long as the object lives."""
    with (forks := _forks()).lock:
        forks.resting.add(thing)


class _Forks:
    """The objects; their hooks run for one fork at a time."""

    def __init__(self) -> None:
        self.lock = RLock()  # held during a fork, so that a child finds it held by its only thread
        self.starting_anew: weakref.WeakSet[ForkAware] = weakref.WeakSet()
        self.resting: weakref.WeakSet[Pausable] = weakref.WeakSet()
        self._rest: tuple[Pausable, ...] = ()

    def before(self) -> None:
        self.lock.acquire()
        self._rest = tuple(self.resting)
        for thing in self._rest:
            thing.rest()

    def in_parent(self) -> None:
        for thing in self._rest:
            thing.resume()
        self._rest = ()
        self.lock.release()

    def in_child(self) -> None:
        for thing in tuple(self.starting_anew):
            thing.leave_to_parent()
        self._rest = ()
        self.resting.clear()
        self.lock.release()


@cache
def _forks() -> _Forks:
    forks = _Forks()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=forks.before, after_in_parent=forks.in_parent, after_in_child=forks.in_child)
    return forks
