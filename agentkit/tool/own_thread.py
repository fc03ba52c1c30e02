"""The thread of a tool whose resource may be used only by the thread that opened it. Knows no event loop and no call.

It lives as long as its tool: a connection that was opened in it could be used in no other. It is a daemon, so that a
function that never returns does not delay the interpreter's exit.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import lru_cache
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from agentkit.checks.forks import reset_after_fork
from agentkit.checks.keys import words
from agentkit.tool.declare import declarations_of

T = TypeVar("T")

_WRONG_THREAD: Final = re.compile(r"\b(?:same|different|another|other|wrong) thread\b", re.IGNORECASE)
_HINT: Final = (
    "; note for the tool's author: what was opened in one thread was used in another. Declare the methods that use it "
    "with @openapi_schema(one_thread=True), and pass the class, tools=[{0}], so that it is also constructed in that "
    "thread"
)


class OwnThread:
    """A thread that does one thing after another. It starts with the first one."""

    owner: object = None
    """Kept alive with it, if its end could not be observed."""

    def __init__(self) -> None:
        self.leave_to_parent()
        reset_after_fork(self)

    def leave_to_parent(self) -> None:
        """Set that there is no thread: at the beginning, and in a forked child, whose parent keeps it."""
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._begun = False

    def submit(self, function: Callable[[], object]) -> None:
        """Do something in the thread; it must not raise."""
        with self._lock:
            if not self._begun:
                self._begun = True
                threading.Thread(target=_do, args=(self._work,), name="agentkit-own", daemon=True).start()
        self._work.put(function)

    def wait_for(self, function: Callable[[], T]) -> T:
        """Call a function in the thread; return its result, or raise its exception."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(function())
            except BaseException as e:  # noqa: BLE001 - raised to the one who waits
                done.set_exception(e)

        self.submit(run)
        if (error := done.exception()) is not None:
            raise error  # not by `result`, whose place would be logged instead of the author's
        return done.result()

    def end(self) -> None:
        """Let the thread end."""
        self._work.put(None)


def _do(work: SimpleQueue[Callable[[], object] | None]) -> None:
    while (function := work.get()) is not None:
        function()
        del function  # an idle thread keeps nothing alive


_THREADS: Final[dict[int, OwnThread]] = {}
"""By the id of their owner, a tool's instance or a function."""


def thread_of(owner: object) -> OwnThread:
    """The thread of a tool's instance or of a function: always the same one."""
    found = _THREADS.get(id(owner))
    return _belongs(OwnThread(), owner) if found is None else found


@lru_cache(maxsize=512)
def has_own_thread(kind: Any) -> bool:
    """Return True if a method of the class is declared with `one_thread=True`."""
    declarations = (one for method in declarations_of(kind).values() for one in method)
    return any(getattr(one, "keywords", {}).get("one_thread") is True for one in declarations)


def thread_of_method(function: Callable[..., object]) -> OwnThread | None:
    """The thread for a method that is not itself a tool, such as a predicate or a hook; None if any thread will do."""
    kind: Any = type(owner := getattr(function, "__self__", None))
    return thread_of(owner) if has_own_thread(kind) else None


def construct(kind: Any, kwargs: Mapping[str, Any]) -> Any:
    """Return an instance of a class, constructed in its own thread if it has one."""
    if not has_own_thread(kind):
        return kind(**kwargs)
    thread = OwnThread()
    try:
        instance = thread.wait_for(lambda: kind(**kwargs))
    except BaseException:
        thread.end()
        raise
    _belongs(thread, instance)
    return instance


def _belongs(thread: OwnThread, owner: object) -> OwnThread:
    """Assign a thread to its owner and end it with the owner; never, if the owner's end cannot be observed."""
    kept = _THREADS.setdefault(id(owner), thread)
    if kept is thread:
        try:
            weakref.finalize(owner, _end, id(owner)).atexit = False
        except TypeError:  # a class with __slots__
            thread.owner = owner  # so that its id is never used again
    return kept


def _end(key: int) -> None:
    _THREADS.pop(key).end()


def hint(error: BaseException, owner: object) -> str:
    """Return the advice if the exception reports a use in the wrong thread; else an empty string.

    >>> hint(ValueError("no"), None)
    ''
    """
    wrong = _WRONG_THREAD.search(words(error)) if isinstance(error, Exception) else None
    return _HINT.format(type(owner).__name__ if owner is not None else "YourTool") if wrong else ""
