"""A model's server on this machine, for the programs of docs/wishes.py: it answers in the shapes of five APIs.

Knows nothing of any toolkit: each gets the same turns through its own client. Needs no network and no key.
"""

from __future__ import annotations

import json
import os
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Call = tuple[str, dict[str, Any]]
Turn = str | Call | list[Call]
"""A reply: words, a call as its name and arguments, or several calls."""

PIECE: Final = 8
"""Characters of a streamed piece."""
PAUSE: Final = 0.005
"""Seconds between two events of a stream, so that clients read them one by one."""


class LocalServer:
    """A server with these turns; the environment leads every client to it until the process ends.

    Args:
        turns: the replies, in order.
        failing: HTTP statuses of the models that fail, by a part of their names.
        forgetful: whether the server does not know a response that it has stored (`previous_response_id`).
    """

    def __init__(self, *turns: Turn, failing: dict[str, int] | None = None, forgetful: bool = False) -> None:
        self.turns, self.failing, self.forgetful = list(turns), failing or {}, forgetful
        self.bodies: list[dict[str, Any]] = []
        """The requests that were answered with a turn."""
        self.calls = 0
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        os.environ |= {
            **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), "local"),
            **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "local"),
            "AWS_DEFAULT_REGION": "us-east-1",
            "OPENAI_BASE_URL": f"{url}/v1",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_URL": url,  # LangChain's name for it
            "GOOGLE_GEMINI_BASE_URL": url,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        }

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, list[bytes]]:
        """The status and the pieces of the answer to a request: one, or the events of a stream."""
        failed = [status for name, status in self.failing.items() if name in path + str(body.get("model"))]
        if failed:
            message = "Overloaded" if failed[0] > 500 else "Bad key"
            return failed[0], [json.dumps({"error": {"message": message}}).encode()]
        if self.forgetful and body.get("previous_response_id"):
            lost = {"message": "Previous response not found.", "code": "previous_response_not_found"}
            return 404, [json.dumps({"error": lost}).encode()]
        self.bodies.append(body)
        turn = self.turns.pop(0)
        words = turn if isinstance(turn, str) else ""
        calls = [] if isinstance(turn, str) else turn if isinstance(turn, list) else [turn]
        numbered = []
        for name, arguments in calls:
            self.calls += 1
            numbered.append((f"call_{self.calls}", name, arguments))
        stream = bool(body.get("stream")) or "stream" in path
        shape = next(shape for part, shape in SHAPES.items() if part in path)
        events = list(shape(words, numbered, len(self.bodies), stream, str(body.get("model"))))
        if "converse-stream" in path:
            return 200, [_framed(*next(iter(event.items()))) for event in events]
        if stream:
            names = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
            lines = [f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(names, events, strict=True)]
            return 200, [line.encode() for line in [*lines, *(["data: [DONE]\n\n"] if "/v1/" in path else [])]]
        return 200, [json.dumps(events[-1]).encode()]


def _framed(kind: str, event: dict[str, Any]) -> bytes:
    """An event in Amazon's encoding of streams: lengths and checksums around headers and JSON."""
    headers = b""
    for name, value in {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}.items():
        headers += struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
    payload = json.dumps(event).encode()
    start = struct.pack("!II", len(headers) + len(payload) + 16, len(headers))
    start += struct.pack("!I", zlib.crc32(start)) + headers + payload
    return start + struct.pack("!I", zlib.crc32(start))


Calls = list[tuple[str, str, dict[str, Any]]]
Events = Iterator[dict[str, Any]]


