"""Admission of a call: its tool exists, its arguments fit the tool, and the response is not closed.

Knows the registry and the policy; knows no event loop, and runs nothing but the validators of a tool's author.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol

from agentkit.events import CallEnd, CallError, ToolFailed, ToolSkipped
from agentkit.messages import ToolCall
from agentkit.processor import not_run
from agentkit.processor.author_errors import AuthorErrors
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.error_results import error_result, exception_result, unknown_tool
from agentkit.processor.exclusive_locks import HeldLock
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.result import ToolContext, ToolResult
from agentkit.toolspec import ToolSpec

_EXAMPLE: Final = "these are the values of the prompt's example: write your own"
"""Qwen2.5-Coder-1.5B copies the example if it does not know what to write."""


def _is_example(tool: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    from agentkit.formats.teach import is_example  # only calls in text load it

    return is_example(tool, arguments)


@dataclass(slots=True, eq=False)  # not frozen: there is one for each call, and that would double its cost
class AdmittedCall:
    """A call that may run, with its validated arguments, the lock that it holds, and why it can never have it."""

    index: int
    call: ToolCall
    tool: BoundTool
    arguments: Mapping[str, Any]
    lock: HeldLock | None = None
    refusal: ToolResult | None = None
    changed: bool = False  # whether its arguments are not the model's, nor those of a person
    decided: bool = False  # whether it may start: nobody has anything against it
    added: Mapping[str, Any] = field(default_factory=dict)  # only when it runs: no guard sees or loses them

    def with_arguments(self, arguments: Mapping[str, Any]) -> AdmittedCall:
        """Return the call with other arguments, validated; values are converted as in a call that is text.

        Raises:
            InvalidArguments: the tool does not accept them. Other errors are those of the tool's own validators.
            TypeError, ValueError: they are not JSON values.
        """
        call = replace(self.call, arguments=json.loads(json.dumps(dict(arguments))))
        accepted = self.tool.validate(call.arguments, lenient=True)
        return replace(self, call=call, arguments=accepted, changed=True)

    def become(self, other: AdmittedCall) -> None:
        """Take over the arguments of another one, which is this call with other arguments."""
        self.call, self.arguments, self.changed = other.call, other.arguments, other.changed

    def unlock(self) -> None:
        """Release the lock, since the call does not start."""
        if self.lock is not None:
            self.lock.task_over()
            self.lock = None


class Ruling(NamedTuple):
    """The decision about an admitted call, before it may start.

    Attributes:
        call: the call to run, possibly with other arguments; or the answer to it, and it does not run.
        ask: why a person must approve it; None leaves it to the tool's policy and to earlier approvals.
    """

    call: AdmittedCall | ToolResult
    ask: str | None = None


Judge = Callable[[AdmittedCall, ToolContext], Coroutine[Any, Any, Ruling]]
"""Decides about each admitted call, whatever its source; until then it does not start. If it fails, the call is denied.

The calls of a response are decided about concurrently; with `sequential` each when those before it have ended. It is
cancelled if the call is answered in the meantime."""

Added = Callable[[BoundTool], Mapping[str, Any]]
"""Returns the arguments that a tool gets besides the model's."""


class KnownTools(Protocol):
    """The tools that may be called; a `ToolRegistry` is one."""

    @property
    def tools(self) -> Mapping[str, BoundTool]:
        """The tools that any format can call, by function name."""

    def get_tool(self, name: str) -> BoundTool | None:
        """Return the tool with this function name; None if there is none."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return all tools as models see them."""


class Admission:
    """Admits the calls of one response, or says what is wrong with them."""

    _last: AdmittedCall | None = None  # the terminating call: the calls after it do not run
    _closed: ToolResult | None = None  # the answer to every further call

    def __init__(
        self,
        registry: KnownTools,
        config: ProcessorConfig,
        faults: AuthorErrors,
        added: Added | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._registry = registry
        self.config = config
        self._added = added
        self.faults = faults
        self.judge = judge
        """Decides about each admitted call before it may start; None lets each start."""

    def admit(self, event: CallEnd | CallError) -> AdmittedCall | ToolFailed | ToolSkipped:
        """Return the call with its validated arguments; or its answer, which says what is wrong with it."""
        index, call = event.index, event.call
        if self._last is not None and index > self._last.index:
            return ToolSkipped(index, call, self.terminate(self._last))
        if isinstance(event, CallError):
            return ToolFailed(index, call, self._misread(event), 0.0)
        if self._closed is not None:
            return ToolSkipped(index, call, self._closed)
        if call.format is None and not self.config.native:
            names = ", ".join(f.name for f in self.config.text_formats) or "no format"
            return ToolSkipped(index, call, not_run.NATIVE_OFF.result(formats=names))
        checked = self._check(index, call)
        return checked if isinstance(checked, AdmittedCall) else ToolFailed(index, call, checked, 0.0)

    def close(self, answer: ToolResult) -> None:
        """Give this answer to every further call that can be read."""
        self._closed = answer

    def terminate(self, last: AdmittedCall) -> ToolResult:
        """Let no call after this one run; return their answer."""
        self._last = last
        return not_run.TERMINATED.result(name=last.call.name)

    def _check(self, index: int, call: ToolCall) -> AdmittedCall | ToolResult:
        tool = self._registry.get_tool(call.name)
        if tool is None or (tool.xml_only and not self.config.is_tagged(call.format)):
            return error_result("unknown_tool", unknown_tool(call.name, self._names(call)))
        textual = call.format is not None and self.config.is_textual(call.format)
        try:
            arguments = tool.validate(call.arguments, lenient=textual or self.config.lenient_native)
        except InvalidArguments as e:
            return error_result("invalid_arguments", str(e), problems=e.problems)
        except Exception as e:  # noqa: BLE001 - a validator written by the tool's author
            self.faults.report_error(tool.where, e)
            return exception_result(e)
        if call.format is not None and self.config.text_formats and _is_example(tool.spec, call.arguments):
            return error_result("invalid_arguments", _EXAMPLE)
        added = {} if self._added is None else self._added(tool)
        return AdmittedCall(index, call, tool, arguments, added=added)

    def _misread(self, event: CallError) -> ToolResult:
        if event.code == "unknown_tool":
            return error_result("unknown_tool", unknown_tool(event.call.name, self._names(event.call)))
        return error_result(event.code, event.message, position=event.position)

    def _names(self, call: ToolCall) -> tuple[str, ...]:
        """Return the names of the tools that a call of this format may name."""
        if self.config.is_tagged(call.format):
            return tuple(spec.name for spec in self._registry.specs())
        return tuple(self._registry.tools)
