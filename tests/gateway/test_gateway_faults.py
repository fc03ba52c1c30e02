"""Upstreams that break anywhere or answer with anything, clients that ask for anything: an answer, or a clear error."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from email.utils import formatdate
from time import process_time, time
from typing import Any

import pytest
from fake_upstream import head
from gateway_world import Got, World, gateway_world, in_loop
from recordings import ABSENT, SHARED, rows
from scenario_kit import SOAK
from upstream_replies import WIRES

from agentkit.formats import get, render_prompt
from agentkit.gateway.chat_client import CHAT
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.reply_ends import has_end
from agentkit.models.stream_errors import ErrorInStream
from agentkit.toolspec import ToolSpec

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TEXT = 'I look.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "notes.txt"}}\n</tool_call>'
SSE = "text/event-stream"


def tool(wire: str, name: str = "read_file", parameters: Any = PARAMETERS) -> dict[str, Any]:
    if wire == "messages":
        return {"name": name, "input_schema": parameters}
    declared = {"name": name, "parameters": parameters}
    return {"type": "function", **declared} if wire == "responses" else {"type": "function", "function": declared}


def request(wire: str, *, stream: bool, **more: Any) -> dict[str, Any]:
    said = {"input" if wire == "responses" else "messages": [{"role": "user", "content": "What is in it?"}]}
    limit = {"max_tokens": 100} if wire == "messages" else {}
    return {"model": "m", "stream": stream, "tools": [tool(wire)], **said, **limit, **more}


def streamed(wire: str) -> bytes:
    return b"".join(WIRES[wire].stream([TEXT[at : at + 9] for at in range(0, len(TEXT), 9)]))


def cut_at(data: bytes, at: int, kind: str, way: str) -> Sequence[bytes]:
    """An answer of which only the first bytes come."""
    start = data[:at]
    match way:
        case "chunks without an end":
            return [head(kind=kind, transfer_encoding="chunked"), b"%x\r\n%b\r\n" % (at, start) if at else b""]
        case "too few bytes":
            return [head(kind=kind, content_length=str(len(data))), start]
        case _:
            return [head(kind=kind), start]


def says(wire: str, got: Got, *, stream: bool) -> Any:
    """What a response says: a status, `error`, or what was read."""
    if got.status != 200:
        return "error" if json.loads(got.body)["error"]["message"] and got.status == 502 else got.status
    try:
        read = WIRES[wire].read(got.body) if stream else WIRES[wire].read_whole(got.body)
    except ErrorInStream:
        return "error"
    return read.text.strip(), read.calls


@pytest.mark.parametrize("cuts", [20, pytest.param(100_000 if SOAK else 150, marks=pytest.mark.soak)])
@pytest.mark.parametrize("way", ["the connection is closed", "chunks without an end", "too few bytes"])
@pytest.mark.parametrize(
    ("upstream", "format", "client"),
    [
        *((wire, format, wire) for wire in WIRES for format in ("raw", "auto")),
        ("chat", "hermes", "messages"),
        ("messages", "hermes", "responses"),
        ("responses", "hermes", "chat"),
    ],
)
@in_loop
async def test_a_reply_that_is_cut_anywhere_is_complete_or_an_error(
    upstream: str, format: str, client: str, way: str, cuts: int
) -> None:
    calls: list[Any] = [] if format == "raw" else [("read_file", {"path": "notes.txt"})]
    complete = (TEXT if format == "raw" else "I look.", calls)
    async with gateway_world(upstream, format) as world:
        before = None
        for stream in (True, False):
            data = streamed(upstream) if stream else json.dumps(WIRES[upstream].whole(TEXT)).encode()
            kind = SSE if stream else "application/json"
            for at in [0, *range(5, len(data), max(1, len(data) // cuts))]:
                world.answers[""] = cut_at(data, at, kind, way)
                got = await world.post(client, request(client, stream=stream))
                said = says(client, got, stream=stream)
                assert got.complete
                assert said == "error" or (said == complete and has_end(upstream, data[:at])), at  # type: ignore[arg-type]
                before = before or await world.left()
        assert before is not None
        assert await world.beyond(before) == [0, 0, 0]


@pytest.mark.parametrize("format", ["raw", "auto", "hermes"])
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n", 502),
        (b"HTTP/1.1 301 Moved\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n", 502),
        (head(kind="text/html") + b"<html>Please log in</html>", 502),
        (head() + b"[" * 100_000, 502),
        (head() + b"", 502),
        (head(500, "text/html") + b"<html>Oh no</html>", 500),
        (head(500) + b'{"detail": "out of memory"}', 500),
        (head(429, "text/html", retry_after="inf") + b"<html>Slow down</html>", 429),
    ],
)
@in_loop
async def test_an_answer_that_is_no_reply_is_an_error_in_the_client_s_wire(
    answer: bytes, status: int, format: str
) -> None:
    async with gateway_world("messages", format) as world:
        world.answers[""] = [answer]
        got = await world.post("messages", request("messages", stream=False))
    assert (got.status, json.loads(got.body)["type"]) == (status, "error")


@pytest.mark.parametrize("format", ["raw", "auto", "hermes"])
@in_loop
async def test_a_wait_that_is_a_date_is_passed_on_in_seconds(format: str) -> None:
    async with gateway_world("chat", format) as world:
        when = formatdate(time() + 100, usegmt=True)
        world.answers[""] = [head(429, "text/html", retry_after=when), b"<html>Slow down</html>"]
        got = await world.post("chat", request("chat", stream=True))
    assert 90 <= int(got.headers["retry-after"]) <= 100


@pytest.mark.parametrize("wire", WIRES)
@in_loop
async def test_a_server_that_does_not_stream_as_it_was_asked_is_converted(wire: str) -> None:
    whole = json.dumps(WIRES[wire].whole(TEXT)).encode()
    said = ("I look.", [("read_file", {"path": "notes.txt"})])
    async with gateway_world(wire, "auto") as world:
        world.answers = {"whole": [head(), whole], "stream": [head(kind=SSE), streamed(wire)]}
        for stream, case in ((True, "whole"), (False, "stream")):
            got = await world.post(wire, request(wire, stream=stream), case)
            assert says(wire, got, stream=stream) == said


@in_loop
async def test_chunks_that_cannot_be_read_end_a_reply_at_once() -> None:
    async with gateway_world("chat", "auto") as world:
        world.answers[""] = [head(kind=SSE, transfer_encoding="chunked"), b"", b"zz\r\n"]
        async with asyncio.timeout(60):
            got = await world.post("chat", request("chat", stream=True))
    assert says("chat", got, stream=True) == "error"


# ---------------------------------------------------------------- clients


async def ready(world: World, wire: str = "chat") -> None:
    world.answers[""] = [head(), json.dumps(WIRES[wire].whole(TEXT)).encode()]


@pytest.mark.parametrize("format", ["raw", "auto", "xml"])
@pytest.mark.parametrize("depth", [200, 900, 960, 972, 100_000])
@in_loop
async def test_deep_nesting_is_no_fault_of_the_gateway(depth: int, format: str) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    body = json.dumps(request("chat", stream=False, seed="?", tools=[tool("chat", parameters="?")])).encode()
    async with gateway_world("chat", format) as world:
        await ready(world)
        statuses = {(await world.post("chat", body.replace(b'"?"', deep, times))).status for times in (1, 2)}
    assert statuses <= {200, 400}


@in_loop
async def test_half_a_surrogate_pair_anywhere_leaves_the_gateway_whole() -> None:
    half = '\\ud800"'
    async with gateway_world("chat", "xml") as world:
        await ready(world)
        body = json.dumps(request("chat", stream=False, seed_words="x?", model="m?")).replace('?"', half)
        assert (await world.post("chat", body.encode())).status == 200
        figures = await world.talk(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert figures.startswith(b"HTTP/1.1 200 ")


@in_loop
async def test_a_client_that_offers_another_protocol_keeps_its_body() -> None:
    """Java's `HttpClient` does so by default."""
    body = json.dumps(request("chat", stream=False)).encode()
    lines = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    upgrade = b"connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    async with gateway_world("chat", "auto") as world:
        await ready(world)
        got = await world.talk(lines, upgrade, b"content-length: %d\r\n\r\n" % len(body), body)
    assert got.startswith(b"HTTP/1.1 200 ")


