"""What one run works with and within: what an agent hands to it. A value only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.agent.hooks import Hook
from agentkit.agent.spending import Spending
from agentkit.agent.system import System
from agentkit.models.base import Model
from agentkit.processor import ProcessorConfig
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import Output


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Args:
        model: who is asked.
        registry: the tools.
        config: what the calls of a response may do.
        settings: what every request asks of the model; see `Settings`.
        context: the application's object, for `ToolContext.state`.
        spending: the budget and what was spent of it.
        max_turns: responses at most.
        max_repeats: the same call with the same answer at most, in a row; None for no bound.
        auto_continue: how often a model that `continues` is asked to go on with a response that its token limit cut
            inside a text call.
        hooks: called with each event.
        cancel: ends the run when it is set.
        name: of the agent, for traces.
        system: what the model is told before the conversation; None for nothing.
        output: what the final reply must be; None for text.
        output_retries: how often a reply that is something else is asked for again.
        depth: levels of sub-agents that may work below it.
    """

    model: Model
    registry: ToolRegistry
    config: ProcessorConfig
    settings: Mapping[str, Any]
    context: Any
    spending: Spending
    max_turns: int
    max_repeats: int | None
    auto_continue: int
    hooks: Sequence[Hook] = ()
    cancel: asyncio.Event | None = None
    name: str = "agent"
    system: System[Any] | None = None
    output: Output | None = None
    output_retries: int = 0
    depth: int = 0
