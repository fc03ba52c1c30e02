"""Text calling on a compatible server: the tools go into the prompt, the model writes calls as text in its format.

A small local HTTP server stands in for vLLM, Ollama or a similar server: it answers with two texts, streamed as such a
server would stream them. For real use, set `base_url` to the URL of your server.
"""

import asyncio
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import agentkit
from agentkit import Agent
from agentkit.events import Text, ToolCompleted

TEXTS = [
    'Let me add that up.\n<tool_call>\n{"name": "add", "arguments": {"a": 19, "b": 23}}\n</tool_call>',
    "19 + 23 is 42.",
]
asked: list[dict[str, object]] = []


class StandIn(BaseHTTPRequestHandler):
    """Streams the next of `TEXTS`, four characters at a time, regardless of the request."""

    def do_POST(self) -> None:
        """Answer one request for a chat completion."""
        asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        text = TEXTS[len(asked) - 1]
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


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main(base_url: str) -> None:
    """Ask a question and show what happens."""
    model = agentkit.model("openai:qwen", base_url=base_url, format="hermes")
    async for event in Agent(model, [add]).stream("What is 19 + 23?"):
        match event:
            case Text(text):
                print(text, end="", flush=True)
            case ToolCompleted(call=call, result=result):
                print(f"\n[{call.name}({dict(call.arguments)}) returned {result.output}, called in {call.format}]")
    print("\n\nThe server got no tools, only this prompt:\n")
    messages = asked[0]["messages"]
    assert "tools" not in asked[0]
    assert isinstance(messages, list)
    print(messages[0]["content"])


os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"  # a proxy could not reach the local server
with HTTPServer(("127.0.0.1", 0), StandIn) as server:
    Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(main(f"http://127.0.0.1:{server.server_port}/v1"))
    server.shutdown()
