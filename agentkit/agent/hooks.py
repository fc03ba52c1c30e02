"""Hooks watch a run: no hook can end the run or delay it for long. Knows no turn and no tool."""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
import weakref
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from agentkit.agent.cancellation import give_up, outcome_of
from agentkit.checks.bounds import refuse_callback
from agentkit.messages import ToolCall

if TYPE_CHECKING:
    from types import TracebackType

    from agentkit.agent.run import RunStream

HOOK_SECONDS: Final = 30.0
"""How long an async hook may take for one event. One that needs longer is cancelled, and gets no more events."""

LAST_SECONDS: Final = 1.0
"""How long an async hook may take in total once the run is ending: out of time, cancelled, or abandoned."""

_LOG = logging.getLogger("agentkit.agent")

Hook = Callable[[Any, "RunStream[Any]"], Awaitable[None] | None]
"""Called with each event of a run, and with the run; `agentkit.agent.lifecycle` has the events that only hooks get.

A plain hook is called on the event loop, and blocks it while it works. An async hook runs in a separate task: context
variables that it sets are visible only to it, and the run waits for it for up to `HOOK_SECONDS`.

If a hook has a method `tool_scope(call, run)`, the context manager that it returns is active while a tool's task is
created: context variables that it sets are visible inside the tool.

Anything that a hook raises is logged under `agentkit.agent`, at level ERROR the first time at each place in each run,
then at DEBUG; the run continues.
"""


def checked_hooks(owner: str, hooks: Sequence[Hook]) -> tuple[Hook, ...]:
    """The hooks.

    Raises:
        ConfigError: a hook can never receive an event: a generator, or a function that does not take two arguments.
    """
    for hook in hooks:
        refuse_callback(f"{owner}(hooks=…)", hook, "`def hook(event, run): …`, plain or async")
    return tuple(hooks)


class Hooks:
    """The hooks of one run.

    Args:
        hooks: the hooks to call.
        run: the run that they watch.
    """

    def __init__(self, hooks: Sequence[Hook], run: RunStream[Any]) -> None:
        self.any = bool(hooks)
        """True if there are any; none are added later."""
        self._hooks = list(hooks)
        # The run refers to its hooks; without a cycle it is collected, with its warning, as soon as it is dropped.
        self._of = weakref.ref(run)
        self._scopes = [(hook, hook.tool_scope) for hook in hooks if hasattr(hook, "tool_scope")]
        self._odd: set[int] = set()  # hooks whose unexpected return value was logged
        self._failed: set[tuple[int, type, str]] = set()  # failures that were logged: hook, kind and place
        self._hurried = False
        self._last: dict[int, float] = {}  # seconds that each hook has taken since the run began to end
        self._leave: Callable[[], None] | None = None  # stops waiting for the current hook

    @property
    def _run(self) -> RunStream[Any]:
        run = self._of()
        assert run is not None  # it is the caller
        return run

    def hurry(self) -> None:
        """The run is ending: from now on it waits for no hook longer than `LAST_SECONDS`."""
        if self._hurried:
            return
        self._hurried = True
        if self._leave is not None:
            asyncio.get_running_loop().call_later(LAST_SECONDS, self._leave)

    async def notify(self, event: Any) -> None:
        """Call all hooks with an event."""
        for hook in tuple(self._hooks):
            try:
                returned: Any = hook(_copied(event), self._run)
            except KeyboardInterrupt:  # the operator's
                raise
            except BaseException as e:  # noqa: BLE001 - foreign code that only watches
                self._log(hook, event, e)
                continue
            if returned is None:
                continue
            if inspect.isawaitable(returned):
                await self._wait(hook, event, returned)
            elif id(hook) not in self._odd:
                self._odd.add(id(hook))
                _LOG.warning("%s returned %s: a hook returns None", _named(hook), type(returned).__name__)

    async def _wait(self, hook: Hook, event: Any, work: Awaitable[None]) -> None:
        """Wait for an async hook, within its time limit.

        It runs in a separate task, so that a cancellation that it raises can be distinguished from one of the run.
        """
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def leave() -> None:
            if not done.done():
                done.set_result(None)

        task = loop.create_task(outcome_of(work))
        task.add_done_callback(lambda _: leave())
        since = loop.time()
        seconds = LAST_SECONDS - self._last.get(id(hook), 0.0) if self._hurried else HOOK_SECONDS
        timer, self._leave = loop.call_later(max(seconds, 0.0), leave), leave
        try:
            await done
        except BaseException:  # the run itself is cancelled, or abandoned
            self._hurried = True
            give_up(task)
            raise
        finally:
            timer.cancel()
            self._leave = None
        if self._hurried:
            self._last[id(hook)] = self._last.get(id(hook), 0.0) + loop.time() - since
        if not task.done():
            give_up(task)
            self._hooks.remove(hook)
            took = loop.time() - since
            _LOG.error("%s took over %.3g s on %s: it gets no more events", _named(hook), took, type(event).__name__)
        elif (error := task.result()[1]) is not None:
            self._log(hook, event, error)

    def scope(self, call: ToolCall) -> _Scope:
        """The context managers that are active while a tool's task is created."""
        return _Scope(self._scopes, call.copy(), self._run)

    def _log(self, hook: Hook, event: Any, error: BaseException) -> None:
        """Log a failure: in full the first time, at DEBUG when the same one comes again, as it may for every token."""
        place = "".join(traceback.format_tb(error.__traceback__)[-1:])
        failure = (id(hook), type(error), place)
        level = logging.DEBUG if failure in self._failed else logging.ERROR
        self._failed.add(failure)
        _log(hook, event, error, level)


class _Scope:
    """The context managers of all hooks; a hook that fails is logged and skipped."""

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


def _log(hook: Hook, event: Any, error: BaseException, level: int = logging.ERROR) -> None:
    _LOG.log(level, "a hook failed on %s: %s", type(event).__name__, _named(hook), exc_info=error)


def _copied(event: Any) -> Any:
    """An event whose call is the hook's own: what it changes there, such as a secret that it hides, changes no run."""
    call = getattr(event, "call", None)
    return event._replace(call=call.copy()) if isinstance(call, ToolCall) else event


def _named(hook: Any) -> str:
    return str(getattr(hook, "__qualname__", None) or type(hook).__name__)
