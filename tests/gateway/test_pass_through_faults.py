"""Broken streams, and replies as the real SDKs read them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest
from upstream_replies import WIRES, chunk

from agentkit.gateway.client_wire import WireName
from agentkit.gateway.exchanges import ReplyRecord
from agentkit.gateway.pass_through import PassThrough
from agentkit.gateway.passed_reply import EDITS
from agentkit.testing import Recording, Replay
from agentkit.toolspec import ToolSpec

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
SAID = ["Let me ", "add", ": ", *CALL, "\n", *CALL]


def passed(wire: WireName, pieces: Any, record: ReplyRecord | None = None) -> bytes:
    reply = PassThrough(EDITS[wire](), (ADD,), record or ReplyRecord())
    return b"".join([*map(reply.feed, pieces), reply.close()])


def cut(body: bytes, seed: int) -> Iterator[bytes]:
    sizes, at = random.Random(seed), 0
    while at < len(body):
        size = sizes.choice([1, 2, 3, 7, 50, 400])
        yield body[at : at + size]
        at += size


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_breaks_off_anywhere_loses_nothing(wire: WireName) -> None:
    stream = WIRES[wire].stream(["So: ", CALL, "Done."])
    body, whole = b"".join(stream), b"".join(stream[: -2 if wire == "chat" else -1])
    for at in range(0, len(body), 3):
        sent = passed(wire, [body[:at]])
        assert sent == body[:at] or len(body[:at].rstrip()) >= len(whole.rstrip()) - 200


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_any_line_ends_and_single_bytes(wire: WireName, end: bytes) -> None:
    body = b"".join(WIRES[wire].stream(SAID)).replace(b"\n", end)
    for pieces in ([body], [body[at : at + 1] for at in range(len(body))], [*cut(body, 1)]):
        read = WIRES[wire].read(passed(wire, pieces))
        assert (read.text, read.calls, read.finish) == ("Let me add: ", [("add", {"a": 1})] * 2, "tool_calls")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("noise", [b": waiting\n\n", b"data: {broken\n\n", b"data: 7\n\n", b"x\n\n", b"retry: 5\n\n"])
def test_what_is_no_event_of_the_reply_is_passed_on(wire: WireName, noise: bytes) -> None:
    stream = WIRES[wire].stream(SAID)
    noisy = [block for event in stream for block in (noise, event)]
    sent = passed(wire, noisy)
    assert sent.count(noise) >= len(stream)
    read = WIRES[wire].read(b"".join(sent.split(noise)))
    assert (read.text, read.calls) == ("Let me add: ", [("add", {"a": 1})] * 2)


ERRORS = {
    "chat": b'data: {"error": {"message": "overloaded", "code": 503}}\n\n',
    "messages": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}\n\n',
    "responses": b'event: error\ndata: {"type": "error", "code": "server_error", "message": "x"}\n\n',
}


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_in_the_stream_passes_at_once_with_all_that_waited(wire: WireName) -> None:
    stream = WIRES[wire].stream([CALL])
    reply = PassThrough(EDITS[wire](), (ADD,), ReplyRecord())
    pieces = [*stream[:-4], ERRORS[wire]]
    sent = b"".join(map(reply.feed, pieces))
    assert sent == b"".join(pieces)


@pytest.mark.parametrize("wire", WIRES)
def test_events_of_odd_shapes_break_nothing(wire: WireName) -> None:
    dice, stream = random.Random(7), WIRES[wire].stream(SAID)
    odd = [b"null", b"[]", b'""', b"0", b"true", b"{}", b'"x"', b"[{}]", b"[null]", b'{"index":"x"}']
    body = b"".join(stream)
    for _ in range(100):
        at = dice.randrange(len(body))
        damaged = body[:at] + dice.choice(odd) + body[at + dice.randrange(60) :]
        record = ReplyRecord()
        sent = passed(wire, [*cut(damaged, at)], record)
        assert sent == damaged or record.recovered


def test_an_event_that_cannot_be_edited_is_passed_on_with_all_that_waited() -> None:
    record = ReplyRecord()
    pieces = [chunk({"content": CALL}), b'data: {"choices": [{"delta": 5, "finish_reason": "stop"}]}\n\n']
    assert passed("chat", pieces, record) == b"".join(pieces)
    assert record.recovery_failed == 1


# ---------------------------------------------------------------- as the SDKs read it


async def chat(replay: Replay) -> Any:
    import openai
    from openai.lib.streaming.chat import ChatCompletionStreamState

    client = openai.AsyncOpenAI(api_key="k", http_client=replay.client())
    state: Any = ChatCompletionStreamState()
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    async for part in await client.chat.completions.create(**asked, stream=True):
        state.handle_chunk(part)
    choice = state.get_final_completion().choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    return choice.message.content, calls, choice.finish_reason


async def messages(replay: Replay) -> Any:
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="k", http_client=replay.client())
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100}
    async with client.messages.stream(**asked) as stream:
        whole = await stream.get_final_message()
    calls = [(block.name, block.input) for block in whole.content if block.type == "tool_use"]
    return "".join(block.text for block in whole.content if block.type == "text"), calls, whole.stop_reason


async def responses(replay: Replay) -> Any:
    import openai

    client = openai.AsyncOpenAI(api_key="k", http_client=replay.client())
    async with client.responses.stream(model="m", input="Hi") as stream:
        whole = await stream.get_final_response()
    calls = [(item.name, item.arguments) for item in whole.output if item.type == "function_call"]
    return whole.output_text, calls, whole.status


READ_BY_SDK: dict[str, tuple[Any, Any, str]] = {
    "chat": (chat, '{"a": 1}', "tool_calls"),
    "messages": (messages, {"a": 1}, "tool_use"),
    "responses": (responses, '{"a": 1}', "completed"),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("said", [SAID, ["\n", *CALL, *CALL], [*CALL, " and ", *CALL]])
def test_the_sdk_reads_native_calls(wire: WireName, said: list[str]) -> None:
    read, arguments, finish = READ_BY_SDK[wire]
    body = passed(wire, WIRES[wire].stream(said))
    replay = Replay([Recording(body.decode(), 200, {"content-type": "text/event-stream"})])
    text, calls, ended = asyncio.run(read(replay))
    assert text.strip() == "".join(said).replace(CALL, "").strip()
    assert (calls, ended) == ([("add", arguments)] * 2, finish)
