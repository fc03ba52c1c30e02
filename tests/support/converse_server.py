"""A server of Bedrock's Converse API over a real socket: JSON, or frames of an event stream, cut anywhere."""

from __future__ import annotations

import json
import random
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal
from zlib import crc32

from busy_server import BusyServer

from agentkit.models.bedrock import BedrockModel
from agentkit.models.model_options import ModelSettings

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def frame(payload: bytes, **headers: str) -> bytes:
    """A message of the encoding `application/vnd.amazon.eventstream`: lengths, their sum, headers, payload, its sum."""
    head = b""
    for name, value in headers.items():
        key, text = f":{name.replace('_', '-')}".encode(), value.encode()
        head += bytes([len(key)]) + key + b"\x07" + struct.pack("!H", len(text)) + text
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return message + struct.pack("!I", crc32(message))


def event(kind: str, **fields: Any) -> bytes:
    payload = json.dumps(fields).encode()
    return frame(payload, event_type=kind, content_type="application/json", message_type="event")


def exception(kind: str, message: str) -> bytes:
    payload = json.dumps({"message": message}).encode()
    return frame(payload, exception_type=kind, content_type="application/json", message_type="exception")


def start(at: int, **block: Any) -> bytes:
    return event("contentBlockStart", start=block, contentBlockIndex=at)


def delta(at: int, **fields: Any) -> bytes:
    return event("contentBlockDelta", delta=fields, contentBlockIndex=at)


def stop(at: int) -> bytes:
    return event("contentBlockStop", contentBlockIndex=at)


def end(reason: str, **usage: int) -> bytes:
    counts = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12, **usage}
    return event("messageStop", stopReason=reason) + event("metadata", usage=counts, metrics={"latencyMs": 1})


BEGIN = event("messageStart", role="assistant")
HELLO = BEGIN + delta(0, text="Hello") + stop(0) + end("end_turn")


@dataclass(frozen=True)
class Answer:
    """One answer.

    Args:
        body: a JSON object, or the frames of a stream.
        status: its status.
        headers: further headers.
        cuts: the seed of the places where a stream is cut; None sends it in one piece.
        hangs: where the server sends nothing more, and waits until the client leaves.
    """

    body: Mapping[str, Any] | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cuts: int | None = None
    hangs: Literal["at the start", "at the end"] | None = None


@dataclass
class ConverseServer:
    """What the tests see of a server."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    """The path, the headers, and the body of each request."""
    asked: threading.Event = field(default_factory=threading.Event)
    """Set at the first request."""
    left: threading.Event = field(default_factory=threading.Event)
    """Set when a client closed a connection that hung."""

    def model(self, name: str = CLAUDE, **settings: Any) -> BedrockModel:
        """A model of this server, with a key of Bedrock."""
        given = {"base_url": self.url, "api_key": "bedrock-key-1234", "max_retries": 0, "timeout": 20.0}
        return BedrockModel(name, ModelSettings(**{**given, **settings}))


@contextmanager
def noticing(left: threading.Event) -> Iterator[None]:
    """A client may also leave while the server writes, or with bytes that it has not read."""
    try:
        yield
    except ConnectionError:
        left.set()


@contextmanager
def converse_server(*answers: Answer) -> Iterator[ConverseServer]:
    """A server that gives these answers in turn, and the last one again."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            with noticing(seen.left):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                seen.requests.append({"path": self.path, "headers": dict(self.headers), "body": body})
                seen.asked.set()
                answer = answers[min(len(seen.requests), len(answers)) - 1]
                if answer.hangs == "at the start":
                    self.hang()
                    return
                streamed = isinstance(answer.body, bytes)
                data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                kind = "application/vnd.amazon.eventstream" if streamed else "application/json"
                for name, value in {"content-type": kind, "x-amzn-requestid": "req-1", **answer.headers}.items():
                    self.send_header(name, value)
                if not streamed:
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    return
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for piece in pieces(data, answer.cuts):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                if answer.hangs:
                    self.hang()
                else:
                    self.wfile.write(b"0\r\n\r\n")

        def hang(self) -> None:
            self.connection.settimeout(10)
            self.close_connection = True
            if self.connection.recv(1) == b"":
                seen.left.set()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    listening = BusyServer(("127.0.0.1", 0), Handler)
    seen = ConverseServer(f"http://127.0.0.1:{listening.server_port}")
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield seen
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def pieces(data: bytes, seed: int | None) -> Sequence[bytes]:
    """The pieces in which a stream is sent, none of them empty."""
    if seed is None:
        return [data] if data else []
    sizes, at, found = random.Random(seed), 0, []
    while at < len(data):
        size = sizes.choice([1, 2, 5, 16, 60, 300])
        found.append(data[at : at + size])
        at += size
    return found
