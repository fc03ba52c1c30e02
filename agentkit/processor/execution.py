"""From finished calls to answers: what may run, running it, and exactly one answer per call.

Knows the registry and the event loop; knows no text, no format's syntax and no model. Whatever a tool does, its fault
becomes an answer: only the operator's own interrupt passes through.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from agentkit.errors import ErrorCode
from agentkit.events import CallEnd, CallError, ToolCompleted, ToolEvent, ToolFailed, ToolSkipped
from agentkit.messages import ImagePart, ResultContent, TextPart, ToolCall, ToolMessage
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.workers import WORKERS
from agentkit.registry import BoundTool, InvalidArguments, ToolRegistry
from agentkit.tool import ToolContext, ToolResult

GRACE = 1.0  # seconds that a cancelled tool has to clean up before its call is answered without it
_NAMES = 100  # tools named to a model that asked for one that is not there
_TRACEBACK = 10_000  # characters kept in `metadata["traceback"]`: the end, where the cause is
_MEMBERS = 5  # exceptions of a group that the model is told

_CANCELLED = "cancelled while it ran: what it had done by then may stand"
_NOT_BEGUN = "not run: the run was cancelled before this call began"
_INTERRUPTED = "not run: the response broke off with an error"

_ABANDONED: set[asyncio.Task[Any]] = set()  # tools that ignore their cancellation; held so that the loop can end them


class Outcome(NamedTuple):
    """A tool's result, and what the model will read of it."""

    result: ToolResult
    parts: ResultContent


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may run, with the arguments as its tool takes them."""

    index: int
    call: ToolCall
    tool: BoundTool
    arguments: Mapping[str, Any]


def failed(code: ErrorCode, error: str, **metadata: Any) -> ToolResult:
    """An answer that says what went wrong."""
    return ToolResult(error=error, code=code, metadata=metadata)


def crashed(error: BaseException) -> ToolResult:
    """An exception as an answer: `ValueError: no`; where it was raised is in `metadata["traceback"]`."""
    trace = "".join(traceback.format_exception(error))
    return failed("tool_error", _words(error), traceback=trace[-_TRACEBACK:])


def _words(error: BaseException) -> str:
    """An exception's type and text; of a group those of its members too, since its own text says nothing."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an exception whose text cannot be made still has a name
        said = ""
    words = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        words += ": " + "; ".join(_words(member) for member in error.exceptions[:_MEMBERS])
    return words


