"""The tools that a run offers if there are too many to offer all: those that fit the conversation.

Offered are the matches of each message of the user, the tools that were called, and those that the model found with
`find_tools`. The selection depends only on the conversation, so a resumed thread and a fork offer the same tools in the
same order. While a conversation grows, tools are added, at the end, so that most of a cached prompt stays valid. A call
of a tool that is registered but not offered runs; in a format with a tag for each tool, it is text. Knows no model and
no turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Self

from agentkit.checks.tool_names import FIND_TOOLS
from agentkit.messages import AssistantMessage, Message, UserMessage
from agentkit.tool.bound_tool import bind_function
from agentkit.tool.declare import openapi_schema
from agentkit.tool.policy import needs_no_decision
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolResult
from agentkit.toolspec import ToolSpec

if TYPE_CHECKING:
    from agentkit.agent.plan import Plan
    from agentkit.formats.format import Format

_DESCRIPTION: Final = (
    "Find more tools. You see only some of the {count} tools that you can use. If none of them does what is needed, "
    "search here; then call the tool that was found."
)
_QUERY: Final = "what the tool must do, in a few words, such as 'convert currency'"
_SHOWN: Final = 200  # characters of a description in the list of the tools that were found


def searchable(registry: ToolRegistry, most: int, format: str | Format | None) -> ToolRegistry:
    """The tools of a run and `find_tools`; the registry itself if it has no more tools than `most`.

    Args:
        registry: all tools.
        most: how many are offered at a time.
        format: the text format of the model's calls; None for native calls.

    Raises:
        SchemaError: one of the tools is called `find_tools`.
    """
    count = len(registry.offered_specs(format))
    if count <= most:
        return registry

    @openapi_schema(
        name=FIND_TOOLS,
        description=_DESCRIPTION.format(count=count),
        requires_approval=needs_no_decision,
        idempotent=True,
        query=_QUERY,
    )
    def find_tools(query: str) -> ToolResult:
        found = registry.search(query, most, format)
        if not found:
            return ToolResult(error=f"no tool matches {query:.200}; search with other words")
        lines = [f"- {tool.name}: {' '.join(tool.description.split())[:_SHOWN]}" for tool in found]
        return ToolResult("You can call these tools now:\n" + "\n".join(lines))

    return registry.plus(bind_function(find_tools))


class Offering:
    """The selection of one run.

    Args:
        plan: the run's plan.
        most: how many tools a message or a search adds.
        choice: the `tool_choice` of the requests; a tool that it names is always offered.
    """

    def __init__(self, plan: Plan, most: int, choice: str) -> None:
        search, format = plan.agent.registry, plan.model.format
        self._find = cache(lambda text: [spec.name for spec in search.search(text, most, format)])
        self._all = {spec.name: spec for spec in plan.registry.offered_specs(format)}
        always = (FIND_TOOLS, choice, "" if plan.output_tool is None else plan.output_tool.name)
        self._offered = dict.fromkeys(name for name in always if name in self._all)

    @classmethod
    def of(cls, plan: Plan, choice: str) -> Self | None:
        """The selection of a run; None if all its tools are offered."""
        most = plan.limits.offered_tools
        found = most is not None and len(plan.agent.registry.offered_specs(plan.model.format)) > most
        return cls(plan, most, choice) if found and most is not None else None

    def tools(self, messages: Sequence[Message]) -> tuple[ToolSpec, ...]:
        """The tools to offer for a conversation with these messages; those of an earlier call stay."""
        for message in messages:
            for name in self._names(message):
                if name in self._all:
                    self._offered.setdefault(name)
        return tuple([self._all[name] for name in self._offered])

    def _names(self, message: Message) -> list[str]:
        """The tools that a message adds."""
        if isinstance(message, UserMessage):
            return self._find(message.text)
        if not isinstance(message, AssistantMessage):
            return []
        names: list[str] = []
        for call in message.calls:
            query = call.arguments.get("query") if call.name == FIND_TOOLS else None
            names += self._find(query) if isinstance(query, str) else [call.name]
        return names
