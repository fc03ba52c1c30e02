"""Calls in the text of a response become items of their own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from upstream_replies import named, output_message, responses_stream, responses_whole

from agentkit.gateway.exchanges import ReplyRecord
from agentkit.gateway.pass_through import PassThrough
from agentkit.gateway.responses_edit import ResponsesEdit
from agentkit.toolspec import ToolSpec

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'

ITEM = {
    "type": "function_call",
    "id": "fc_c1",
    "call_id": "c1",
    "name": "add",
    "arguments": '{"a": 1}',
    "status": "completed",
}


def machine(record: ReplyRecord | None = None) -> PassThrough:
    numbers = itertools.count(1)
    return PassThrough(ResponsesEdit(), (ADD,), record or ReplyRecord(), new_id=lambda: f"c{next(numbers)}")


def passed(pieces: Sequence[bytes], record: ReplyRecord | None = None) -> bytes:
    reply = machine(record)
    return b"".join([*map(reply.feed, pieces), reply.close()])


def read(sent: bytes) -> list[dict[str, Any]]:
    return [json.loads(block.partition(b"\n")[2][6:]) for block in sent.split(b"\n\n") if block]


def without_numbers(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in event.items() if key != "sequence_number"} for event in events]


def call_events(index: int) -> list[dict[str, Any]]:
    of = {"item_id": "fc_c1", "output_index": index}
    return [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**ITEM, "arguments": "", "status": "in_progress"},
        },
        {"type": "response.function_call_arguments.delta", **of, "delta": '{"a": 1}'},
        {"type": "response.function_call_arguments.done", **of, "arguments": '{"a": 1}', "name": "add"},
        {"type": "response.output_item.done", "output_index": index, "item": ITEM},
    ]


def test_a_call_after_text_is_a_second_item() -> None:
    record = ReplyRecord()
    events = read(passed(responses_stream(["Let me add.", *CALL]), record))
    *before, last = read(b"".join(responses_stream(["Let me add."])))
    last["response"]["output"].append(ITEM)
    assert without_numbers(events) == without_numbers([*before, *call_events(1), last])
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    assert (record.recovered, record.finish) == (1, "tool_calls")
    assert record.usage is not None
    assert record.usage.output_tokens == 5


def test_a_reply_that_is_a_call_has_no_empty_message() -> None:
    events = read(passed(responses_stream(["\n", *CALL])))
    begun, last = read(b"".join(responses_stream([])))[:2], read(b"".join(responses_stream([])))[-1]
    last["response"]["output"] = [ITEM]
    assert without_numbers(events) == without_numbers([*begun, *call_events(0), last])


def test_an_item_after_the_call_moves() -> None:
    begun, *said = responses_stream([CALL])
    thought = {"id": "rs_1", "type": "reasoning", "summary": []}
    more = [
        named({"type": "response.output_item.added", "output_index": 1, "item": thought}),
        named({"type": "response.output_item.done", "output_index": 1, "item": thought}),
    ]
    end = read(said[-1])[0]
    end["response"]["output"].append(thought)
    events = read(passed([begun, *said[:-1], *more, named(end)]))
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["function_call", "reasoning"]
    assert [event["output_index"] for event in events if "item" in event] == [0, 0, 1, 1]


def test_a_response_that_was_cut_is_unchanged() -> None:
    stream = responses_stream([CALL], "incomplete")
    assert passed(stream) == b"".join(stream)


def test_a_whole_response_with_a_call_is_edited() -> None:
    found = json.loads(machine().whole(json.dumps(responses_whole(f"Let me add.{CALL}")).encode()))
    assert found == {**responses_whole(""), "output": [output_message("Let me add.", "completed"), ITEM]}
