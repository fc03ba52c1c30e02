"""A model server for the pages about the gateway: its model calls `weather` in its text, and then answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any

from busy_server import BusyServer

CALL = 'Let me look. <tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
ANSWER = "It is 7 degrees in Oslo."
USAGE = {"prompt_tokens": 120, "completion_tokens": 24, "total_tokens": 144}


class _Handler(BaseHTTPRequestHandler):
    """Speaks chat completions, whole and streamed: the call, and after a tool's result the answer."""

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"data": [{"id": "qwen3"}]}).encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        called = any(message["role"] == "tool" for message in asked["messages"])
        text = ANSWER if called or "weather" not in str(asked) else CALL
        base = {"id": "chatcmpl-1", "created": 1_780_000_000, "model": asked["model"]}
        if not asked.get("stream"):
            choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
            choice["message"] = {"role": "assistant", "content": text}
            whole = {**base, "object": "chat.completion", "choices": [choice], "usage": USAGE}
            self._send("application/json", json.dumps(whole).encode())
            return
        deltas = [{"role": "assistant", "content": ""}, *({"content": text[n : n + 4]} for n in range(0, len(text), 4))]
        events: list[dict[str, Any]] = [{"choices": [_choice(delta, None)]} for delta in deltas]
        events += [{"choices": [_choice({}, "stop")]}, {"choices": [], "usage": USAGE}]
        lines = [json.dumps({**base, "object": "chat.completion.chunk", **event}) for event in events]
        body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
        self._send("text/event-stream", body.encode())

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _choice(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


@contextmanager
def text_calling_server() -> Iterator[str]:
    """The URL of the server, without `/v1`, for as long as the block lasts."""
    with BusyServer(("127.0.0.1", 0), _Handler) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
