"""An agent as a tool of another agent: its own conversation, its own tools, the caller's budget.

In a thread, the sub-agent's conversation is a thread of its own, named after the call. When the process dies, resuming
the caller's thread resumes the sub-agent's, too: it goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agentkit.agent.journal import Conversation, Journal
from agentkit.errors import ProviderError
from agentkit.messages import AssistantMessage, ToolMessage, user
from agentkit.tool.binding import BoundTool, bind_function
from agentkit.tool.declare import openapi_schema
from agentkit.tool.result import ToolContext, ToolResult

if TYPE_CHECKING:
    from agentkit.agent.agent import Agent
    from agentkit.agent.outcome import RunResult
    from agentkit.agent.run import RunStream

DONE: Final = ("stop", "agent_terminated")
"""The finishes of a sub-agent that did what it was asked to do."""

_TASK: Final = "what is to be done, with all that must be known for it: the agent reads nothing else"

_TOO_DEEP: Final = (
    "not asked: agents employ agents here as deep as they may (max_depth of the Agent that was run). Do this yourself, "
    "with your other tools, or answer with what you have"
)


def delegate(agent: Agent[Any, Any], name: str, description: str) -> BoundTool:
    """The tool that a calling agent sees; see `Agent.as_tool`."""

    @openapi_schema(name=name, description=description, idempotent=True, task=_TASK)
    async def run(task: str, context: ToolContext) -> ToolResult:
        caller: RunStream[Any] | None = context.run
        if caller is not None and caller.plan.limits.max_depth < 1:
            return ToolResult(error=_TOO_DEEP, code="limit")
        if caller is None:
            journal: Journal = Conversation([user(task)])
        else:
            journal = await caller.journal.child(context.call_id, task)
        try:
            result = await agent.begin(journal, agent.system, caller=caller, context=context.state).finished()
        except ProviderError as e:
            if e.result is None or not (said := _last_words(e.result)):
                raise
            return ToolResult(error=f"{type(e).__name__}: {e}; until then it said: {said}", metadata=_spent(e.result))
        return _answer(result, _terminating(result, agent))

    return bind_function(run)


def _answer(result: RunResult[Any], terminating: Sequence[str]) -> ToolResult:
    """What the caller's model reads: the last words, or the call that ended it, and why there are no more of them."""
    if result.finish in DONE and (words := "\n\n".join(filter(str.strip, [result.text, *terminating]))):
        return ToolResult(words, metadata=_spent(result))
    waiting = "".join(f"; {call.name} waits for the user's approval" for call in result.pending)
    last = _last_words(result)
    said = f"; it said: {last}" if last else ""
    early = "stopped early" if result.finish not in DONE else "ended without an answer"
    return ToolResult(error=f"the agent {early} ({result.finish}){waiting}{said}", metadata=_spent(result))


def _spent(result: RunResult[Any]) -> dict[str, object]:
    return {"usage": result.usage._asdict(), "turns": result.turns, "finish": result.finish}


def _last_words(result: RunResult[Any]) -> str:
    """The newest words of its own; empty where it said none."""
    said = (m.text for m in reversed(result.messages) if isinstance(m, AssistantMessage))
    return next(filter(str.strip, said), "")


def _terminating(result: RunResult[Any], agent: Agent[Any, Any]) -> list[str]:
    """What the call that ended the agent was given, and what it gave: either may be the answer."""
    if result.finish != "agent_terminated":
        return []
    last = next((m for m in reversed(result.messages) if isinstance(m, AssistantMessage)), AssistantMessage(()))
    answers = {m.call_id: m for m in result.messages if isinstance(m, ToolMessage)}
    told = []
    for call in last.calls:
        tool, answer = agent.registry.get_tool(call.name), answers.get(call.id)
        if tool is not None and tool.policy.terminates and answer is not None and answer.error is None:
            given, gave = json.dumps(dict(call.arguments), ensure_ascii=False, default=str), answer.text
            same = list(call.arguments.values()) == [gave]
            told.append(gave if same and gave.strip() else f"{call.name} {given}" + (f" gave: {gave}" if gave else ""))
    return told
