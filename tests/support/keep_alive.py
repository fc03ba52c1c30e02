"""A server that gives one answer to every request and keeps its connections open, in threads of its own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

KEEP = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


_GOOD = {
    "openai": b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n",
    "responses": b'data: {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}\n\n'
    b'data: {"type": "response.completed", "response": {"status": "completed"}}\n\n',
    "anthropic": b'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}\n\n'
    b'data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}\n\n'
    b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n'
    b'data: {"type": "message_stop"}\n\n',
}


def _plain(status: int, body: bytes, *fields: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 %d X" % status, b"content-length: %d" % len(body), *fields, b"", body])


ANSWERS = [
    (prefix, name, answer)
    for prefix, good in _GOOD.items()
    for name, answer in (
        ("good", KEEP + chunked(good)),
        ("broken off", KEEP + chunked(good)[:60]),
        ("a page", _plain(200, b"<html></html>", b"content-type: text/html")),
        ("a redirect", _plain(302, b"nowhere")),
        ("no key", _plain(401, b"{}")),
        ("no UTF-8", KEEP + chunked(b"data: \xff\xfe\n\n")),
    )
]
"""For each wire a good answer and bad ones."""


class KeepAlive:
    """What listens on 127.0.0.1, and how many connections to it are open."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        self.open = 0
        self._counting = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def all_closed(self, within: float = 30.0) -> bool:
        """Whether the clients have closed all connections; it takes a moment to be seen here."""
        ends = time.monotonic() + within
        while self.open and time.monotonic() < ends:
            time.sleep(0.005)
        return self.open == 0

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _count(self, more: int) -> None:
        with self._counting:
            self.open += more

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._count(+1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as requests:
                while line := requests.readline():
                    length = 0
                    while line.strip():
                        if line.lower().startswith(b"content-length:"):
                            length = int(line[15:])
                        line = requests.readline()
                    requests.read(length)
                    connection.sendall(self._answer)
        except OSError:
            pass  # the client has left, which is what is counted
        finally:
            self._count(-1)


@contextmanager
def keep_alive(answer: bytes) -> Iterator[KeepAlive]:
    """A server for as long as the block lasts."""
    server = KeepAlive(answer)
    try:
        yield server
    finally:
        server.close()
