"""What one run works with and within: what an agent hands to it. A value only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.agent.hooks import Hook
from agentkit.agent.options import AgentLimits
from agentkit.agent.spending import Spending
from agentkit.agent.system import System
from agentkit.models.base import Model
from agentkit.processor import ProcessorConfig
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run.

    Args:
        model: who is asked.
        registry: the tools.
        config: what the calls of a response may do.
        settings: what every request asks of the model; see `Settings`.
        limits: within which it works; `max_depth` counts from here on.
        spending: the budget and what was spent of it.
        context: the application's object, for `ToolContext.state`.
        system: what the model is told before the conversation; None for nothing.
        output: what the final reply must be; None for text.
        hooks: called with each event.
        cancel: ends the run when it is set.
        name: of the agent, for traces.
    """

    model: Model
    registry: ToolRegistry
    config: ProcessorConfig
    settings: Mapping[str, Any]
    limits: AgentLimits
    spending: Spending
    context: Any = None
    system: System[Any] | None = None
    output: Output | None = None
    hooks: Sequence[Hook] = ()
    cancel: asyncio.Event | None = None
    name: str = "agent"
