"""The interface of a client's wire: how its requests are read, and how replies and errors are written for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from agentkit.events import SourceEvent
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.messages import Message

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


class ClientWire(Protocol):
    """One of the three wires that clients speak. Stateless."""

    name: WireName

    def read(self, body: Mapping[str, Any]) -> ClientRequest:
        """Read a request.

        Raises:
            RequestRefused: status 400; it is invalid, or has what this gateway cannot pass on.
        """
        ...

    def conversation(self, body: Mapping[str, Any]) -> Sequence[Message]:
        """Read only the conversation of a request, whatever its settings are.

        Raises:
            RequestRefused: status 400; it is invalid, or a server has stored a part of it.
        """
        ...

    def writer(self, asked: ClientRequest) -> ReplyWriter:
        """Create the writer of a streamed reply."""
        ...

    def whole(self, asked: ClientRequest, events: Iterable[SourceEvent]) -> dict[str, Any]:
        """Return a whole reply, from the same events."""
        ...

    def error(self, error: RequestRefused) -> dict[str, Any]:
        """Return the body of an error response."""
        ...
