"""Approval of calls by a person. If it cannot be decided whether a call needs it, it does: this fails closed.

Pure, except that it calls functions of the tool's author or the application.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, NamedTuple

from agentkit.checks.keys import words
from agentkit.events import ApprovalRequired
from agentkit.messages import ToolCall
from agentkit.processor.admission import AdmittedCall
from agentkit.processor.author_errors import AuthorErrors
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.tool_run import in_a_thread
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.own_thread import hint, thread_of_method
from agentkit.tool.policy import Predicate
from agentkit.tool.result import ToolContext
from agentkit.tool.suspension import SuspendedCall

STARTED_BEFORE: Final = "it was started before and interrupted, and its effects may have happened"
_ASKED: Final = "{}, asked whether a call needs approval,"
_THEN: Final = "so the call needs approval"

Allows = Callable[[ToolCall, BoundTool], Awaitable[bool]]
"""Returns True if a person has already allowed such calls of a tool."""


class Approval(NamedTuple):
    """The answer: approval is `needed` or not; `reason` says why the question could not be answered."""

    needed: bool
    reason: str = ""


def decide(
    rule: Predicate | bool, admitted: AdmittedCall, context: ToolContext, faults: AuthorErrors, allows: Allows | None
) -> Approval | asyncio.Future[Any]:
    """Ask about one call; return the answer, or an awaitable for `decision_of`. Errors are logged."""
    call = admitted.call.copy()
    try:
        if isinstance(rule, bool):
            answer: object = rule
        else:
            answer = in_a_thread(rule, call, context) if thread_of_method(rule) else rule(call, context)
        if allows is not None and (answer is True or isinstance(answer, Awaitable)):
            answer = _unless_allowed(answer, allows, admitted)
        return asyncio.ensure_future(answer) if isinstance(answer, Awaitable) else _read(answer, admitted, faults)
    except Exception as e:  # noqa: BLE001 - the boundary: if the predicate fails, a person decides
        return _undecided(e, admitted, faults)


async def _unless_allowed(answer: object, allows: Allows, admitted: AdmittedCall) -> object:
    needed = await answer if isinstance(answer, Awaitable) else answer
    return not await allows(admitted.call.copy(), admitted.tool) if needed is True else needed


def decision_of(answer: asyncio.Future[Any], admitted: AdmittedCall, faults: AuthorErrors) -> Approval:
    """Return the answer of a predicate that was awaited."""
    try:
        return _read(answer.result(), admitted, faults)
    except asyncio.CancelledError:  # its time was up
        return Approval(True, "the function that decides did not answer")
    except Exception as e:  # noqa: BLE001 - the boundary, as above
        return _undecided(e, admitted, faults)


def _read(answer: object, admitted: AdmittedCall, faults: AuthorErrors) -> Approval:
    if isinstance(answer, bool):
        return Approval(answer)
    wrong = f"{answer!r:.100}, not True or False"
    faults.report_value(_ASKED.format(admitted.tool.where), wrong, _THEN)
    return Approval(True, f"the function that decides returned {wrong}")


def _undecided(error: BaseException, admitted: AdmittedCall, faults: AuthorErrors) -> Approval:
    note = hint(error, admitted.tool.instance).removeprefix("; ")
    faults.report_error(_ASKED.format(admitted.tool.where), error, note or _THEN)
    return Approval(True, f"the function that decides raised {words(error)}")


class Approvals:
    """The calls of one response that wait for a person, or for the function that decides whether they must."""

    def __init__(
        self,
        config: ProcessorConfig,
        contexts: Callable[[ToolCall], ToolContext],
        faults: AuthorErrors,
        approved: Collection[str] = (),
        *,
        attended: bool = True,
        allows: Allows | None = None,
    ) -> None:
        self.pending: dict[int, ToolCall] = {}
        """The calls that wait for a person."""
        self.suspended: dict[int, SuspendedCall] = {}
        """The pending calls that have started, and wait for a person's decision on calls inside them."""
        self.asking: dict[int, asyncio.Future[Any]] = {}
        """The calls about which a function has not decided yet: whether they must, or whether they may run at all."""
        self.attended = attended
        self._rule = config.requires_approval
        self._contexts = contexts
        self._faults = faults
        self._approved = approved
        self._allows = allows
        self._seconds = None if attended else config.timeout

    def ask(
        self, admitted: AdmittedCall, decided: Callable[[AdmittedCall, ApprovalRequired | None], None]
    ) -> ApprovalRequired | None:
        """Ask whether a call must wait for a person; None if it need not, or if `decided` is called with that later."""
        rule = admitted.tool.policy.requires_approval if self._rule is None else self._rule
        if rule is False or admitted.call.id in self._approved:
            return None
        answer = decide(rule, admitted, self._contexts(admitted.call), self._faults, self._allows)
        if isinstance(answer, Approval):
            return self.require(admitted, answer.reason) if answer.needed else None

        timeout = self._seconds
        timer = None if timeout is None else asyncio.get_running_loop().call_later(timeout, answer.cancel)

        def done(answer: asyncio.Future[Any]) -> None:
            if timer is not None:
                timer.cancel()
            if self.asking.pop(admitted.index, None) is not None:  # otherwise it was answered in the meantime
                decision = decision_of(answer, admitted, self._faults)
                decided(admitted, self.require(admitted, decision.reason) if decision.needed else None)

        self.asking[admitted.index] = answer
        answer.add_done_callback(done)
        return None

    def require(self, admitted: AdmittedCall, reason: str) -> ApprovalRequired:
        """Let a call wait for a person, even if it was approved before."""
        self.pending[admitted.index] = admitted.call
        again = self._contexts(admitted.call).attempt > 1
        reason = "; ".join(filter(None, (STARTED_BEFORE if again else "", reason)))
        return ApprovalRequired(admitted.index, admitted.call, reason)

    def suspend(self, admitted: AdmittedCall, suspended: SuspendedCall) -> ApprovalRequired:
        """Let a call that has started wait for a person."""
        self.pending[admitted.index] = admitted.call
        self.suspended[admitted.index] = suspended
        return ApprovalRequired(admitted.index, admitted.call, inside=suspended.calls)

    def ask_again(self, index: int, call: ToolCall) -> None:
        """Let a withdrawn call wait for a person all the same, unless it is already approved."""
        if index in self.suspended or call.id not in self._approved:
            self.pending[index] = call

    def waiting(self) -> tuple[ToolCall, ...]:
        """Return the calls that a person must decide on, in call order."""
        inside = {index: suspended.calls for index, suspended in self.suspended.items()}
        return tuple(one for index, call in sorted(self.pending.items()) for one in inside.get(index, (call,)))

    def withdraw(self, after: int = -1) -> dict[int, ToolCall]:
        """Ask no more about the calls after this one; returns those that waited for a person."""
        for index in [index for index in self.asking if index > after]:
            self.asking.pop(index).cancel()
        return {index: self.pending.pop(index) for index in list(self.pending) if index > after}
