"""The tools in a request that a reply's text may call, in each wire. Pure.

Requests repeat their tools. What reads fifty formats for some tools takes 3 ms to make and is kept for those objects,
so the same tools are the same objects here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.request_fields import tool_at
from agentkit.models.wire import items_of, mapping_of
from agentkit.toolspec import ToolSpec

_Offered = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_OFFERED: Final[Mapping[WireName, tuple[_Offered, str]]] = {
    "chat": (lambda tool: mapping_of(tool.get("function")), "parameters"),
    "responses": (lambda tool: tool if tool.get("type") == "function" else {}, "parameters"),
    "messages": (lambda tool: tool if tool.get("type", "custom") == "custom" else {}, "input_schema"),
}
"""Of each wire: a tool's declaration, empty if the server runs the tool, and the field of its schema."""


def offered_tools(wire: WireName, body: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    """Return the tools that may be called: the one that `tool_choice` names, or all.

    There are none with `tool_choice` none, or if several replies are requested.
    """
    choice, several = mapping_of(body.get("tool_choice")), body.get("n")
    if not body.get("tools") or "none" in (body.get("tool_choice"), choice.get("type")):
        return ()
    if type(several) is int and several > 1:
        return ()
    text = json.dumps(body["tools"])
    tools = (_specs if len(text) <= _MAX_KEPT else _specs.__wrapped__)(wire, text)
    named = choice.get("name") or mapping_of(choice.get("function")).get("name")
    return tuple(tool for tool in tools if tool.name == named) if named else tools


def only_one_call(body: Mapping[str, Any]) -> bool:
    """Return whether a request allows one call in a reply at most, in any wire."""
    disabled = mapping_of(body.get("tool_choice")).get("disable_parallel_tool_use")
    return disabled is True or body.get("parallel_tool_calls") is False


_MAX_KEPT: Final = 256 * 1024  # characters of tools that are kept: 64 of them take some 100 MiB


@lru_cache(maxsize=64)  # as many as formats keep readers for
def _specs(wire: WireName, tools: str) -> tuple[ToolSpec, ...]:
    return tuple(_read(wire, json.loads(tools)))


def _read(wire: WireName, tools: object) -> Iterator[ToolSpec]:
    declared, schema = _OFFERED[wire]
    for tool in map(declared, items_of(tools)):
        with suppress(RequestRefused):  # it is the upstream that refuses it
            yield tool_at(tool, schema, "tools")
