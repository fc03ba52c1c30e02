"""Real replies of real providers, read by a client of another wire: the same words, the same calls, the same end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import pytest
from recordings import ABSENT, rows
from upstream_replies import WIRES as KITS

from agentkit.gateway.answering import answer
from agentkit.gateway.client_wire import PATHS, WireName
from agentkit.gateway.exchanges import Exchange, Route, UpstreamReply
from agentkit.gateway.wires import WIRES

APIS: Final[Mapping[str, WireName]] = {
    "openai-chat": "chat",
    "openai-responses": "responses",
    "anthropic-messages": "messages",
}
CUT = "max_tokens"  # such a reply ends inside a call
ROWS = [
    row
    for row in rows("wire.jsonl")
    if row["response"]["status"] == 200
    and not row["tags"]["server_tool"]
    and f'"stop_reason":"{CUT}"' not in row["response"].get("sse", "").replace(": ", ":")
    and "failed_generation" not in json.dumps(row["response"])
]


class Recorded:
    """An upstream that sends a recorded body, cut in the middle of lines."""

    server = None

    def __init__(self, row: dict[str, Any]) -> None:
        self.wire = APIS[row["api"]]
        found = row["response"]
        self.streams = "sse" in found
        self.body = found["sse"].encode() if self.streams else json.dumps(found["body"]).encode()

    async def send(self, body: bytes, headers: Mapping[str, str]) -> UpstreamReply:
        async def pieces() -> AsyncGenerator[bytes, None]:
            for at in range(0, len(self.body), 700):
                yield self.body[at : at + 700]

        kind = "text/event-stream" if self.streams else "application/json"
        return UpstreamReply(200, {"content-type": kind}, pieces())


def request(wire: WireName, names: list[str], *, stream: bool) -> dict[str, Any]:
    schema = {"type": "object", "additionalProperties": True}
    said = [{"role": "user", "content": "Hi"}]
    body: dict[str, Any] = {"model": "m", "stream": stream, "max_tokens": 100}
    match wire:
        case "chat":
            tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]
            return {**body, "messages": said, "tools": tools}
        case "responses":
            del body["max_tokens"]
            return {
                **body, "input": said,
                "tools": [{"type": "function", "name": name, "parameters": schema} for name in names],
            }  # fmt: skip
        case _:
            return {**body, "messages": said, "tools": [{"name": name, "input_schema": schema} for name in names]}


async def replied(client: WireName, upstream: Recorded, names: list[str]) -> bytes:
    body = request(client, names, stream=upstream.streams)
    exchange = Exchange(WIRES[client], body, json.dumps(body).encode(), {}, Route("m", upstream))
    found = await answer(exchange)
    return b"".join([piece async for piece in found.pieces])


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("client", PATHS)
def test_a_recorded_reply_is_the_same_in_another_wire(client: WireName) -> None:
    read = 0
    for row in ROWS:
        upstream = Recorded(row)
        if upstream.wire == client:
            continue
        own = KITS[upstream.wire]
        wanted = own.read(upstream.body) if upstream.streams else own.read_whole(upstream.body)
        reply = asyncio.run(replied(client, upstream, [name for name, _ in wanted.calls]))
        found = KITS[client].read(reply) if upstream.streams else KITS[client].read_whole(reply)
        assert (found.text, found.calls, found.finish) == (wanted.text, wanted.calls, wanted.finish), row["id"]
        assert len(set(found.ids)) == len(found.ids)
        read += 1
    assert read > 20
