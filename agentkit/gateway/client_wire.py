"""The names and paths of the wires that clients speak, and the interface of what writes a reply for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Protocol

from agentkit.events import SourceEvent
from agentkit.gateway.client_request import RequestRefused

WireName = Literal["chat", "responses", "messages"]

PATHS: Final[Mapping[WireName, str]] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}


class ReplyWriter(Protocol):
    """Writes one streamed reply as the bytes of server-sent events.

    The events are `Text`, `Thinking`, `ProviderBlock`, `CallStart` (with an id; indices count from 0 without gaps),
    `ArgumentDelta` with `key=None` (JSON text of the whole arguments), `CallEnd`, `Usage` and, last, one `Finish`.
    """

    def start(self) -> bytes:
        """The first bytes."""
        ...

    def write(self, event: SourceEvent) -> bytes:
        """One event; empty if nothing is written for it. After `Finish` the reply is complete."""
        ...

    def fail(self, error: RequestRefused) -> bytes:
        """End the reply with an error, at any point after its start."""
        ...