def capped(parts: ResultContent, limit: int) -> ResultContent:
    """Text parts of at most `limit` characters in all: of a longer one the beginning, a mark, and the end."""
    size = 0
    for part in parts:
        if isinstance(part, TextPart):
            size += len(part.text)
    if size <= limit:
        return parts
    kept: list[TextPart | ImagePart] = []
    for part in parts:
        if isinstance(part, TextPart):
            part = TextPart(_cut(part.text, limit))
            limit -= len(part.text)
            if not part.text:
                continue
        kept.append(part)
    return tuple(kept)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    mark = f"\n[... {len(text) - limit:,} of {len(text):,} characters are cut here ...]\n"
    room = limit - len(mark)
    if room <= 0:
        return ""
    head = room - room // 2
    return text[:head] + mark + text[len(text) - room // 2 :]


def unknown_tool(name: str, names: tuple[str, ...]) -> str:
    """What a model is told that called a tool which is not there."""
    shown = name if len(name) <= 100 else name[:100] + "…"
    if not names:
        return f"there is no tool {shown!r}: there are no tools here; answer without calling one"
    near = difflib.get_close_matches(name[:100], names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"there is no tool {shown!r}{hint} The tools are: {', '.join(names[:_NAMES])}{more}"


async def run_tool(tool: BoundTool, arguments: Mapping[str, Any], context: ToolContext, limit: int) -> Outcome:
    """Run a tool to its end: on the event loop when it is async, in a worker thread when it is not.

    Args:
        tool: what to run.
        arguments: as `BoundTool.validate` returned them.
        context: given to a method that asks for it.
        limit: characters of the result that the model reads.

    Raises:
        asyncio.CancelledError: as any coroutine; whether the tool or its caller was cancelled is for the caller to say.
        KeyboardInterrupt: raised by a tool on the event loop, where it is the operator's own.
    """
    try:
        if tool.is_async:
            return _outcome(ToolResult.of(await tool.invoke(arguments, context)), limit)
        done = await WORKERS.run(partial(_run_plain, tool, arguments, context, limit))
        return done if isinstance(done, Outcome) else _outcome(ToolResult.of(await done), limit)
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as e:  # noqa: BLE001 - the boundary: a tool's fault is data, even sys.exit() and a native panic
        return _outcome(crashed(e), limit)


def _run_plain(tool: BoundTool, arguments: Mapping[str, Any], context: ToolContext, limit: int) -> Outcome | Any:
    """In a thread, where the value is rendered too: that may be long work. An awaitable is left to the caller."""
    value = tool.invoke(arguments, context)
    return value if inspect.isawaitable(value) else _outcome(ToolResult.of(value), limit)


def _outcome(result: ToolResult, limit: int) -> Outcome:
    return Outcome(result, capped(result.parts, limit))


@dataclass(eq=False, slots=True)
class _Running:
    """A tool at work."""

    admitted: Admitted
    since: float
    task: asyncio.Task[None] = field(init=False)
    timer: asyncio.TimerHandle | None = None
    begun: bool = False
    stopped: ToolResult | None = None  # the answer it gets because it was stopped, by its timeout or by the caller


class Execution:
    """The calls of one response: admitted or refused, run, answered.

    Args:
        registry: the tools.
        config: limits, timeout, order.
        context: the application's values, for `ToolContext.state`.
        post: takes the event of each tool that ends.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        config: ProcessorConfig,
        context: Mapping[str, Any],
        post: Callable[[ToolEvent], None],
    ) -> None:
        self.answers: dict[int, ToolMessage] = {}
        self._registry = registry
        self._config = config
        self._context = context
        self._post = post
        self.waiting: deque[Admitted] = deque()
        self._running: set[_Running] = set()
        self._interrupted = False

    @property
    def idle(self) -> bool:
        """Whether no call waits or runs."""
        return not self.waiting and not self._running

    # -------------------------------------------------------------- admission

    def admit(self, event: CallEnd | CallError) -> ToolEvent | None:
        """Let a call wait for its start, or answer it at once with what is wrong with it."""
        index, call = event.index, event.call
        if isinstance(event, CallError) and not self._over_limit(index):
            return self._answer(ToolFailed(index, call, self._misread(event), 0.0))
        if refused := self._refusal(index, call):
            return self._answer(ToolSkipped(index, call, refused))
        checked = self._check(index, call)
        if isinstance(checked, ToolResult):
            return self._answer(ToolFailed(index, call, checked, 0.0))
        self.waiting.append(checked)
        return None

    def _refusal(self, index: int, call: ToolCall) -> ToolResult | None:
        if self._over_limit(index):
            limit = self._config.max_calls
            return failed("limit", f"not run: only the first {limit} calls of a response are; call it in the next one")
        if self._interrupted:
            return failed("interrupted", _INTERRUPTED)
        if call.format is None and not self._config.native:
            names = ", ".join(f.name for f in self._config.text_formats) or "no format"
            return failed("denied", f"not run: native calls are turned off; write the call in your text, as {names}")
        return None

    def _over_limit(self, index: int) -> bool:
        return self._config.max_calls is not None and index >= self._config.max_calls

    def _misread(self, event: CallError) -> ToolResult:
        if event.code == "unknown_tool":
            return failed("unknown_tool", unknown_tool(event.call.name, tuple(self._registry.tools)))
        return failed(event.code, event.message, position=event.position)

    def _check(self, index: int, call: ToolCall) -> Admitted | ToolResult:
        tool = self._registry.get_tool(call.name)
        if tool is None:
            return failed("unknown_tool", unknown_tool(call.name, tuple(self._registry.tools)))
        textual = call.format is not None and self._config.is_textual(call.format)
        try:
            arguments = tool.validate(call.arguments, lenient=textual or self._config.lenient_native)
        except InvalidArguments as e:
            return failed("invalid_arguments", str(e), problems=e.problems)
        except Exception as e:  # noqa: BLE001 - a validator that the tool's author wrote
            return crashed(e)
        return Admitted(index, call, tool, arguments)

    # -------------------------------------------------------------- running

    def next(self) -> Admitted | None:
        """The call that may start now. It stays first in line until `start`."""
        if not self.waiting or (self._running and self._config.strategy == "sequential"):
            return None
        return self.waiting[0]

    def start(self) -> None:
        """Start the first call in line."""
        admitted = self.waiting.popleft()
        call, tool = admitted.call, admitted.tool
        loop = asyncio.get_running_loop()
        context = ToolContext(call.id, call.name, self._context)
        running = _Running(admitted, perf_counter())
        self._running.add(running)
        running.task = loop.create_task(self._run(running, context))
        timeout = self._config.timeout if tool.timeout is None else tool.timeout
        if timeout is not None and running in self._running:  # an eager task may be done by now
            running.timer = loop.call_later(timeout, self._expire, running, timeout)

    async def _run(self, running: _Running, context: ToolContext) -> None:
        running.begun = True
        admitted = running.admitted
        outcome: Outcome | None = None
        try:
            outcome = await run_tool(admitted.tool, admitted.arguments, context, self._config.max_output)
        except asyncio.CancelledError as e:  # stopped by us, or by the end of the loop, or raised by the tool itself
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                outcome = self._outcome(crashed(e))
        finally:
            if running.stopped is not None or outcome is None:
                outcome = self._outcome(running.stopped or failed("cancelled", _CANCELLED))
            self._settle(running, outcome)

    def _expire(self, running: _Running, timeout: float) -> None:
        effects = "" if running.admitted.tool.is_async else "; it may still be at work, and its effects may yet appear"
        self._stop(running, failed("timeout", f"no result after {timeout:g} s: the tool was stopped{effects}"))

    def _stop(self, running: _Running, answer: ToolResult) -> None:
        """Cancel a tool, and answer for it if it does not end soon."""
        if running.stopped is not None:
            return
        running.stopped = answer
        running.task.cancel()
        if running.timer is not None:
            running.timer.cancel()
        if running.begun:
            running.timer = asyncio.get_running_loop().call_later(GRACE, self._abandon, running)
        else:  # its task ends without having begun
            self._settle(running, self._outcome(answer))

    def _abandon(self, running: _Running) -> None:
        """Answer for a tool that goes on although it was cancelled."""
        _ABANDONED.add(running.task)
        running.task.add_done_callback(_ABANDONED.discard)
        self._settle(running, self._outcome(running.stopped or failed("cancelled", _CANCELLED)))

    def _outcome(self, result: ToolResult) -> Outcome:
        return _outcome(result, self._config.max_output)

    def _settle(self, running: _Running, outcome: Outcome) -> None:
        """Answer for a tool, unless it was answered for already."""
        if running not in self._running:
            return
        self._running.remove(running)
        if running.timer is not None:
            running.timer.cancel()
        index, call = running.admitted.index, running.admitted.call
        event = ToolFailed if outcome.result.error is not None else ToolCompleted
        ended = event(index, call, outcome.result, perf_counter() - running.since)
        self._post(self._answer(ended, outcome.parts))

    # -------------------------------------------------------------- the end

    def interrupt(self, *, waiting: bool) -> list[ToolEvent]:
        """The response broke off: refuse what it still brings and, if so asked, what waits."""
        self._interrupted = True
        if not waiting:
            return []
        events = [self._answer(ToolSkipped(a.index, a.call, failed("interrupted", _INTERRUPTED))) for a in self.waiting]
        self.waiting.clear()
        return events

    def cancel(self) -> list[asyncio.Task[Any]]:
        """Stop what runs, forget what waits; what it returns are the tasks to wait for."""
        self.waiting.clear()
        running = list(self._running)
        for one in running:
            self._stop(one, failed("cancelled", _CANCELLED))
        return [one.task for one in running]

    def finish(self, calls: Sequence[ToolCall | None]) -> tuple[ToolMessage, ...]:
        """The answers in call order; a call without one by now is answered as cancelled.

        Args:
            calls: the response's calls by index.
        """
        for running in list(self._running):
            self._abandon(running)
        for index, call in enumerate(calls):
            if call is not None and index not in self.answers:
                self._answer(ToolSkipped(index, call, failed("cancelled", _NOT_BEGUN)))
        return tuple(self.answers[index] for index, call in enumerate(calls) if call is not None)

    def _answer(self, event: ToolCompleted | ToolFailed | ToolSkipped, parts: ResultContent | None = None) -> ToolEvent:
        call, result = event.call, event.result
        said = capped(result.parts, self._config.max_output) if parts is None else parts
        self.answers[event.index] = ToolMessage(call.id, call.name, said, result.code)
        return event
