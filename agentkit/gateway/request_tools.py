"""The tools in a request that a reply's text may call, in each wire. Pure.

Requests repeat their tools. What reads fifty formats for some tools takes 3 ms to make and is kept for those objects:
`tool_at` returns the same object for the same tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.request_fields import MAX_TOOLS, tool_at
from agentkit.models.wire import items_of, mapping_of
from agentkit.toolspec import ToolSpec

_Offered = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_OFFERED: Final[Mapping[WireName, _Offered]] = {
    "chat": lambda tool: mapping_of(tool.get("function")),
    "responses": lambda tool: tool if tool.get("type") == "function" else {},
    "messages": lambda tool: tool if tool.get("type", "custom") == "custom" else {},
}
"""Of each wire: a tool's declaration, empty if the server runs the tool."""


def offered_tools(wire: WireName, body: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    """Return the tools that may be called: the one that `tool_choice` names, or all.

    There are none with `tool_choice` none, if several replies are requested, or if there are more than `MAX_TOOLS`.
    """
    choice, several, declared = mapping_of(body.get("tool_choice")), body.get("n"), items_of(body.get("tools"))
    if "none" in (body.get("tool_choice"), choice.get("type")) or len(declared) > MAX_TOOLS:
        return ()
    if type(several) is int and several > 1:
        return ()
    tools = tuple(_read(wire, declared))
    named = choice.get("name") or mapping_of(choice.get("function")).get("name")
    return tuple(tool for tool in tools if tool.name == named) if named else tools


def only_one_call(body: Mapping[str, Any]) -> bool:
    """Return whether a request allows one call in a reply at most, in any wire."""
    disabled = mapping_of(body.get("tool_choice")).get("disable_parallel_tool_use")
    return disabled is True or body.get("parallel_tool_calls") is False


def _read(wire: WireName, tools: Iterable[Mapping[str, Any]]) -> Iterator[ToolSpec]:
    for tool in map(_OFFERED[wire], tools):
        with suppress(RequestRefused):  # it is the upstream that refuses it
            yield tool_at(tool, "tools")
