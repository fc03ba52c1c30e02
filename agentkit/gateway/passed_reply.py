"""Answers a request in the upstream's own wire: the reply passes through, but for calls in its text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Final

from agentkit.gateway.chat_edit import ChatEdit
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.exchange import Answer, Exchange
from agentkit.gateway.messages_edit import MessagesEdit
from agentkit.gateway.pass_through import PassThrough
from agentkit.gateway.raw_reply import forward, raw_body
from agentkit.gateway.reply_edit import ReplyEdit
from agentkit.gateway.reply_events import answer_read, new_call_id, once
from agentkit.gateway.request_tools import offered_tools, only_one_call
from agentkit.gateway.responses_edit import ResponsesEdit
from agentkit.gateway.upstream_model import MAX_ERROR, read_bounded, reply_in_error

EDITS: Final[Mapping[WireName, Callable[[], ReplyEdit]]] = {
    "chat": ChatEdit,
    "responses": ResponsesEdit,
    "messages": MessagesEdit,
}
"""Creates what reads and edits one reply, for each wire."""


async def answer_passed(exchange: Exchange) -> Answer:
    """Forward a request, and its reply with the calls in its text as native ones.

    Raises:
        RequestRefused: the upstream cannot be reached, or fails with something that the client's wire has no place for.
    """
    wire, body = exchange.wire, exchange.body
    tools = offered_tools(wire.name, body)
    reply = await exchange.route.upstream.send(raw_body(exchange), exchange.headers)
    if reply.status >= 400:
        raw = await read_bounded(reply, MAX_ERROR)
        if tools and reply_in_error(reply.status, raw):  # it is asked again, and read
            return await answer_read(exchange)
        reply = reply._replace(pieces=once(raw))
    answer = await forward(reply)
    if reply.status >= 300:
        return answer
    machine = PassThrough(
        EDITS[wire.name](),
        tools,
        exchange.record,
        lambda: wire.read(body).request.messages,
        new_id=new_call_id,
        only_one=only_one_call(body),
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
