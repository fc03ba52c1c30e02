"""A model at an upstream, as agentkit asks any model: a request in, source events out, in whichever wire it speaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from agentkit.errors import ConfigError, ProviderError
from agentkit.events import SourceEvent
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.error_replies import is_error_body, json_of, upstream_error
from agentkit.gateway.exchanges import Exchange, UpstreamReply
from agentkit.gateway.foreign_parts import file_of, put_back
from agentkit.gateway.wire_fields import PROVIDERS, fields_for
from agentkit.messages import FilePart
from agentkit.models import anthropic, messages_wire, openai, responses, responses_wire
from agentkit.models.anthropic import max_tokens_with
from agentkit.models.base import ModelRequest
from agentkit.models.files_taken import FilesTaken, check_file
from agentkit.models.messages_body import media_block, messages_body
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.openai import ChatWire, chat_body, chunks_of
from agentkit.models.provider_errors import RequestInfo, broken_off, kind_of_codes, kind_of_status
from agentkit.models.refused_replies import refused_reply
from agentkit.models.response_body import ResponseBody, Unreadable
from agentkit.models.responses import responses_body
from agentkit.models.responses_wire import ResponsesWire
from agentkit.models.stream_errors import ErrorInStream
from agentkit.models.valid_history import output_in_prompt
from agentkit.models.wire import Wire, WireEvent, offered_schemas
from agentkit.schemas import flavours

MAX_REPLY: Final = 64 * 1024 * 1024
"""Bytes of one reply that are read; a longer one is an error."""

LINGER: Final = 2.0  # seconds for which the usage is waited for after a reply's end


class _WireForm(NamedTuple):
    """The properties of one wire.

    Attributes:
        body: creates a request's body, except limits.
        max_tokens: the field that limits the reply.
        wire: reads one response.
        as_streamed: a whole response as events.
        files: the files that it takes.
        file: creates the content part for one of them.
    """

    body: Callable[[ModelRequest, str, str], dict[str, Any]]
    max_tokens: str
    wire: Callable[[Mapping[str, Mapping[str, Any]]], Wire]
    as_streamed: Callable[[Mapping[str, Any]], Iterable[WireEvent]]
    files: FilesTaken
    file: Callable[[FilePart], Mapping[str, Any]]


FORMS: Final[Mapping[WireName, _WireForm]] = {
    "chat": _WireForm(
        chat_body, "max_tokens", lambda s: ChatWire("openai", s, s), chunks_of, openai.FILES, openai.media_part
    ),
    "responses": _WireForm(
        responses_body,
        "max_output_tokens",
        lambda s: ResponsesWire("responses", s),
        responses_wire.events_of,
        responses.FILES,
        responses.media_item,
    ),
    "messages": _WireForm(
        messages_body,
        "max_tokens",
        lambda s: MessagesWire("anthropic", s),
        messages_wire.events_of,
        anthropic.FILES,
        media_block,
    ),
}


class UpstreamModel:
    """A model at an upstream, for one exchange.

    Args:
        exchange: the exchange.
        asked: what its client asks for.
        received: the first reply, if the upstream has answered already.
    """

    format = None
    """It is asked for native calls; `TextCalling` makes it one that calls in text."""

    def __init__(self, exchange: Exchange, asked: ClientRequest, received: UpstreamReply | None = None) -> None:
        upstream = exchange.route.upstream
        self.opened = asyncio.Event()
        """Set when a reply has begun: the upstream has accepted the request."""
        self.headers: Mapping[str, str] = {}
        """The headers of its last response, with lower-case names."""
        self.model = exchange.route.model
        self.server = upstream.server
        """The kind of server, if it was named."""
        self.provider = PROVIDERS[upstream.wire]
        self._exchange = exchange
        self._asked = asked
        self._received = received

    @property
    def name(self) -> str:
        """The model string, such as `openai:qwen3`."""
        return f"{self.provider}:{self.model}"

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """The body of a request, in the upstream's wire.

        Raises:
            RequestRefused: it has no form there.
        """
        wire = self._exchange.route.upstream.wire
        form = FORMS[wire]
        if request.stop and wire == "responses":
            said = "stop: the upstream speaks the Responses API, which has no stop strings: omit it"
            raise RequestRefused(400, said, "unsupported", param="stop")
        output = request.output_schema
        if wire == "messages" and output is not None and flavours.anthropic_output(output) is None:
            request = output_in_prompt(request, constrained=False)
        client, parts = self._exchange.wire.name, self._asked.parts
        if client != wire:
            parts = {url: self._block(file_of(part, f"the {wire} API")) for url, part in parts.items()}
        try:
            body = form.body(request, self.model, self.provider)
        except ConfigError as error:
            raise RequestRefused(400, str(error), "invalid_request") from error
        newer = wire == "chat" and "max_completion_tokens" in self._exchange.body  # the client knows what is accepted
        body["max_completion_tokens" if newer else form.max_tokens] = request.max_tokens
        body["temperature"] = request.temperature
        body |= fields_for(request.extra, client, wire)
        if wire == "messages" and body.get("max_tokens") is None:
            budget = (body.get("thinking") or {}).get("budget_tokens") or 0
            body["max_tokens"] = max_tokens_with(budget)
        body = {key: value for key, value in body.items() if value is not None}
        if not body["input" if wire == "responses" else "messages"]:
            said = "the conversation is empty: it needs a message; results without their calls do not count"
            raise RequestRefused(400, said, "invalid_request", param="messages")
        return put_back(body, parts) if parts else body

    def _block(self, file: FilePart) -> Mapping[str, Any]:
        """A file as the upstream's wire has it."""
        form = FORMS[self._exchange.route.upstream.wire]
        try:
            check_file(self.name, file, form.files)
        except ConfigError as error:
            raise RequestRefused(400, str(error), "unsupported_part") from error
        return form.file(file)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[SourceEvent, None]:
        """Answer a request.

        Raises:
            RequestRefused: the upstream refused it, or failed before it began to answer.
            ProviderError: the reply failed.
        """
        upstream = self._exchange.route.upstream
        form, body = FORMS[upstream.wire], self.body(request)
        reply, self._received = self._received, None
        if reply is None:
            reply = await upstream.send(json.dumps(body, ensure_ascii=False).encode(), self._exchange.headers)
        self.headers = reply.headers
        async with aclosing(reply.pieces) as pieces:
            if reply.status >= 300:
                for event in await self._refused(request, reply):
                    yield event
                return
            self.opened.set()
            wire = form.wire(offered_schemas(body))
            received = ResponseBody(pieces, reply.headers.get("content-type", ""), limit=MAX_REPLY, linger=LINGER)
            cause: Exception | None = None
            try:
                async with aclosing(_events(received, wire, form)) as events:
                    async for event in events:
                        yield event
            except (ErrorInStream, Unreadable, json.JSONDecodeError, UnicodeDecodeError) as error:
                cause = error
        for event in self._last(request, wire, cause):
            yield event

    def _last(self, request: ModelRequest, wire: Wire, cause: Exception | None) -> Iterable[SourceEvent]:
        """The last events of a reply.

        Raises:
            ProviderError: it is not complete.
        """
        last = wire.close()
        if wire.done:
            return last
        failure = self._failed(cause)
        if request.tools and not wire.called and (read := refused_reply(failure)):
            return read
        raise failure from cause

    def _failed(self, cause: Exception | None) -> ProviderError:
        """Why there is no complete reply."""
        if cause is None:
            return broken_off(RequestInfo(self.provider), None, None)
        if isinstance(cause, ErrorInStream):
            kind = kind_of_codes(cause.codes)
            said = f"the upstream failed inside its reply: {cause}"
            return ProviderError(said, kind=kind, provider=self.provider, code=cause.code, body=cause.body)
        return ProviderError(f"the upstream's reply cannot be read: {cause}", kind="stream", provider=self.provider)

    async def _refused(self, request: ModelRequest, reply: UpstreamReply) -> tuple[SourceEvent, ...]:
        """Read an error response. One that refuses the model's call, which it contains, is read as the reply.

        Raises:
            RequestRefused: any other error.
        """
        raw = b"".join([piece async for piece in reply.pieces])
        if request.tools and (read := reply_in_error(reply.status, raw)):
            self.opened.set()
            return read
        error = upstream_error(reply.status, reply.headers, raw)
        wire = self._exchange.wire.name
        if self._exchange.route.upstream.wire == wire and is_error_body(wire, body := json_of(raw)):
            error.body = body
        raise error


def reply_in_error(status: int, raw: bytes) -> tuple[SourceEvent, ...]:
    """The model's reply in an error response: some servers refuse a reply in which they cannot read a call.

    Args:
        status: the HTTP status.
        raw: the body.

    Returns:
        The events of the reply; none if it is another error.
    """
    if not isinstance(body := json_of(raw), Mapping):
        return ()
    found = ErrorInStream.of(body)
    kind = kind_of_status(status)
    error = ProviderError(str(found), kind=kind, provider="", status=status, code=found.code, body=found.body)
    return refused_reply(error)


async def _events(received: ResponseBody, wire: Wire, form: _WireForm) -> AsyncGenerator[SourceEvent, None]:
    async with aclosing(received.events(wire, form.as_streamed)) as wire_events:
        async for wire_event in wire_events:
            if wire.over:  # repeated, perhaps by a proxy
                wire_event = {"usage": wire_event.get("usage")}
            for event in wire.feed(wire_event):
                yield event
