"""Which tools are agents. Knows neither agents nor runs."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from agentkit.agent.agent import Agent
    from agentkit.tool.bound_tool import BoundTool

_AGENTS: Final[WeakKeyDictionary[Callable[..., Any], Agent[Any, Any]]] = WeakKeyDictionary()


def runs(function: Callable[..., Any], agent: Agent[Any, Any]) -> None:
    """The function of a tool runs this agent."""
    _AGENTS[function] = agent


def agent_of(tool: BoundTool | None) -> Agent[Any, Any] | None:
    """The agent that a tool runs; None if it is another tool."""
    return _AGENTS.get(tool.method) if tool is not None and isinstance(tool.method, FunctionType) else None
