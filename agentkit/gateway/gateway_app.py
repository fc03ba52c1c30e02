"""The gateway as an ASGI application: guards, routes, answers, and what is counted and logged of them.

Pure ASGI: no middleware between the bytes of an upstream and those of a client.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from agentkit.checks.spelling import did_you_mean
from agentkit.gateway.access_log import AccessLog
from agentkit.gateway.answering import answer
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import PATHS, WireName
from agentkit.gateway.error_replies import as_refusal, error_event, error_headers
from agentkit.gateway.exchanges import Exchange, GatewayReply, ReplyRecord, Route, ServedModel
from agentkit.gateway.gateway_config import GatewayConfig
from agentkit.gateway.gateway_metrics import CONTENT_TYPE, GatewayMetrics
from agentkit.gateway.gateway_spans import spans_of_process
from agentkit.gateway.head_checks import (
    ASGIReceive,
    ASGIScope,
    ASGISend,
    ClientLeft,
    ClientWatch,
    HeadChecks,
    RequestSlots,
    check_json,
    json_object,
    read_body,
)
from agentkit.gateway.http_headers import request_headers
from agentkit.gateway.reply_sender import ReplySender
from agentkit.gateway.request_reader import ClientWire
from agentkit.gateway.routes import RouteTable, key_from, model_list

if TYPE_CHECKING:
    from agentkit.gateway.ui.ui_app import Page

HEARTBEATS: Final[Mapping[WireName, bytes]] = {
    "chat": b": keep-alive\n\n",
    "responses": b": keep-alive\n\n",
    "messages": b'event: ping\ndata: {"type": "ping"}\n\n',
}
"""What clients of each wire ignore. Source: the HTML standard on comments; Anthropic's streaming guide on `ping`."""

_STREAM_HEADERS: Final = {b"cache-control": b"no-cache", b"x-accel-buffering": b"no"}  # nginx would collect a stream
_WIRES: Final[Mapping[str, WireName]] = {path: wire for wire, path in PATHS.items()}
_MODEL: Final = "/v1/models/"
"""The beginning of the path of one model."""
_LINGER: Final = 2.0
"""Seconds in which the rest of a refused body is read, since a client may read no reply before it has sent all."""


@dataclass(slots=True)
class _Request:
    """One request, and what is logged of it."""

    wire: WireName
    headers: Mapping[bytes, bytes]
    sender: ReplySender
    since: float = field(default_factory=perf_counter)
    id: str = ""
    key: str = ""
    model: str = ""
    route: Route | None = None
    record: ReplyRecord = field(default_factory=ReplyRecord)
    error: RequestRefused | None = None
    left: bool = False


