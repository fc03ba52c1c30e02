"""An agent as a tool of another agent: its own conversation, its own tools, the caller's budget.

In a thread, the sub-agent's conversation is a thread of its own, named after the call. When the process dies, resuming
the caller's thread resumes the sub-agent's, too: it goes on where it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentkit.agent.journal import Conversation, Journal
from agentkit.binding import BoundTool, bind_function
from agentkit.messages import user
from agentkit.schema import openapi_schema
from agentkit.tool import ToolContext, ToolResult

if TYPE_CHECKING:
    from agentkit.agent.agent import Agent
    from agentkit.agent.result import RunResult
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
        if caller is not None and caller.plan.depth < 1:
            return ToolResult(error=_TOO_DEEP, code="limit")
        if caller is None:
            journal: Journal = Conversation([user(task)])
        else:
            journal = await caller.journal.child(context.call_id, task)
        return _answer(await agent.begin(journal, agent.system, caller=caller, context=context.state).finished())

    return bind_function(run)


def _answer(result: RunResult[Any]) -> ToolResult:
    """What the caller's model reads: the last words, and why there are no more of them."""
    spent = {"usage": result.usage._asdict(), "turns": result.turns, "finish": result.finish}
    if result.finish in DONE:
        return ToolResult(result.text, metadata=spent)
    waiting = "".join(f"; {call.name} waits for the user's approval" for call in result.pending)
    said = f"; it said: {result.text}" if result.text else ""
    return ToolResult(error=f"the agent stopped early ({result.finish}){waiting}{said}", metadata=spent)