@in_loop
async def test_a_client_that_takes_nothing_of_a_whole_reply_is_cut_off() -> None:
    async with gateway_world("chat", "raw", timeouts={"idle": 0.3}) as world:
        world.answers[""] = [head(), json.dumps({"a": "x" * 12_000_000}).encode()]
        before = await world.left()
        _, writer = await asyncio.open_connection("127.0.0.1", world.port, limit=1_024)
        body = json.dumps(request("chat", stream=False)).encode()
        lines = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        writer.write(lines + b"content-length: %d\r\n\r\n" % len(body) + body)
        while world.connections() < 1:  # noqa: ASYNC110 - the gateway connects
            await asyncio.sleep(0.01)
        await world.left()
        assert world.connections() == 0
        writer.transport.abort()
        assert await world.beyond(before) == [0, 0, 0]


@in_loop
async def test_the_schema_of_a_tool_may_be_null_or_refer_to_itself() -> None:
    odd = [
        {"type": "object", "properties": None},
        {"type": "object", "required": None},
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://169.254.169.254/"}}},
    ]
    async with gateway_world("chat", "auto") as world:
        await ready(world)
        for schema in odd:
            tools = [tool("chat"), tool("chat", "odd", schema)]
            got = await world.post("chat", request("chat", stream=False, tools=tools))
            assert says("chat", got, stream=False)[1], schema


