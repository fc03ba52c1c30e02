"""Every recorded exchange of Bedrock, over a real socket through boto3: what we read equals what boto3 returns.

The recordings are whole responses; the streams are the same ones and literal ones, as frames that are cut anywhere.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from converse_server import BEGIN, Answer, converse_server, delta, end, event, start, stop
from recordings import ABSENT, rows
from streams import answer
from wire_rules import check_converse

from agentkit.events import CallEnd, Event, Finish, ProviderBlock, Text, Thinking, Usage
from agentkit.messages import user
from agentkit.models import ModelRequest
from agentkit.models.bedrock_body import content_of, converse_messages
from agentkit.models.messages_body import anthropic_messages
from agentkit.processor import ResponseProcessor
from agentkit.tool.registry import ToolRegistry

ROWS = [row for row in rows("wire_other.jsonl") if row["api"] == "bedrock-converse"]

ASKED: dict[str, Any] = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hi"}]}]}


def boto(url: str) -> Any:
    config = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    return boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=config)


def framed(body: dict[str, Any]) -> bytes:
    """A whole response as the frames of a stream, with its texts and inputs in two pieces."""
    frames = BEGIN
    for at, block in enumerate(body["output"]["message"]["content"]):
        if "toolUse" in block:
            use = dict(block["toolUse"])
            text = json.dumps(use.pop("input"))
            frames += start(at, toolUse=use)
            frames += b"".join(delta(at, toolUse={"input": piece}) for piece in (text[:1], text[1:]))
        else:
            frames += b"".join(delta(at, text=piece) for piece in (block["text"][:9], block["text"][9:]) if piece)
        frames += stop(at)
    return frames + end(body["stopReason"], **{k: v for k, v in body["usage"].items() if isinstance(v, int)})


def accumulated(stream: Any) -> dict[str, Any]:
    """What boto3 yields, as the content of a whole response with its usage and its reason."""
    blocks: dict[int, Any] = {}
    whole: dict[str, Any] = {}
    for one in stream:
        ((kind, fields),) = one.items()
        at = fields.get("contentBlockIndex")
        if kind == "contentBlockStart":
            blocks[at] = {"toolUse": {**fields["start"]["toolUse"], "input": ""}}
        elif kind == "contentBlockDelta":
            ((name, value),) = fields["delta"].items()
            if name == "text":
                blocks.setdefault(at, {"text": ""})["text"] += value
            elif name == "toolUse":
                blocks[at]["toolUse"]["input"] += value["input"]
            else:
                thought = blocks.setdefault(at, {"reasoningContent": {}})["reasoningContent"]
                ((key, piece),) = value.items()
                thought[key] = thought.get(key, type(piece)()) + piece
        elif kind in ("messageStop", "metadata"):
            whole |= fields
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return {**whole, "output": {"message": {"content": list(blocks.values())}}}


def theirs(body: dict[str, Any]) -> list[Any]:
    """The text, the calls, the usage and the reason of what boto3 returned or yielded."""
    content, usage = body["output"]["message"]["content"], body["usage"]
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    calls = [(use["toolUseId"], use["name"], use["input"]) for use in uses]
    cached, written = usage.get("cacheReadInputTokens", 0), usage.get("cacheWriteInputTokens", 0)
    counts = Usage(usage["inputTokens"] + cached + written, usage["outputTokens"], cached, written)
    return ["".join(b.get("text", "") for b in content), calls, counts, body["stopReason"]]


def ours(events: list[Event]) -> list[Any]:
    calls = [(e.call.id, e.call.name, e.call.arguments) for e in events if isinstance(e, CallEnd)]
    (usage,) = (e for e in events if isinstance(e, Usage))
    assert isinstance(events[-1], Finish)
    return ["".join(e.text for e in events if isinstance(e, Text)), calls, usage, events[-1].raw]


def ids(row: dict[str, Any]) -> str:
    return str(row["id"])


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_row_reads_as_boto3_returns_it(row: dict[str, Any]) -> None:
    body = row["response"]["body"]
    with converse_server(Answer(body)) as server:
        returned = boto(server.url).converse(**ASKED)
        events, error = answer(server.model(), stream=False)
        assert [one["path"] for one in server.requests][1].endswith("/converse")
    assert error is None
    assert ours(events) == theirs(returned) == theirs(body)


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("cuts", [None, 1])
@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_row_in_frames_reads_as_boto3_yields_it(row: dict[str, Any], cuts: int | None) -> None:
    body = row["response"]["body"]
    with converse_server(Answer(framed(body), cuts=cuts)) as server:
        yielded = accumulated(boto(server.url).converse_stream(**ASKED)["stream"])
        events, error = answer(server.model())
    assert error is None
    assert ours(events) == theirs(yielded) == theirs(body)


THOUGHT = (
    BEGIN
    + delta(0, reasoningContent={"text": "Two "})
    + delta(0, reasoningContent={"text": "cities: café, 東京."})
    + delta(0, reasoningContent={"signature": "SIG"})
    + stop(0)
    + delta(1, reasoningContent={"redactedContent": "AP8="})
    + stop(1)
    + delta(2, text="I look ")
    + delta(2, text="both up.")
    + stop(2)
    + start(3, toolUse={"toolUseId": "tooluse_1", "name": "weather"})
    + delta(3, toolUse={"input": '{"city": "caf'})
    + delta(3, toolUse={"input": 'é"}'})
    + stop(3)
    + start(4, toolUse={"toolUseId": "tooluse_2", "name": "weather"})
    + delta(4, toolUse={"input": '{"city": "東京"}'})
    + stop(4)
    + end("tool_use", inputTokens=7, outputTokens=40, totalTokens=1_047, cacheReadInputTokens=1_000)
)


@pytest.mark.parametrize("cuts", range(3))
def test_thinking_and_parallel_calls_cut_anywhere(cuts: int) -> None:
    with converse_server(Answer(THOUGHT, cuts=cuts)) as server:
        yielded = accumulated(boto(server.url).converse_stream(**ASKED)["stream"])
        events, error = answer(server.model())
    assert error is None
    assert ours(events) == theirs(yielded)
    assert ours(events)[2] == Usage(1_007, 40, 1_000)
    thought = yielded["output"]["message"]["content"][0]["reasoningContent"]
    assert [e for e in events if isinstance(e, Thinking)] == [Thinking("Two cities: café, 東京.")]
    assert [e.data for e in events if isinstance(e, ProviderBlock)] == [
        {"type": "thinking", "thinking": thought["text"], "signature": thought["signature"]},
        {"type": "redacted_thinking", "data": "AP8="},
    ]


def test_events_that_boto3_does_not_know_are_ignored() -> None:
    new = event("somethingNew", x=1)
    with converse_server(Answer(BEGIN + new + delta(0, text="Hi") + stop(0) + end("end_turn"))) as server:
        assert answer(server.model())[0] == [Text("Hi"), Usage(10, 2), Finish("stop", "end_turn")]


@pytest.mark.parametrize("cut", [len(BEGIN) - 1, len(BEGIN) + 20, len(THOUGHT) // 2, len(THOUGHT) - 400])
def test_a_stream_that_ends_early_is_no_answer(cut: int) -> None:
    with converse_server(Answer(THOUGHT[:cut])) as server:
        events, error = answer(server.model())
    assert error is not None
    assert (error.kind, error.retryable) == ("connection", True)
    assert not any(isinstance(e, Finish) for e in events)


def test_a_damaged_frame_is_no_answer() -> None:
    damaged = BEGIN + delta(0, text="Hi").replace(b"Hi", b"Ho") + stop(0) + end("end_turn")
    with converse_server(Answer(damaged)) as server:
        events, error = answer(server.model())
    assert events == []
    assert error is not None
    assert "Checksum" in str(error)


@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_what_came_in_can_be_sent_back(row: dict[str, Any]) -> None:
    """The response, through the processor into a conversation, is a valid next request with the same calls in it."""

    async def turn() -> list[Any]:
        with converse_server(Answer(row["response"]["body"])) as server:
            read = ResponseProcessor(ToolRegistry()).process(
                server.model().stream(ModelRequest([user("Hi")], stream=False))
            )
            async for _ in read:
                pass
        return [user("Hi"), read.message, *read.results, user("Go on")]

    sent = converse_messages(anthropic_messages(asyncio.run(turn()), "bedrock", content=content_of))
    check_converse(sent)
    assert [b["toolUse"] for b in sent[1]["content"] if "toolUse" in b] == [
        {k: v for k, v in b["toolUse"].items() if k != "type"}
        for b in row["response"]["body"]["output"]["message"]["content"]
        if "toolUse" in b
    ]
