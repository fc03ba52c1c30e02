"""The gateway: a client of OpenAI's API gets native calls from a model that writes its calls as text.

A small local HTTP server stands in for the model's server. `agentkit serve` runs in front of it, as it would in a
terminal. For real use, start it with the URL of your server, and set `OPENAI_BASE_URL` for your client.
"""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

from openai import OpenAI

TEXTS = [
    'Let me add that up.\n<tool_call>\n{"name": "add", "arguments": {"a": 19, "b": 23}}\n</tool_call>',
    "19 + 23 is 42.",
]
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}


class StandIn(BaseHTTPRequestHandler):
    """Streams the next of `TEXTS`, four characters at a time, regardless of the request."""

    def do_POST(self) -> None:
        """Answer one request for a chat completion."""
        self.rfile.read(int(self.headers["content-length"]))
        text = TEXTS.pop(0)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for at in range(0, len(text), 4):
            self.say({"content": text[at : at + 4]}, None)
        self.say({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def say(self, delta: dict[str, str], finish: str | None) -> None:
        """Send one server-sent event."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "qwen", "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def ask(address: str) -> None:
    """Ask a question as any client would, and run the model's calls."""
    client = OpenAI(base_url=f"{address}/v1", api_key="none")
    messages: list[Any] = [{"role": "user", "content": "What is 19 + 23?"}]
    while True:
        with client.chat.completions.stream(model="qwen", messages=messages, tools=[TOOL]) as stream:
            for event in stream:
                if event.type == "content.delta":
                    print(event.delta, end="", flush=True)
            message = stream.get_final_completion().choices[0].message
        print()
        if not message.tool_calls:
            return
        messages.append(message.to_dict())
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            print(f"[a native call: {call.function.name}({arguments})]")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(arguments["a"] + arguments["b"])})


os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"  # a proxy could not reach the local servers
with HTTPServer(("127.0.0.1", 0), StandIn) as server:
    Thread(target=server.serve_forever, daemon=True).start()
    command = ["serve", "--upstream", f"http://127.0.0.1:{server.server_port}/v1", "--port", "0", "--log", os.devnull]
    gateway = subprocess.Popen([sys.executable, "-m", "agentkit", *command], stderr=subprocess.PIPE, text=True)
    try:
        greeting = gateway.stderr.readline() if gateway.stderr else ""  # serving at http://127.0.0.1:40123: set …
        ask(greeting.split()[2].rstrip(":"))
    finally:
        gateway.terminate()
        gateway.communicate()
        server.shutdown()
