"""Clear errors for a missing `await`: entering with `with`, reading a result too early, or never reading it.

Knows Python's async protocols; knows no model, no tool and no run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class EnteredAsync:
    """Something to enter with `async with`; entering it with `with` raises an error that says so."""

    if not TYPE_CHECKING:  # type checkers find the mistake themselves, as long as they do not see these methods

        def __enter__(self) -> Any:
            self._mark_reported()
            raise TypeError(
                f"{type(self).__name__} must be entered with `async with`, inside an async function; `with` cannot "
                "wait for its end"
            )

        def __exit__(self, *_: object) -> None: ...

        def _mark_reported(self) -> None:
            """Keep Python from warning as well: the caller has just got an error."""


class Closing(EnteredAsync):
    """`async with` for anything that has an `aclose`."""

    async def aclose(self) -> None:
        """Close the connections, files and processes."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


class HintedCoroutine(Coroutine[Any, Any, T]):
    """A coroutine whose errors say what to write if its result is read before it is awaited.

    Args:
        coroutine: does the work; Python warns if it is never awaited.
        call: the call that returned it, as written in code.
        instead: the equivalent for code without an event loop.
    """

    __slots__ = ("_call", "_coroutine", "_instead")

    def __init__(self, coroutine: Coroutine[Any, Any, T], call: str, instead: str) -> None:
        self._coroutine, self._call, self._instead = coroutine, call, instead

    def send(self, value: Any) -> Any:
        """As for the coroutine."""
        return self._coroutine.send(value)

    def throw(self, kind: Any, error: Any = None, trace: TracebackType | None = None) -> Any:
        """As for the coroutine."""
        return self._coroutine.throw(kind if error is None else error)

    def close(self) -> None:
        """As for the coroutine."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, None, T]:
        return self._coroutine.__await__()

    def __repr__(self) -> str:
        return f"<{self._call}, not awaited yet>"

    if not TYPE_CHECKING:

        def __aiter__(self) -> Any:
            raise TypeError(
                f"{self._call} returns a single result: write `await {self._call}`; to iterate over events, write "
                f"`async for event in {self._call.replace('say(', 'say_stream(').replace('run(', 'stream(')}`"
            )

        def __iter__(self) -> Any:
            raise TypeError(f"{self._call} was not awaited: write `await {self._call}`, or {self._instead}")

        def __getitem__(self, key: object) -> Any:
            raise TypeError(f"{self._call} was not awaited: write `(await {self._call})`, or {self._instead}")

        def __aenter__(self) -> Any:
            raise TypeError(f"{self._call} returns a single result: write `await {self._call}`, without `with`")

        def __aexit__(self, *_: object) -> Any: ...

        __enter__, __exit__ = __aenter__, __aexit__

        def __getattr__(self, name: str) -> Any:
            if name in self.__slots__:  # allocated, but not initialized
                raise AttributeError(name)
            if name.startswith(("_", "cr_")):  # read by asyncio and debuggers
                return getattr(self._coroutine, name)
            raise AttributeError(
                f"{self._call} has no {name!r} before it is awaited: write `(await {self._call}).{name}`, or without "
                f"an event loop `{self._instead}.{name}`"
            )


def hint_missing_await(call: str, instead: str) -> Callable[[F], F]:
    """Make an async method return a `HintedCoroutine`; the arguments are the same."""

    def decorate(method: F) -> F:
        @wraps(method)
        def called(*args: Any, **kwargs: Any) -> Any:
            return HintedCoroutine(method(*args, **kwargs), call, instead)

        return called  # type: ignore[return-value]

    return decorate


def never_read(what: object, words: str) -> None:
    """Warn, from a `__del__`, that something was garbage-collected without ever being read.

    Args:
        what: the object that is being collected, in words.
        words: the warning.
    """
    if warnings is not None:  # None once the interpreter has torn down its modules
        warnings.warn(words, RuntimeWarning, stacklevel=3, source=what)
