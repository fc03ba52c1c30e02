"""A reply to a client: attempts until one is an answer, as events that any wire can express, and as bytes.

What is not an answer never ends a reply: a call that cannot be read, a result that the model made up, an empty reply.
The model is asked again, as an agent's run would, while the client still waits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import takewhile
from os import urandom
from typing import Final

from agentkit.errors import AgentkitError, ConfigError, FormatError
from agentkit.events import CallEnd, SourceEvent, Text, Usage
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.error_replies import as_refusal
from agentkit.gateway.exchanges import Exchange, GatewayReply, ReadBody, Route, UpstreamReply
from agentkit.gateway.http_headers import reply_headers
from agentkit.gateway.joined_pieces import JoinedPieces
from agentkit.gateway.reply_attempt import Attempt
from agentkit.gateway.upstream_model import UpstreamModel
from agentkit.gateway.wire_fields import PROVIDERS
from agentkit.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agentkit.models.base import Model, ModelRequest
from agentkit.models.servers import SERVERS, Constrained, GrammarField
from agentkit.models.text import TextCalling
from agentkit.processor import ProcessorConfig
from agentkit.processor.reply_readers import ReplyReaders
from agentkit.processor.response_record import CallIds

_HIDDEN: Final = ("unread_call", "invented_result")
"""What a reply is left out for, if it is not streamed: none of its text is an answer."""

_REFUSED: Final = (*_HIDDEN, "failed_call")
"""What no reply ends with: after the last attempt the client gets an error."""


def new_call_id() -> str:
    """An id for a call, which every provider and client accepts."""
    return f"call_{urandom(12).hex()}"


async def answer_read(exchange: Exchange, received: UpstreamReply | None = None) -> GatewayReply:
    """Answer a request by events: whatever wire the upstream speaks, and in whatever format its model calls.

    Args:
        exchange: the request.
        received: the upstream's first reply, if it has answered already.

    Raises:
        RequestRefused: the request is invalid, or the upstream refused it.
    """
    asked = exchange.wire.read(exchange.body)
    reply = Reply(exchange, asked, received)
    if not asked.request.stream:
        whole = exchange.wire.whole(asked, await reply.collect())
        body = json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")
        return GatewayReply(200, reply.headers(b"application/json"), ReadBody(body))
    pieces = await reply.begin()
    return GatewayReply(200, reply.headers(b"text/event-stream; charset=utf-8"), pieces)


class Reply:
    """The reply to one request.

    Args:
        exchange: the exchange; what is counted of the reply goes to its record.
        asked: what the client asks for.
        received: see `answer_read`.

    Raises:
        RequestRefused: no request of this route can be answered.
    """

    def __init__(self, exchange: Exchange, asked: ClientRequest, received: UpstreamReply | None = None) -> None:
        route, request = exchange.route, replace(asked.request, messages=_one_system(asked.request.messages))
        self._exchange, self._asked, self._request = exchange, asked, request
        self._upstream = UpstreamModel(exchange, asked, received)
        self._format = None if route.format == "auto" else route.format
        exchange.record.format = route.format
        taken = [
            call.id for message in request.messages if isinstance(message, AssistantMessage) for call in message.calls
        ]
        try:
            self._model: Model = self._upstream
            if self._format is not None:
                self._model = TextCalling(self._upstream, self._format, constrained=_constrained(route, request))
            config = ProcessorConfig(formats=self._format, max_calls=1 if request.parallel_tool_calls is False else 64)
        except (ConfigError, FormatError) as error:
            raise RequestRefused(500, str(error), "invalid_route") from error
        self._readers = ReplyReaders(
            config, CallIds(new_call_id, taken), untrusted=lambda: request.messages, taught=self._format is not None
        )
        self._hides = False  # whether the last attempt's text is left out of the reply
        self._attempts = 0

    async def events(self) -> AsyncGenerator[SourceEvent, None]:
        """The events of the reply; the last are `Usage` and `Finish`.

        Raises:
            RequestRefused: the upstream refused the request, or no attempt was an answer.
            ProviderError: the upstream failed inside its reply.
        """
        request, record = self._request, self._exchange.record
        own = PROVIDERS[self._exchange.wire.name]
        messages: list[Message] = list(request.messages)
        left, calls, usage, said, emptied = self._exchange.route.retries, 0, Usage(), False, False
        while True:
            attempt = Attempt(self._model, request, self._readers.new(request.tools), own, calls)
            begun = False
            async with aclosing(attempt.events()) as events:
                async for event in events:
                    if type(event) is Text and not begun:
                        begun = True
                        if said:
                            yield Text("\n\n")
                    elif type(event) is CallEnd and event.call.format is not None:
                        record.recovered += 1
                        record.format = event.call.format
                    yield event
            calls += attempt.sent
            usage = usage.plus(attempt.usage)
            record.repairs += attempt.repairs
            record.recovery_failed += attempt.faults
            lacks = attempt.lacks()
            if not lacks or (lacks == "empty" and emptied):
                break
            if left == 0:
                if lacks in _REFUSED and request.tool_choice != "none":
                    raise RequestRefused(502, attempt.failure(lacks), lacks)
                break
            left, emptied = left - 1, lacks == "empty"
            self._hides = lacks in _HIDDEN
            said = (said or begun) and not (self._hides and not request.stream)
            self._attempts += 1
            record.asked_again += 1
            messages, once = attempt.asked_again(lacks, messages, self._format)
            request = replace(request, messages=[*messages, *once])
        record.usage, finish = usage, attempt.finish
        record.finish = finish.reason
        yield usage
        yield finish

    async def collect(self) -> list[SourceEvent]:
        """The events of a whole reply, without the text of attempts that were not answers.

        Raises:
            RequestRefused: see `events`; or the upstream failed.
        """
        found: list[SourceEvent] = []
        attempt = begin = 0
        try:
            async with aclosing(self.events()) as events:
                async for event in events:
                    if self._attempts != attempt:
                        if self._hides:
                            found[begin:] = [e for e in found[begin:] if type(e) is not Text]
                        attempt, begin = self._attempts, len(found)
                    found.append(event)
        except AgentkitError as error:
            raise as_refusal(error) from error
        return found

    def headers(self, kind: bytes) -> list[tuple[bytes, bytes]]:
        """The headers of the response, with those of the upstream that are meant for its client."""
        return [(b"content-type", kind), *reply_headers(self._upstream.headers)]

    async def begin(self) -> JoinedPieces:
        """Ask the upstream, and return the bytes of the streamed reply once it has accepted the request.

        Raises:
            RequestRefused: it has not.
        """
        events = self.events()
        first = asyncio.ensure_future(anext(events))
        first.add_done_callback(lambda done: done.cancelled() or done.exception())  # if nobody awaits it any more
        opened = asyncio.ensure_future(self._upstream.opened.wait())
        try:
            await asyncio.wait((first, opened), return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            first.cancel()
            raise
        finally:
            opened.cancel()
        if first.done() and not first.cancelled() and (failed := first.exception()) is not None:
            raise as_refusal(failed) from failed

        async def close() -> None:
            first.cancel()
            await asyncio.wait([first])
            await events.aclose()

        return JoinedPieces(self._bytes(first, events), close)

    async def _bytes(
        self, first: asyncio.Future[SourceEvent], events: AsyncGenerator[SourceEvent, None]
    ) -> AsyncGenerator[bytes, None]:
        writer = self._exchange.wire.writer(self._asked)
        begun = writer.start()  # it leaves with the first event, so that nobody takes it for one
        try:
            begun += writer.write(await first)
            async with aclosing(events):
                async for event in events:
                    if piece := writer.write(event):
                        yield begun + piece
                        begun = b""
        except Exception as error:  # noqa: BLE001 - the client must learn that its reply is over
            refused = as_refusal(error)
            self._exchange.record.error = refused.code
            yield begun + writer.fail(refused)


def _one_system(messages: Sequence[Message]) -> list[Message]:
    """The conversation with one system message at most, at its beginning: most chat templates refuse any other.

    Claude Code and Codex send several. A later one becomes the user's words, where it is.
    """
    first = list(takewhile(lambda message: isinstance(message, SystemMessage), messages))
    rest: list[Message] = [
        UserMessage(m.content) if isinstance(m, SystemMessage) else m for m in messages[len(first) :]
    ]
    text = "\n\n".join(message.content for message in first if isinstance(message, SystemMessage))
    return [SystemMessage(text), *rest] if text else rest


def _constrained(route: Route, request: ModelRequest) -> Constrained:
    """Return whether a grammar constrains a reply: as configured, and for a forced call if the server accepts one."""
    server = route.upstream.server
    accepts = server is not None and isinstance(SERVERS[server].grammar, GrammarField)
    forced = bool(request.tools) and request.tool_choice not in ("auto", "none")
    return route.constrained or (accepts and forced and route.upstream.wire == "chat")
