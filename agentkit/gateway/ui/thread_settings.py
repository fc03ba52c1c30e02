"""The settings of a person for one thread: its title, its model, its format, the tools that need no approval in it.

It is in the thread's metadata, under `ui`. A value only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from agentkit.agent import Agent
from agentkit.messages import ToolCall
from agentkit.processor import ProcessorConfig
from agentkit.processor.tool_run import in_a_thread
from agentkit.threads import Thread
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.own_thread import thread_of_method
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext

KEY: Final = "ui"
LONGEST_TITLE: Final = 200


@dataclass(frozen=True, slots=True)
class ThreadSettings:
    """The settings of a thread.

    Args:
        title: empty for one made from the first message.
        model: the name of a choice; empty for the agent's own model.
        format: of the calls; empty for the model's own, `native` for native calls.
        allowed: the tools that need no approval, each with the digest that it had when that was said.
        stopped: the last entry when a person stopped the thread; -1 if that never happened.
    """

    title: str = ""
    model: str = ""
    format: str = ""
    allowed: Mapping[str, str] = field(default_factory=dict)
    stopped: int = -1

    @classmethod
    def of(cls, thread: Thread) -> ThreadSettings:
        """The settings of a thread; the defaults for whatever is missing or wrong."""
        found = thread.metadata.get(KEY)
        found = found if isinstance(found, Mapping) else {}
        default = cls()
        given = {one.name: found.get(one.name, getattr(default, one.name)) for one in fields(cls)}
        allowed = given["allowed"] if isinstance(given["allowed"], Mapping) else {}
        return cls(
            title=str(given["title"]),
            model=str(given["model"]),
            format=str(given["format"]),
            allowed={str(tool): str(digest) for tool, digest in allowed.items()},
            stopped=given["stopped"] if type(given["stopped"]) is int else -1,
        )

    def in_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """A thread's metadata with these settings."""
        return {**metadata, KEY: {**asdict(self), "allowed": dict(self.allowed)}}

    def allowing(self, tool: BoundTool) -> ThreadSettings:
        """These settings, and the tool needs no approval."""
        return replace(self, allowed={**self.allowed, tool.name: tool.digest})

    def revoking(self, tool: str) -> ThreadSettings:
        """These settings, and the tool is handled as the agent says."""
        return replace(self, allowed={name: digest for name, digest in self.allowed.items() if name != tool})

    def allowed_now(self, registry: ToolRegistry) -> list[str]:
        """The allowed tools that are still the tools that the person saw."""
        tools = {name: registry.get_tool(name) for name in self.allowed}
        return [name for name, tool in tools.items() if tool is not None and tool.digest == self.allowed[name]]


def with_allowed(agent: Agent, allowed: list[str]) -> ProcessorConfig:
    """The agent's rules for calls, in which these tools need no approval."""
    config, registry = agent.config, agent.registry
    if not allowed:
        return config
    names = frozenset(allowed)

    async def needs_approval(call: ToolCall, context: ToolContext) -> bool:
        if call.name in names:
            return False
        tool = registry.get_tool(call.name)
        rule = config.requires_approval
        if rule is None:
            rule = True if tool is None else tool.policy.requires_approval
        if isinstance(rule, bool):
            return rule
        found = in_a_thread(rule, call, context) if thread_of_method(rule) else rule(call, context)
        return await found if isinstance(found, Awaitable) else found

    return replace(config, requires_approval=needs_approval)
