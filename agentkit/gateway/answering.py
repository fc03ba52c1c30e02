"""Chooses what answers a request, by the format of its route; and the wires of clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentkit.events import SourceEvent
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.client_wire import PATHS, ClientWire, ReplyWriter, WireName
from agentkit.gateway.error_replies import error_body
from agentkit.gateway.exchange import Answer, Exchange


async def answer(exchange: Exchange) -> Answer:
    """Answer a request.

    Raises:
        RequestRefused: it cannot be answered.
    """
    if exchange.route.format == "raw":
        from agentkit.gateway.raw_reply import answer_raw

        return await answer_raw(exchange)
    raise _not_available(exchange.route.format)


class _RawWire:
    """A wire that is only forwarded."""

    def __init__(self, name: WireName) -> None:
        self.name = name

    def read(self, body: Mapping[str, Any]) -> ClientRequest:
        raise _not_available(self.name)

    def writer(self, asked: ClientRequest) -> ReplyWriter:
        raise _not_available(self.name)

    def whole(self, asked: ClientRequest, events: Iterable[SourceEvent]) -> dict[str, Any]:
        raise _not_available(self.name)

    def error(self, error: RequestRefused) -> dict[str, Any]:
        return error_body(self.name, error)


WIRES: Final[Mapping[WireName, ClientWire]] = {name: _RawWire(name) for name in PATHS}
"""The wires that clients speak."""


def _not_available(what: str) -> RequestRefused:
    return RequestRefused(
        501, f"{what!r} is not available: the gateway forwards replies with the format raw only", "not_available"
    )
