"""Recorded bytes behind a real HTTP server on this machine, for programs that run in a process of their own.

Knows HTTP and nothing of agentkit. Where the model runs in the test's own process, use `agentkit.testing.Replay`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Condition, Event, Lock, Thread
from types import TracebackType
from typing import Any, NamedTuple, Self


class Recorded(NamedTuple):
    """One response: its body as bytes, whole or server-sent events, with status and further headers."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}


class Asked(NamedTuple):
    """One request that came in: the path, the headers in lower case, the JSON body as parsed."""

    path: str
    headers: Mapping[str, str]
    body: Any


class ReplayServer:
    """A server on 127.0.0.1 that answers each request with the next recorded response, whatever was asked.

    Use it as a context manager and give `url` to a model as its `base_url`. A request after the last response is
    answered with status 400, which no SDK retries. While it runs, 127.0.0.1 is excepted from the process's proxies.

    Args:
        responses: the bodies, in order, or `Recorded` ones.
        pace: seconds to wait before each server-sent event, so that one can watch it stream.

    >>> with ReplayServer([b'{"object": "list", "data": []}']) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, responses: Iterable[bytes | Recorded], *, pace: float = 0.0) -> None:
        self.requests: list[Asked] = []
        self._responses = [r if isinstance(r, Recorded) else Recorded(r) for r in responses]
        self._pace = pace
        self._closed = Event()
        self._lock = Lock()
        self._sent, self._count_sent = Condition(), 0
        self._proxies: dict[str, str | None] = {}
        self._server = _Server(("127.0.0.1", 0), _handler(self), bind_and_activate=False)

    @property
    def url(self) -> str:
        """The address to give as `base_url`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._server.server_bind()
        self._server.server_activate()
        # 20 ms: how often the serving thread looks whether it shall end; closing waits for that
        Thread(target=self._server.serve_forever, args=(0.02,), name="agentkit-replay", daemon=True).start()
        for name in ("NO_PROXY", "no_proxy"):
            self._proxies[name] = os.environ.get(name)
            os.environ[name] = ",".join(filter(None, (self._proxies[name], "127.0.0.1")))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        for name, value in self._proxies.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    def wait_for_pieces(self, number: int, seconds: float = 30) -> None:
        """Wait until so many events were sent."""
        with self._sent:
            assert self._sent.wait_for(lambda: self._count_sent >= number, seconds)

    def _count(self) -> None:
        with self._sent:
            self._count_sent += 1
            self._sent.notify_all()

    def _next(self, asked: Asked) -> Recorded:
        with self._lock:
            self.requests.append(asked)
            if len(self.requests) <= len(self._responses):
                return self._responses[len(self.requests) - 1]
        message = f"the recording holds {len(self._responses)} responses, this is request {len(self.requests)}"
        return Recorded(json.dumps({"error": {"message": message, "type": "replay"}}).encode(), 400)


class _Server(ThreadingTCPServer):
    """Unlike `http.server.HTTPServer` it asks no name server for its own name."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # connections that no thread has taken yet: more than 5, the default, would be reset


def _handler(replay: ReplayServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            recorded = replay._next(Asked(self.path, headers, json.loads(content or b"null")))
            whole = recorded.body.lstrip()[:1] in (b"{", b"[", b"")
            try:
                self.send_response(recorded.status)
                self.send_header("content-type", "application/json" if whole else "text/event-stream")
                for name, value in recorded.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self._send(recorded.body, whole)
            except ConnectionError:
                self.close_connection = True  # the client has left, as a cancelled run does

        def _send(self, body: bytes, whole: bool) -> None:
            for piece in [body] if whole else re.findall(rb".+?\n\n|.+", body, re.DOTALL):
                if not whole and replay._pace and replay._closed.wait(replay._pace):
                    return
                self.wfile.write(piece)
                self.wfile.flush()
                replay._count()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the requests are in `requests`."""

    return Handler