class Gateway:
    """An ASGI application.

    Args:
        config: what it is set to.
        wires: the clients' wires.
        environment: the variables with keys.
        served: the agents that are served as models; closed with the gateway.
        page: the page to watch an agent, at `/`; closed with the gateway.

    Raises:
        ConfigError: a key is not set, or the log cannot be written.
    """

    def __init__(
        self,
        config: GatewayConfig,
        wires: Mapping[WireName, ClientWire],
        environment: Mapping[str, str] = os.environ,
        served: Sequence[ServedModel] = (),
        page: Page | None = None,
    ) -> None:
        keys = {name: key_from(environment, env, f"the key of the client {name}") for name, env in config.keys.items()}
        self.config = config
        self.routes = RouteTable(config, environment, served)
        self._wires = wires
        self._watch_page = page
        self._checks = HeadChecks(config, keys)
        self._passes_keys = not keys
        self._slots = RequestSlots(config.limits.concurrent, config.limits.queue, config.timeouts.queue)
        self._metrics = GatewayMetrics()
        self._spans = spans_of_process()
        self._log = AccessLog(config.log)
        self._pages: Mapping[str, Callable[[Mapping[bytes, bytes]], Awaitable[tuple[bytes, bytes]]]] = {
            "/healthz": self._health,
            "/metrics": self._figures,
            "/v1/models": self._models,
        }

    async def __call__(self, scope: ASGIScope, receive: ASGIReceive, send: ASGISend) -> None:
        """Answer one request, or follow the server's start and end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            headers = dict(scope["headers"])
            if (origin := self._checks.origin(headers)) is not None:
                send = _for_page(send, origin)
            wire = _WIRES.get(scope["path"])
            page = self._watch_page
            if origin is not None and scope["method"] == "OPTIONS":
                await _respond(send, 204, [], b"")
            elif wire is not None and scope["method"] == "POST":
                await self._reply(_Request(wire, headers, ReplySender(send)), scope, receive)
            elif page is not None and page.serves(scope["path"]):
                await self._watched(page, scope, receive, send)
            else:
                await self._page(scope, headers, send)

    def end_streams(self) -> None:
        """End the page's streams, which would never end: the server is about to end."""
        if self._watch_page is not None:
            self._watch_page.hub.end_streams()

    async def _watched(self, page: Page, scope: ASGIScope, receive: ASGIReceive, send: ASGISend) -> None:
        """Answer a request to the page to watch an agent."""
        try:
            self._checks.check(scope, public=page.is_public(scope["path"]))
        except RequestRefused as e:
            await page.refuse(ReplySender(send), e)
        else:
            await page.answer(scope, receive, send, self.config)

    async def _live(self, receive: ASGIReceive, send: ASGISend) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await self.routes.pool.close()
                for served in self.routes.served.values():
                    await served.aclose()
                if self._watch_page is not None:
                    await self._watch_page.aclose()
                self._log.close()
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    # ---------------------------------------------------------------- pages

    async def _page(self, scope: ASGIScope, headers: Mapping[bytes, bytes], send: ASGISend) -> None:
        """A path that is not a request to a model."""
        path, method = scope["path"], scope["method"]
        page = self._pages.get(path)
        if path.startswith(_MODEL):
            page = partial(self._models, name=path.removeprefix(_MODEL))
        try:
            self._checks.check(scope, public=path == "/healthz")
            if page is None and path not in _WIRES:
                known = ", ".join((*_WIRES, *self._pages))
                raise RequestRefused(404, f"there is nothing at {path[:100]!r}; there are {known}", "not_found")
            if page is None or method not in ("GET", "HEAD"):
                raise RequestRefused(405, f"{path} expects {'POST' if page is None else 'GET'}", "method_not_allowed")
            kind, body = await page(headers)
        except RequestRefused as e:
            wire = self._wires["messages" if b"anthropic-version" in headers else "chat"]
            allow = [(b"allow", b"POST" if page is None else b"GET, HEAD")] if e.status == 405 else []
            await _respond(send, e.status, [*error_headers(e), *allow], json.dumps(wire.error(e)).encode())
            return
        await _respond(send, 200, [(b"content-type", kind)], body)

    async def _health(self, headers: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
        """The state of the upstreams. The status is 200 even if they are down: restarting a gateway cures none."""
        found = {"status": "ok", "upstreams": await self.routes.states()}
        return b"application/json", json.dumps(found).encode()

    async def _figures(self, headers: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
        return CONTENT_TYPE, self._metrics.text().encode(errors="replace")

    async def _models(self, headers: Mapping[bytes, bytes], name: str | None = None) -> tuple[bytes, bytes]:
        """The list of models, or the one of this name in it."""
        names = await self.routes.names(request_headers(headers.items(), credentials=self._passes_keys))
        if name is not None and name not in names:
            message = f"there is no model {name[:100]!r}{did_you_mean(name, names)}"
            raise RequestRefused(404, message, "model_not_found", param="model")
        found = model_list(names if name is None else [name], anthropic=b"anthropic-version" in headers)
        return b"application/json", json.dumps(found if name is None else found["data"][0]).encode()

    # ---------------------------------------------------------------- replies

    async def _reply(self, asked: _Request, scope: ASGIScope, receive: ASGIReceive) -> None:
        """Answer a request to a model, whatever happens to it."""
        self._metrics.running.add(1)
        try:
            asked.key = self._checks.check(scope)
            check_json(asked.headers)
            async with self._slots.slot():
                await self._admitted(asked, receive)
        except ClientLeft:
            asked.left = True
        except (Exception, asyncio.CancelledError) as e:  # noqa: BLE001 - whatever happens, the client gets an answer
            await self._fail(asked, as_refusal(e), receive)
        finally:
            asked.sender.stop()
            self._metrics.running.add(-1)
            self._note(asked)

    async def _admitted(self, asked: _Request, receive: ASGIReceive) -> None:
        limits, timeouts = self.config.limits, self.config.timeouts
        raw = await read_body(receive, asked.headers, limits.body_bytes, timeouts.request)
        async with ClientWatch(receive, lambda: asked.sender.ended) as watch:
            try:
                exchange = self._exchange(asked, raw)
                with self._spans.request(exchange, asked.headers) if self._spans else nullcontext():
                    await self._send(asked, await answer(exchange))
            except asyncio.CancelledError:
                if asked.sender.stalled:
                    raise ClientLeft from None
                raise
            finally:
                asked.left = watch.left

    def _exchange(self, asked: _Request, raw: bytes) -> Exchange:
        body = json_object(raw)
        asked.model = body["model"] if isinstance(body.get("model"), str) else ""
        asked.route = self.routes.find(body.get("model"))
        headers = request_headers(asked.headers.items(), credentials=self._passes_keys)
        return Exchange(self._wires[asked.wire], body, raw, headers, asked.route, asked.record)

    async def _send(self, asked: _Request, found: GatewayReply) -> None:
        """Write an answer, and close it."""
        headers = dict(found.headers)
        asked.id = headers.get(b"x-request-id", b"").decode("latin-1") or f"req_{uuid4().hex}"
        streaming = headers.get(b"content-type", b"").startswith(b"text/event-stream")
        try:
            await (self._stream if streaming else self._whole)(asked, found, headers)
        finally:
            with suppress(Exception):  # the connection to the upstream may be closed already
                await found.pieces.aclose()

    async def _stream(self, asked: _Request, found: GatewayReply, headers: dict[bytes, bytes]) -> None:
        sender, timeouts = asked.sender, self.config.timeouts
        await sender.start(found.status, self._head(asked, headers | _STREAM_HEADERS))
        sender.beat(HEARTBEATS[asked.wire], timeouts.heartbeat, timeouts.idle)
        async for piece in found.pieces:
            await sender.write(piece)
        await sender.end()

    async def _whole(self, asked: _Request, found: GatewayReply, headers: dict[bytes, bytes]) -> None:
        """Write a reply that is not a stream; almost always it is one piece, and its length is known."""
        sender, pieces = asked.sender, found.pieces
        first, second = await anext(pieces, b""), await anext(pieces, b"")
        headers[b"x-agentkit-repairs"] = ", ".join(dict.fromkeys(asked.record.repairs)).encode()
        length = {} if second else {b"content-length": str(len(first)).encode()}
        await sender.start(found.status, self._head(asked, headers | length))
        if second:
            await sender.write(first + second)
            async for piece in pieces:
                await sender.write(piece)
        await sender.end(b"" if second else first)

    def _head(self, asked: _Request, headers: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """The headers of an answer, with the gateway's."""
        headers[b"x-request-id"] = asked.id.encode("latin-1")
        if asked.wire == "messages":
            headers[b"request-id"] = headers[b"x-request-id"]
        headers[b"x-agentkit-format"] = (asked.record.format or (asked.route.format if asked.route else "")).encode()
        return [(name, value) for name, value in headers.items() if value]

    async def _fail(self, asked: _Request, error: RequestRefused, receive: ASGIReceive) -> None:
        """End a response with an error. One that is half sent and not a stream is cut off: the client sees that."""
        asked.error = error
        sender = asked.sender
        if sender.streaming:
            await sender.end(error_event(asked.wire, self._wires[asked.wire].error(error)))
        elif not sender.status:
            asked.id = asked.id or f"req_{uuid4().hex}"
            body = json.dumps(self._wires[asked.wire].error(error)).encode()
            headers = [*error_headers(error), (b"content-length", str(len(body)).encode())]
            if error.status in (408, 413):
                headers.append((b"connection", b"close"))  # the rest of the request is not read
            await sender.start(error.status, [*self._head(asked, {}), *headers])
            await sender.write(body)
            if error.status == 413:
                await _linger(receive)
            await sender.end()

    def _note(self, asked: _Request) -> None:
        """Count and log a request that has ended."""
        seconds = perf_counter() - asked.since
        first = None if asked.sender.first is None else asked.sender.first - asked.since
        upstream = getattr(getattr(asked.route, "upstream", None), "settings", None)
        status = asked.sender.status or 499  # nginx's number for a client that has left
        record, error = asked.record, asked.error
        self._metrics.count(asked.model, asked.wire, status, seconds, first, asked.left, record)
        code = error.code if error is not None else record.error
        failure = str(status) if not code or (error is not None and error.of_upstream) else code
        if upstream is not None and (failure.startswith("upstream") or (status >= 400 and failure.isdigit())):
            self._metrics.upstream_errors.add(1, upstream.name, failure)
        if self._spans is not None:
            self._spans.count(asked.model, asked.wire, status, seconds, first, record)
        self._log.write(
            id=asked.id or None,
            key=asked.key or None,
            model=asked.model[:200] or None,
            upstream=upstream and upstream.name,
            wire=asked.wire,
            status=status,
            error=code or None,
            ms=round(seconds * 1000, 1),
            ttft_ms=None if first is None else round(first * 1000, 1),
            input_tokens=record.usage and record.usage.input_tokens,
            output_tokens=record.usage and record.usage.output_tokens,
            format=record.format or None,
            recovered=record.recovered or None,
            repairs=len(record.repairs) or None,
            asked_again=record.asked_again or None,
            recovery_failed=record.recovery_failed or None,
            client_left=asked.left or None,
        )


async def _respond(send: ASGISend, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    length = [] if status == 204 else [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})


async def _linger(receive: ASGIReceive) -> None:
    """Read on for a moment after a refused body."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER):
            while (await receive()).get("more_body"):
                pass


def _for_page(send: ASGISend, origin: bytes) -> ASGISend:
    """Let an allowed web page read the response."""
    more = [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-headers", b"authorization, content-type, x-api-key, anthropic-version, *"),
        (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE"),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"origin"),
    ]

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent
