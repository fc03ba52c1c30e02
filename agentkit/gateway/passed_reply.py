"""Answers a request in the upstream's own wire: the reply passes through, but for calls in its text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from agentkit.gateway.chat_edit import ChatEdit
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.exchanges import Exchange, GatewayReply
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


async def answer_passed(exchange: Exchange) -> GatewayReply:
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
    if streams:
        return answer._replace(pieces=PassedPieces(machine, answer.pieces))
    whole = machine.whole(b"".join([piece async for piece in answer.pieces]))
    return answer._replace(pieces=once(whole))


class PassedPieces:
    """The pieces of a streamed reply. If the upstream interrupts it, the held events come first, and then the error.

    Args:
        machine: reads and edits them.
        pieces: of the upstream.
    """

    def __init__(self, machine: PassThrough, pieces: AsyncIterator[bytes]) -> None:
        self._machine: PassThrough | None = machine
        self._pieces = pieces
        self._error: RequestRefused | None = None

    def __aiter__(self) -> PassedPieces:
        return self

    async def __anext__(self) -> bytes:
        while self._machine is not None:
            try:
                out = self._machine.feed(await anext(self._pieces))
            except (StopAsyncIteration, RequestRefused) as end:
                out, self._machine = self._machine.close(), None
                self._error = end if isinstance(end, RequestRefused) else None
            if out:
                return out
        raise self._error or StopAsyncIteration

    async def aclose(self) -> None:
        """End the request."""
        await self._pieces.aclose()  # type: ignore[attr-defined]  # an upstream's pieces can be closed
