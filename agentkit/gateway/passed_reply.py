"""Answers a request in the upstream's own wire: the reply passes through, but for calls in its text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Final

from agentkit.gateway.chat_edit import ChatEdit
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.exchanges import Exchange, GatewayReply, MadeBody, ReadBody, Upstream, UpstreamReply
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


class _Received:
    """An upstream that has answered already.

    Args:
        upstream: answers the further requests.
        reply: the first reply.
    """

    def __init__(self, upstream: Upstream, reply: UpstreamReply) -> None:
        self.wire = upstream.wire
        self.server = upstream.server
        self._upstream = upstream
        self._first: UpstreamReply | None = reply

    async def send(self, body: bytes, headers: Mapping[str, str]) -> UpstreamReply:
        """Return the reply; see `Upstream`."""
        first, self._first = self._first, None
        return first or await self._upstream.send(body, headers)


async def _converted(exchange: Exchange, reply: UpstreamReply) -> GatewayReply:
    """A whole reply as a stream, or a stream as a whole reply: some servers ignore what was asked for.

    Source: unsloth#6570, chat-ui#657.
    """
    received = _Received(exchange.route.upstream, reply)
    try:
        return await answer_read(replace(exchange, route=replace(exchange.route, upstream=received)))
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
