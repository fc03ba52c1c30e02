"""Answers a request in the upstream's own wire: the reply passes through, but for calls that the model wrote as text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Final

from agentkit.gateway.chat_edit import ChatEdit
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.exchange import Answer, Exchange
from agentkit.gateway.messages_edit import MessagesEdit
from agentkit.gateway.offered_tools import offered_tools
from agentkit.gateway.pass_through import PassThrough
from agentkit.gateway.raw_reply import forward, raw_body
from agentkit.gateway.reply_edit import ReplyEdit
from agentkit.gateway.reply_events import new_call_id
from agentkit.gateway.responses_edit import ResponsesEdit

_EDITS: Final[Mapping[WireName, Callable[[], ReplyEdit]]] = {
    "chat": ChatEdit,
    "messages": MessagesEdit,
    "responses": ResponsesEdit,
}


async def answer_passed(exchange: Exchange) -> Answer:
    """Forward a request, and its reply with the calls in its text as native ones.

    Raises:
        RequestRefused: the upstream cannot be reached, or fails with something that the client's wire has no place for.
    """
    wire, body = exchange.wire, exchange.body
    exchange.record.format = "auto"
    reply = await exchange.route.upstream.send(raw_body(exchange), exchange.headers)
    answer = await forward(reply)
    if reply.status >= 300:
        return answer
    machine = PassThrough(
        _EDITS[wire.name](),
        offered_tools(wire.name, body),
        exchange.record,
        lambda: wire.read(body).request.messages,
        new_id=new_call_id,
    )
    streams = reply.headers.get("content-type", "").startswith("text/event-stream")
    return answer._replace(pieces=(_streamed if streams else _whole)(machine, answer.pieces))


async def _streamed(machine: PassThrough, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):  # type: ignore[type-var]  # an upstream's pieces can be closed
        async for piece in pieces:
            if out := machine.feed(piece):
                yield out
    if out := machine.close():
        yield out


async def _whole(machine: PassThrough, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):  # type: ignore[type-var]  # as above
        yield machine.whole(b"".join([piece async for piece in pieces]))
