"""The run of one tool, on the event loop or in a worker thread; any error in it becomes its result.

Knows tools and the event loop; knows no call, no order and no limit except that of the output's size.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from agentkit.checks.keys import words
from agentkit.messages import ResultContent, TextPart
from agentkit.processor import not_run
from agentkit.processor.author_errors import SENT, AuthorErrors
from agentkit.processor.error_results import cap, error_result, exception_result
from agentkit.processor.workers import WORKERS, Claim, NoThread
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.output import NO_VALUE, shows_nothing
from agentkit.tool.own_thread import hint, thread_of, thread_of_method
from agentkit.tool.policy import Keep
from agentkit.tool.result import ToolContext, ToolResult, result_as_returned, unreadable
from agentkit.tool.suspension import SuspendedCall

_LOG: Final = logging.getLogger("agentkit.processor")
_WORDS: Final = frozenset((str, int, float, bool, type(None)))
"""Types that can be read whatever the value is."""
_READABLE: Final = frozenset((str, int, float, bool, dict, list, tuple, type(None), ToolResult))
"""The types that most tools return; they need no closer look."""


class Outcome(NamedTuple):
    """A tool's result, and the parts that the model reads; or why it has none yet."""

    result: ToolResult
    parts: ResultContent
    suspended: SuspendedCall | None = None


async def run_tool(
    tool: BoundTool,
    arguments: Mapping[str, Any],
    context: ToolContext | None,
    limit: int | None,
    keep: Keep = "both",
    claim: Claim | None = None,
    ended: Callable[[], None] | None = None,
    faults: AuthorErrors | None = None,
) -> Outcome:
    """Run a tool to its end: on the event loop if it is async, in a worker thread if it is not.

    Args:
        tool: what to run.
        arguments: as `BoundTool.validate` returned them.
        context: passed to a method that declares it; None if the tool takes none.
        limit: how many characters of the result the model reads; None if it is read elsewhere: an output that is a
            string or a number is then not rendered.
        keep: which end of a longer result is kept.
        claim: taken when a plain function starts; if it was taken before, the function never starts.
        ended: called when a plain function has returned, in its thread, even if nothing waits for it any more.
        faults: logs what its author must fix; by default, a new log.

    Raises:
        asyncio.CancelledError: like any coroutine; the caller must determine whether the tool or the caller itself was
            cancelled.
        KeyboardInterrupt: raised by a tool on the event loop, where it comes from the operator.
    """
    log = AuthorErrors() if faults is None else faults
    task = asyncio.current_task()

    def plain() -> Outcome | Any:  # the value is also rendered in the thread: that may be long work
        try:
            value = tool.invoke(arguments, context)
        except (StopIteration, KeyboardInterrupt, GeneratorExit) as e:  # no coroutine may raise it
            return _failed(tool, e, limit, keep, log)
        finally:
            if ended is not None:
                ended()
        return value if waits(value) else read_value(tool, value, limit, keep, log)

    try:
        if tool.is_async:
            value = await tool.invoke(arguments, context)
            return read_value(tool, await value if waits(value) else value, limit, keep, log)
        owner = tool.method if tool.instance is None else tool.instance
        done = await WORKERS.run(plain, claim, thread_of(owner) if tool.policy.one_thread else None)
        return done if isinstance(done, Outcome) else read_value(tool, await done, limit, keep, log)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except SuspendedCall as e:
        return Outcome(error_result("denied", f"waits for the user's approval: {e}"), (), e)
    except NoThread as e:
        return outcome(not_run.NO_THREAD.result(why=e), limit, keep)
    except BaseException as e:  # noqa: BLE001 - the boundary: a tool's error is data, even sys.exit() and a native panic
        _let_go(e, task)
        return _failed(tool, e, limit, keep, log)


def _failed(tool: BoundTool, error: BaseException, limit: int | None, keep: Keep, faults: AuthorErrors) -> Outcome:
    note = hint(error, tool.instance)
    faults.report_error(tool.where, error, note.removeprefix("; ") or SENT)
    return outcome(exception_result(error, note), limit, keep)


async def in_a_thread(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the value of a method that is not a tool. A plain one runs in a thread: its instance's, if it has one."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    value = await WORKERS.run(partial(function, *args, **kwargs), own=thread_of_method(function))
    return await value if waits(value) else value


def _let_go(error: BaseException, task: asyncio.Task[Any] | None) -> None:
    """Raise the error again if it ends a coroutine that is thrown away, and does not come from a step of its task."""
    if isinstance(error, GeneratorExit):
        with suppress(RuntimeError):  # no loop runs
            if asyncio.current_task() is task:
                return
        raise error


def waits(value: Any) -> bool:
    """Return whether a value must still be awaited."""
    return type(value) not in _READABLE and inspect.isawaitable(value) and not isinstance(value, ToolResult)


def read_value(tool: BoundTool, value: Any, limit: int | None, keep: Keep, faults: AuthorErrors) -> Outcome:
    """Return a tool's value as its result; a value that the model cannot read is reported to the tool's author."""
    if type(value) in _WORDS:
        return outcome(result_as_returned(value), limit, keep)
    if type(value) is ToolResult and type(value.output) in _WORDS:
        return outcome(value, limit, keep)
    result = ToolResult.of(value)
    done = outcome(result, limit, keep)
    given = result.output if isinstance(value, ToolResult) else value
    suspect = any(NO_VALUE in p.text for p in done.parts if isinstance(p, TextPart))
    refused = result.error is not None and not isinstance(value, ToolResult)
    if (suspect or refused) and (problem := unreadable(given)) is not None:
        faults.report_value(tool.where, problem)
        return outcome(error_result("tool_error", f"the tool returned {problem}"), limit, keep)
    if type(value) not in _READABLE and done.parts == (TextPart(shows_nothing(value)),):
        _LOG.warning(
            "%s returned an object of class %s, which the model cannot read: return a string, numbers, a dict or "
            "list of these, a dataclass, or give the class a __str__",
            tool.where,
            type(value).__name__,
        )
    return done


def outcome(result: ToolResult, limit: int | None, keep: Keep) -> Outcome:
    """Return a result with the parts that the model reads."""
    if limit is None:
        return Outcome(result, () if type(result.output) in _WORDS and not result.content else result.parts)
    parts = result.parts
    if len(parts) == 1 and type(parts[0]) is TextPart and len(parts[0].text) <= limit:  # as most are
        return Outcome(result, parts)
    return Outcome(result, cap(parts, limit, keep))


async def ask_outcome(tool: BoundTool, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult | None:
    """Ask a tool what happened to a call that a crash interrupted (`ToolPolicy.reconcile`).

    Args:
        tool: the tool that was called.
        arguments: as `BoundTool.validate` returned them.
        context: the interrupted call's.

    Returns:
        Its answer; None if it does not know, or declares no `reconcile`. If asking failed, an error with the code
        `interrupted`.
    """
    if tool.policy.reconcile is None:
        return None
    try:
        answer = await in_a_thread(getattr(tool.instance, tool.policy.reconcile), arguments, context)
        return None if answer is None else ToolResult.of(answer)
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as e:  # noqa: BLE001 - the boundary: a tool's error is data
        AuthorErrors().report_error(f"{tool.where}, asked by {tool.policy.reconcile},", e)
        return error_result("interrupted", f"interrupted; its outcome could not be determined: {words(e)}")
