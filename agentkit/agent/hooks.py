"""Hooks watch a run: whatever one does, the run neither ends for it nor waits long. Knows no turn and no tool."""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agentkit.errors import ConfigError
from agentkit.messages import ToolCall

if TYPE_CHECKING:
    from types import TracebackType

    from agentkit.agent.run import RunStream

HOOK_SECONDS: Final = 30.0
"""How long one event may take an async hook. One that needs longer is cancelled, and told nothing more of the run."""

LAST_SECONDS: Final = 1.0
"""How long an async hook may take in all once the run is to end: out of time, cancelled, or left."""

_LOG = logging.getLogger("agentkit.agent")

Hook = Callable[[Any, "RunStream[Any]"], Awaitable[None] | None]
"""Called with each event of a run, and with the run; see `agentkit.agent.lifecycle` for the events it gets beside.

A plain one is called on the event loop, and holds up everything while it works. An async one runs in a task of its own:
what it sets in context variables it sets for itself, and it is waited for within `HOOK_SECONDS`.

A hook that has a method `tool_scope(call, run)` is asked for a context manager that holds while a tool's task is made:
what it sets in context variables is set inside the tool.

Whatever a hook raises is logged under `agentkit.agent`, and ends nothing.
"""


def checked_hooks(owner: str, hooks: Sequence[Hook]) -> tuple[Hook, ...]:
    """The hooks.

    Raises:
        ConfigError: one that could never be told anything: a generator, or a function that does not take two arguments.
    """
    for hook in hooks:
        function = _function(hook)
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise ConfigError(
                f"{owner}(hooks=…): {_named(hook)} yields, so that calling it does nothing; a hook returns None: "
                "`def hook(event, run): …`, or `async def` without `yield`"
            )
        if not _takes_two(hook):
            raise ConfigError(
                f"{owner}(hooks=…): {_named(hook)} cannot be called with an event and a run: "
                "wanted `def hook(event, run): …`"
            )
    return tuple(hooks)


def _function(hook: Any) -> Any:
    """What runs when a hook is called."""
    while isinstance(hook, partial):
        hook = hook.func
    return hook if inspect.isroutine(hook) or isinstance(hook, type) else type(hook).__call__


def _takes_two(hook: Hook) -> bool:
    try:
        inspect.signature(hook).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not say
        return True
    return True


class Hooks:
    """The hooks of one run.

    Args:
        hooks: who is told.
        run: what they are told of.
    """

    def __init__(self, hooks: Sequence[Hook], run: RunStream[Any]) -> None:
        self.any = bool(hooks)
        """Whether there is one; none is added later."""
        self._hooks = list(hooks)
        self._of = weakref.ref(run)  # which holds its hooks: left unread, it is to be collected, and told of, at once
        self._scopes = [(hook, hook.tool_scope) for hook in hooks if hasattr(hook, "tool_scope")]
        self._odd: set[int] = set()  # hooks whose strange result was logged
        self._hurried = False
        self._last: dict[int, float] = {}  # seconds that hooks have taken since the run is to end
        self._leave: Callable[[], None] | None = None  # stop waiting for the hook that is waited for

    @property
    def _run(self) -> RunStream[Any]:
        run = self._of()
        assert run is not None  # it is who tells them
        return run

    def hurry(self) -> None:
        """The run is to end: from now on nobody is waited for longer than `LAST_SECONDS`."""
        if self._hurried:
            return
        self._hurried = True
        if self._leave is not None:
            asyncio.get_running_loop().call_later(LAST_SECONDS, self._leave)

    async def tell(self, event: Any) -> None:
        """Tell all of them."""
        for hook in tuple(self._hooks):
            try:
                told: Any = hook(event, self._run)
            except KeyboardInterrupt:  # the operator's own
                raise
            except BaseException as e:  # noqa: BLE001 - somebody else's code, which only watches
                _log(hook, event, e)
                continue
            if told is None:
                continue
            if inspect.isawaitable(told):
                await self._wait(hook, event, told)
            elif id(hook) not in self._odd:
                self._odd.add(id(hook))
                _LOG.warning("%s returned %s: a hook returns None", _named(hook), type(told).__name__)

    async def _wait(self, hook: Hook, event: Any, told: Awaitable[None]) -> None:
        """Wait for an async hook, within its time.

        It has a task of its own, so that a cancellation that it raises is told from one of the run.
        """
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def leave() -> None:
            if not done.done():
                done.set_result(None)

        task = loop.create_task(_finished(told))
        task.add_done_callback(lambda _: leave())
        since = loop.time()
        seconds = LAST_SECONDS - self._last.get(id(hook), 0.0) if self._hurried else HOOK_SECONDS
        timer, self._leave = loop.call_later(max(seconds, 0.0), leave), leave
        try:
            await done
        except BaseException:  # the run itself is cancelled, or left
            self._hurried = True
            _give_up(task)
            raise
        finally:
            timer.cancel()
            self._leave = None
        if self._hurried:
            self._last[id(hook)] = self._last.get(id(hook), 0.0) + loop.time() - since
        if not task.done():
            _give_up(task)
            self._hooks.remove(hook)
            took = loop.time() - since
            _LOG.error("%s took over %.3g s on %s: it is told no more", _named(hook), took, type(event).__name__)
        elif (error := task.result()) is not None:
            _log(hook, event, error)

    def scope(self, call: ToolCall) -> _Scope:
        """What they want to hold while a tool's task is made."""
        return _Scope(self._scopes, call, self._run)


class _Scope:
    """The context managers of all hooks; one that fails is logged and left out."""

    def __init__(self, scopes: Sequence[tuple[Hook, Callable[..., Any]]], call: ToolCall, run: RunStream[Any]) -> None:
        self._scopes, self._call, self._run = scopes, call, run
        self._entered: list[tuple[Hook, ExitStack]] = []

    def __enter__(self) -> None:
        for hook, scope in self._scopes:
            stack = ExitStack()
            try:
                stack.enter_context(scope(self._call, self._run))
            except KeyboardInterrupt:
                raise
            except BaseException as e:  # noqa: BLE001 - as above
                _log(hook, self._call, e)
            else:
                self._entered.append((hook, stack))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hook, stack in reversed(self._entered):
            try:
                stack.close()
            except KeyboardInterrupt:
                raise
            except BaseException as e:  # noqa: BLE001 - as above
                _log(hook, self._call, e)


_GIVEN_UP: set[asyncio.Task[Any]] = set()  # hooks that were cancelled; held until they end


def _give_up(task: asyncio.Task[Any]) -> None:
    if not task.done():
        task.cancel()
        _GIVEN_UP.add(task)
        task.add_done_callback(_GIVEN_UP.discard)


async def _finished(told: Awaitable[None]) -> BaseException | None:
    """What a hook raised: as data, since some exceptions would stop the event loop."""
    try:
        await told
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # noqa: BLE001 - as above
        return e
    return None


def _log(hook: Hook, event: Any, error: BaseException) -> None:
    _LOG.error("a hook failed on %s: %s", type(event).__name__, _named(hook), exc_info=error)


def _named(hook: Any) -> str:
    return str(getattr(hook, "__qualname__", None) or type(hook).__name__)
