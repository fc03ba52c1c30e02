"""Fields of a request that agentkit does not read itself, on their way to an upstream of another wire. Pure.

Unknown fields are passed on unchanged: most local servers know the same sampling fields on all wires. Fields that only
one wire has, and that change nothing in the reply, are omitted on another one. Sources: the references of "Create chat
completion", "Create a model response" and "Create a Message".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.gateway.client_wire import WireName
from agentkit.models.wire import mapping_of

PROVIDERS: Final[Mapping[WireName, str]] = {"chat": "openai", "responses": "responses", "messages": "anthropic"}
"""The `provider` of thinking and blocks that are read from a client, and written for it: what its wire can read again.

An upstream's wire has to be created with the provider of its own wire, so that blocks reach clients of that wire only.
"""

_OPENAI: Final = frozenset(
    ("store", "metadata", "user", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention")
)
"""Fields with the same meaning in OpenAI's two wires."""

_OWN: Final[Mapping[WireName, frozenset[str]]] = {
    "chat": _OPENAI | {"reasoning_effort", "verbosity", "prediction", "modalities", "stream_options"},
    "responses": _OPENAI
    | {"reasoning", "text", "include", "truncation", "max_tool_calls", "stream_options", "context_management"},
    "messages": frozenset(
        {
            "metadata",
            "service_tier",
            "thinking",
            "output_config",
            "context_management",
            "betas",
            "inference_geo",
            "speed",
        }
    ),
}
"""The fields that an upstream of another wire does not get, or gets under another name."""

_EFFORTS: Final[Mapping[WireName, Mapping[str, str]]] = {
    "chat": {"max": "xhigh"},
    "responses": {"max": "xhigh"},
    "messages": {"minimal": "low", "xhigh": "max", "none": ""},
}
"""The words of a wire for an effort that another one calls something else; empty if it has none."""


def fields_for(extra: Mapping[str, Any], client: WireName, upstream: WireName) -> dict[str, Any]:
    """Return the further fields of a client's request as its upstream takes them.

    >>> fields_for({"reasoning_effort": "low", "seed": 7, "store": True}, "chat", "messages")
    {'seed': 7, 'output_config': {'effort': 'low'}}

    Args:
        extra: `ModelRequest.extra`, as the client's wire read it.
        client: the client's wire.
        upstream: the upstream's wire.
    """
    if client == upstream:
        return dict(extra)
    shared = frozenset() if "messages" in (client, upstream) else _OPENAI
    fields = {name: value for name, value in extra.items() if name not in _OWN[client] - shared}
    effort = _effort(extra, client)
    if effort := _EFFORTS[upstream].get(effort, effort):
        forms: Mapping[WireName, dict[str, Any]] = {
            "chat": {"reasoning_effort": effort},
            "responses": {"reasoning": {"effort": effort}},
            "messages": {"output_config": {"effort": effort}},
        }
        fields |= forms[upstream]
    return fields


def _effort(extra: Mapping[str, Any], client: WireName) -> str:
    """Return how hard the model is asked to think; empty if the client does not say it."""
    place = {"chat": extra, "responses": extra.get("reasoning"), "messages": extra.get("output_config")}[client]
    found = mapping_of(place).get("reasoning_effort" if client == "chat" else "effort")
    return found if isinstance(found, str) else ""
