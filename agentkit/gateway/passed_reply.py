"""Answers a request in the upstream's own wire: the reply passes through, but for calls in its text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Final

from agentkit.gateway.chat_edit import ChatEdit
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.exchanges import Exchange, GatewayReply, MadeBody, ReadBody, UpstreamReply
from agentkit.gateway.messages_edit import MessagesEdit
from agentkit.gateway.pass_through import PassThrough
from agentkit.gateway.raw_reply import forward, raw_body
from agentkit.gateway.reply_edit import ReplyEdit
from agentkit.gateway.reply_events import answer_read, new_call_id
from agentkit.gateway.request_tools import offered_tools, only_one_call
from agentkit.gateway.responses_edit import ResponsesEdit
from agentkit.gateway.upstream_model import reply_in_error

EDITS: Final[Mapping[WireName, Callable[[], ReplyEdit]]] = {
    "chat": ChatEdit,
    "responses": ResponsesEdit,
    "messages": MessagesEdit,
}
"""Creates what reads and edits one reply, for each wire."""


async def answer_passed(exchange: Exchange) -> GatewayReply:
    """Forward a request, and its reply with the calls in its text as native ones.

    Raises:
        RequestRefused: the upstream cannot be reached, or fails with something that the client's wire has no place for.
    """
    wire, body = exchange.wire, exchange.body
    tools = offered_tools(wire.name, body)
    reply = await exchange.route.upstream.send(raw_body(exchange), exchange.headers)
    streams = reply.headers.get("content-type", "").startswith("text/event-stream")
    if reply.status < 300 and streams != (body.get("stream") is True):
        return await _converted(exchange, reply)
    if reply.status >= 400:
        raw = b"".join([piece async for piece in reply.pieces])
        if tools and reply_in_error(reply.status, raw):  # it is asked again, and read
            return await answer_read(exchange)
        reply = reply._replace(pieces=ReadBody(raw))
    answer = await forward(reply, exchange)
    if reply.status >= 300:
        return answer
    machine = PassThrough(
        EDITS[wire.name](),
        tools,
        exchange.record,
        lambda: wire.conversation(body),
        new_id=new_call_id,
        only_one=only_one_call(body),
    )
    if streams:
        return answer._replace(pieces=MadeBody(_edited(machine, answer.pieces), answer.pieces.aclose))
    whole = answer.pieces
    if isinstance(whole, ReadBody) and whole.rest is None:  # a longer one is passed on unread
        return answer._replace(pieces=ReadBody(machine.whole(whole.start)))
    return answer


async def _converted(exchange: Exchange, reply: UpstreamReply) -> GatewayReply:
    """A whole reply as a stream, or a stream as a whole reply: some servers ignore what was asked for.

    Source: unsloth#6570, chat-ui#657.
    """
    try:
        return await answer_read(exchange, reply)
    except BaseException:
        await reply.pieces.aclose()
        raise


async def _edited(machine: PassThrough, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Edit a streamed reply. If the upstream interrupts it, the held events come first, and then the error."""
    error: RequestRefused | None = None
    try:
        async for piece in pieces:
            if out := machine.feed(piece):
                yield out
    except RequestRefused as e:
        error = e
    if out := machine.close():
        yield out
    if error is not None:
        raise error
