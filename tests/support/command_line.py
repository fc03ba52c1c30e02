"""What the tests of the command line share: responses of a server as bytes, and the program to be started."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

from replay_server import ReplayServer
from warm_program import PROGRAM, run

FILES = "agentkit_tools.files:Files"
Say = Callable[..., tuple[int, str, str]]
"""The fixture `say`: words and `stdin` in; status, output and complaints out."""


def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        "data: "
        + json.dumps({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
        + "\n\n"
    )


def said(*texts: str) -> bytes:
    """A streamed response of OpenAI chat completions, one event per text."""
    return "".join([*(chunk({"content": t}) for t in texts), chunk({}, "stop"), "data: [DONE]\n\n"]).encode()


def called(name: str, arguments: str, id: str = "call_1") -> bytes:
    """A streamed response that is one call."""
    call = {"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return (chunk({"tool_calls": [call]}) + chunk({}, "tool_calls") + "data: [DONE]\n\n").encode()


def command(server: ReplayServer, *options: str) -> list[str]:
    return [*PROGRAM, "chat", "--model", "openai:m", "--base-url", server.url, *options]


def typed(server: ReplayServer, lines: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A chat whose input is a pipe."""
    return run(command(server, *options), lines)


def roles(request: Any) -> list[str]:
    return [message["role"] for message in request.body["messages"]]
