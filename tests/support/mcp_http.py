"""MCP over HTTP for the tests: our server in a thread or in a process, and an old one that misbehaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from busy_server import BusyServer

from agentkit.interop.mcp import mcp_app, mcp_server


@contextmanager
def served(tools: Any, **options: Any) -> Iterator[str]:
    """The URL of our server in a thread, or of another one by the official SDK."""
    import socket

    import uvicorn

    app: Any = mcp_app(mcp_server(tools) if isinstance(tools, list) else tools, **options)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join(30)


@contextmanager
def process(tools: str, folder: Path, port: int = 0, **env: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The URL of `agentkit mcp --http`, and its process."""
    command = [sys.executable, "-m", "agentkit", "mcp", "--http", "--port", str(port), "--tools", tools]
    environment = {**os.environ, **env}
    running = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    try:
        said = running.stderr.readline()
        assert said.startswith("serving MCP at "), said + running.stderr.read()
        yield said.split()[-1], running
    finally:
        running.kill()
        running.wait()
        running.stderr.close()


class Faulty(BaseHTTPRequestHandler):
    """An older server with sessions; the name of the called tool says what it does wrong."""

    sessions: set[str] = set()  # noqa: RUF012 - one server at a time
    seen: list[dict[str, str]] = []  # noqa: RUF012 - the headers of each request
    calls = 0
    forgotten: tuple[bytes, str] = (b"no such session", "text/plain")
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
        method = message["method"]
        if method == "initialize":
            session = f"session-{len(self.seen)}"
            self.sessions.add(session)
            about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            about["serverInfo"] = {"name": "old", "version": "1"}  # type: ignore[assignment]
            self.answer({"result": about}, message, {"mcp-session-id": session})
        elif self.headers.get("mcp-session-id") not in self.sessions:
            self.body(404, *self.forgotten)
        elif method == "tools/list":
            names = ["look", "gzip", "page", "large", "truncated", "hang_up", "redirect", "key", "limit"]
            names += ["values", "events"]
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            self.answer({"result": {"tools": tools}}, message)
        elif method == "tools/call":
            type(self).calls += 1
            self.call(message)
        else:
            self.body(202, b"")

    def call(self, message: dict[str, Any]) -> None:
        done = {"result": {"content": [{"type": "text", "text": "seen"}]}}
        match message["params"]["name"]:
            case "gzip":
                self.answer(done, message, {"content-encoding": "gzip"})
            case "page":
                self.body(503, b"<html>busy</html>", "text/html")
            case "key":
                self.body(401, b'{"error": "invalid_token", "error_description": "it has expired"}', "application/json")
            case "limit":
                error = {"code": -32_000, "message": "slow down", "data": {"seconds": 5}}
                self.body(429, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode(), "application/json")
            case "large":
                self.answer({"result": {"content": [{"type": "text", "text": "x" * 2_000_000}]}}, message)
            case "values" | "events" as name:
                body = json.dumps(
                    {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [[]] * 110_000}}
                ).encode()
                kind, frame = {
                    "values": ("application/json", b"%s"),
                    "events": ("text/event-stream", b"event: message\r\ndata: %s\r\n\r\n"),
                }[name]
                self.body(200, frame % body, kind)
            case "truncated":
                self.body(200, b'{"jsonrpc', "application/json", {"content-length": "5000"})
                self.close_connection = True
            case "hang_up":
                self.close_connection = True
            case "redirect":
                self.body(307, b"", "text/plain", {"location": "http://127.0.0.1:9/mcp"})
            case _:
                self.answer(done, message)

    def answer(self, said: dict[str, Any], message: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}).encode()
        self.body(200, body, "application/json", headers)

    def body(self, status: int, body: bytes, kind: str = "text/plain", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.body(405, b"")

    def do_DELETE(self) -> None:
        self.body(204, b"")

    def log_message(self, *said: Any) -> None:
        pass


@contextmanager
def faulty() -> Iterator[str]:
    """The URL of the faulty server."""
    Faulty.sessions.clear()
    Faulty.seen.clear()
    Faulty.calls = 0
    server = BusyServer(("127.0.0.1", 0), Faulty)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
