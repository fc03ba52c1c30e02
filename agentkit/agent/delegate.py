"""An agent as a tool of another agent: its own conversation, its own tools, the caller's budget.

In a thread, the sub-agent's conversation is a separate thread, named after the call. If the process dies, resuming the
caller's thread also resumes the sub-agent's, which continues where it was. If a call of the sub-agent waits for a
person, the caller's call waits as well, and both continue in the same way.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agentkit.agent.agent_tools import runs
from agentkit.agent.in_memory import Conversation
from agentkit.agent.journal import Journal
from agentkit.checks.keys import words
from agentkit.errors import ProviderError
from agentkit.formats.control import restore
from agentkit.messages import AssistantMessage, SystemMessage, ToolMessage, user
from agentkit.processor import not_run
from agentkit.tool.bound_tool import BoundTool, bind_function
from agentkit.tool.declare import openapi_schema
from agentkit.tool.result import ToolContext, ToolResult
from agentkit.tool.suspension import SuspendedCall

if TYPE_CHECKING:
    from agentkit.agent.agent import Agent
    from agentkit.agent.outcome import RunResult
    from agentkit.agent.run import RunStream

DONE: Final = ("stop", "agent_terminated")
"""The finishes of a sub-agent that completed its task."""

_TASK: Final = "what to do, with everything needed to do it: the agent reads nothing else"


def delegate(agent: Agent[Any, Any], name: str, description: str) -> BoundTool:
    """The tool that a calling agent sees; see `Agent.as_tool`."""

    @openapi_schema(name=name, description=description, idempotent=True, task=_TASK)
    async def run(task: str, context: ToolContext) -> ToolResult:
        caller: RunStream[Any] | None = context.run
        if caller is not None and caller.plan.limits.max_depth < 1:
            return not_run.TOO_DEEP.result()
        if caller is None:
            journal: Journal = Conversation([user(task)])
        else:
            journal = await caller.journal.child(context.call_id, task)
        sub_run: RunStream[Any] | None = None
        try:
            system = None if _instructed(journal) else agent.system
            sub_run = agent.begin(journal, system, caller=caller, context=context.state)
            result = await sub_run.complete()
        except BaseException as e:
            if caller is not None:
                await _suspend(caller, context.call_id, journal, sub_run, e)
            failed = e.result if isinstance(e, ProviderError) else None
            if failed is None or not (last := _last_words(failed, sub_run)):
                raise
            return ToolResult(error=f"{words(e)}; until then it said: {last}", metadata=_spent(failed))
        if caller is not None:
            await _suspend(caller, context.call_id, journal, sub_run)
        whole = str if sub_run.plan.model.format is None else restore  # what it passes on of its tools' results
        return _answer(result, terminating_words(result, agent), whole, _last_words(result, sub_run))

    runs(run, agent)
    return bind_function(run)


async def _suspend(
    caller: RunStream[Any], id: str, journal: Journal, run: RunStream[Any] | None, error: BaseException | None = None
) -> None:
    """Make the caller's call wait, however the agent's run has ended, if one of the agent's calls has no answer.

    Raises:
        SuspendedCall: one has none.
    """
    looking = asyncio.ensure_future(journal.has_open_calls())
    while not looking.done():
        try:
            await asyncio.wait({looking})
        except asyncio.CancelledError as e:  # it is not over without an answer to this
            error = e
    caller.journal.mark(id, inside=looking.result())
    if not looking.result():
        if isinstance(error, asyncio.CancelledError):
            raise error
        return
    result = None if run is None or not run.over else run.result
    waiting = () if result is None else tuple(replace(call, id=f"{id}/{call.id}") for call in result.pending)
    fault = error if isinstance(error, Exception) and not isinstance(error, ProviderError) else None
    raise SuspendedCall(waiting, result, fault) from error


def _answer(result: RunResult[Any], terminating: Sequence[str], whole: Callable[[str], str], last: str) -> ToolResult:
    """The answer for the caller's model: the last reply, or the call that ended the agent, and why it stopped early."""
    if result.finish in DONE and (words := "\n\n".join(filter(str.strip, [result.text, *terminating]))):
        return ToolResult(whole(words), metadata=_spent(result))
    needs = "".join(f"; {call.name} needs the user's approval" for call in result.pending)  # no run can get it
    said = f"; it said: {last}" if last else ""
    said += f"; a guard: {result.guard_reason}" if result.guard_reason is not None else ""
    early = "stopped early" if result.finish not in DONE else "ended without an answer"
    return ToolResult(error=f"the agent {early} ({result.finish}){needs}{said}", metadata=_spent(result))


def _instructed(journal: Journal) -> bool:
    """Return True if the conversation begins with its instructions: a conversation in memory that continues does."""
    return isinstance(next(iter(journal.all()), None), SystemMessage)


def _spent(result: RunResult[Any]) -> dict[str, object]:
    return {"usage": result.usage._asdict(), "turns": result.turns, "finish": result.finish}


def _last_words(result: RunResult[Any], run: RunStream[Any] | None) -> str:
    """The text of its newest response that has any; empty if none has, or if guards must accept it and have not."""
    if run is not None and run.plan.guards.has("reply"):
        return result.text
    texts = (m.text for m in reversed(result.messages) if isinstance(m, AssistantMessage))
    return next(filter(str.strip, texts), "")


def terminating_words(result: RunResult[Any], agent: Agent[Any, Any]) -> list[str]:
    """Return the arguments and the result of the call that ended a run of the agent: either may be the answer."""
    if result.finish != "agent_terminated":
        return []
    last = next((m for m in reversed(result.messages) if isinstance(m, AssistantMessage)), AssistantMessage(()))
    answers = {m.call_id: m for m in result.messages if isinstance(m, ToolMessage)}
    found = []
    for call in last.calls:
        tool, answer = agent.registry.get_tool(call.name), answers.get(call.id)
        if tool is not None and tool.policy.terminates and answer is not None and answer.error is None:
            arguments, text = json.dumps(dict(call.arguments), ensure_ascii=False, default=str), answer.text
            same = list(call.arguments.values()) == [text]
            described = f"{call.name} {arguments}" + (f" returned: {text}" if text else "")
            found.append(text if same and text.strip() else described)
    return found
