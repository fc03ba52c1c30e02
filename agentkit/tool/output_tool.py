"""The output of a run as the arguments of a call, for servers that enforce the schemas of calls alone.

The tool belongs to a run's copy of the registry; the agent's own registry does not have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from agentkit.schemas.words import InvalidArguments
from agentkit.tool.arguments import Arguments
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.declare import OpenAPISchema
from agentkit.tool.policy import ToolPolicy, needs_no_decision
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.reply import VALUE, Output
from agentkit.toolspec import ToolSpec

NAME: Final = "final_result"
_DESCRIPTION: Final = "Give your final answer. Call it once, when you need no other tool; nothing follows it."


def with_output(registry: ToolRegistry, output: Output) -> tuple[ToolRegistry, BoundTool]:
    """Return a copy of a registry with the tool whose call is the output, and that tool.

    It is called `final_result`; if that is another tool's name, `final_result_2`, and so on.
    """
    name, number = NAME, 1
    while registry.get_tool(name) is not None:
        name, number = f"{NAME}_{number + 1}", number + 1
    tool = _tool(output, name)
    return registry.plus(tool), tool


@lru_cache(maxsize=64)  # the same object in each run: what was rendered of it stays cached
def _tool(output: Output, name: str) -> BoundTool:
    schema = output.schema.schema
    return BoundTool(
        name=name,
        tag=None,
        instance=None,
        method=_accept,
        spec=ToolSpec(name, _DESCRIPTION, schema),
        schema=OpenAPISchema(),
        xml_schema=None,
        is_async=True,
        policy=ToolPolicy(terminates=True, requires_approval=needs_no_decision, idempotent=True),
        where=name,
        arguments=_OutputArguments(schema, dict, None, bytes, output=output),
    )


async def _accept(value: Any) -> str:
    return "accepted"


@dataclass(frozen=True, slots=True)
class _OutputArguments(Arguments):
    """Arguments that are read as the output."""

    output: Output | None = None

    def validate(self, tool: str, arguments: Mapping[str, Any], *, lenient: bool) -> dict[str, Any]:
        assert self.output is not None
        try:
            return {VALUE: self.output.read_call(arguments, lenient=lenient)}
        except InvalidArguments as e:
            raise InvalidArguments(tool, e.problems) from None
