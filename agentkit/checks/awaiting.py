"""What answers those who forget to wait: who enter with `with`, read what is not there yet, or never ask for it.

Knows Python's ways to wait; knows no model, no tool and no run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class EnteredAsync:
    """Something that is entered with `async with`, and says so where it is entered with `with`."""

    if not TYPE_CHECKING:  # checkers find the mistake by themselves, as long as they do not see what answers it

        def __enter__(self) -> Any:
            self._told()
            raise TypeError(
                f"{type(self).__name__} is entered with `async with`, inside an async function; `with` cannot wait for "
                "its end"
            )

        def __exit__(self, *_: object) -> None: ...

        def _told(self) -> None:
            """Its caller was just told of a mistake."""


class Waits(Coroutine[Any, Any, T]):
    """A coroutine that says what to write where its result is read before it was awaited.

    Args:
        coroutine: does the work, and complains by itself if nobody awaits it.
        call: what gave it, as one writes it.
        instead: the same for code without an event loop.
    """

    __slots__ = ("_call", "_coroutine", "_instead")

    def __init__(self, coroutine: Coroutine[Any, Any, T], call: str, instead: str) -> None:
        self._coroutine, self._call, self._instead = coroutine, call, instead

    def send(self, value: Any) -> Any:
        """As the coroutine does."""
        return self._coroutine.send(value)

    def throw(self, kind: Any, error: Any = None, trace: TracebackType | None = None) -> Any:
        """As the coroutine does."""
        return self._coroutine.throw(kind if error is None else error)

    def close(self) -> None:
        """As the coroutine does."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, None, T]:
        return self._coroutine.__await__()

    def __repr__(self) -> str:
        return f"<{self._call}, which was not awaited yet>"

    if not TYPE_CHECKING:

        def __aiter__(self) -> Any:
            raise TypeError(
                f"{self._call} gives one result: write `await {self._call}`; its events are those of "
                "`async for event in agent.stream(…)`"
            )

        def __aenter__(self) -> Any:
            raise TypeError(f"{self._call} gives one result: write `await {self._call}`, without `with`")

        def __aexit__(self, *_: object) -> Any: ...

        __enter__, __exit__ = __aenter__, __aexit__

        def __getattr__(self, name: str) -> Any:
            if name in self.__slots__:  # it was not made, but only allocated
                raise AttributeError(name)
            if name.startswith(("_", "cr_")):  # what asyncio and debuggers look at
                return getattr(self._coroutine, name)
            raise AttributeError(
                f"{self._call} has no {name!r} before it was awaited: write `(await {self._call}).{name}`, or without "
                f"an event loop `{self._instead}.{name}`"
            )


def waits(call: str, instead: str) -> Callable[[F], F]:
    """Make an async method give a `Waits`. Arguments as there."""

    def decorate(method: F) -> F:
        @wraps(method)
        def called(*args: Any, **kwargs: Any) -> Any:
            return Waits(method(*args, **kwargs), call, instead)

        return called  # type: ignore[return-value]

    return decorate


def never_read(what: object, words: str) -> None:
    """Warn, from a `__del__`, of something that is collected though nobody ever asked for what it gives.

    Args:
        what: is collected.
        words: what was wanted.
    """
    if warnings is not None:  # as it is when the interpreter has taken its modules down
        warnings.warn(words, RuntimeWarning, stacklevel=3, source=what)
