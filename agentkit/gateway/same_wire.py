"""The way of a reply to a client that speaks the upstream's wire. Only puts the parts together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from agentkit.gateway.chat_edit import ChatEdit
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.exchange import Exchange
from agentkit.gateway.messages_edit import MessagesEdit
from agentkit.gateway.pass_through import PassThrough
from agentkit.gateway.reply_edit import ReplyEdit
from agentkit.gateway.request_tools import offered_tools, only_one_call
from agentkit.gateway.responses_edit import ResponsesEdit

EDITS: Final[Mapping[WireName, Callable[[], ReplyEdit]]] = {
    "chat": ChatEdit,
    "messages": MessagesEdit,
    "responses": ResponsesEdit,
}
"""Creates what reads and edits one reply, for each wire."""


def pass_through(exchange: Exchange) -> PassThrough:
    """Create what passes on the reply of one exchange; its conversation is read if a call is found in the text."""
    wire, body = exchange.wire, exchange.body
    tools = offered_tools(wire.name, body)
    return PassThrough(
        EDITS[wire.name](),
        tools,
        exchange.record,
        lambda: wire.read(body).request.messages,
        only_one=only_one_call(body),
    )