def _chat(words: str, calls: Calls, number: int, stream: bool, model: str) -> Events:
    made = [
        {"index": i, "id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (id, name, arguments) in enumerate(calls)
    ]
    head = {"id": f"chat_{number}", "created": 1_700_000_000, "model": model}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    ended = "tool_calls" if calls else "stop"
    if not stream:
        message = {"role": "assistant", "content": words or None} | ({"tool_calls": made} if made else {})
        choice = {"index": 0, "message": message, "finish_reason": ended}
        yield head | {"object": "chat.completion", "choices": [choice], "usage": usage}
        return
    deltas = [{"role": "assistant", "content": piece} for piece in _pieces(words)]
    for delta in [*deltas, *([{"role": "assistant", "tool_calls": made}] if made else [])]:
        yield head | {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
    last = {"index": 0, "delta": {}, "finish_reason": ended}
    yield head | {"object": "chat.completion.chunk", "choices": [last], "usage": usage}


def _responses(words: str, calls: Calls, number: int, stream: bool, model: str) -> Events:
    text = {"type": "output_text", "text": words, "annotations": []}
    message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
    made = [
        {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": json.dumps(arguments)}
        for id, name, arguments in calls
    ]
    output: list[Any] = [*([message] if words else []), *(call | {"status": "completed"} for call in made)]
    response = {
        "id": f"resp_{number}", "object": "response", "created_at": 1_700_000_000, "model": model,
        "status": "completed", "output": output, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True,
        "usage": {
            "input_tokens": 9, "output_tokens": 3, "total_tokens": 12,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        },
    }  # fmt: skip
    if stream:
        yield {"type": "response.created", "sequence_number": 0, "response": response | {"output": []}}
        for index, item in enumerate(output):
            place = {"sequence_number": 1, "output_index": index}
            yield place | {"type": "response.output_item.added", "item": item | {"content": []} if words else item}
            for piece in _pieces(words):
                delta = {"item_id": item["id"], "content_index": 0, "delta": piece, "logprobs": []}
                yield place | delta | {"type": "response.output_text.delta"}
            yield place | {"type": "response.output_item.done", "item": item}
        yield {"type": "response.completed", "sequence_number": 2, "response": response}
        return
    yield response


def _anthropic(words: str, calls: Calls, number: int, stream: bool, model: str) -> Events:
    blocks: list[Any] = [{"type": "text", "text": words}] if words else []
    blocks += [{"type": "tool_use", "id": id, "name": name, "input": arguments} for id, name, arguments in calls]
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model}
    end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 9, "output_tokens": 3}
    if not stream:
        yield message | {"content": blocks, "usage": usage} | end
        return
    start = message | {"content": [], "usage": usage, "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(blocks):
        empty = block | ({"text": ""} if "text" in block else {"input": {}})
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        deltas: list[Any] = [{"type": "text_delta", "text": piece} for piece in _pieces(block.get("text", ""))]
        if "input" in block:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 3}}
    yield {"type": "message_stop"}


def _gemini(words: str, calls: Calls, number: int, stream: bool, model: str) -> Events:
    parts: list[Any] = [{"text": words}] if words else []
    parts += [
        {"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "c2lnbmVk"}
        for _, name, arguments in calls
    ]
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}
    content = {"role": "model", "parts": parts}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3.5-flash", "responseId": "r"}


def _converse(words: str, calls: Calls, number: int, stream: bool, model: str) -> Events:
    thought = {"text": "Let me add.", "signature": "c2lnbmVk"}
    blocks: list[Any] = [{"reasoningContent": {"reasoningText": thought}}] if calls else []
    blocks += [{"text": words}] if words else []
    blocks += [{"toolUse": {"toolUseId": id, "name": name, "input": arguments}} for id, name, arguments in calls]
    ended = {"stopReason": "tool_use" if calls else "end_turn"}
    usage = {"usage": {"inputTokens": 9, "outputTokens": 3, "totalTokens": 12}, "metrics": {"latencyMs": 5}}
    if not stream:
        yield {"output": {"message": {"role": "assistant", "content": blocks}}} | ended | usage
        return
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(blocks):
        deltas = [block]
        if use := block.get("toolUse"):
            start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
            yield {"contentBlockStart": {"contentBlockIndex": index, "start": start}}
            deltas = [{"toolUse": {"input": json.dumps(use["input"])}}]
        elif "reasoningContent" in block:
            deltas = [{"reasoningContent": {field: thought[field]}} for field in ("text", "signature")]
        for delta in deltas:
            yield {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}
        yield {"contentBlockStop": {"contentBlockIndex": index}}
    yield {"messageStop": ended}
    yield {"metadata": usage}


SHAPES: Final = {
    "/chat/completions": _chat,
    "/responses": _responses,
    "/messages": _anthropic,
    "enerateContent": _gemini,
    "/converse": _converse,
}
"""The API of a path."""


def _pieces(words: str) -> list[str]:
    return [words[at : at + PIECE] for at in range(0, len(words), PIECE)]


def _handler(local: LocalServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer a request."""
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, pieces = local.answer(self.path, sent)
            self.send_response(status)
            kind = "application/json" if len(pieces) == 1 and pieces[0].startswith(b"{") else "text/event-stream"
            kind = "application/vnd.amazon.eventstream" if "converse-stream" in self.path else kind
            self.send_header("content-type", kind)
            self.send_header("content-length", str(sum(map(len, pieces))))
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)
                time.sleep(PAUSE if len(pieces) > 1 else 0)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    return Handler
