"""A gateway for the tests: ours under a real uvicorn in a thread, and `agentkit serve` in a process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
from fake_upstream import FakeUpstream, until

from agentkit.gateway.client_wire import WireName
from agentkit.gateway.gateway_app import Gateway
from agentkit.gateway.gateway_config import config_of
from agentkit.gateway.gateway_server import address_of, listen, server_of
from agentkit.gateway.request_reader import ClientWire
from agentkit.gateway.wires import WIRES

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
}


def chunk(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    found = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(found).encode() + b"\n\n"


def post(address: str, body: Any = CHAT, path: str = "/v1/chat/completions", **options: Any) -> httpx2.Response:
    return httpx2.post(address + path, json=body, **{"timeout": 60} | options)


def leave(address: str, upstream: FakeUpstream) -> None:
    """A client that asks, and closes its connection once the upstream was asked."""
    client = HTTPConnection(address.removeprefix("http://"))
    client.request("POST", "/v1/chat/completions", json.dumps(CHAT), {"content-type": "application/json"})
    until(lambda: upstream.requests)
    client.close()


def chat(address: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key="sk-client-key", max_retries=0)


def messages(address: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=address, api_key="sk-client-key", max_retries=0)


@contextmanager
def gateway(
    settings: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    wires: Mapping[WireName, ClientWire] = WIRES,
) -> Iterator[str]:
    """The URL of a gateway in a thread.

    Args:
        settings: as in its YAML file; without a log and at a free port, if they do not say otherwise.
        environment: the variables with keys.
        wires: of the clients.
    """
    config = config_of({"port": 0, "log": None, **settings}, str)
    server = server_of(Gateway(config, wires, environment or {}))
    with listen(config) as listening:
        runner = asyncio.Runner(loop_factory=server.config.get_loop_factory())
        thread = threading.Thread(target=lambda: runner.run(server.serve(sockets=[listening])), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.001)
        try:
            yield address_of(listening)
        finally:
            server.should_exit = True
            thread.join(30)
            runner.close()


def raw(url: str, wire: str = "chat", **more: Any) -> dict[str, Any]:
    """Settings of a gateway that forwards to one server."""
    return {"upstreams": {"fake": {"url": url, "wire": wire, "repeats": 0}}, "models": {"*": {"format": "raw"}}, **more}


@contextmanager
def served(
    *options: str, folder: Path | None = None, port: str | None = "0", **env: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The URL of `agentkit serve`, and its process."""
    command = [sys.executable, "-m", "agentkit", "serve", *([] if port is None else ["--port", port]), *options]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = subprocess.Popen(command, cwd=folder, env={**os.environ, **env}, **pipes)
    assert running.stderr is not None
    try:
        said = running.stderr.readline()
        assert said.startswith("serving at "), said + running.stderr.read()
        yield said.split()[2].rstrip(":"), running
    finally:
        running.kill()
        running.communicate()
