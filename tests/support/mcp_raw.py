"""An MCP server over stdio in the standard library alone, for what no honest server does. It starts in milliseconds.

`python mcp_raw.py tools.json [notes]`: the tools of the file are listed; a call does what the tool's name says. Each
start and each message from the client is noted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOOLS = Path(sys.argv[1])
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
sys.setrecursionlimit(10_000)  # up to Python 3.11 it also counts for deep JSON
NOTES = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(os.devnull)


FIXED: dict[str, Any] = {
    "malformed": {"content": "not a list"},
    "unknown": {
        "content": [
            {"type": "text", "text": "before"},
            {"type": "video", "url": "a"},
            {"type": "text", "text": "after"},
        ]
    },
    "empty": {},
    "undecided": {"resultType": "input_required", "inputRequests": 3},
    "deep": {"content": [], "structuredContent": json.loads("[" * 900 + "]" * 900)},
    "structured": {"content": [], "structuredContent": {"a": "a" * 60 + "!"}},
}


SPACED: dict[str, Any] = {
    "error": {"error": {"code": -32000, "message": "rate limit exceeded"}},
    "detailed": {"error": {"code": -1, "message": "wrong", "data": {"field": "a"}}},
    "wordless": {"error": {"code": -32602, "message": ""}},
    "emoji": {"result": {"content": [{"type": "text", "text": "\ud83d cut"}]}},
    "null": {"result": None},
    "spaced": {"result": {"content": [{"type": "text", "text": "x" * 2_000_000}]}},
}
"""Answers as most servers write them, with spaces."""


def note(text: str) -> None:
    with NOTES.open("a") as file:
        file.write(text + "\n")


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")), flush=True)


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def call(id: Any, name: str, arguments: dict[str, Any]) -> None:
    match name:
        case "exit":
            print("out of memory", file=sys.stderr, flush=True)
            os._exit(9)
        case "never":
            return
        case "large":
            print(json.dumps({"result": text("x" * 100_000_000), "jsonrpc": "2.0", "id": id}, separators=(",", ":")))
            sys.stdout.flush()
        case "garbage":
            print("Listening on port 3000 …\n\x00\xff{{{", flush=True)
            say(id=id, result=text("after garbage"))
        case _ if name in FIXED:
            say(id=id, result=FIXED[name])
        case "file":
            say(id=id, result=json.loads(Path(arguments["path"]).read_text()))
        case "unsolicited":
            for n, method in enumerate(("sampling/createMessage", "elicitation/create", "roots/list")):
                params = {"messages": [], "maxTokens": 5, "message": "password?", "requestedSchema": FORM}
                say(id=f"server-{n}", method=method, params=params)
            say(id=id, result=text("asked"))
        case "change":
            TOOLS.write_text(arguments["tools"])
            say(method="notifications/tools/list_changed")
            say(id=id, result=text("changed"))
        case _:
            left = name == "leave" and subprocess.Popen(["sleep", "60"], start_new_session=True).pid
            said = {"left": left, "pid": os.getpid(), "arguments": arguments, "environment": dict(os.environ)}
            say(id=id, result=text(json.dumps(said)))


def answer(message: dict[str, Any]) -> None:
    id, method = message.get("id"), message.get("method")
    match method:
        case "initialize":
            about = {"name": "raw", "version": "1"}
            say(id=id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about})
        case "tools/list":
            say(id=id, result={"tools": json.loads(TOOLS.read_text())})
        case "tools/call":
            name = message["params"]["name"]
            if name in SPACED:
                print(json.dumps({"jsonrpc": "2.0", "id": id, **SPACED[name]}), flush=True)
            else:
                call(id, name, message["params"].get("arguments", {}))
        case _ if id is not None and method is not None:
            say(id=id, error={"code": -32601, "message": "no such method"})


note(f"start {os.getpid()}")
for line in sys.stdin:
    note(line.strip())
    answer(json.loads(line))
note(f"end {os.getpid()} {time.time()}")
