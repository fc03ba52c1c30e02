"""Recorded replies through the gateway: native ones are byte-equal, and calls in the text of others become native."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from recorded_recoveries import Reply, replies
from recordings import ABSENT, rows
from scenario_kit import SOAK
from upstream_replies import WIRES, ReadReply

from agentkit.events import CallEnd, Text
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.exchanges import ReplyRecord
from agentkit.gateway.pass_through import PassThrough
from agentkit.gateway.passed_reply import EDITS
from agentkit.gateway.request_tools import offered_tools
from agentkit.toolspec import ToolSpec

NAMES: dict[str, WireName] = {
    "openai-chat": "chat",
    "anthropic-messages": "messages",
    "openai-responses": "responses",
}
ROWS = [row for row in rows("wire.jsonl") if row["response"]["status"] == 200]


def ids(row: Any) -> str:
    return str(row["id"]) if isinstance(row, dict) else str(row)


def cut(body: bytes, seed: int) -> Iterator[bytes]:
    sizes, at = random.Random(seed), 0
    while at < len(body):
        size = sizes.choice([1, 2, 3, 7, 50, 400, 4000])
        yield body[at : at + size]
        at += size


def tools_of(row: dict[str, Any]) -> tuple[ToolSpec, ...]:
    """The tools of the recorded request, or another one, so that the reply is read in any case."""
    return offered_tools(NAMES[row["api"]], row["request"]["body"] or {}) or (ToolSpec("other", "", {}),)


def passed(wire: WireName, tools: Sequence[ToolSpec], pieces: Sequence[bytes], record: ReplyRecord) -> list[bytes]:
    reply = PassThrough(EDITS[wire](), tools, record)
    return [*map(reply.feed, pieces), reply.close()]


# ---------------------------------------------------------------- recorded exchanges


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("row", [row for row in ROWS if "sse" in row["response"]], ids=ids)
def test_a_recorded_stream_is_byte_equal_however_it_is_cut(row: dict[str, Any]) -> None:
    wire, body = NAMES[row["api"]], row["response"]["sse"].encode()
    tools = tools_of(row)
    ways = [[body], *([*cut(body, seed)] for seed in range(3)), body.splitlines(keepends=True)]
    for pieces in ways:
        record = ReplyRecord()
        assert b"".join(passed(wire, tools, pieces, record)) == body
        assert (record.recovered, record.recovery_failed) == (0, 0)
        assert record.usage is not None or b'"usage":{' not in body
        assert record.finish in ("stop", "tool_calls", "length") or "event: error" in row["response"]["sse"]


@pytest.mark.skipif(not ROWS, reason=ABSENT)
def test_streams_cut_at_every_byte_are_byte_equal() -> None:
    short = sorted((row for row in ROWS if "sse" in row["response"]), key=lambda row: len(row["response"]["sse"]))[:3]
    for row in short:
        wire, body = NAMES[row["api"]], row["response"]["sse"].encode()
        tools = tools_of(row)
        for at in range(len(body)):
            assert b"".join(passed(wire, tools, [body[:at], body[at:]], ReplyRecord())) == body


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("row", [row for row in ROWS if "sse" not in row["response"]], ids=ids)
def test_a_recorded_whole_reply_is_the_same_object(row: dict[str, Any]) -> None:
    wire, raw = NAMES[row["api"]], json.dumps(row["response"]["body"]).encode()
    record = ReplyRecord()
    reply = PassThrough(EDITS[wire](), tools_of(row), record)
    assert reply.whole(raw) is raw
    assert record.recovery_failed == 0


# ---------------------------------------------------------------- calls in texts


@cache
def texts() -> list[Reply]:
    known = {row["id"] for name in ("raw_outputs.jsonl", "raw_streams.jsonl") for row in rows(name)}
    return [reply for reply in replies() if reply.id in known] if known else []


def share_of(wire: WireName) -> list[Reply]:
    """The texts for this wire: a third of them, and in the soak all."""
    return texts() if SOAK else texts()[[*WIRES].index(wire) :: len(WIRES)]


READ: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {}


def expected(reply: Reply) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """The text and the calls that agentkit finds in the whole text."""
    if reply.id not in READ:
        events = reply.read()
        text = "".join(event.text for event in events if isinstance(event, Text))
        calls = [(event.call.name, dict(event.call.arguments)) for event in events if isinstance(event, CallEnd)]
        READ[reply.id] = text, calls
    return READ[reply.id]


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("wire", WIRES)
def test_calls_in_recorded_texts_become_native(wire: WireName) -> None:
    kit, found = WIRES[wire], 0
    for number, reply in enumerate(share_of(wire)):
        text, calls = expected(reply)
        stream = kit.stream([reply.text[at : at + 5] for at in range(0, len(reply.text), 5)])
        record = ReplyRecord()
        several = [b"".join(stream[at : at + 7]) for at in range(0, len(stream), 7)]
        pieces = (stream, several, [*cut(b"".join(stream), number)])[number % 3]
        sent = b"".join(passed(wire, reply.tools, pieces, record))
        assert record.recovery_failed == 0
        if not calls:
            assert sent == b"".join(stream), reply.id
            continue
        read, found = kit.read(sent), found + 1
        assert agrees(wire, read, text), (reply.id, read, text)
        assert (read.calls, read.finish) == (calls, "tool_calls"), reply.id
        assert len(set(read.ids)) == len(calls)
    assert found > 20


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("wire", WIRES)
def test_calls_in_whole_texts_become_native(wire: WireName) -> None:
    kit = WIRES[wire]
    for reply in share_of(wire):
        text, calls = expected(reply)
        raw, record = json.dumps(kit.whole(reply.text)).encode(), ReplyRecord()
        sent = PassThrough(EDITS[wire](), reply.tools, record).whole(raw)
        assert record.recovery_failed == 0
        if calls:
            read = kit.read_whole(sent)
            assert agrees(wire, read, text), (reply.id, read, text)
            assert (read.calls, read.finish) == (calls, "tool_calls"), reply.id
        else:
            assert sent is raw, reply.id


def agrees(wire: str, read: ReadReply, text: str) -> bool:
    """Whether this is the text that is left; without visible characters it is no block of a message."""
    return read.text == text or (wire != "chat" and read.text.strip() == text.strip())
