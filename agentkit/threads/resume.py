"""Decide on the calls that an interrupted run left open. Pure: a function of the log and of the tools' policies.

| the call is | then it is |
|---|---|
| `planned` | run, unless the user wrote again since: then it is answered `cancelled` |
| `waiting` for approval | left waiting, unless the user wrote again since: then it is answered `cancelled` |
| `waiting` for approval, and a person has allowed such calls since | handled as planned: it may have to wait again |
| `waiting` for a call in its sub-agent | run again, which continues the sub-agent; unless the user wrote again since |
| `approved` | handled as planned if tool (`digest`) and arguments are those that were approved; otherwise as waiting |
| `started`, its tool `idempotent` then and now | run again, with the same idempotency key |
| `started`, its tool can `reconcile` | answered with the outcome that the tool reports |
| `started`, any other tool | answered `interrupted`: at most once, its outcome unknown |

A run that lacks the tool of a call that would be run because it is `approved`, or because calls wait in its sub-agent,
is refused, and changes nothing: otherwise the approval would be spent. If the user has written again since, the call is
answered as above.

A call of a tool that was not `idempotent=True` then is not run again because it is now: the first attempt knew no key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agentkit.agent import RunFinish, call_hash
from agentkit.agent.outcome import AskedFor
from agentkit.errors import ConfigError, ErrorCode
from agentkit.messages import TextPart, ToolMessage
from agentkit.processor.not_run import MOVED_ON, PREFIX
from agentkit.threads.allow_rules import AllowRule, is_allowed
from agentkit.threads.conversation import in_order, is_broken_off, role_of
from agentkit.threads.entries import ASKED, IDEMPOTENT, TOOL, waits_for
from agentkit.threads.store import Body, Call, Entry, Log
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.codec import call_from_json
from agentkit.tool.registry import ToolRegistry

_LOG = logging.getLogger("agentkit.threads")

INTERRUPTED = (
    "interrupted while running, and not run again: its effects may have happened; find out before you repeat it"
)


@dataclass(slots=True)
class Settlement:
    """The steps that finish an interrupted run, in their order.

    Args:
        close: partial entries, now known to be all that exists of their responses.
        answer: calls and the answers that they get immediately.
        ask: calls whose tools are asked for the outcome.
        run: calls to run.
        wait: calls to put back to `waiting`.
        plan: calls to put back to `planned`; they are also in `run`.
        finish: why there is nothing more to do after that; None to ask the model.
    """

    close: list[Entry] = field(default_factory=list)
    answer: list[tuple[Call, ToolMessage]] = field(default_factory=list)
    ask: list[Call] = field(default_factory=list)
    run: list[Call] = field(default_factory=list)
    wait: list[Call] = field(default_factory=list)
    plan: list[Call] = field(default_factory=list)
    finish: RunFinish | None = None


def settle(log: Log, registry: ToolRegistry, rules: Sequence[AllowRule] = ()) -> Settlement:
    """Decide about every call without an answer, and whether it is the model's turn after that.

    Args:
        log: the thread, or its end.
        registry: the tools of the run.
        rules: the calls that a person has allowed.

    Raises:
        ConfigError: the registry lacks the tool of an approved call, or of one whose sub-agent waits for approval.
    """
    plan = Settlement(close=[e for e in log.entries if e.kind == "partial"])
    last_said = _last_said(log)
    waits = False
    for call in (call for call in log.calls if call.status != "answered"):
        match call.status:
            case "started":
                _settle_started(plan, call, registry)
            case _ if call.seq < last_said:
                plan.answer.append((call, _passed_over(call)))
            case "planned":
                plan.run.append(call)
            case _ if waits_inside(call) or _is_approved(call, registry):
                _refuse_without_tool(call, registry)
                plan.run.append(call)
            case "approved":
                _LOG.warning(
                    "the approval of the call %r is no longer valid: its tool or its arguments changed", call.id
                )
                plan.wait.append(replace(call, body=waits_for(call.body, _tool(call, registry))))
                waits = True
            case _ if _is_allowed(call, registry, rules):
                plan.plan.append(call)
                plan.run.append(replace(call, status="planned"))
            case _:
                waits = True
    if waits:
        plan.finish = "approval"
    elif not plan.run:
        plan.finish = finish_of(log, registry)
    return plan


def is_unfinished(log: Log, registry: ToolRegistry) -> bool:
    """Return True if a run was interrupted: there are open calls, or the model has not answered yet.

    After a run that was stopped deliberately it is the user's turn.

    Args:
        log: the thread, or its end.
        registry: the tools of the agent that answers.
    """
    plan = settle(log, registry)
    if plan.close or plan.answer or plan.ask or plan.run or plan.finish == "approval":
        return True
    stopped = bool(log.entries) and log.entries[-1].body.get("response", {}).get("finish") == "cancelled"
    return bool(log.entries) and plan.finish is None and not stopped


def _refuse_without_tool(call: Call, registry: ToolRegistry) -> None:
    """Refuse to spend an approval on a call whose tool is not registered."""
    name = str(call.body["name"])
    if _tool(call, registry) is not None:
        return
    there = ", ".join(map(repr, registry.tools)) or "none"
    done = "waits for one in its sub-agent" if waits_inside(call) else "is approved"
    raise ConfigError(
        f"the call {call.id!r} {done}, but this run has no tool {name!r} to continue it (tools: {there}): register the "
        "tool that it was made with, or run the agent that made it; a new message of the user withdraws the call"
    )


def _tool(call: Call, registry: ToolRegistry) -> BoundTool | None:
    return registry.get_tool(str(call.body["name"]))


def _is_approved(call: Call, registry: ToolRegistry) -> bool:
    """Return True if call and tool are those that were approved; a missing tool is refused elsewhere."""
    tool, seen = _tool(call, registry), call.body.get(TOOL)
    same = tool is None or seen is None or tool.digest == seen
    return call.status == "approved" and same and call.note.get("hash") == call_hash(call_from_json(call.body))


def _is_allowed(call: Call, registry: ToolRegistry, rules: Sequence[AllowRule]) -> bool:
    """Return True if a rule covers a call of a run that was not started: otherwise, a person decides about it."""
    tool = _tool(call, registry)
    return (
        tool is not None
        and not call.attempts
        and call.body.get(TOOL) == tool.digest
        and is_allowed(rules, call_from_json(call.body), tool)
    )


def _passed_over(call: Call) -> ToolMessage:
    """The answer to a call after which the user wrote again."""
    if may_have_run(call):  # started once, and then put back to `waiting`
        return not_again(answer(call, "cancelled", "the user wrote again"))
    return answer(call, MOVED_ON.code, MOVED_ON.text())


def waits_inside(call: Call) -> bool:
    """Return True if a waiting call has started an agent whose thread has waiting calls."""
    return call.status == "waiting" and bool(call.note.get("inside"))


def may_continue(call: Call) -> bool:
    """Return True if a person approved the call, or may have decided on the calls that wait inside it."""
    return "hash" in call.note or bool(call.note.get("inside"))


def asked_for(call: Call) -> AskedFor:
    """Return what a person was asked for who approved the call."""
    body = call.body
    return AskedFor(body.get(TOOL, ""), call_hash(call_from_json(body)), body.get(ASKED, ""))


def may_have_run(call: Call) -> bool:
    """Return True if any attempt of the call may have had an effect."""
    return call.attempts > 0 and (call.status == "started" or not call.note.get("untouched"))


def not_again(answer: ToolMessage) -> ToolMessage:
    """The answer to a call that may have run, and is not run again; the one passed is that of a call that never ran."""
    why = answer.text.removeprefix(PREFIX)
    return replace(answer, content=(TextPart(f"{INTERRUPTED}. Why it was not run again: {why}"),), error="interrupted")


def waiting(log: Log) -> list[Call]:
    """The calls that a person can still approve or deny."""
    last_said = _last_said(log)
    return [call for call in log.calls if call.status == "waiting" and call.seq >= last_said]


def has_open(log: Log) -> bool:
    """Return True if a later run has calls to act on, or to leave waiting."""
    last_said = _last_said(log)
    return any(call.status != "answered" and (call.seq >= last_said or call.status == "started") for call in log.calls)


def _last_said(log: Log) -> int:
    return max((e.seq for e in log.entries if role_of(e) == "user"), default=-1)


def _settle_started(plan: Settlement, call: Call, registry: ToolRegistry) -> None:
    tool = _tool(call, registry)
    if tool is not None and tool.policy.idempotent and call.body.get(IDEMPOTENT):
        plan.run.append(call)
    elif tool is not None and tool.policy.reconcile:
        plan.ask.append(call)
    else:
        plan.answer.append((call, answer(call, "interrupted", INTERRUPTED)))


def open_note(call: Call) -> Body:
    """Return the note of a call that waits again: without an approval; a person's edit still counts."""
    kept = {"edited": bool(call.note.get("edited")), "untouched": call.attempts > 0 and not may_have_run(call)}
    return {name: True for name, holds in kept.items() if holds}


def answer(call: Call, code: ErrorCode, words: str) -> ToolMessage:
    """The answer to a call that gets no result from its tool."""
    return ToolMessage(call.id, str(call.body["name"]), (TextPart(words),), code)


def finish_of(log: Log, registry: ToolRegistry) -> RunFinish | None:
    """Why the run is over; None if it is the model's turn."""
    last = next(reversed(in_order(log)), None)
    if last is None or role_of(last) != "assistant" or is_broken_off(last):
        return None
    calls = [call for call in log.calls if call.seq == last.seq]
    if any(_terminates(call, registry) for call in calls):
        return "agent_terminated"
    reason: RunFinish = last.body.get("response", {}).get("finish", "stop")
    return None if (calls and reason != "agent_terminated") or reason == "pause" else reason


def _terminates(call: Call, registry: ToolRegistry) -> bool:
    tool = _tool(call, registry)
    return tool is not None and tool.policy.terminates and call.answer is not None and "error" not in call.answer
