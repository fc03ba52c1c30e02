"""Everything that an agent passes to one run. A value only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkit.agent.guarding import RunGuards
from agentkit.agent.hooks import Hook
from agentkit.agent.options import AgentLimits
from agentkit.agent.run_budget import Spending
from agentkit.agent.system import System
from agentkit.models.base import Model
from agentkit.processor import ProcessorConfig
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import Output

if TYPE_CHECKING:
    from agentkit.agent.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parts and limits of a run.

    Args:
        agent: the agent, whose settings may be overridden here.
        model: the model to ask.
        registry: the tools.
        config: what the calls of a response may do.
        settings: the settings of every request; see `Settings`.
        limits: the limits of the run; `max_depth` counts from this run.
        spending: the budget and the amount spent.
        guards: those of the runs above it, and the agent's.
        context: the application's object, for `ToolContext.state`.
        system: the instructions before the conversation; None for none.
        output: the type of the final reply; None for text.
        hooks: called with each event.
        cancel: ends the run when it is set.
    """

    agent: Agent[Any, Any]
    model: Model
    registry: ToolRegistry
    config: ProcessorConfig
    settings: Mapping[str, Any]
    limits: AgentLimits
    spending: Spending
    guards: RunGuards
    context: Any = None
    system: System[Any] | None = None
    output: Output | None = None
    hooks: Sequence[Hook] = ()
    cancel: asyncio.Event | None = None