def test_the_prompt_for_many_tools_takes_linear_process_time() -> None:
    tools = [ToolSpec(f"t{n}", "", {"type": "object", "properties": {"a": {"type": "integer"}}}) for n in range(200)]
    since = process_time()
    assert "t199" in render_prompt(get("xml"), tools)
    assert process_time() - since < 5, "it took 12 s when each example was written next to all tools"


def test_results_of_unknown_calls_take_linear_process_time() -> None:
    calls = [{"id": f"c{n}", "function": {"name": "f"}} for n in range(20_000)]
    results = [{"role": "tool", "tool_call_id": f"r{n}", "content": ""} for n in range(20_000)]
    body = {"model": "m", "messages": [{"role": "assistant", "tool_calls": calls}, *results]}
    since = process_time()
    with pytest.raises(RequestRefused, match="no call has the id 'r0'"):
        CHAT.read(body)
    assert process_time() - since < 5, "each result noted all calls without one: 12 s, and 3 GB"


# ---------------------------------------------------------------- mutated requests

ODD: Sequence[Any] = (
    None, True, -1, 1e308, 10**30, "", "\0", "\ud800", "\u202egnp.exe", "x" * 3_000, [], {}, [None], [[]], {"a": None},
    {"type": "text"}, {"type": "function"}, "required", {"$ref": "#"}, {"type": ["string", "null"]}, {"enum": []},
    {"pattern": "(a+)+$"}, {"required": "x"}, {"type": 5}, "data:image/png;base64,!!!", "agentkit:part/0",
)  # fmt: skip
NAMES: dict[str, WireName] = {
    "openai-chat": "chat",
    "openai-responses": "responses",
    "anthropic-messages": "messages",
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value[:6]) if isinstance(value, list) else ()
    return found + [place for key, one in items for place in places(one, (*path, key))]


def mutated(body: Any, dice: random.Random) -> Any:
    body = json.loads(json.dumps(body))
    for _ in range(dice.choice([1, 1, 2, 3])):
        *path, last = dice.choice(places(body))
        inside = body
        for key in path:
            inside = inside[key]
        if dice.random() < 0.2 and isinstance(inside, dict) and len(inside) > 1:
            del inside[last]
        else:
            inside[last] = json.loads(json.dumps(dice.choice(ODD)))
    return body


@pytest.mark.skipif(not SHARED.exists(), reason=ABSENT)
@pytest.mark.parametrize("format", ["auto", "xml"])
@pytest.mark.parametrize("upstream", WIRES)
@in_loop
async def test_a_mutated_request_is_answered_or_refused(upstream: str, format: str) -> None:
    dice = random.Random(f"{upstream} {format}")
    recorded = [(NAMES[row["api"]], row["request"]["body"]) for row in rows("wire.jsonl") if row["api"] in NAMES]
    recorded = [(wire, body) for wire, body in recorded if body]
    async with gateway_world(upstream, format) as world:
        await ready(world, upstream)
        world.answers[""] = [head(), json.dumps(WIRES[upstream].whole("Sunny.")).encode()]
        for wire, body in dice.choices(recorded, k=60):
            asked = mutated(body, dice)
            got = await world.post(wire, asked)
            assert got.status in (200, 400, 404), asked
            assert got.complete
            if got.status != 200:
                assert json.loads(got.body)["error"]["message"], asked
            assert b"its log says" not in got.body, asked
