"""Agents: the loop of model and tools, its limits and budget, and the journal that records each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.agent.agent import Agent
    from agentkit.agent.decisions import Approved, Decision, Denied, call_hash
    from agentkit.agent.guards import AskAgain, AskPerson, Guards, Refused
    from agentkit.agent.hooks import Hook, checked_hooks
    from agentkit.agent.in_memory import Conversation
    from agentkit.agent.journal import Ask, Journal, Response, UnansweredCalls
    from agentkit.agent.lifecycle import Lifecycle, RunEnded, RunStarted, TurnEnded, TurnStarted
    from agentkit.agent.limits import Budget, Price
    from agentkit.agent.options import RunFinish, RunOptions, Settings
    from agentkit.agent.outcome import RunResult
    from agentkit.agent.own_loop import OwnLoop
    from agentkit.agent.plan import Plan
    from agentkit.agent.prompts import dicts_from, messages_from
    from agentkit.agent.run import RunStream
    from agentkit.agent.run_budget import BudgetSpent, Spending

__all__ = [
    "Agent",
    "Approved",
    "Ask",
    "AskAgain",
    "AskPerson",
    "Budget",
    "BudgetSpent",
    "Conversation",
    "Decision",
    "Denied",
    "Guards",
    "Hook",
    "Journal",
    "Lifecycle",
    "OwnLoop",
    "Plan",
    "Price",
    "Refused",
    "Response",
    "RunEnded",
    "RunFinish",
    "RunOptions",
    "RunResult",
    "RunStarted",
    "RunStream",
    "Settings",
    "Spending",
    "TurnEnded",
    "TurnStarted",
    "UnansweredCalls",
    "call_hash",
    "checked_hooks",
    "dicts_from",
    "messages_from",
]

explained_module(
    __name__,
    "write Agent(…), from agentkit import Agent",
    homes={
        "agentkit.agent.agent": "Agent",
        "agentkit.agent.decisions": "Approved Decision Denied call_hash",
        "agentkit.agent.guards": "AskAgain AskPerson Guards Refused",
        "agentkit.agent.hooks": "Hook checked_hooks",
        "agentkit.agent.in_memory": "Conversation",
        "agentkit.agent.journal": "Ask Journal Response UnansweredCalls",
        "agentkit.agent.lifecycle": "Lifecycle RunEnded RunStarted TurnEnded TurnStarted",
        "agentkit.agent.limits": "Budget Price",
        "agentkit.agent.options": "RunFinish RunOptions Settings",
        "agentkit.agent.outcome": "RunResult",
        "agentkit.agent.own_loop": "OwnLoop",
        "agentkit.agent.plan": "Plan",
        "agentkit.agent.prompts": "dicts_from messages_from",
        "agentkit.agent.run": "RunStream",
        "agentkit.agent.run_budget": "BudgetSpent Spending",
    },
)
