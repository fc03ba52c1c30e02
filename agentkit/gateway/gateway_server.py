"""Serves a gateway with uvicorn: the address, limits on headers, and the end after SIGTERM. Needs uvicorn."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agentkit.errors import ConfigError
from agentkit.gateway.gateway_config import GatewayConfig

if TYPE_CHECKING:
    from agentkit.gateway.gateway_app import Gateway

_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def listen(config: GatewayConfig) -> socket.socket:
    """Return a socket that listens at the gateway's address.

    Raises:
        ConfigError: it cannot.
    """
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family, backlog=2048)
    except OSError as e:
        raise ConfigError(f"cannot listen at {config.host} port {config.port}: {e.strerror or e}") from e


def address_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket, without a path."""
    host, port, *_ = listening.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


_UPGRADE: Final = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class _BoundedConnection(HttpToolsProtocol):
    """Closes a connection whose request line and headers are too long or too slow; httptools has no such limit.

    It also closes one that takes none of its reply. A request that offers another protocol is read as if it did not, as
    RFC 9110 (7.8) allows: httptools would lose its body. Java's `HttpClient` offers `h2c` by default.
    """

    _size = 0
    _unsent: asyncio.TimerHandle | None = None
    _timer: asyncio.TimerHandle | None = None
    _in_head = False

    def __init__(self, config: uvicorn.Config, *rest: Any, **more: Any) -> None:
        super().__init__(config, *rest, **more)
        self._gateway = cast("Gateway", config.app).config
        self._end_streams = cast("Gateway", config.app).end_streams

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._unsent):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self._end_streams()
        super().shutdown()

    def on_message_begin(self) -> None:
        self._in_head = True
        if self._timer is None:
            self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._size = False, 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_progress()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unsent is not None:
            self._unsent.cancel()
            self._unsent = None

    def _expect_progress(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._unsent = self.loop.call_later(self._gateway.timeouts.idle, self._check_progress, unsent)

    def _check_progress(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._expect_progress()
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._timer is not None and b"pgrade:" in data:
            head, end, rest = data.partition(b"\r\n\r\n")
            data = _UPGRADE.sub(b"\r\nx-upgrade:", head) + end + rest
        super().data_received(data)
        if self._in_head:
            self._size += len(data)
            if self._size > self._gateway.limits.header_bytes and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def _expect_head(self) -> None:
        self._timer = self.loop.call_later(self._gateway.timeouts.request, self.timeout_keep_alive_handler)


def server_of(gateway: Gateway) -> uvicorn.Server:
    """Return the server of a gateway; start it with `serve(sockets=[…])`."""
    settings: dict[str, Any] = {
        "http": _BoundedConnection,
        "ws": "none",
        "lifespan": "on",
        "interface": "asgi3",
        "log_config": None,
        "log_level": "critical",  # what it would report, such as a connection that was cut off, is in the access log
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_graceful_shutdown": max(1, round(gateway.config.timeouts.shutdown)),
    }
    return uvicorn.Server(uvicorn.Config(gateway, **settings))
